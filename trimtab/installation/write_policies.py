"""What each account of Trimtab may change: a policy, or a reason for none, for every permission to write.

RBAC cannot restrict fields, nor `create` to names that depend on pools or shards. Each policy names the fields that one
process changes in one kind of object, and the API server refuses every other change by that account, so that a stolen
token cannot affect another process, an object's owners, or fields that a later version of Kubernetes adds. A test reads
all permissions from the rendered roles, and fails for a write that has neither a policy nor a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.cluster.recommendation import RECOMMENDATIONS_LABEL
from trimtab.cluster.request_parameters import PARAMETERS_NAME
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.pool_state import NAME_PREFIX as STATE_NAMES
from trimtab.compaction.drain.pool_state import STATE_LABEL
from trimtab.compaction.pool_status import PLURAL as POOL_STATUSES
from trimtab.compactor.decision_events import CONTROLLER as COMPACTOR_CONTROLLER
from trimtab.compactor.pool_state_store import UNREADABLE_STATE_LABEL
from trimtab.compactor.soft_taint import LEAVING, RESERVED, SOFT_TAINTS
from trimtab.installation.names import (
    CERTIFICATE_SECRET,
    COMPACTOR_SIGNING,
    CONFIGURATION_NAME,
    METRICS_API,
    WEBHOOK_SIGNING,
    account_name,
)
from trimtab.installation.permitted_changes import EachEntry, FieldPath, OwnEntries
from trimtab.machines.expander_map import MAP_NAME
from trimtab.metricsapi.api_request import API_SERVICE_NAME
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.recommender.parameter_writer import PARAMETERS_LABEL
from trimtab.recommender.reservations import HISTORY_LABEL, HISTORY_PREFIX, RESERVATIONS_NAME
from trimtab.recommender.sharded_configmaps import DAMAGED_LABEL, RECOMMENDATION_NAMES, USAGE_LABEL, USAGE_NAMES
from trimtab.sizing.ranking.demotion import BASE_ANNOTATION, DEMOTIONS_ANNOTATION
from trimtab.watchdog.policy_events import CONTROLLER as WATCHDOG_CONTROLLER

UNINSTALL = "uninstall"
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

    group: str
    resource: str
    operation: str
    processes: tuple[str, ...]
    reason: str


_LABELS = "trimtab.dev/"
"""The prefix of the labels by which Trimtab's processes select ConfigMaps."""


def _label(name: str) -> FieldPath:
    return ("metadata", "labels", name)


def _annotation(name: str) -> FieldPath:
    return ("metadata", "annotations", name)


_CA_BUNDLE = WritePolicy(
    process="webhook",
    subject="cabundle",
    group="admissionregistration.k8s.io",
    kinds=("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    names=(CONFIGURATION_NAME,),
    may_change=(("webhooks", EachEntry("name"), "clientConfig", "caBundle"),),
    what="change the caBundle of a webhook configuration",
    is_namespaced=False,
    is_for_certificate=True,
)


def _secrets(process: str, *names: str) -> WritePolicy:
    return WritePolicy(
        process=process,
        subject="secrets",
        group="",
        kinds=("secrets",),
        names=names,
        may_change=(("data",),),
        what="change the data of its Secrets",
    )


def _lease(process: str) -> WritePolicy:
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


def _events(process: str, controller: str) -> WritePolicy:
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


def _config_maps(process: str, names: tuple[str, ...], labels: tuple[str, ...]) -> WritePolicy:
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
        may_change=(("data",), ("binaryData",), *map(_label, labels)),
        what=f"write the data of its ConfigMaps, and of the labels {_LABELS}… only {' and '.join(labels)}",
        conditions=(
            WriteCondition(
                by_name, f"this account may write only ConfigMaps whose name begins with {' or '.join(names)}"
            ),
        ),
    )


def _nodes(process: str) -> WritePolicy:
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
            _annotation(CORDONED_BY_US),
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


def _scale(process: str, *, steps: str, what: str) -> WritePolicy:
    return WritePolicy(
        process=process,
        subject="scale",
        group="apps",
        kinds=("deployments/scale",),
        may_change=(("spec", "replicas"),),
        what=what,
        conditions=(WriteCondition(f"{' == '.join(_REPLICAS)} || {steps}", f"this account may only {what}"),),
    )


_REPLICAS = "oldObject.?spec.?replicas.orValue(0)", "object.?spec.?replicas.orValue(0)"
"""The number of replicas before and after a change of the scale subresource, which omits 0."""
_SURGE = f"[{', '.join(_REPLICAS)}] in [[1, 2], [2, 1]]"
_RECOMMENDER_NAMES = (f"{RECOMMENDATION_NAMES}-", f"{USAGE_NAMES}-", RESERVATIONS_NAME, f"{HISTORY_PREFIX}-")

