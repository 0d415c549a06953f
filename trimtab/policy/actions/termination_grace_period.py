"""Limits the termination grace period of pods.

If the author sets none, the API server fills in 30 seconds before it calls webhooks, so the webhook cannot know whether
the author chose the value. That is why a policy sets bounds and not a default.
"""

from collections.abc import Iterator

from trimtab.cluster.api.meta import change
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions import reasons as lint_reasons
from trimtab.policy.actions.action import (
    NOTHING,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_match_fields,
    no_missing_objects,
    not_always,
)
from trimtab.policy.cel import cel_string, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import IS_APPLIED
from trimtab.policy.field_types import Required, Whole, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "terminationGracePeriodSeconds"
# Seconds that the API server writes (pkg/apis/core/v1/defaults.go).
_DEFAULT = 30
# A week. A node with such a pod is practically never drained.
_MAX_SECONDS = 7 * 86400


@policy_type
class TerminationGracePeriod:
    """Bounds for the termination grace period of pods."""

    min_seconds: Whole | None = None
    """The smallest grace period in seconds."""
    max_seconds: Whole | None = None
    """The largest grace period in seconds. A drain of the pod's node waits as long as the grace period."""
    required: Required = False

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.min_seconds, self.max_seconds) if bound is not None]
        if not bounds or min(bounds) < 0 or bounds != sorted(bounds):
            raise ValueError("minSeconds, maxSeconds or both, at least 0, with minSeconds not above maxSeconds")


def propose_changes(settings: TerminationGracePeriod, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the nearest grace period within the bounds, if the pod's grace period is outside the bounds."""
    before = changes.spec.termination_grace_period_seconds
    after = _within_bounds(settings, _DEFAULT if before is None else before)
    if after == (_DEFAULT if before is None else before):
        # At the second call the time is already within this policy's bounds; the field must stay this policy's.
        changes.decide_first(FIELD, after)
        return
    reason = reasons.POLICY_SAYS(f"the policy allows {_format_bounds(settings)}")
    if changes.claim_field(FIELD, before, after, reason, replaces=before not in (None, _DEFAULT)):
        changes.spec = change(changes.spec, termination_grace_period_seconds=after)


def find_unmet_field(settings: TerminationGracePeriod, result: PodBeforeAndAfter) -> str | None:
    """Returns the field `terminationGracePeriodSeconds` if its value is outside the bounds, otherwise None."""
    current = result.spec.termination_grace_period_seconds
    seconds = _DEFAULT if current is None else current
    return None if _within_bounds(settings, seconds) == seconds else FIELD


def _within_bounds(settings: TerminationGracePeriod, seconds: int) -> int:
    if settings.min_seconds is not None:
        seconds = max(seconds, settings.min_seconds)
    return seconds if settings.max_seconds is None else min(seconds, settings.max_seconds)


def _format_bounds(settings: TerminationGracePeriod) -> str:
    bounds = (("at least", settings.min_seconds), ("at most", settings.max_seconds))
    return " and ".join(f"{word} {bound} s" for word, bound in bounds if bound is not None)


def _describe(settings: TerminationGracePeriod) -> Iterator[str]:
    bounds = (("at least", settings.min_seconds), ("at most", settings.max_seconds))
    seconds_text = ", ".join(f"{word} {value} s" for word, value in bounds if value is not None)
    yield f"sets the termination grace period: {seconds_text}"


def _list_values(settings: TerminationGracePeriod) -> FieldValues:
    yield FIELD, f"{settings.min_seconds or 0} to {settings.max_seconds or 'any'}"


def _find_odd(settings: TerminationGracePeriod, terms: PolicyTerms) -> Iterator[Reason]:
    for word, seconds in (("minSeconds", settings.min_seconds), ("maxSeconds", settings.max_seconds)):
        if seconds is not None and seconds > _MAX_SECONDS:
            yield lint_reasons.ODD_AMOUNT(
                f"terminationGracePeriod.{word} is {seconds} s, which is {seconds // 86400} days; a drain of the pod's "
                "node waits that long"
            )


def _compile(settings: TerminationGracePeriod, terms: PolicyTerms) -> Iterator[PatchPart]:
    path = f"object.spec.{FIELD}"
    seconds = f"(has({path}) ? {path} : {_DEFAULT})"
    for sign, bound in (("<", settings.min_seconds), (">", settings.max_seconds)):
        if bound is not None:
            yield PatchPart(
                name=FIELD,
                test=join_all([f"{seconds} {sign} {bound}", f"{seconds} == {_DEFAULT} || !{IS_APPLIED}"]),
                operations=f"[{operation('add', pointer('spec', FIELD), str(bound))}]",
                note=cel_string(f"{FIELD}={bound}"),
            )


def _require(settings: TerminationGracePeriod, terms: PolicyTerms) -> FieldValues:
    path = f"object.spec.{FIELD}"
    bounds = ((">=", settings.min_seconds), ("<=", settings.max_seconds))
    comparisons = " && ".join(f"{path} {sign} {bound}" for sign, bound in bounds if bound is not None)
    yield FIELD, f"has({path}) && {comparisons}"


ACTION = Action(
    name="termination_grace_period",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=_find_odd,
    find_missing=no_missing_objects,
    compile=_compile,
    require=_require,
    order_matters=False,
    affects=NOTHING,
    list_differences=no_differences,
)
