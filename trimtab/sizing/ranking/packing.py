"""Places the real pods of a workload on empty nodes of chosen machine types, by kube-scheduler's filters.

The number of nodes that the ranking calculates from sums of requests may be too small for the real pods, with their
sizes and constraints. So the pods are placed here one by one, the largest first. The nodes have the labels and taints
of a node of the pool, and are spread over its zones. DaemonSets use on each node what they use on average today.
Disruption budgets do not matter, because nothing is evicted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, inf

import msgspec

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.reason import Reason
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.fill_nodes import fill_nodes
from trimtab.scheduling.filters import rejection_reason
from trimtab.sizing.ranking.capacity import Candidate, NodeCapacity
from trimtab.sizing.ranking.workload import ARCH_LABEL, GIB, PoolWorkload

MAX_NODES = 5_000
"""With more nodes than this, the pods are not placed one by one. The autoscaler's own limit is of this size."""
MAX_SCALE = 3
"""If pods do not fit on this many times the calculated number of nodes, they fit on none: a constraint prevents it."""
_ATTEMPTS = 24


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
    cores = fsum(one.count * _node_cores(one, workload) for one in stock)
    gib = fsum(one.count * _node_gib(one, workload) for one in stock)
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
    starts = [sum(counts[:number]) for number in range(len(counts))]
    ranges = [range(start, start + count) for start, count in zip(starts, counts, strict=True) if count]
    left = fill_nodes(capacity, model.pending_pods, ranges)
    emptiest = max(range(len(empty)), key=lambda n: capacity.major[n])
    return [
        PackedPod(pod=pod.key, reason=reason)
        for pod, pod_class in left
        if (reason := rejection_reason(capacity, pod_class, emptiest)) is not None
    ]


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
