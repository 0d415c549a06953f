"""The objects of a cluster that a planner reads.

They come from one snapshot and are converted once: nodes, pods, budgets, claims, owners, and notes about objects that
could not be read. Nodes are found by name, and pods by namespace and name, so the order of objects in a snapshot does
not matter.

Some pods do not exist yet, and capacity is promised to them all the same.

- The pods that DaemonSets are about to create: on a node that lacks such a pod, its capacity is promised to it.
- The capacity that CapacityBuffers reserve: the number of pods, and what each of them requests. The cluster autoscaler
  keeps this capacity free by simulating pods that fill it. If a node with some of this capacity is drained, the
  autoscaler adds a node again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from typing import Self

from trimtab.cluster import node as nodes
from trimtab.cluster import pdb as budgets
from trimtab.cluster.api.autoscaling import CapacityBuffer, HorizontalPodAutoscaler, PodTemplate
from trimtab.cluster.api.core import Namespace, ResourceQuota, RuntimeClass
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from trimtab.cluster.api.meta import Labels, Metadata, change, value_or
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.pod import Pod as Shape
from trimtab.cluster.api.pod import Toleration
from trimtab.cluster.api.storage import CSIDriver, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from trimtab.cluster.api.workload import FAILURE, DaemonSet, PodDisruptionBudget, Workload
from trimtab.cluster.claims import Claim, Devices, count_devices, join_plurals, read_claims
from trimtab.cluster.format_count import format_count
from trimtab.cluster.job_failures import fails_by_eviction
from trimtab.cluster.kinds import DAEMON_SET, JOB, POD, GroupKind
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey, controller_key, reference_to
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.pod_groups import PodLeaders
from trimtab.cluster.pod_index import PodIndex
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.cluster.scalable_deployments import ScalableDeployments
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, SchedulerPlacement, find_schedulers
from trimtab.cluster.snapshot import ConfigMap, Snapshot

_PRESSURES = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
TOLERATED = (
    *(Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect="NoSchedule") for name in _PRESSURES),
    *(
        Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect="NoExecute")
        for name in ("not-ready", "unreachable")
    ),
)
"""The tolerations that the controller adds to the pods of every DaemonSet (pkg/controller/daemon/util,
AddOrUpdateDaemonPodTolerations)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DaemonPods:
    """The pods of one DaemonSet, of which some do not exist yet."""

    owner: OwnerKey
    pod: PodInfo
    """One of these pods, with its requirements. It is on no node."""
    nodes: frozenset[str]
    """The nodes on which the DaemonSet has a pod, or for which a pod of it waits."""