WRITE_POLICIES: tuple[WritePolicy, ...] = (
    _CA_BUNDLE,
    _secrets("webhook", WEBHOOK_SIGNING, CERTIFICATE_SECRET),
    WritePolicy(
        process="watchdog",
        subject="podpolicies",
        group=GROUP,
        version="*",
        kinds=(PLURAL,),
        is_namespaced=False,
        may_change=(("status",),),
        what="write the status of a PodPolicy",
    ),
    _lease("watchdog"),
    _events("watchdog", WATCHDOG_CONTROLLER),
    _lease("compactor"),
    _config_maps("compactor", (STATE_NAMES,), (STATE_LABEL, UNREADABLE_STATE_LABEL)),
    _secrets("compactor", COMPACTOR_SIGNING),
    WritePolicy(
        process="compactor",
        subject="poolstatus-fields",
        group=GROUP,
        version="*",
        kinds=(POOL_STATUSES,),
        operations=(CREATE, UPDATE),
        may_change=(("pool",), ("status",), _label("app.kubernetes.io/name")),
        what="write the pool and the status of a PoolStatus",
    ),
    _nodes("compactor"),
    _events("compactor", COMPACTOR_CONTROLLER),
    WritePolicy(
        process="compactor",
        subject="evictions",
        group="",
        kinds=("pods/eviction",),
        operations=(CREATE,),
        may_change=(("deleteOptions", "dryRun"), ("deleteOptions", "preconditions", "uid")),
        what="evict a pod by its uid, with the grace period that the pod has",
        conditions=(
            WriteCondition(
                "object.?deleteOptions.?preconditions.?uid.hasValue()",
                "this account names the uid of the pod that it evicts",
            ),
        ),
    ),
    WritePolicy(
        process="compactor",
        subject="resizes",
        group="",
        kinds=("pods/resize",),
        may_change=tuple(
            ("spec", part, EachEntry("name"), "resources", "requests") for part in ("containers", "initContainers")
        ),
        what="change the requests of the containers of a pod",
    ),
    _scale("compactor", steps=_SURGE, what="scale a Deployment from one replica to two, and back"),
    _lease("recommender"),
    _config_maps(
        "recommender",
        _RECOMMENDER_NAMES,
        (RECOMMENDATIONS_LABEL, USAGE_LABEL, DAMAGED_LABEL, RESERVATIONS_LABEL, HISTORY_LABEL),
    ),
    WritePolicy(
        process="recommender",
        subject="parameters",
        group="",
        kinds=("configmaps",),
        operations=(CREATE, UPDATE, DELETE),
        place=Place.OTHER_NAMESPACES,
        excluded_name=MAP_NAME,
        may_change=(("data",), ("binaryData",), _label(PARAMETERS_LABEL)),
        what=f"write the data of ConfigMap {PARAMETERS_NAME} in another namespace",
        conditions=(
            WriteCondition(
                f"request.name == '{PARAMETERS_NAME}' && request.operation != 'DELETE'",
                f"in other namespaces this account may write only ConfigMap {PARAMETERS_NAME}",
            ),
        ),
    ),
    WritePolicy(
        process="recommender",
        subject="priorities",
        group="",
        kinds=("configmaps",),
        names=(MAP_NAME,),
        place=Place.OTHER_NAMESPACES,
        may_change=(("data",), _annotation(BASE_ANNOTATION), _annotation(DEMOTIONS_ANNOTATION)),
        what="write the data of the autoscaler's priority map, and two annotations of it",
    ),
)
"""The policies of the accounts that every installation has."""

METRICS_API_POLICIES: tuple[WritePolicy, ...] = (
    WritePolicy(
        process=METRICS_API,
        subject="cabundle",
        group="apiregistration.k8s.io",
        kinds=("apiservices",),
        names=(API_SERVICE_NAME,),
        may_change=(("spec", "caBundle"),),
        what="change the caBundle of an APIService",
        is_namespaced=False,
        is_for_certificate=True,
    ),
    _secrets(METRICS_API, f"{account_name(METRICS_API)}-tls"),
)

UNINSTALL_POLICIES: tuple[WritePolicy, ...] = (
    _nodes(UNINSTALL),
    _scale(
        UNINSTALL,
        what="scale a Deployment to zero or from two replicas to one",
        steps=f"{Place.OWN_NAMESPACE} && {_REPLICAS[1]} == 0 || [{', '.join(_REPLICAS)}] == [2, 1]",
    ),
    WritePolicy(
        process=UNINSTALL,
        subject="configmaps",
        group="",
        kinds=("configmaps",),
        operations=(DELETE,),
        what="delete what the processes have stored",
        conditions=(
            WriteCondition(
                " || ".join(f"request.name.startsWith('{name}')" for name in (STATE_NAMES, *_RECOMMENDER_NAMES)),
                "this account may delete only ConfigMaps in which the processes have stored something",
            ),
        ),
    ),
)
"""The policies of the account of Helm's uninstall hook, which only the chart installs."""

UNRESTRICTED_WRITES: tuple[UnrestrictedWrite, ...] = (
    UnrestrictedWrite(
        group="authorization.k8s.io",
        resource="subjectaccessreviews",
        operation=CREATE,
        processes=(METRICS_API,),
        reason="the API server answers the review, and stores nothing",
    ),
    UnrestrictedWrite(
        group=GROUP,
        resource=POOL_STATUSES,
        operation=DELETE,
        processes=("compactor", UNINSTALL),
        reason="the compactor writes a deleted PoolStatus again, and no process reads one",
    ),
    *(
        UnrestrictedWrite(
            group=group,
            resource=resource,
            operation=DELETE,
            processes=(UNINSTALL,),
            reason="the permission names the objects, and deleting them is what it is for",
        )
        for group, resource in (
            ("apiregistration.k8s.io", "apiservices"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
            ("coordination.k8s.io", "leases"),
        )
    ),
)


def find_restriction(
    process: str, group: str, resource: str, operation: str, place: Place, policies: Iterable[WritePolicy]
) -> WritePolicy | UnrestrictedWrite | None:
    """Returns the policy that restricts a kind of write, or the reason for none; None if there is neither."""
    for policy in policies:
        if policy.covers(process, group, resource, operation, place):
            return policy
    for write in UNRESTRICTED_WRITES:
        is_same = (group, resource, operation) == (write.group, write.resource, write.operation)
        if is_same and process in write.processes:
            return write
    return None
