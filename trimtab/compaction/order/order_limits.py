"""What the settings of pools permit a DrainOrder now, and what the order disregards of them.

An order is an explicit wish, so the rules that say whether a drain is worth it do not apply to it, nor the back-off of
a pool after failed drains. The windows of a pool and its limits do, unless the order says `override`. The mode of a
pool always does. A node that belongs to no pool has no such settings.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds, is_any_open
from trimtab.compaction.drain import actions as a
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_object import Override
from trimtab.compaction.order.order_round import OrderWrite, WriteRecord


@dataclass(frozen=True, slots=True)
class PoolPace:
    """What a pool permits, and what of it is used."""

    pool: Pool
    draining: int
    """How many of its nodes are being emptied, by the compactor's own wish and by orders."""
    evictions: int
    """How many pods the compactor has evicted from its nodes in the last hour."""


@dataclass(slots=True)
class PermittedWrites:
    """The writes of a round that the pools permit."""

    writes: list[tuple[str, OrderWrite]] = field(default_factory=list)
    waits: dict[str, Reason] = field(default_factory=dict)
    """Node → the limit for which its write waits."""
    overrides: list[str] = field(default_factory=list)
    """The limits that were disregarded, as sentences."""


def mode_reason(pools: Iterable[Pool]) -> Reason | None:
    """Returns why nothing may be written in one of these pools, or None."""
    for pool in pools:
        if not pool.enabled or pool.dry_run:
            state = "is disabled" if not pool.enabled else "is in mode rehearse"
            return o.POOL_MODE(f"pool {pool.name} {state}: `mode: act` in its settings lets the order begin")
    return None


def closed_window_reasons(pools: Iterable[Pool], now: Seconds) -> list[Reason]:
    """Returns a reason for each of these pools that has windows of which none is open."""
    return [
        o.WINDOW_CLOSED(f"no window of pool {pool.name} is open now")
        for pool in pools
        if not is_any_open(pool.windows, now)
    ]


def keep_reasons(pools: Iterable[Pool], nodes: Sequence[NodeInfo], ordered: Iterable[str]) -> list[Reason]:
    """Returns a reason for each of these pools that would have fewer nodes than it keeps, if the ordered nodes took no
    more pods."""
    members = frozenset(ordered)
    reasons = []
    for pool in pools:
        rest = [
            node
            for node in nodes
            if pool.has_node(node) and node.name not in members and node.is_ready and not node.is_cordoned
        ]
        if len(rest) < pool.min_nodes:
            reasons.append(
                o.POOL_LIMIT(
                    f"pool {pool.name} keeps {format_count(pool.min_nodes, 'node')}, and the order would leave it "
                    f"{len(rest)}"
                )
            )
    return reasons


def permit_writes(
    writes: Sequence[tuple[str, OrderWrite]],
    pool_of: Mapping[str, str],
    uses: Mapping[str, PoolPace],
    begun: Iterable[str],
    overrides: Iterable[Override],
) -> PermittedWrites:
    """Returns the writes that the pace of the pools permits, in the same order.

    pool_of: node → its pool, for nodes that belong to one. uses: pool → what is used of its limits. begun: the nodes
    whose drain has begun, so that a record of them begins nothing."""
    result, new_drains, new_evictions = PermittedWrites(), Counter[str](), Counter[str]()
    begun_nodes, disregards = frozenset(begun), Override.LIMITS in frozenset(overrides)
    for node, write in writes:
        use = uses.get(pool_of.get(node, ""))
        limit = ""
        if use is not None and isinstance(write, WriteRecord) and node not in begun_nodes:
            new_drains[use.pool.name] += 1
            if use.draining + new_drains[use.pool.name] > use.pool.drains:
                limit = f"pool {use.pool.name} permits {format_count(use.pool.drains, 'drain')} at a time"
        elif use is not None and isinstance(write, a.Evict):
            new_evictions[use.pool.name] += 1
            if use.evictions + new_evictions[use.pool.name] > use.pool.evictions_per_hour:
                limit = f"pool {use.pool.name} permits {format_count(use.pool.evictions_per_hour, 'eviction')} an hour"
        if limit and not disregards:
            result.waits[node] = o.POOL_LIMIT(limit)
            continue
        if limit and limit not in result.overrides:
            result.overrides.append(limit)
        result.writes.append((node, write))
    return result
