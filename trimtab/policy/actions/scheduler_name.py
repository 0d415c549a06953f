"""Sets the scheduler that places a pod, while that scheduler runs.

A scheduler runs while its leader renews its Lease. A pod whose scheduler does not run stays pending.
"""

from trimtab.cluster.api.meta import change
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.field_types import Flag, LeaseReference, ObjectName, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "schedulerName"
# The API server writes this name where the author names none (pkg/apis/core/v1/defaults.go).
_DEFAULT = "default-scheduler"
NO_LEASE = "none"
LEASE_NAMESPACE = "kube-system"


@policy_type
class SchedulerChoice:
    """The scheduler of pods, such as one that packs nodes. A pod is left alone while that scheduler does not run."""

    name: ObjectName
    """The name that the scheduler's profile has."""
    lease: LeaseReference | None = None
    """The Lease that the scheduler's leader renews, as NAMESPACE/NAME: without a fresh one the pod stays as it is. By
    default the Lease of the scheduler's own name in kube-system. `none` for a scheduler without a Lease, such as a
    cloud's: then it is assumed to run."""
    override: Flag = False
    """Replace another scheduler that the pod itself names (the default one never counts as the pod's own)."""
    required: Required = False

    @property
    def watched_lease(self) -> str | None:
        """NAMESPACE/NAME of the Lease that shows whether the scheduler runs, or None if there is none."""
        return None if self.lease == NO_LEASE else self.lease or f"{LEASE_NAMESPACE}/{self.name}"


def propose_changes(settings: SchedulerChoice, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Sets the scheduler, or records why not."""
    before = draft.spec.scheduler_name
    if before == settings.name:
        draft.decide_first(FIELD, settings.name)
        return
    is_own_choice = before not in ("", _DEFAULT)
    if is_own_choice and not settings.override:
        draft.leave_unchanged(FIELD, reasons.ALREADY_SET(f"the pod itself names scheduler {before}"))
    elif draft.spec.node_name:
        draft.leave_unchanged(FIELD, reasons.ON_ITS_NODE(f"the pod itself names node {draft.spec.node_name}"))
    elif (reason := _not_running_reason(settings, draft.subject.facts)) is not None:
        draft.leave_unchanged(FIELD, reason, loud=True)
    elif draft.claim_field(
        FIELD,
        before or None,
        settings.name,
        reasons.POLICY_SAYS(f"the policy says {settings.name}"),
        replaces=is_own_choice,
    ):
        draft.spec = change(draft.spec, scheduler_name=settings.name)


def _not_running_reason(settings: SchedulerChoice, facts: ClusterFacts) -> Reason | None:
    """Returns why the scheduler does not run, as far as is known, or None if it runs, or if no Lease is read."""
    lease = settings.watched_lease
    if facts.fresh_leases is None or lease is None or lease in facts.fresh_leases:
        return None
    return reasons.SCHEDULER_NOT_RUNNING(f"no scheduler {settings.name} holds a fresh Lease {lease}")


def find_unmet_field(settings: SchedulerChoice, result: PodBeforeAndAfter) -> str | None:
    """Returns the field where another scheduler would place the pod."""
    return None if result.spec.scheduler_name == settings.name else FIELD
