"""Limits the termination grace period of pods.

If the author sets none, the API server fills in 30 seconds before it calls webhooks, so the webhook cannot know whether
the author chose the value. That is why a policy sets bounds and not a default.
"""

from trimtab.cluster.api.meta import change
from trimtab.policy import reasons
from trimtab.policy.field_types import Required, Whole, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "terminationGracePeriodSeconds"
# Seconds that the API server writes (pkg/apis/core/v1/defaults.go).
_DEFAULT = 30


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


def propose_changes(settings: TerminationGracePeriod, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the nearest grace period within the bounds, if the pod's grace period is outside the bounds."""
    before = draft.spec.termination_grace_period_seconds
    after = _within_bounds(settings, _DEFAULT if before is None else before)
    if after == (_DEFAULT if before is None else before):
        # At the second call the time is already within this policy's bounds; the field must stay this policy's.
        draft.decide_first(FIELD, after)
        return
    reason = reasons.POLICY_SAYS(f"the policy allows {_format_bounds(settings)}")
    if draft.claim_field(FIELD, before, after, reason, replaces=before not in (None, _DEFAULT)):
        draft.spec = change(draft.spec, termination_grace_period_seconds=after)


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
