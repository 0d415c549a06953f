"""How long may this pod take to end?

The API server writes 30 seconds where the author wrote nothing, before anybody else is asked: nobody can tell the two
apart. So a policy gives bounds, not a default.
"""

from trimtab.cluster.api.meta import change
from trimtab.policy import reasons
from trimtab.policy.field_types import Required, Whole, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "terminationGracePeriodSeconds"
_DEFAULT = 30
"""Of the API server (pkg/apis/core/v1/defaults.go)."""


@policy_type
class TerminationGracePeriod:
    """Bounds for the time that a pod has to end."""

    min_seconds: Whole | None = None
    """Never less."""
    max_seconds: Whole | None = None
    """Never more: a node that is drained waits as long."""
    required: Required = False

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.min_seconds, self.max_seconds) if bound is not None]
        if not bounds or min(bounds) < 0 or bounds != sorted(bounds):
            raise ValueError("minSeconds, maxSeconds or both, from 0 on, the minimum not above the maximum")


def propose_changes(settings: TerminationGracePeriod, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Bring the time within the bounds."""
    before = draft.spec.termination_grace_period_seconds
    after = _bounded(settings, _DEFAULT if before is None else before)
    if after == (_DEFAULT if before is None else before):
        draft.decide_first(FIELD, after)  # so that what this policy wrote once is not another one's the next time
        return
    says = reasons.POLICY_SAYS(f"the policy allows {_said(settings)}")
    if draft.claim_field(FIELD, before, after, says, replaces=before not in (None, _DEFAULT)):
        draft.spec = change(draft.spec, termination_grace_period_seconds=after)


def find_unmet_field(settings: TerminationGracePeriod, result: PodBeforeAndAfter) -> str | None:
    """The field, where the time is outside the bounds."""
    found = result.spec.termination_grace_period_seconds
    seconds = _DEFAULT if found is None else found
    return None if _bounded(settings, seconds) == seconds else FIELD


def _bounded(settings: TerminationGracePeriod, seconds: int) -> int:
    if settings.min_seconds is not None:
        seconds = max(seconds, settings.min_seconds)
    return seconds if settings.max_seconds is None else min(seconds, settings.max_seconds)


def _said(settings: TerminationGracePeriod) -> str:
    bounds = (("at least", settings.min_seconds), ("at most", settings.max_seconds))
    return " and ".join(f"{word} {bound} s" for word, bound in bounds if bound is not None)
