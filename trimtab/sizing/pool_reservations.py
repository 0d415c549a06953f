"""What is reserved on the nodes of each pool, what their kubelets and container runtimes use, and what the difference
costs.

Nodes of one pool with different container runtimes are measured separately, because what the runtimes use per node and
per pod differs by up to half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import pool_name
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.machines.prices import price_of
from trimtab.reservations.measure import (
    PoolUse,
    ReservationChange,
    Reserved,
    decide_change,
    measure_pool,
    recommend_reservation,
)
from trimtab.reservations.overhead_history import OverheadHistory
from trimtab.reservations.profile import MIB
from trimtab.sizing.cost import ResourcePrice, divide_price

WITHOUT_POOL = "(none)"
ASSUMED_EVICTION_BYTES = 100 * MIB
"""The kubelet's default for the hard eviction threshold of memory.available."""
MIN_NODE_AGE = timedelta(hours=1)
"""A younger node is not measured, because it is still pulling images and its caches are empty."""


@dataclass(frozen=True, slots=True, order=True)
class PoolRuntime:
    """Names the nodes of a pool that have the same container runtime."""

    pool: str
    runtime: str
    """The name of the container runtime; empty if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodes:
    """What is known about the nodes of a pool that have one container runtime, except for their usage."""

    names: frozenset[str]
    reserved: Reserved | None = None
    """What is reserved on most of these nodes (capacity minus allocatable and the eviction threshold), or None if it is
    unknown."""
    is_configured: bool = False
    """Whether `reserved` was read from a kubelet's configuration."""
    price: ResourcePrice | None = None
    """The price of a core and a GiB, or None if no node has a price."""
    max_pods: int = 0
    """The largest number of pods that one of these nodes allows; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedMoney:
    """The monthly price, in dollars, of what is reserved and not used, and of what is used and not reserved."""

    unused: float
    overdraft: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReservation:
    """The measured usage of one pool's kubelets and runtimes, the present reservation, and the recommended one."""

    key: PoolRuntime
    nodes: PoolNodes
    use: PoolUse | NotYet
    recommended: Reserved | NotYet
    change: ReservationChange | NotYet
    money: ReservedMoney | None
    """The monthly price of the difference between reservation and usage, or None if the price, the reservation or the
    usage is not known."""


def group_nodes(nodes: Iterable[NodeInfo], now: Seconds) -> dict[PoolRuntime, PoolNodes]:
    """Returns the nodes by pool and container runtime. Nodes that are not ready or are younger than an hour are left
    out."""
    members: dict[PoolRuntime, list[NodeInfo]] = {}
    for node in nodes:
        is_young = node.created is not None and now - node.created < MIN_NODE_AGE.total_seconds()
        if node.is_ready and not is_young:
            key = PoolRuntime(pool_name(node) or WITHOUT_POOL, node.container_runtime)
            members.setdefault(key, []).append(node)
    return {key: _describe_nodes(of_pool) for key, of_pool in sorted(members.items())}


def _describe_nodes(nodes: list[NodeInfo]) -> PoolNodes:
    reserved = Counter(amount for node in nodes if (amount := reserved_of_node(node)) is not None)
    # Of equally frequent ones the smallest: what is reserved is not overstated.
    most = min(reserved, key=lambda amount: (-reserved[amount], amount.memory_bytes, amount.millicores), default=None)
    pods = [node.allocatable.get("pods", 0) for node in nodes if not isinstance(node.allocatable, Unreadable)]
    return PoolNodes(
        names=frozenset(node.name for node in nodes),
        reserved=most,
        price=_unit_price(nodes),
        max_pods=max(pods, default=0),
    )


def reserved_of_node(node: NodeInfo, eviction_bytes: int = ASSUMED_EVICTION_BYTES) -> Reserved | None:
    """Returns what is reserved on a node for kubelet and system: capacity minus allocatable and the eviction threshold;
    None if it is unknown."""
    if isinstance(node.capacity, Unreadable) or isinstance(node.allocatable, Unreadable):
        return None
    memory = node.capacity["memory"] - node.allocatable["memory"] - eviction_bytes
    # Nodes of one type differ by a few pages.
    millicores = node.capacity["cpu"] - node.allocatable["cpu"]
    return Reserved(millicores=max(0, millicores), memory_bytes=max(0, round(memory / MIB)) * MIB)


def _unit_price(nodes: Iterable[NodeInfo]) -> ResourcePrice | None:
    prices, cores, gib = 0, 0.0, 0.0
    for node in nodes:
        price = price_of(node, {})
        if not isinstance(price, NotYet) and not isinstance(node.capacity, Unreadable):
            prices += price
            cores += node.capacity["cpu"] / 1000
            gib += node.capacity["memory"] / (1 << 30)
    return divide_price(prices, cores, gib) if prices else None


def with_configured(nodes: PoolNodes, reserved: Reserved) -> PoolNodes:
    """Returns the nodes with the reservation that a kubelet's configuration gives."""
    return replace(nodes, reserved=reserved, is_configured=True)


def assess_pools(
    nodes: Mapping[PoolRuntime, PoolNodes],
    histories: Mapping[PoolRuntime, OverheadHistory],
    max_pods: int | None = None,
    published: Mapping[PoolRuntime, Reserved] | None = None,
) -> list[PoolReservation]:
    """Returns, for each pool, the measured usage and the reservation that is recommended for it.

    `published` are earlier recommendations. A new recommendation replaces an earlier one only if the two differ by more
    than the tolerance.
    """
    return [
        _assess_pool(
            key,
            nodes.get(key, PoolNodes(names=frozenset())),
            histories.get(key, OverheadHistory()),
            max_pods,
            (published or {}).get(key),
        )
        for key in sorted(nodes.keys() | histories.keys())
    ]


def _assess_pool(
    runtime: PoolRuntime, nodes: PoolNodes, history: OverheadHistory, max_pods: int | None, published: Reserved | None
) -> PoolReservation:
    use = measure_pool(history, len(nodes.names - history.nodes.keys()))
    recommended = use if isinstance(use, NotYet) else recommend_reservation(use, max_pods)
    if not isinstance(recommended, NotYet) and published is not None:
        recommended = decide_change(published, recommended, history.span_seconds).reserved
    change = (
        recommended
        if isinstance(recommended, NotYet)
        else decide_change(nodes.reserved, recommended, history.span_seconds)
    )
    return PoolReservation(
        key=runtime, nodes=nodes, use=use, recommended=recommended, change=change, money=_reserved_money(nodes, use)
    )


def _reserved_money(nodes: PoolNodes, use: PoolUse | NotYet) -> ReservedMoney | None:
    if isinstance(use, NotYet) or nodes.reserved is None or nodes.price is None:
        return None
    cpu, memory = nodes.reserved.millicores - use.cpu.p50, nodes.reserved.memory_bytes - use.memory.p50
    count = len(nodes.names)
    return ReservedMoney(
        unused=count * nodes.price.monthly_cost(int(max(0.0, cpu)), int(max(0.0, memory))),
        overdraft=count * nodes.price.monthly_cost(int(max(0.0, -cpu)), int(max(0.0, -memory))),
    )
