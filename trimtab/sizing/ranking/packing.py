"""Places the real pods of a workload on empty nodes of chosen machine types, by kube-scheduler's filters.

The number of nodes that the ranking calculates from sums of requests may be too small for the real pods, with their
sizes and constraints. So the pods are placed here one by one, the largest first. The nodes have the labels and taints
of a node of the pool, and are spread over its zones. DaemonSets use on each node what they use on average today.
Disruption budgets do not matter, because nothing is evicted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import ceil, inf

import msgspec

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.reason import Reason
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node, place_pods, rejection_reason
from trimtab.scheduling.pod_class import PodClass
from trimtab.sizing.ranking.capacity import Candidate, NodeCapacity
from trimtab.sizing.ranking.workload import ARCH_LABEL, GIB, PoolWorkload

MAX_NODES = 5_000
"""With more nodes than this, the pods are not placed one by one. The autoscaler's own limit is of this size."""
MAX_SCALE = 3
"""If pods do not fit on this many times the calculated number of nodes, they fit on none: a constraint prevents it."""
_ATTEMPTS = 24
_MAX_TRIES = 16
"""How many nodes, the emptiest first, are tried for a pod before best fit over all nodes is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStock:
    """A number of empty nodes of one machine type."""

    candidate: Candidate
    capacity: NodeCapacity
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPod:
    """A pod that fits on none of the nodes, with the reason for which the emptiest node rejects it."""

    pod: str
    """The pod as namespace/name."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingCheck:
    """The number of nodes that the real pods need, compared with the number that was calculated from the sums of
    requests."""

    modelled: tuple[int, ...]
    """For each type, the number of nodes that was calculated from the sums of requests."""
    packed: tuple[int, ...]
    """For each type, the number of nodes on which all pods fit; the largest number that was tried if some pods never
    fit."""
    unplaced: tuple[PackedPod, ...]
    """The pods that fit on no node of these types, however many nodes there are."""

    @property
    def ratio(self) -> float:
        """The number of nodes that the real pods need, divided by the number that was calculated from the sums of
        requests."""
        return sum(self.packed) / max(1, sum(self.modelled))


def check_by_packing(
    inventory: Inventory,
    nodes: Iterable[NodeInfo],
    workload: PoolWorkload,
    stock: Sequence[NodeStock],
    max_scale: float | None = None,
    committed: Sequence[NodeStock] = (),
) -> PackingCheck | None:
    """Returns the smallest multiple of the nodes in `stock` on which all pods of the pool fit, with all types in
    proportion; None if the pods need more than `max_scale` times these nodes.

    `nodes` are the pool's present nodes, whose pods are placed. `committed` are nodes that exist in any case and are
    not counted in the result. Pods that would not fit on any number of nodes are listed instead.
    """
    pool = tuple(nodes)
    modelled = tuple(one.count for one in stock)
    names = {node.name for node in pool}
    pods = [
        msgspec.structs.replace(pod, node="", nominated_node="")
        for pod in inventory.pods
        if pod.node in names and not (pod.is_finished or pod.is_daemon or pod.is_static)
    ]

    def pack(counts: Sequence[int]) -> list[PackedPod]:
        whole = (*(one.count for one in committed), *counts)
        return _pack_pods(inventory, pool, pods, workload, (*committed, *stock), whole)

    # What the committed nodes hold is a model, so nothing is known of the least number of the others.
    low = 0.0 if committed else _least_scale(stock, workload)
    high = 1.0 if max_scale is None else max_scale
    if max_scale is not None and high <= low:
        return None
    unplaced = pack(_scaled(modelled, high))
    if max_scale is not None and unplaced:
        return None
    while unplaced and high < MAX_SCALE and sum(_scaled(modelled, high * 1.25)) <= MAX_NODES:
        low, high = high, high * 1.25
        unplaced = pack(_scaled(modelled, high))
    if unplaced:
        return PackingCheck(modelled=modelled, packed=_scaled(modelled, high), unplaced=tuple(unplaced))
    for _ in range(_ATTEMPTS):
        middle = (low + high) / 2
        counts = _scaled(modelled, middle)
        if sum(modelled) * (high - low) < 0.5:
            break
        fits = counts == _scaled(modelled, high) or not pack(counts)
        low, high = (low, middle) if fits else (middle, high)
    return PackingCheck(modelled=modelled, packed=_scaled(modelled, high), unplaced=())


def _scaled(counts: Sequence[int], scale: float) -> tuple[int, ...]:
    return tuple(ceil(count * scale - 1e-9) for count in counts)


def _least_scale(stock: Sequence[NodeStock], workload: PoolWorkload) -> float:
    """Returns the smallest multiple of the nodes in `stock` on which the sum of all requests fits."""
    cores = sum(one.count * _node_cores(one, workload) for one in stock)
    gib = sum(one.count * _node_gib(one, workload) for one in stock)
    return min(0.99, max(workload.cores / cores, workload.gib / gib))


