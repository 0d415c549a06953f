"""The scheduler of the cluster in memory: kube-scheduler's filters, and the scores that decide most of its choices.

Of the nodes that pass the filters, a pod gets the one with the fewest PreferNoSchedule taints, and of those the
emptiest (NodeResourcesFit with LeastAllocated, cpu and memory weighed equally). The free capacity is kept from one pod
to the next, and counted anew only when a node has changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.node_filters import is_alike_to_pods
from trimtab.scheduling.pod_class import PodClass

Sizes = tuple[int, int]
"""Millicores and bytes of a pod."""
TAINT_RANK = 1 << 40
"""By how much a taint raises a node's rank: more than any free capacity lowers it."""
NO_RANK = 1 << 80


def _sizes_of(pod: PodInfo) -> Sizes:
    requests = pod.requirements.requests
    return (0, 0) if isinstance(requests, Unreadable) else (requests["cpu"], requests["memory"])


@dataclass(slots=True)
class ChurnScheduler:
    """Chooses nodes for pods of which the requests are all that matters to a scheduler."""

    samples: dict[Sizes, PodInfo] = field(default_factory=dict)
    """What pods request → the first pod that requests it."""
    is_outdated: bool = True
    """Whether a node has changed since the capacity was counted."""
    follows_taints: bool = False
    """Whether the taints and the cordon of a node may decide about pods on other nodes, too."""
    capacity: FreeCapacity = field(init=False)
    _classes: dict[Sizes, PodClass] = field(default_factory=dict)
    _shapes: list[tuple[int, int, int]] = field(default_factory=list)
    """Node → (by how much its taints raise its rank, its allocatable amounts of the main resources, at least 1)."""
    _ranks: list[int] = field(default_factory=list)
    """Node → its rank as it is; the lowest comes first (see `_rank_of`). No pod gives it a lower one."""
    _grown: list[int] = field(default_factory=list)
    """The nodes that may have got room since the capacity was counted, in the order of time."""
    _full_since: dict[int, int] = field(default_factory=dict)
    """Number of a class for which no node had room → how long `_grown` was then."""

    def know(self, pod: PodInfo) -> None:
        """Adds what this pod requests to what is known."""
        if self.samples.setdefault(_sizes_of(pod), pod) is pod:
            self.is_outdated = True

    def refresh(self, nodes: Mapping[str, NodeInfo], pods: Iterable[PodInfo]) -> FreeCapacity:
        """Counts the free capacity anew if a node has changed, and returns it."""
        if self.is_outdated:
            samples = tuple(self.samples.values())
            model = build_cluster_model(Inventory(nodes=tuple(nodes[name] for name in sorted(nodes)), pods=samples))
            self._classes = {_sizes_of(pod): pod_class for pod, pod_class in model.pending_pods}
            self._count_capacity(model, pods)
        return self.capacity

    def _count_capacity(self, model: ClusterModel, pods: Iterable[PodInfo]) -> None:
        self.capacity = capacity = FreeCapacity(model)
        numbers, class_of = model.node_numbers, self.class_of
        for pod in pods:
            if pod.node:
                capacity.add_pod(class_of(pod), numbers[pod.node])
        self._shapes = [self._shape_of(node) for node in range(len(model.nodes))]
        self._ranks = [self._rank_of(node) for node in range(len(model.nodes))]
        self._grown.clear()
        self._full_since.clear()
        self.is_outdated = False

    def replace_node(self, before: NodeInfo | None, node: NodeInfo) -> None:
        """Takes over a node in the place of `before`, which is None for a new one."""
        if self.is_outdated:
            return
        number = self.capacity.world.node_numbers.get(node.name)
        if before is None or number is None or self.follows_taints or not is_alike_to_pods(before, node):
            self.is_outdated = True
        else:
            self.capacity.replace_node(number, node)
            self._shapes[number] = self._shape_of(number)
            self._grown.append(number)
            self._ranks[number] = self._rank_of(number)

    def class_of(self, pod: PodInfo) -> PodClass:
        """Returns the class of a pod whose requirements are known."""
        return self._classes[_sizes_of(pod)]

    def choose_node(self, pod: PodInfo) -> str:
        """Returns the node that the pod gets, and counts the pod there; "" if it fits on none."""
        capacity, pod_class = self.capacity, self.class_of(pod)
        best, best_rank, ranks = -1, NO_RANK, self._ranks
        for number in self._nodes_to_try(pod_class):
            # Nearly all nodes are ruled out by the rank that they would have without the pod.
            if ranks[number] < best_rank:
                rank = self._rank_of(number, pod_class.major, pod_class.minor)
                if rank < best_rank and fits_on_node(capacity, pod_class, number):
                    best, best_rank = number, rank
        if best < 0:
            self._full_since[pod_class.number] = len(self._grown)
            return ""
        capacity.add_pod(pod_class, best)
        ranks[best] = best_rank
        return capacity.world.nodes[best].name

    def _nodes_to_try(self, pod_class: PodClass) -> Iterable[int]:
        """Returns the nodes that may have room, in their order. Where no node had room for the class before, only what
        has changed since does, unless other pods decide, too."""
        since = None if pod_class.has_constraints else self._full_since.get(pod_class.number)
        return range(len(self._ranks)) if since is None else sorted({*self._grown[since:]})

    def remove_pod(self, pod: PodInfo) -> None:
        """Frees what the pod requests on its node."""
        number = None if self.is_outdated else self.capacity.world.node_numbers.get(pod.node)
        if number is not None:
            self.capacity.remove_pod(self.class_of(pod), number)
            self._ranks[number] = self._rank_of(number)
            self._grown.append(number)

    def _rank_of(self, number: int, major: int = 0, minor: int = 0) -> int:
        """Returns the rank of a node once a pod that requests these amounts is on it: fewer PreferNoSchedule taints
        before more, and then more free thousandths of both resources together before fewer."""
        capacity, (penalty, first, second) = self.capacity, self._shapes[number]
        free = (capacity.major[number] - major) * 1000 // first + (capacity.minor[number] - minor) * 1000 // second
        return penalty - free

    def _shape_of(self, number: int) -> tuple[int, int, int]:
        model = self.capacity.world
        first, second = (max(1, model.allocatable_amount(number, name)) for name in model.main_resources)
        soft_taints = [taint for taint in model.nodes[number].taints if taint.effect == "PreferNoSchedule"]
        return len(soft_taints) * TAINT_RANK, first, second
