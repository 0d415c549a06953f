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
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass

Sizes = tuple[int, int]
"""Millicores and bytes of a pod."""


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
    capacity: FreeCapacity = field(init=False)
    _classes: dict[Sizes, PodClass] = field(default_factory=dict)
    _taints: list[int] = field(default_factory=list)

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
            self._taints = [sum(taint.effect == "PreferNoSchedule" for taint in node.taints) for node in model.nodes]
            self.capacity = FreeCapacity(model)
            for pod in pods:
                if pod.node:
                    self.capacity.add_pod(self.class_of(pod), model.node_numbers[pod.node])
            self.is_outdated = False
        return self.capacity

    def class_of(self, pod: PodInfo) -> PodClass:
        """Returns the class of a pod whose requirements are known."""
        return self._classes[_sizes_of(pod)]

    def choose_node(self, pod: PodInfo) -> str:
        """Returns the node that the pod gets, and counts the pod there; "" if it fits on none."""
        capacity, pod_class = self.capacity, self.class_of(pod)
        best, best_rank = -1, (0, 0)
        for number in range(len(capacity.world.nodes)):
            if fits_on_node(capacity, pod_class, number):
                rank = (self._taints[number], -self._free_share(pod_class, number))
                if best < 0 or rank < best_rank:
                    best, best_rank = number, rank
        if best < 0:
            return ""
        capacity.add_pod(pod_class, best)
        return capacity.world.nodes[best].name

    def remove_pod(self, pod: PodInfo) -> None:
        """Frees what the pod requests on its node."""
        if not self.is_outdated and pod.node in self.capacity.world.node_numbers:
            self.capacity.remove_pod(self.class_of(pod), self.capacity.world.node_numbers[pod.node])

    def _free_share(self, pod_class: PodClass, number: int) -> int:
        """Returns the thousandths that are free once the pod is on the node, of both resources together."""
        capacity, model = self.capacity, self.capacity.world
        first, second = (max(1, model.allocatable_amount(number, name)) for name in model.main_resources)
        return (capacity.major[number] - pod_class.major) * 1000 // first + (
            capacity.minor[number] - pod_class.minor
        ) * 1000 // second