def _pack_pods(
    inventory: Inventory,
    pool: Sequence[NodeInfo],
    pods: Sequence[PodInfo],
    workload: PoolWorkload,
    stock: Sequence[NodeStock],
    counts: Sequence[int],
) -> list[PackedPod]:
    """Returns the pods that do not fit on these numbers of nodes."""
    empty = tuple(_empty_nodes(pool, workload, stock, counts))
    model = build_cluster_model(replace(inventory, nodes=empty, pods=tuple(pods), reserved_pods=()))
    capacity = FreeCapacity(model)
    constrained = [one for one in model.pending_pods if _has_constraints(one[1])]
    # Pods with constraints come first: they have the fewest nodes to choose from.
    places = place_pods(capacity, [pod_class for _, pod_class in constrained], range(len(empty)))
    left = [one for one, place in zip(constrained, places, strict=True) if place is None]
    starts = [sum(counts[:number]) for number in range(len(counts))]
    ranges = [range(start, start + count) for start, count in zip(starts, counts, strict=True) if count]
    shares = _share_pods(capacity, [one for one in model.pending_pods if not _has_constraints(one[1])], ranges)
    for nodes, share in zip(ranges, shares, strict=True):
        left += _fill_evenly(capacity, share, nodes)
    # What did not fit on the nodes of its own type may fit on those of the other.
    again = place_pods(capacity, [pod_class for _, pod_class in left], range(len(empty)))
    emptiest = max(range(len(empty)), key=lambda n: capacity.major[n])
    return [
        PackedPod(pod=pod.key, reason=reason)
        for (pod, pod_class), place in zip(left, again, strict=True)
        if place is None and (reason := rejection_reason(capacity, pod_class, emptiest)) is not None
    ]


_Waiting = tuple[PodInfo, PodClass]


def _has_constraints(pod_class: PodClass) -> bool:
    return bool(pod_class.has_constraints or pod_class.member_groups or pod_class.unjudged_reason)


def _group_by_shape(pods: Iterable[_Waiting]) -> list[list[_Waiting]]:
    """Returns the pods in groups whose members do not differ in anything that matters for a node."""
    shapes: dict[object, list[_Waiting]] = {}
    for pod, pod_class in pods:
        shape = (pod_class.node_set, pod_class.major, pod_class.minor, pod_class.other_requests)
        shapes.setdefault(shape, []).append((pod, pod_class))
    return list(shapes.values())


def _share_pods(capacity: FreeCapacity, pods: Iterable[_Waiting], ranges: Sequence[range]) -> list[list[_Waiting]]:
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


def _fill_evenly(capacity: FreeCapacity, pods: Iterable[_Waiting], nodes: range) -> list[_Waiting]:
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


def _empty_nodes(
    pool: Sequence[NodeInfo], workload: PoolWorkload, stock: Sequence[NodeStock], counts: Sequence[int]
) -> Iterable[NodeInfo]:
    zones = sorted({node.zone for node in pool})
    template = min(pool, key=lambda node: (len(node.taints), node.name))
    shared = {
        key: value
        for key, value in template.labels.items()
        if all(node.labels.get(key) == value for node in pool) or key in POOL_LABELS
    }
    driver = next((name for node in pool for name in node.attachable_volumes), "")
    for one, count in zip(stock, counts, strict=True):
        candidate = one.candidate
        limit = inf if candidate.max_volumes is None else candidate.max_volumes - workload.daemons.volumes
        for number in range(count):
            name = f"{candidate.name.lower().replace('_', '-')}-{number}"
            labels = {
                **shared,
                HOSTNAME_LABEL: name,
                INSTANCE_TYPE_LABEL: candidate.name,
                ARCH_LABEL: candidate.architecture,
            }
            if zones != [""]:
                labels[ZONE_LABEL] = zones[number % len(zones)]
            pods = 1 << 20 if candidate.max_pods is None else candidate.max_pods
            amounts = {
                "cpu": int(_node_cores(one, workload) * 1000),
                "memory": int(_node_gib(one, workload) * GIB),
                "pods": int(pods - workload.daemons.pods),
            }
            yield replace(
                template,
                name=name,
                uid=name,
                labels=labels,
                provider_id="",
                is_cordoned=False,
                is_ready=True,
                taints=template.taints,
                allocatable=amounts,
                capacity=amounts,
                price=candidate.price,
                annotations={},
                lifecycle=(),
                attachable_volumes={driver: int(limit)} if driver and limit < inf else {},
            )


def _node_cores(one: NodeStock, workload: PoolWorkload) -> float:
    """Returns the cores that pods of the workload can request on an empty node, in the unit of their requests (not
    normalised)."""
    candidate = one.candidate
    return candidate.cores - one.capacity.reserved_cores - workload.daemons.cores / candidate.performance


def _node_gib(one: NodeStock, workload: PoolWorkload) -> float:
    """Returns the memory in GiB that pods of the workload can request on an empty node."""
    candidate = one.candidate
    eviction = candidate.reservation.eviction_gib
    return candidate.visible_gib - one.capacity.reserved_gib - eviction - workload.daemons.gib
