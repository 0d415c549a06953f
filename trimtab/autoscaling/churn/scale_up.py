"""Which nodes the stand-in for the cluster autoscaler adds: the part of `stand_in` for pods that wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL, StandInView
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.node_filters import node_rejection_reason

Room = dict[str, int]
"""Resource → what is left of a node that does not exist yet."""


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """New nodes of one group, and how much of them the pods would waste."""

    group: str
    count: int
    waste: float
    """The wasted share of cpu and that of memory, added."""


def choose_new_nodes(view: StandInView, flags: StandInFlags, templates: Mapping[str, NodeInfo]) -> dict[str, int]:
    """Returns node group → the number of nodes that this scan adds; empty if it adds none."""
    if all(view.now - (pod.created or 0) < flags.new_pod_seconds for pod in view.waiting):
        return {}
    rest = _pods_without_place(view)
    options = [option for group in sorted(templates) if (option := _estimate(group, templates[group], rest))]
    if not options:
        return {}
    best = min(options, key=lambda option: (option.waste, option.group))
    return {best.group: best.count}


def _pods_without_place(view: StandInView) -> list[PodInfo]:
    """Returns the waiting pods that fit neither on a node that takes pods nor on one that is coming: a node of a group
    that is not ready, not cordoned and not being removed."""
    coming = [
        number
        for number, node in enumerate(view.nodes)
        if not node.is_ready and not node.is_cordoned and node.removal_taint is None and node.labels.get(GROUP_LABEL)
    ]
    capacity = view.capacity
    saved, rest = capacity.save_state(), []
    for number in coming:
        capacity.closed_nodes[number] = 0
    # The order in which a new node is filled is the scheduler's: first fit is as good as any.
    bins = [dict(node.allocatable) for node in view.coming if not isinstance(node.allocatable, Unreadable)]
    for pod in view.waiting:
        pod_class = view.class_of(pod)
        place = next((n for n in range(len(view.nodes)) if fits_on_node(capacity, pod_class, n)), None)
        if place is not None:
            capacity.add_pod(pod_class, place)
        elif not _fill_first(bins, pod):
            rest.append(pod)
    capacity.restore_state(saved)
    return rest


def _fill_first(bins: Sequence[Room], pod: PodInfo) -> bool:
    """Puts the pod into the first of the bins that holds it, and returns whether one does."""
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable):
        return False
    needed = {**requests, "pods": 1}
    room = next((one for one in bins if all(one.get(name, 0) >= n for name, n in needed.items())), None)
    if room is None:
        return False
    for name, amount in needed.items():
        room[name] -= amount
    return True


def _estimate(group: str, template: NodeInfo, pods: Sequence[PodInfo]) -> ScaleUpOption | None:
    """Returns how many nodes of the group first fit needs for those of the pods that fit on one at all; None if none
    does."""
    allocatable = template.allocatable
    if isinstance(allocatable, Unreadable):
        return None
    bins: list[Room] = []
    used = {"cpu": 0, "memory": 0}
    for pod in sorted(pods, key=lambda pod: -_size(pod, template)):
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable) or node_rejection_reason(pod.requirements, (), template) is not None:
            continue
        if not _fill_first(bins, pod):
            new_node = dict(allocatable)
            if not _fill_first([new_node], pod):
                continue
            bins.append(new_node)
        used = {name: amount + requests.get(name, 0) for name, amount in used.items()}
    if not bins:
        return None
    waste = fsum(1 - used[name] / (len(bins) * max(1, allocatable.get(name, 0))) for name in used)
    return ScaleUpOption(group, len(bins), waste)


def _size(pod: PodInfo, template: NodeInfo) -> float:
    """Returns the pod's shares of the node's cpu and memory, added (estimator/decreasing_pod_orderer.go)."""
    requests, allocatable = pod.requirements.requests, template.allocatable
    if isinstance(requests, Unreadable) or isinstance(allocatable, Unreadable):
        return 0.0
    return fsum(requests.get(name, 0) / max(1, allocatable.get(name, 0)) for name in ("cpu", "memory"))
