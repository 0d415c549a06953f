"""Sets the scheduler that places a pod."""

from trimtab.cluster.api.meta import change
from trimtab.policy import reasons
from trimtab.policy.field_types import Flag, ObjectName, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "schedulerName"
# The API server writes this name where the author names none (pkg/apis/core/v1/defaults.go).
_DEFAULT = "default-scheduler"


@policy_type
class SchedulerChoice:
    """The scheduler of pods, such as one that packs nodes."""

    name: ObjectName
    """A pod whose scheduler does not run stays pending: roll this out in steps."""
    override: Flag = False
    """Replace another scheduler that the pod itself names (the default one never counts as the pod's own)."""
    required: Required = False


def propose_changes(settings: SchedulerChoice, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Sets the scheduler, or records why not."""
    before = draft.spec.scheduler_name
    if before == settings.name:
        draft.decide_first(FIELD, settings.name)
        return
    is_own_choice = before not in ("", _DEFAULT)
    if is_own_choice and not settings.override:
        draft.leave_unchanged(FIELD, reasons.ALREADY_SET(f"the pod names scheduler {before} itself"))
    elif draft.spec.node_name:
        draft.leave_unchanged(FIELD, reasons.ON_ITS_NODE(f"the pod names node {draft.spec.node_name} itself"))
    elif draft.claim_field(
        FIELD,
        before or None,
        settings.name,
        reasons.POLICY_SAYS(f"the policy says {settings.name}"),
        replaces=is_own_choice,
    ):
        draft.spec = change(draft.spec, scheduler_name=settings.name)


def find_unmet_field(settings: SchedulerChoice, result: PodBeforeAndAfter) -> str | None:
    """Returns the field where another scheduler would place the pod."""
    return None if result.spec.scheduler_name == settings.name else FIELD
