"""What one scan of the stand-in reads, and what it decides."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.pod_class import PodClass

GROUP_LABEL = "cloud.google.com/gke-nodepool"
"""The label with the node group's name; only nodes with it belong to the autoscaler."""


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Nodes are bought."""

    group: str
    count: int


@dataclass(frozen=True, slots=True)
class MarkCandidate:
    """A node gets the PreferNoSchedule taint of candidates, or loses it."""

    node: str
    is_candidate: bool


@dataclass(frozen=True, slots=True)
class BeginRemoval:
    """A node gets the taint of nodes that are being deleted, and is cordoned."""

    node: str


@dataclass(frozen=True, slots=True)
class EvictFrom:
    """A pod is evicted through the eviction API, which may refuse."""

    node: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """The node and its machine are deleted."""

    node: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A node loses its deletion taint and its cordon, because its pods did not leave in time."""

    node: str


StandInAction = AddNodes | MarkCandidate | BeginRemoval | EvictFrom | DeleteNode | GiveBack


@dataclass(frozen=True, slots=True)
class StandInState:
    """What the stand-in remembers from scan to scan."""

    unneeded: Mapping[str, float] = field(default_factory=dict)
    """Node → since when it has been unneeded."""
    unremovable: Mapping[str, float] = field(default_factory=dict)
    """Node → until when it is not examined, because its pods had no other place."""
    draining: Mapping[str, float] = field(default_factory=dict)
    """Node whose pods are being evicted → since when."""
    added_at: float | None = None
    """When nodes were last added; None: never."""
    marked: frozenset[str] = frozenset()
    """Nodes with the taint of candidates."""


@dataclass(frozen=True, slots=True)
class StandInView:
    """The cluster in one scan."""

    now: float
    capacity: FreeCapacity
    """What is free on each node of the model, with all pods that are on nodes."""
    class_of: Callable[[PodInfo], PodClass]
    """Returns the class of a pod that is on a node or waits for one."""
    pods_on: Mapping[str, Sequence[PodInfo]]
    """Node → its pods that have not finished."""
    waiting: Sequence[PodInfo]
    """The pods that kube-scheduler called unschedulable, the oldest first."""
    pdbs: PdbIndex
    coming: Sequence[NodeInfo] = ()
    """Nodes that were added and have not registered yet, as they will be."""

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes, in the order of the model's numbers."""
        return self.capacity.world.nodes

    @property
    def numbers(self) -> Mapping[str, int]:
        """Node → its number."""
        return self.capacity.world.node_numbers

    @property
    def sizes(self) -> Counter[str]:
        """Node group → the number of its nodes that are not being removed."""
        return Counter(
            group for node in self.nodes if node.removal_taint is None and (group := node.labels.get(GROUP_LABEL, ""))
        )

    def movable_pods(self, node: str) -> list[PodInfo]:
        """Returns the node's pods, without those that every node has."""
        return [pod for pod in self.pods_on.get(node, ()) if not (pod.is_daemon or pod.is_static)]


def read_stand_in_view(inventory: Inventory, now: float, coming: Sequence[NodeInfo] = ()) -> StandInView:
    """Returns the view of a cluster that was read from an API server. `coming`: nodes that were added and have not
    registered yet."""
    model = build_cluster_model(inventory)
    pods_on: dict[str, list[PodInfo]] = {}
    for pod in model.pods:
        pods_on.setdefault(pod.node, []).append(pod)
    classes = {pod.uid: pod_class for pod, pod_class in zip(model.pods, model.class_of, strict=True)}
    classes |= {pod.uid: pod_class for pod, pod_class in model.pending_pods}
    waiting = [pod for pod, _ in model.pending_pods if pod.is_unschedulable and pod.deletion_requested_at is None]
    budgets: tuple[Pdb, ...] = inventory.pdbs
    return StandInView(
        now=now,
        capacity=FreeCapacity(model),
        class_of=lambda pod: classes[pod.uid],
        pods_on=pods_on,
        waiting=sorted(waiting, key=lambda pod: (pod.created or 0, pod.key)),
        pdbs=PdbIndex.from_pdbs(budgets),
        coming=coming,
    )
