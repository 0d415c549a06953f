"""Sets the scheduler that places a pod, as long as that scheduler is running.

A scheduler is running while its leader renews a Lease. A pod whose scheduler is not running stays pending.
"""

from collections.abc import Iterator

from trimtab.cluster.api.meta import change
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    NOTHING,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_match_fields,
    no_missing_objects,
    no_odd_values,
    not_always,
    override_suffix,
)
from trimtab.policy.cel import NotExpressible, cel_string, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import HAS_NO_NODE, IS_APPLIED
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
    """The scheduler of pods, such as a scheduler that packs nodes. It is not set while that scheduler is not
    running."""

    name: ObjectName
    """The scheduler's name: the `schedulerName` of its profile."""
    lease: LeaseReference | None = None
    """The Lease that the scheduler's leader renews, as NAMESPACE/NAME. While it is not renewed, the pod is not changed.
    The default is the Lease in kube-system with the scheduler's own name. `none`: the scheduler has no Lease, as in
    some clouds, and is assumed to be running."""
    override: Flag = False
    """Replace a scheduler that the pod's author has chosen. (The default scheduler is replaced in any case.)"""
    required: Required = False

    @property
    def watched_lease(self) -> str | None:
        """NAMESPACE/NAME of the Lease that shows whether the scheduler runs, or None if there is none."""
        return None if self.lease == NO_LEASE else self.lease or f"{LEASE_NAMESPACE}/{self.name}"


def propose_changes(settings: SchedulerChoice, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the scheduler, or records why it is not set."""
    before = changes.spec.scheduler_name
    if before == settings.name:
        changes.decide_first(FIELD, settings.name)
        return
    is_own_choice = before not in ("", _DEFAULT)
    if is_own_choice and not settings.override:
        changes.leave_unchanged(FIELD, reasons.ALREADY_SET(f"the pod itself names scheduler {before}"))
    elif changes.spec.node_name:
        changes.leave_unchanged(FIELD, reasons.ON_ITS_NODE(f"the pod itself names node {changes.spec.node_name}"))
    elif (reason := _not_running_reason(settings, changes.pod_context.facts)) is not None:
        changes.leave_unchanged(FIELD, reason, loud=True)
    elif changes.claim_field(
        FIELD,
        before or None,
        settings.name,
        reasons.POLICY_SAYS(f"the policy says {settings.name}"),
        replaces=is_own_choice,
    ):
        changes.spec = change(changes.spec, scheduler_name=settings.name)


def _not_running_reason(settings: SchedulerChoice, facts: ClusterFacts) -> Reason | None:
    """Returns why the scheduler counts as not running, or None if it is running, or if no Leases are read."""
    lease = settings.watched_lease
    if facts.fresh_leases is None or lease is None or lease in facts.fresh_leases:
        return None
    return reasons.SCHEDULER_NOT_RUNNING(
        f"no replica of the scheduler {settings.name} has renewed the Lease {lease} recently"
    )


def find_unmet_field(settings: SchedulerChoice, result: PodBeforeAndAfter) -> str | None:
    """Returns the field `schedulerName` if the pod has another scheduler, otherwise None."""
    return None if result.spec.scheduler_name == settings.name else FIELD


def _describe(settings: SchedulerChoice) -> Iterator[str]:
    yield f"sets the scheduler {settings.name}{override_suffix(settings.override)}"


def _list_values(settings: SchedulerChoice) -> FieldValues:
    yield FIELD, settings.name


def _compile(settings: SchedulerChoice, terms: PolicyTerms) -> Iterator[PatchPart]:
    if settings.watched_lease is not None:
        raise NotExpressible(
            "spec.actions.schedulerName: CEL cannot read whether the scheduler's Lease is current; with `lease: "
            "none` Trimtab assumes that the scheduler runs"
        )
    path, name = f"object.spec.{FIELD}", cel_string(settings.name)
    is_free = f"(!has({path}) || {path} in ['', '{_DEFAULT}'])"
    may = f"({is_free} || (has({path}) && {path} != {name} && !{IS_APPLIED}))" if settings.override else is_free
    yield PatchPart(
        name=FIELD,
        test=join_all([may, f"({HAS_NO_NODE})", f"!has({path}) || {path} != {name}"]),
        operations=f"[{operation('add', pointer('spec', FIELD), name)}]",
        note=cel_string(f"{FIELD}={settings.name}"),
    )


def _require(settings: SchedulerChoice, terms: PolicyTerms) -> FieldValues:
    yield FIELD, f"object.spec.{FIELD} == {cel_string(settings.name)}"


ACTION = Action(
    name="scheduler_name",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile,
    require=_require,
    order_matters=True,
    affects=NOTHING,
    list_differences=no_differences,
)
