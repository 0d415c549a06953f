"""Says in one sentence what has to happen before the next drain of a pool begins, and why its nodes stay."""

from collections.abc import Mapping

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import Seconds, is_any_open
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import closed_reason, opening_reason
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import Observations

MAX_REASONS = 3
"""The largest number of reasons that a sentence names."""


def pool_mode(pool: Pool | None) -> str:
    """Returns `act`, `rehearse` or `off` for a pool, and `gone` if only the pool's state exists."""
    return "gone" if pool is None else "off" if not pool.enabled else "rehearse" if pool.dry_run else "act"


def waiting_reason(
    pool: Pool | None, state: PoolState, now: Seconds, timeouts: DrainTimeouts, *, paused: str = "", is_led: bool = True
) -> str:
    """Returns what must happen before the next drain of the pool begins, or an empty string if nothing prevents it.

    `state` is the pool's stored state. `paused` is the reason why nothing may be done now, or an empty string.
    `is_led` says whether a compactor holds the Lease.
    """
    if pool is None:
        return "the ConfigMap of the pool, which does not exist"
    if (closed := closed_reason(pool, state, now, timeouts)) is not None:
        return str(closed)
    if paused:
        return paused
    if not is_led:
        return "a compactor that leads (holds the Lease)"
    if not pool.enabled:
        return "`enabled: true` in the pool's ConfigMap, because the pool is disabled"
    if pool.dry_run:
        return "`mode: act` in the pool's ConfigMap, because the pool is in mode rehearse"
    if not is_any_open(pool.windows, now):
        return "the next window in which the pool may be drained"
    if (opened := opening_reason(pool, state, now)) is not None:
        return str(opened)
    draining = sorted(state.drains)
    if len([node for node in draining if node not in state.empty]) >= pool.drains:
        return f"the end of the drain of {draining[0]}"
    if Observations(evictions=state.evictions).recent_evictions(now) >= pool.evictions_per_hour:
        return (
            f"the next hour, because the pool's limit of {format_count(pool.evictions_per_hour, 'eviction')} "
            f"per hour is reached"
        )
    return "" if state.plan else state.plan_why or _missing_plan(state.plan_stays)


def describe_stays(stays: Mapping[str, int]) -> str:
    """Returns how many nodes stay for which reason, as in "5 nodes: 3 headroom, 2 node-too-young"; an empty string if
    none does. `stays`: reason code → the number of nodes."""
    largest = sorted(stays.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{count} {code}" for code, count in largest[:MAX_REASONS])
    more = ", …" if len(largest) > MAX_REASONS else ""
    return f"{format_count(sum(stays.values()), 'node')}: {reasons}{more}" if stays else ""


def differ_much(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Returns whether the reasons for which nodes stay differ so much that they must be stored again: there is another
    reason, or a number differs by more than a tenth of all nodes.

    In a large pool some node changes its reason in every round; a write each time would cost more than it says."""
    slack = sum(after.values()) // 10
    return before.keys() != after.keys() or any(abs(after[code] - before[code]) > slack for code in after)


def _missing_plan(stays: Mapping[str, int]) -> str:
    counts = describe_stays(stays)
    return f"a plan that drains a node; at present all nodes stay ({counts})" if counts else "a plan that drains a node"
