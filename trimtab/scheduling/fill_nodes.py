"""Places many pods on empty nodes of one or several kinds, so that few nodes are needed.

Ranked machine types are checked with it, and the nodes that a migration needs are counted with it.
"""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from trimtab.cluster.pod import PodInfo
from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.filters import fits_on_node, place_pods
from trimtab.scheduling.pod_class import PodClass

_MAX_TRIES = 16
"""How many nodes, the emptiest first, are tried for a pod before best fit over all nodes is tried."""
_Waiting = tuple[PodInfo, PodClass]


def fill_nodes(capacity: FreeCapacity, pods: Iterable[_Waiting], ranges: Sequence[Sequence[int]]) -> list[_Waiting]:
    """Places the pods on the nodes, and returns those that fit on none. `ranges`: the nodes of each kind."""
    waiting, nodes = list(pods), [node for numbers in ranges for node in numbers]
    constrained = [one for one in waiting if _has_constraints(one[1])]
    # Pods with constraints come first: they have the fewest nodes to choose from.
    places = place_pods(capacity, [pod_class for _, pod_class in constrained], nodes)
    left = [one for one, place in zip(constrained, places, strict=True) if place is None]
    shares = _share_pods(capacity, [one for one in waiting if not _has_constraints(one[1])], ranges)
    for numbers, share in zip(ranges, shares, strict=True):
        left += _fill_evenly(capacity, share, numbers)
    # What did not fit on the nodes of its own type may fit on those of the other.
    again = place_pods(capacity, [pod_class for _, pod_class in left], nodes)
    return [one for one, place in zip(left, again, strict=True) if place is None]


def _has_constraints(pod_class: PodClass) -> bool:
    return bool(pod_class.has_constraints or pod_class.member_groups or pod_class.unjudged_reason)


def _group_by_shape(pods: Iterable[_Waiting]) -> list[list[_Waiting]]:
    """Returns the pods in groups whose members do not differ in anything that matters for a node."""
    shapes: dict[object, list[_Waiting]] = {}
    for pod, pod_class in pods:
        shape = (pod_class.node_set, pod_class.major, pod_class.minor, pod_class.other_requests)
        shapes.setdefault(shape, []).append((pod, pod_class))
    return list(shapes.values())


def _share_pods(
    capacity: FreeCapacity, pods: Iterable[_Waiting], ranges: Sequence[Sequence[int]]
) -> list[list[_Waiting]]:
    """Divides the pods between the types so that cpu and memory of each type fill up equally.

    Each pod goes to the type on which it adds least to the fullest resource. Pods of different sizes are taken in
    proportion to their numbers, so that the remaining pods always have the same mix as all pods. Every node of a type
    can then get this mix, so that no cpu is left without memory, and no memory without cpu.
    """
    totals = [
        (sum(capacity.major[node] for node in nodes) or 1, sum(capacity.minor[node] for node in nodes) or 1)
        for nodes in ranges
    ]
    filled = [[0.0, 0.0] for _ in ranges]
    shares: list[list[_Waiting]] = [[] for _ in ranges]
    # The members of all groups in one list, in which each group is spread evenly.
    groups = _group_by_shape(pods)
    turns = [
        ((position + 0.5) / len(group), number, position)
        for number, group in enumerate(groups)
        for position in range(len(group))
    ]
    for pod, pod_class in [groups[number][position] for _, number, position in sorted(turns)]:
        best, best_cost = 0, float("inf")
        for number, (nodes, total, fill) in enumerate(zip(ranges, totals, filled, strict=True)):
            cost = (
                pod_class.major / total[0] * (fill[0] + 0.05) ** 7 + pod_class.minor / total[1] * (fill[1] + 0.05) ** 7
            )
            if cost < best_cost and any(fits_on_node(capacity, pod_class, node) for node in nodes):
                best, best_cost = number, cost
        filled[best][0] += pod_class.major / totals[best][0]
        filled[best][1] += pod_class.minor / totals[best][1]
        shares[best].append((pod, pod_class))
    return shares


def _fill_evenly(capacity: FreeCapacity, pods: Iterable[_Waiting], nodes: Sequence[int]) -> list[_Waiting]:
    """Places the pods on nodes of one type, each on the node with the most free capacity. Returns the pods that do not
    fit.

    The largest pods come first, so every node gets its part of each size (longest processing time first). For a given
    number of nodes, fewer pods are left over than with best fit, which fills the first nodes with the pods that fit
    them best and leaves the other pods for the last nodes.
    """
    model, first = capacity.world, nodes[0]
    scale = [1 / max(1, model.allocatable_amount(first, resource)) for resource in model.main_resources]
    heap = [(-1.0, node) for node in nodes]
    left = []
    for pod, pod_class in sorted(
        pods, key=lambda one: (-max(one[1].major * scale[0], one[1].minor * scale[1]), one[1].number, one[0].key)
    ):
        skipped = []
        while heap:
            _, node = entry = heappop(heap)
            if fits_on_node(capacity, pod_class, node):
                capacity.add_pod(pod_class, node)
                free = min(capacity.major[node] * scale[0], capacity.minor[node] * scale[1])
                heappush(heap, (-free, node))
                break
            skipped.append(entry)
            if len(skipped) == _MAX_TRIES:
                left.append((pod, pod_class))
                break
        else:
            left.append((pod, pod_class))
        for entry in skipped:
            heappush(heap, entry)
    return left