def missing_daemon_pods(
    daemon_sets: Sequence[DaemonSet], pods: Sequence[PodInfo], node_count: int, reader: PodReader
) -> tuple[DaemonPods, ...]:
    """Returns the DaemonSets that want more pods than they have, in the order of their names.

    A DaemonSet whose status has no number yet may want a pod on every node.
    """
    present: dict[OwnerKey, list[PodInfo]] = {
        OwnerKey(one.metadata.namespace, DAEMON_SET, one.metadata.name): [] for one in daemon_sets
    }
    for pod in pods if present else ():
        if pod.owner in present:
            present[pod.owner].append(pod)
    incomplete = []
    for daemon_set in sorted(daemon_sets, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        metadata = daemon_set.metadata
        owner = OwnerKey(metadata.namespace, DAEMON_SET, metadata.name)
        desired_count = daemon_set.status.desired_number_scheduled or node_count
        if len(present[owner]) >= desired_count or not daemon_set.spec.template.spec.containers:
            continue
        nodes = {name for pod in present[owner] for name in ((pod.node,) if pod.node else _named_nodes(pod))}
        incomplete.append(DaemonPods(owner=owner, pod=_next_pod(daemon_set, owner, reader), nodes=frozenset(nodes)))
    return tuple(incomplete)


def _next_pod(daemon_set: DaemonSet, owner: OwnerKey, reader: PodReader) -> PodInfo:
    template = daemon_set.spec.template
    metadata = Metadata(
        name=owner.name,
        namespace=owner.namespace,
        labels=template.metadata.labels,
        owner_references=(reference_to(owner),),
    )
    tolerations = (*value_or(template.spec.tolerations, ()), *TOLERATED)
    pod = reader.read_pod(Shape(metadata=metadata, spec=change(template.spec, tolerations=tolerations)))
    # No pod that exists is like this one: the numbers of the reader may be those of other pods.
    return change(pod, likeness=-1)


def _named_nodes(pod: PodInfo) -> Iterable[str]:
    """Yields the node for which the controller created a pod that waits: its affinity names the node."""
    affinity = pod.requirements.node_affinity
    for term in affinity.node_selector_terms if affinity is not None else ():
        for requirement in value_or(term.match_fields, ()):
            yield from value_or(requirement.values, ())


READY_CONDITION = "ReadyForProvisioning"
"""The type of the condition that says whether a buffer's controller has resolved the buffer. A buffer whose condition
is False reserves nothing.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReservedPods:
    """Reserved capacity for a number of equal pods (`replicas`) that do not exist yet."""

    key: str
    """The buffer as namespace/name."""
    pod: PodInfo
    """One of these pods, with its requirements. It is on no node."""
    replicas: int


def reserved_pods(
    all_buffers: Iterable[CapacityBuffer], templates: Iterable[PodTemplate], reader: PodReader
) -> tuple[tuple[ReservedPods, ...], tuple[str, ...]]:
    """Returns the reserved capacity of each buffer, sorted by name, and a note about each buffer whose capacity is
    unknown."""
    templates_by_name = {(item.metadata.namespace, item.metadata.name): item for item in templates}
    reserved, notes = [], []
    for buffer in sorted(all_buffers, key=lambda item: (item.metadata.namespace, item.metadata.name)):
        if any(
            condition.type == READY_CONDITION and condition.status == "False" for condition in buffer.status.conditions
        ):
            continue
        result = _resolve_buffer(buffer, templates_by_name, reader)
        if isinstance(result, ReservedPods):
            reserved += [result] if result.replicas else []
        else:
            notes.append(f"no room is reserved for capacity buffer {_buffer_key(buffer)}, because {result}")
    return tuple(reserved), tuple(notes)


def _buffer_key(buffer: CapacityBuffer) -> str:
    return f"{buffer.metadata.namespace}/{buffer.metadata.name}"


def _resolve_buffer(
    buffer: CapacityBuffer, templates_by_name: Mapping[tuple[str, str], PodTemplate], reader: PodReader
) -> ReservedPods | str:
    """Returns what the buffer reserves: according to its status if its controller has resolved the buffer, otherwise
    according to its spec. If neither says enough, returns a description of what is missing."""
    replicas = buffer.status.replicas if buffer.status.replicas is not None else buffer.spec.replicas
    reference = buffer.status.pod_template_ref or buffer.spec.pod_template_ref
    if replicas is None or reference is None:
        return "its controller has not processed it yet"
    template = templates_by_name.get((buffer.metadata.namespace, reference.name))
    if template is None:
        return f"its PodTemplate {reference.name} is not in the snapshot"
    inner = template.template
    meta = Metadata(
        name=buffer.metadata.name,
        namespace=buffer.metadata.namespace,
        labels=inner.metadata.labels,
        creation_timestamp=buffer.metadata.creation_timestamp,
    )
    pod = reader.read_pod(Shape(metadata=meta, spec=inner.spec))
    # Pods that run already consume replicas of the buffer (CapacityBuffer v1beta1, status.consumedReplicas).
    return ReservedPods(key=_buffer_key(buffer), pod=pod, replicas=max(0, replicas - buffer.status.consumed_replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """How many replicas an owner wants, and how many it has."""

    wanted: int | None
    """The number of replicas that the owner wants, or None if its kind has no such number (a DaemonSet, a Job)."""
    have: int
    ready: int
    failure: str = ""
    """The message with which the owner's controller says why it cannot create a pod now; empty while it can."""
    fails_by_eviction: bool = False
    """Whether the owner is a Job that fails as a whole when one of its pods is evicted."""


ASSUMED_REQUESTS: Mapping[str, int] = {"cpu": 100, "memory": 200 << 20}
"""The requests that kube-scheduler's scoring assumes for a container that has none, in millicores and bytes
(DefaultMilliCPURequest and DefaultMemoryRequest, pkg/scheduler/util/pod_resources.go, 1.36)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inventory:
    """Everything that a planner reads about a cluster."""

    nodes: tuple[NodeInfo, ...]
    pods: tuple[PodInfo, ...]
    pdbs: tuple[Pdb, ...] = ()
    claims: Mapping[tuple[str, str], Claim] = field(default_factory=dict)
    """(namespace, name) → PersistentVolumeClaim."""
    owners: Mapping[OwnerKey, ReplicaCounts] = field(default_factory=dict)
    """Owner → its replica counts."""
    leaders: PodLeaders = field(default_factory=PodLeaders)
    """The pods that own other pods."""
    deployments: ScalableDeployments = field(default_factory=ScalableDeployments)
    """The Deployments with what decides whether they may have more pods for a while."""
    owner_kinds: frozenset[str] = frozenset()
    """The kinds of owners that the snapshot contains. An owner of any other kind may exist although the snapshot does
    not have it."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)
    """Namespace → its ResourceQuotas, in the order of their names."""
    config_maps: tuple[ConfigMap, ...] = ()
    duplicate_node_names: frozenset[str] = frozenset()
    """Names that more than one Node object of the snapshot has."""
    assumed_requests: Mapping[str, int] = field(default_factory=dict)
    """Resource → amount that counts for a pod without a request for it, in the scheduler's units; a resource that is
    not in the mapping counts as 0."""
    measured_use: Mapping[OwnerKey, Amounts] = field(default_factory=dict)
    """Owner → what one of its pods uses now. If this is more than the assumed request, the planner counts the use in
    place of the assumed request."""
    schedulers: Mapping[str, SchedulerPlacement] = field(default_factory=lambda: KNOWN_SCHEDULERS)
    """`spec.schedulerName` → how that scheduler places pods; a scheduler that is not in the mapping is unknown."""
    conflicting_pods: Mapping[str, str] = field(default_factory=dict)
    """Node → a pod on it (namespace/name) that the snapshot contains several times with different content."""
    devices: Devices = field(default_factory=Devices)
    """The devices that claims hold (dynamic resource allocation). The devices that nodes have are among `allocatable`
    of the nodes."""
    runtime_handlers: Mapping[str, str] = field(default_factory=dict)
    """RuntimeClass → its handler."""
    preventing_drivers: frozenset[str] = frozenset()
    """The CSI drivers for whose volumes kube-scheduler chooses only nodes where the driver is registered."""
    reserved_pods: tuple[ReservedPods, ...] = ()
    """Capacity that CapacityBuffers reserve for pods that do not exist yet."""
    missing_daemons: tuple[DaemonPods, ...] = ()
    """The DaemonSets that are about to create further pods."""
    notes: tuple[str, ...] = ()
    """Sentences about what is unusual in the snapshot."""
    _pod_indexes: list[PodIndex] = field(init=False, default_factory=list, repr=False)
    _pdb_indexes: list[PdbIndex] = field(init=False, default_factory=list, repr=False)

    @property
    def pod_index(self) -> PodIndex:
        """The pods by uid, by owner and by node. It is made when it is first needed."""
        if not self._pod_indexes:
            self._pod_indexes.append(PodIndex.from_pods(self.pods))
        return self._pod_indexes[0]

    @property
    def pdb_index(self) -> PdbIndex:
        """The budgets by what they select. It is made when it is first needed."""
        if not self._pdb_indexes:
            self._pdb_indexes.append(PdbIndex.from_pdbs(self.pdbs))
        return self._pdb_indexes[0]

    def with_indexes(self, pods: PodIndex | None, pdbs: PdbIndex | None) -> Self:
        """Returns this inventory, with the indexes that its pods and budgets are known to have; None: not known."""
        self._pod_indexes[:] = [] if pods is None else [pods]
        self._pdb_indexes[:] = [] if pdbs is None else [pdbs]
        return self

    @property
    def machines(self) -> tuple[NodeInfo, ...]:
        """The nodes that are machines, which alone count in sums of nodes, resources and money."""
        return tuple(node for node in self.nodes if node.nature.is_machine)

    def claims_of(self, pod: PodInfo) -> list[Claim | None]:
        """Returns the pod's claims in their order; None for a claim that the snapshot does not contain."""
        return [self.claims.get((pod.namespace, name)) for name in pod.claims]

    def known_claims_of(self, pods: Iterable[PodInfo]) -> list[Claim]:
        """Returns the claims of the pods that the snapshot contains; a claim that several pods share is there once."""
        keys = dict.fromkeys((pod.namespace, name) for pod in pods for name in pod.claims)
        return [self.claims[key] for key in keys if key in self.claims]


def snapshot_inventory(snapshot: Snapshot, watched_pods: Iterable[PodInfo] | None = None) -> Inventory:
    """Returns the inventory of a snapshot.

    watched_pods: the pods as a watch retains them, if the snapshot has none; everything that depends on pods is then
    about these.
    """
    reader = PodReader()
    # Several files may each have a node of one name. Which one is real is unknown, so the compactor leaves them alone.
    names = Counter(shape.metadata.name for shape in snapshot.objects_of(NodeShape))
    csi_nodes = {shape.metadata.name: shape for shape in snapshot.objects_of(CSINode)}
    nodes_by_name = {
        s.metadata.name: nodes.node_from_api(s, csi_nodes.get(s.metadata.name)) for s in snapshot.objects_of(NodeShape)
    }
    # Sorted, so that a plan does not depend on the order in which files or watches deliver the pods.
    read_pods = map(reader.read_pod, snapshot.objects_of(PodShape)) if watched_pods is None else watched_pods
    # Once by each, because two texts are compared twice as fast as two pairs of them.
    pods = sorted(sorted(read_pods, key=attrgetter("name")), key=attrgetter("namespace"))
    conflicting = _conflicting_pods(pods)
    reserved, buffer_notes = reserved_pods(
        snapshot.objects_of(CapacityBuffer), snapshot.objects_of(PodTemplate), reader
    )
    device_counts = count_devices(
        snapshot.objects_of(ResourceClaim),
        snapshot.objects_of(ResourceSlice),
        snapshot.objects_of(DeviceClass),
        snapshot.forbidden,
    )
    nodes_by_name = (
        {name: _with_devices(node, device_counts) for name, node in nodes_by_name.items()}
        if device_counts.nodes
        else nodes_by_name
    )
    pdbs = tuple(sorted(map(budgets.pdb_from_api, snapshot.objects_of(PodDisruptionBudget)), key=lambda b: b.key))
    quotas = snapshot.objects_of(ResourceQuota)
    by_namespace: dict[str, tuple[ResourceQuota, ...]] = {}
    for quota in sorted(quotas, key=lambda one: one.metadata.name):
        namespace = quota.metadata.namespace
        by_namespace[namespace] = (*by_namespace.get(namespace, ()), quota)
    return Inventory(
        nodes=tuple(nodes_by_name[name] for name in sorted(nodes_by_name)),
        pods=tuple(pods),
        pdbs=pdbs,
        claims=dict(
            read_claims(
                snapshot.objects_of(PersistentVolumeClaim),
                snapshot.objects_of(PersistentVolume),
                snapshot.objects_of(StorageClass),
                list_capacity_drivers(snapshot.objects_of(CSIDriver)),
            )
        ),
        owners={
            OwnerKey(s.metadata.namespace, kind, s.metadata.name): _replica_counts(kind, s)
            for kind, s in snapshot.iterate_workloads()
        },
        leaders=PodLeaders.from_controllers(dict(_controllers(snapshot, pods))),
        deployments=ScalableDeployments(
            deployments=snapshot.objects_of(Workload, "Deployment"),
            replica_sets=snapshot.objects_of(Workload, "ReplicaSet"),
            autoscalers=snapshot.objects_of(HorizontalPodAutoscaler),
        ),
        # A snapshot without any ReplicaSet was most likely taken without that kind: then a missing owner proves
        # nothing.
        owner_kinds=frozenset(kind for kind, _ in snapshot.iterate_workloads()),
        namespaces={s.metadata.name: value_or(s.metadata.labels, {}) for s in snapshot.objects_of(Namespace)},
        quotas=by_namespace,
        config_maps=snapshot.objects_of(ConfigMap),
        # What Trimtab knows for certain overrides what it reads in ConfigMaps, which anyone may write.
        schedulers={**find_schedulers(shape.data for shape in snapshot.objects_of(ConfigMap)), **KNOWN_SCHEDULERS},
        duplicate_node_names=frozenset(name for name, count in names.items() if count > 1),
        conflicting_pods=conflicting,
        devices=device_counts,
        reserved_pods=reserved,
        missing_daemons=missing_daemon_pods(snapshot.objects_of(DaemonSet), pods, len(nodes_by_name), reader),
        runtime_handlers={s.metadata.name: s.handler for s in snapshot.objects_of(RuntimeClass)},
        preventing_drivers=frozenset(
            s.metadata.name for s in snapshot.objects_of(CSIDriver) if s.spec.prevent_pod_scheduling_if_missing
        ),
        notes=(
            *_snapshot_notes(names, nodes_by_name, pods, conflicting),
            *_pdb_notes(pdbs),
            *buffer_notes,
            *_forbidden_notes(snapshot.forbidden, device_counts),
        ),
    )


def list_capacity_drivers(drivers: Iterable[CSIDriver]) -> frozenset[str]:
    """Returns the drivers that make a volume only where they report enough capacity."""
    return frozenset(one.metadata.name for one in drivers if one.spec.storage_capacity)


def _with_devices(node: NodeInfo, devices_of_cluster: Devices) -> NodeInfo:
    """Returns the node with its countable devices among its allocatable resources."""
    amounts = devices_of_cluster.nodes.get(node.name)
    if amounts is None or isinstance(node.allocatable, Unreadable):
        return node
    return replace(node, allocatable={**node.allocatable, **amounts})


def _conflicting_pods(pods: Sequence[PodInfo]) -> dict[str, str]:
    """Returns node → key of a pod with conflicting objects. `pods` must be sorted by name."""
    # Equal names are neighbours, because `pods` is sorted.
    same = [n for n, (name, following) in enumerate(pairwise([pod.name for pod in pods])) if name == following]
    return {
        pod.node: pods[n].key
        for n in same
        if pods[n].namespace == pods[n + 1].namespace
        for pod in pods[n : n + 2]
        if pod.node
    }


def _controllers(snapshot: Snapshot, pods: Iterable[PodInfo]) -> Iterator[tuple[OwnerKey, OwnerKey]]:
    """Yields each workload and each pod with its controller, as far as it has one."""
    for kind, shape in snapshot.iterate_workloads():
        metadata = shape.metadata
        if metadata.owner_references and (controller := controller_key(metadata, metadata.namespace)) is not None:
            yield OwnerKey(metadata.namespace, kind, metadata.name), controller
    # Only pods that own something matter; they are few.
    owning = {pod.owner.name for pod in pods if pod.owner is not None and pod.owner.kind == POD}
    for pod in pods if owning else ():
        if pod.name in owning and pod.owner is not None:
            yield OwnerKey(pod.namespace, POD, pod.name), pod.owner


def _replica_counts(kind: GroupKind, shape: Workload) -> ReplicaCounts:
    return ReplicaCounts(
        wanted=value_or(shape.spec.replicas, None),
        have=shape.status.replicas,
        ready=shape.status.ready_replicas,
        failure=next(
            (
                c.message or c.reason or "the object contains no reason"
                for c in shape.status.conditions
                if c.type == FAILURE and c.status == "True"
            ),
            "",
        ),
        fails_by_eviction=kind == JOB and fails_by_eviction(shape),
    )


def _snapshot_notes(
    names: Counter[str], nodes_by_name: Mapping[str, NodeInfo], pods: Sequence[PodInfo], conflicting: Mapping[str, str]
) -> Iterable[str]:
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"{format_count(names[name], 'node')} have the same name {name}, so the compactor drains none of them"
    for key in sorted(set(conflicting.values())):
        yield f"pod {key} appears more than once with different contents, so no drain is planned for its node"
    # Most likely the node was deleted between the two lists, or the files are of different times.
    strays = Counter([pod.node for pod in pods if pod.node and pod.node not in nodes_by_name])
    for name in sorted(strays):
        yield f"{format_count(strays[name], 'pod runs', 'pods run')} on node {name}, which is not in the snapshot"


def _forbidden_notes(kinds: frozenset[str], devices_of_cluster: Devices) -> Iterable[str]:
    """Yields, for each kind that the user may not list, a note that says what is unknown because of that."""
    # Without CSIDrivers a plan is only more careful.
    if rest := sorted(kinds.difference(devices_of_cluster.forbidden, {"CSIDriver"})):
        yield f"you may not list {join_plurals(rest)}, so no room is reserved for capacity buffers"
    if devices_of_cluster.forbidden:
        yield (
            f"you may not list {join_plurals(devices_of_cluster.forbidden)}, so pods with resource claims are not moved"
        )


def _pdb_notes(pdbs: Iterable[Pdb]) -> Iterable[str]:
    for budget in pdbs:
        if budget.selector_problem:
            yield (
                f"PodDisruptionBudget {budget.key} is not valid ({budget.selector_problem}), so no pod of its "
                "namespace is moved"
            )
