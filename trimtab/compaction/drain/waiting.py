"""Says in one sentence what has to happen before the next drain of a pool begins."""

from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import Seconds, is_any_open
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import closed_reason, opening_reason
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import Observations


def pool_mode(pool: Pool | None) -> str:
    """Returns `act`, `rehearse` or `off` for a pool, and `gone` if only the pool's state exists."""
    return "gone" if pool is None else "off" if not pool.enabled else "rehearse" if pool.dry_run else "act"


def waiting_reason(
    pool: Pool | None, memory: PoolState, now: Seconds, terms: DrainTimeouts, *, paused: str = "", is_led: bool = True
) -> str:
    """Returns what must happen before the next drain of the pool begins, or an empty string if nothing prevents it.

    `memory` is the pool's stored state. `paused` is the reason why nothing may be done now, or an empty string.
    `is_led` says whether a compactor holds the Lease.
    """
    if pool is None:
        return "the ConfigMap of the pool, which does not exist"
    if (closed := closed_reason(pool, memory, now, terms)) is not None:
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
    if (opened := opening_reason(pool, memory, now)) is not None:
        return str(opened)
    draining = sorted(memory.drains)
    if len([node for node in draining if node not in memory.empty]) >= pool.drains:
        return f"the end of the drain of {draining[0]}"
    if Observations(evictions=memory.evictions).recent_evictions(now) >= pool.evictions_per_hour:
        return f"the next hour, because the pool's limit of {pool.evictions_per_hour} evictions per hour is reached"
    return "" if memory.plan else memory.plan_why or "a plan that drains a node"
