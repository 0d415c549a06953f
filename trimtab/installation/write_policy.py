"""What an account may change in one kind of object, and the policies that several processes have alike.

RBAC cannot restrict fields, nor `create` to names that depend on pools or shards. Each policy names the fields that one
process changes in one kind of object, and the API server refuses every other change by that account, so that a stolen
token cannot affect another process, an object's owners, or fields that a later version of Kubernetes adds. A test reads
all permissions from the rendered roles, and fails for a write that has neither a policy nor a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.count_autoscalers import MIN_REPLICAS_BEFORE
from trimtab.cluster.pool import MAX_SURGE
from trimtab.cluster.processes import account_name
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.pool_status import GROUP, PLURAL
from trimtab.compactor.soft_taint import LEAVING, RESERVED, SOFT_TAINTS
from trimtab.installation.permitted_changes import FieldPath, OwnEntries

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
OPERATIONS = {"create": (CREATE,), "update": (UPDATE,), "patch": (UPDATE,), "delete": (DELETE,)}
"""Verb of RBAC → operations of admission. A PUT or a server-side apply that creates an object also needs the verb
`create`."""


class Place(StrEnum):
    """The namespaces of the objects to which a policy applies. The values are CEL expressions."""

    EVERYWHERE = "true"
    OWN_NAMESPACE = "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
    OTHER_NAMESPACES = f"!{OWN_NAMESPACE}"


@dataclass(frozen=True, slots=True)
class WriteCondition:
    """A condition on what is written, beside the fields that may change."""

    expression: str
    """A CEL expression, which is true if the write is permitted."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePolicy:
    """What one process may change in one kind of object."""

    process: str
    subject: str
    """The end of the policy's name."""
    group: str
    kinds: tuple[str, ...]
    """The plurals of the kinds, or subresources as in "pods/eviction"."""
    version: str = "v1"
    operations: tuple[str, ...] = (UPDATE,)
    names: tuple[str, ...] = ()
    """The names of the objects to which the policy applies; empty for all."""
    may_change: tuple[FieldPath, ...] = ()
    """The fields of an existing object that the process may change."""
    may_set: tuple[FieldPath, ...] = ()
    """The fields of a new object that the process may set; empty for `may_change`."""
    what: str
    """What may change, as the end of the sentence "this account may only ..."."""
    conditions: tuple[WriteCondition, ...] = ()
    place: Place = Place.EVERYWHERE
    excluded_name: str = ""
    """The name of an object to which the policy does not apply."""
    is_namespaced: bool = True
    is_for_certificate: bool = False
    """Whether the policy is only needed if Trimtab writes its caBundles itself."""

    @property
    def name(self) -> str:
        """The name of the policy and of its binding."""
        return f"{account_name(self.process)}-{self.subject}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of the policy's rule: every subresource, too, because most of them write the whole metadata."""
        return tuple(name for kind in self.kinds for name in ((kind,) if "/" in kind else (kind, f"{kind}/*")))

    @property
    def message(self) -> str:
        """What the API server says when it refuses a write."""
        return f"this account may only {self.what}"

    def covers(self, process: str, group: str, resource: str, operation: str, place: Place) -> bool:
        """Returns whether the policy restricts this kind of write of the objects in this place."""
        kind, _, subresource = resource.partition("/")
        resources = {resource, f"{kind}/*"} if subresource else {resource}
        return (process, group) == (self.process, self.group) and (
            operation in self.operations
            and not resources.isdisjoint(self.resources)
            and self.place in (place, Place.EVERYWHERE)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrestrictedWrite:
    """A permission to write that needs no policy."""

    process: str
    group: str
    resource: str
    operation: str
    reason: str


_LABELS = "trimtab.dev/"
"""The prefix of the labels by which Trimtab's processes select ConfigMaps."""


def label_path(name: str) -> FieldPath:
    """Returns the path of a label."""
    return ("metadata", "labels", name)


def annotation_path(name: str) -> FieldPath:
    """Returns the path of an annotation."""
    return ("metadata", "annotations", name)


def restrict_ca_bundle(
    process: str, *, group: str, kinds: tuple[str, ...], name: str, field: FieldPath, what: str
) -> WritePolicy:
    """Returns the policy for the cluster-scoped objects in which the process writes its caBundle."""
    return WritePolicy(
        process=process,
        subject="cabundle",
        group=group,
        kinds=kinds,
        names=(name,),
        may_change=(field,),
        what=what,
        is_namespaced=False,
        is_for_certificate=True,
    )


def restrict_secrets(process: str, *names: str) -> WritePolicy:
    """Returns the policy for the process's own Secrets, of which the process writes only the data."""
    return WritePolicy(
        process=process,
        subject="secrets",
        group="",
        kinds=("secrets",),
        names=names,
        may_change=(("data",),),
        what="change the data of its Secrets",
    )


def restrict_lease(process: str) -> WritePolicy:
    """Returns the policy for the Lease that the process's replicas share."""
    fields = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")
    return WritePolicy(
        process=process,
        subject="lease",
        group="coordination.k8s.io",
        kinds=("leases",),
        operations=(CREATE, UPDATE),
        names=(account_name(process),),
        may_change=tuple(("spec", field) for field in fields),
        what="write who holds its Lease, and for how long",
    )


_NEW_EVENT_FIELDS = (
    "eventTime",
    "reportingController",
    "reportingInstance",
    "action",
    "reason",
    "note",
    "type",
    "regarding",
    "series",
)


def restrict_events(process: str, controller: str) -> WritePolicy:
    """Returns the policy for the Events that the process reports under the name `controller`."""
    return WritePolicy(
        process=process,
        subject="events",
        group="events.k8s.io",
        kinds=("events",),
        operations=(CREATE, UPDATE),
        may_change=(("series",),),
        may_set=tuple((field,) for field in _NEW_EVENT_FIELDS),
        what="report an Event, and count how often it has occurred",
        conditions=(
            WriteCondition(
                f"object.reportingController == '{controller}'", f"this account reports only as {controller}"
            ),
        ),
    )


def restrict_config_maps(process: str, names: tuple[str, ...], labels: tuple[str, ...]) -> WritePolicy:
    """Returns the policy for the ConfigMaps in Trimtab's namespace that a process writes. Their names begin with one of
    `names`, and of their labels the process writes only `labels`."""
    by_name = " || ".join(f"request.name.startsWith('{name}')" for name in names)
    return WritePolicy(
        process=process,
        subject="configmaps",
        group="",
        kinds=("configmaps",),
        operations=(CREATE, UPDATE, DELETE),
        place=Place.OWN_NAMESPACE,
        may_change=(("data",), ("binaryData",), *map(label_path, labels)),
        what=f"write the data of its ConfigMaps, and of the labels {_LABELS}… only {' and '.join(labels)}",
        conditions=(
            WriteCondition(
                by_name, f"this account may write only ConfigMaps whose name begins with {' or '.join(names)}"
            ),
        ),
    )


def restrict_nodes(process: str) -> WritePolicy:
    """Returns the policy for nodes. A NoExecute taint would evict pods without regard to PodDisruptionBudgets, and an
    owner that does not exist would delete the node."""
    own = ", ".join(f"'{key}'" for key in SOFT_TAINTS)
    message = "a taint of Trimtab has the effect PreferNoSchedule"
    return WritePolicy(
        process=process,
        subject="nodes",
        group="",
        kinds=("nodes",),
        is_namespaced=False,
        may_change=(
            ("spec", "unschedulable"),
            ("spec", "taints", OwnEntries("key", SOFT_TAINTS)),
            annotation_path(CORDONED_BY_US),
        ),
        what=f"cordon a node, write {CORDONED_BY_US} on it, and give it the soft taint {LEAVING} or {RESERVED}",
        conditions=(
            WriteCondition(
                "!has(object.spec.taints) || "
                f"object.spec.taints.all(t, !(t.key in [{own}]) || t.effect == 'PreferNoSchedule')",
                message,
            ),
        ),
    )


REPLICAS_CEL = "oldObject.?spec.?replicas.orValue(0)", "object.?spec.?replicas.orValue(0)"
"""The number of replicas before and after a change of the scale subresource, which omits 0."""


def surge_steps_cel(*, is_downward: bool) -> str:
    """Returns a CEL expression that is true for a step of a surge: between counts of at least 1, by at most
    `MAX_SURGE`. `is_downward`: only for a step to a lower count."""
    before, after = REPLICAS_CEL
    down = f"{after} < {before} && {before} - {after} <= {MAX_SURGE}"
    up = f"{before} < {after} && {after} - {before} <= {MAX_SURGE}"
    return f"({after} >= 1 && {before} >= 1 && ({down if is_downward else f'({down}) || ({up})'}))"


def restrict_scale(process: str, *, steps: str, what: str) -> WritePolicy:
    """Returns the policy for the scale of Deployments; `steps` is a CEL expression that is true for permitted
    changes."""
    return WritePolicy(
        process=process,
        subject="scale",
        group="apps",
        kinds=("deployments/scale",),
        may_change=(("spec", "replicas"),),
        what=what,
        conditions=(WriteCondition(f"{' == '.join(REPLICAS_CEL)} || {steps}", f"this account may only {what}"),),
    )


_MARK = f"metadata.?annotations[?'{MIN_REPLICAS_BEFORE}']"
_FLOORS = "oldObject.?spec.?minReplicas.orValue(1)", "object.?spec.?minReplicas.orValue(1)"
"""`minReplicas` of a HorizontalPodAutoscaler before and after a change."""


def restrict_autoscalers(process: str, *, is_downward: bool) -> WritePolicy:
    """Returns the policy for HorizontalPodAutoscalers, of which the process writes only `minReplicas`: to at most
    `MAX_SURGE` more than the present count, with the former value in an annotation, and back to exactly that value.
    `is_downward`: only back."""
    before, after = _FLOORS
    mark = "string({}) + '-' + string({})".format
    up = (
        f"{before} < {after} && {before} >= 1 "
        f"&& {after} <= oldObject.?status.?currentReplicas.orValue(0) + {MAX_SURGE} "
        f"&& object.{_MARK}.orValue('') == {mark(before, after)}"
    )
    down = f"{after} < {before} && oldObject.{_MARK}.orValue('') == {mark(after, before)} && !object.{_MARK}.hasValue()"
    tidy = f"{after} == {before} && (!object.{_MARK}.hasValue() || object.{_MARK} == oldObject.{_MARK})"
    back = "set minReplicas of a HorizontalPodAutoscaler back to what it was before a surge"
    what = back if is_downward else f"raise minReplicas by at most {MAX_SURGE} above the present count, or set it back"
    return WritePolicy(
        process=process,
        subject="autoscalers",
        group="autoscaling",
        version="v2",
        kinds=("horizontalpodautoscalers",),
        may_change=(("spec", "minReplicas"), annotation_path(MIN_REPLICAS_BEFORE)),
        what=what,
        conditions=(
            WriteCondition(
                " || ".join(f"({step})" for step in (tidy, down, *(() if is_downward else (up,)))),
                f"this account may only {what}",
            ),
        ),
    )


def deletes_pool_status(process: str) -> UnrestrictedWrite:
    """Returns why a process may delete PoolStatus objects without a policy."""
    return UnrestrictedWrite(
        process=process,
        group=GROUP,
        resource=PLURAL,
        operation=DELETE,
        reason="the compactor writes a deleted PoolStatus again, and no process reads one",
    )
