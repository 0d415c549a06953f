"""What stands in this cluster, ready to be planned with?

The nouns of one snapshot, made once: nodes by name, pods by namespace and name (so that the order in which a
snapshot was written changes nothing), budgets, claims, owners, and what could not be understood.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from trimtab.cluster import node as nodes
from trimtab.cluster import pdb as budgets
from trimtab.cluster.api.autoscaling import CapacityBuffer, PodTemplate
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.pod import Condition
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from trimtab.cluster.api.workload import FAILURE, PodDisruptionBudget, Workload
from trimtab.cluster.capacity_buffer import ReservedPods, buffers
from trimtab.cluster.dynamic_resources import Devices, devices, plurals
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pdb import Pdb
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, SchedulerPlacement, find_schedulers
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.volume_claims import Claim, claims


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """What an owner wants and has."""

    wanted: int | None
    """None where it does not say (a DaemonSet, a Job)."""
    have: int
    ready: int
    failure: str = ""
    """Why its controller cannot create a pod now, in the controller's words; empty while it can."""


ASSUMED_REQUESTS: Mapping[str, int] = {"cpu": 100, "memory": 200 << 20}
"""What kube-scheduler's scores count a container with that asks for nothing, in millicores and bytes
(DefaultMilliCPURequest and DefaultMemoryRequest, pkg/scheduler/util/pod_resources.go, 1.36)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inventory:
    nodes: tuple[NodeInfo, ...]
    pods: tuple[PodInfo, ...]
    budgets: tuple[Pdb, ...] = ()
    claims: Mapping[tuple[str, str], Claim] = field(default_factory=dict)
    """(namespace, name) → claim."""
    owners: Mapping[tuple[str, str, str], ReplicaCounts] = field(default_factory=dict)
    """(namespace, kind, name) → its scale."""
    owner_kinds: frozenset[str] = frozenset()
    """Kinds of owners the snapshot shows: only of these is a missing owner a fact."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    config_maps: tuple[ConfigMap, ...] = ()
    twins: frozenset[str] = frozenset()
    """Names that more than one node carries."""
    assumed: Mapping[str, int] = field(default_factory=dict)
    """Resource → what a pod that asks for none of it counts with, in the scheduler's numbers; empty: with nothing."""
    schedulers: Mapping[str, SchedulerPlacement] = field(default_factory=lambda: KNOWN_SCHEDULERS)
    """`spec.schedulerName` → how that scheduler places pods; one that is not named here is unknown."""
    doubles: Mapping[str, str] = field(default_factory=dict)
    """Node → a pod on it (namespace/name) of which the snapshot tells more than one thing."""
    devices: Devices = field(default_factory=Devices)
    """What claims hold (DRA). What nodes have of it is among their allocatable resources."""
    buffers: tuple[ReservedPods, ...] = ()
    """Room that the autoscaler keeps for pods that are not there."""
    notes: tuple[str, ...] = ()
    """What is odd about the snapshot, in words."""


def snapshot_inventory(snapshot: Snapshot) -> Inventory:
    """Everything a planner needs of a snapshot."""
    reader = PodReader()
    names = Counter(shape.metadata.name for shape in snapshot.all(NodeShape))
    storage = {shape.metadata.name: shape for shape in snapshot.all(CSINode)}
    found = {s.metadata.name: nodes.read(s, storage.get(s.metadata.name)) for s in snapshot.all(NodeShape)}
    pods = sorted((reader.pod(s) for s in snapshot.all(PodShape)), key=lambda pod: (pod.namespace, pod.name))
    kept, unread = buffers(snapshot.all(CapacityBuffer), snapshot.all(PodTemplate), reader)
    counted = devices(
        snapshot.all(ResourceClaim), snapshot.all(ResourceSlice), snapshot.all(DeviceClass), snapshot.forbidden
    )
    found = {name: _with_devices(node, counted) for name, node in found.items()} if counted.nodes else found
    guards = tuple(sorted(map(budgets.read, snapshot.all(PodDisruptionBudget)), key=lambda b: b.key))
    return Inventory(
        nodes=tuple(found[name] for name in sorted(found)),
        pods=tuple(pods),
        budgets=guards,
        claims=dict(claims(snapshot.all(PersistentVolumeClaim), snapshot.all(PersistentVolume))),
        owners={(s.metadata.namespace, kind, s.metadata.name): _scale(s) for kind, s in snapshot.workloads()},
        owner_kinds=frozenset(kind for kind, _ in snapshot.workloads()),
        namespaces={s.metadata.name: get(s.metadata.labels, {}) for s in snapshot.all(Namespace)},
        config_maps=snapshot.all(ConfigMap),
        schedulers={**find_schedulers(shape.data for shape in snapshot.all(ConfigMap)), **KNOWN_SCHEDULERS},
        twins=frozenset(name for name, count in names.items() if count > 1),
        doubles=_doubles(pods),
        devices=counted,
        buffers=kept,
        notes=(*_notes(names, found, pods), *_broken(guards), *unread, *_forbidden(snapshot.forbidden, counted)),
    )


def _with_devices(node: NodeInfo, counted: Devices) -> NodeInfo:
    """The node, its devices that can be counted among its resources."""
    amounts = counted.nodes.get(node.name)
    if amounts is None or isinstance(node.allocatable, Unreadable):
        return node
    return replace(node, allocatable={**node.allocatable, **amounts})


def _doubles(pods: Sequence[PodInfo]) -> dict[str, str]:
    """`pods` in order of their names."""
    same = [(one, other) for one, other in pairwise(pods) if one.name == other.name]
    return {
        pod.node: one.key for one, other in same if one.namespace == other.namespace for pod in (one, other) if pod.node
    }


def _scale(shape: Workload) -> ReplicaCounts:
    return ReplicaCounts(
        wanted=get(shape.spec.replicas, None), have=shape.status.replicas, ready=shape.status.ready_replicas,
        failure=next((_words(c) for c in shape.status.conditions if c.type == FAILURE and c.status == "True"), ""),
    )  # fmt: skip


def _words(condition: Condition) -> str:
    return condition.message or condition.reason or "it does not say why"


def _notes(names: Counter[str], found: Mapping[str, NodeInfo], pods: Sequence[PodInfo]) -> Iterable[str]:
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"{names[name]} nodes are called {name}: none of them is touched"
    for key in sorted(set(_doubles(pods).values())):
        yield f"pod {key} stands more than once, and differs: nothing is planned where it is"
    strays = Counter([pod.node for pod in pods if pod.node and pod.node not in found])
    for name in sorted(strays):
        yield f"{strays[name]} pods say they run on node {name}, which is not in the snapshot"


def _forbidden(kinds: frozenset[str], counted: Devices) -> Iterable[str]:
    """What is not known because the user may not list it."""
    if rest := sorted(kinds.difference(counted.forbidden)):
        yield f"{plurals(rest)} may not be listed: whether a buffer keeps room is not known, none is kept"
    if counted.forbidden:
        yield f"{plurals(counted.forbidden)} may not be listed: pods with resource claims stay"


def _broken(found: Iterable[Pdb]) -> Iterable[str]:
    for budget in found:
        if budget.broken:
            yield f"budget {budget.key} cannot be understood ({budget.broken}): no pod of its namespace is moved"
