"""What was found, as reports."""

from trimtab.cluster.moment import Seconds, written
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.windows import open_now
from trimtab.command.compactor.asked import Found
from trimtab.command.compactor.report import DrainReport, HistoryReport, PoolStatus, RecordReport, StatusReport
from trimtab.compaction.drain.begin import closed
from trimtab.compaction.drain.memory import Memory
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.observations import Observations


def status(found: Found) -> StatusReport:
    pools = {pool.name: pool for pool in found.pools.pools}
    names = sorted({*pools, *found.memories})
    return StatusReport(
        paused=found.paused,
        leader=found.leader,
        pools=[_pool(name, pools.get(name), found) for name in names],
        drains=_drains(found),
        mistakes=[*map(str, found.pools.mistakes), *found.unread],
    )


def reopening(kept: Memory | Unreadable, now: Seconds) -> Seconds:
    """Which moment's closing is ended: by the compactor's clock, which may differ from this one's."""
    return kept.closed if isinstance(kept, Memory) and kept.closed is not None else now


def _pool(name: str, pool: Pool | None, found: Found) -> PoolStatus:
    memory = found.memories.get(name, Memory())
    shut = closed(pool, memory, found.at, Terms()) if pool is not None else None
    return PoolStatus(
        name=name,
        mode="gone" if pool is None else "off" if not pool.enabled else "rehearse" if pool.dry_run else "act",
        closed=shut is not None,
        strikes=memory.strikes,
        evictions_last_hour=Observations(evictions=memory.evictions).lately(found.at),
        evictions_per_hour=pool.evictions_per_hour if pool is not None else None,
        saved_nodes=memory.saved,
        next=list(memory.plan),
        planned_at=written(memory.plan_at) if memory.plan_at is not None else None,
        waits_for=str(shut) if shut is not None else _waits(pool, memory, found),
    )


def _waits(pool: Pool | None, memory: Memory, found: Found) -> str:
    if pool is None:
        return "the pool's ConfigMap is gone"
    if found.paused:
        return found.paused
    if not found.leader:
        return "no compactor leads"
    if pool.dry_run:
        return "the pool rehearses: nothing is done before it says mode: act"
    if not open_now(pool.windows, found.at):
        return "the pool's next window"
    busy = sorted(memory.drains)
    if len([node for node in busy if node not in memory.empty]) >= pool.drains:
        return f"the end of the drain of {busy[0]}"
    lately = Observations(evictions=memory.evictions).lately(found.at)
    if lately >= pool.evictions_per_hour:
        return f"the hour's ceiling of {pool.evictions_per_hour} evictions"
    return "" if memory.plan else memory.plan_why or "a plan that frees a node"


def _drains(found: Found) -> list[DrainReport]:
    made = []
    for node, note in found.noted():
        if isinstance(note, Unreadable):
            made.append(
                DrainReport(node=node.name, pool="", drain="", phase="unreadable", since="", pods_left=0, pods=0)
            )
            continue
        made.append(
            DrainReport(
                node=node.name,
                pool=note.pool,
                drain=note.drain,
                since=written(note.since),
                phase=_phase(note, found),
                pods_left=found.left(note),
                pods=len(note.moves),
            )
        )
    return sorted(made, key=lambda drain: (drain.since, drain.node))


def _phase(note: Note, found: Found) -> str:
    if note.home not in ("", found.home):
        return f"left to the compactor of namespace {note.home}"
    return "emptying" if note.emptied is None else "emptied"


def history(found: Found, pool: str | None, node: str | None) -> HistoryReport:
    """Every record that is kept, of one pool or node where they are named."""
    records = [record for memory in found.memories.values() for record in memory.ring]
    chosen = [r for r in records if (pool is None or r.pool == pool) and (node is None or r.node == node)]
    return HistoryReport(
        records=[
            RecordReport(
                at=written(r.at),
                pool=r.pool,
                what=r.what,
                code=r.code,
                why=r.why,
                node=r.node,
                pod=r.pod,
                drain=r.drain,
                rehearsed=r.rehearsed,
            )
            for r in sorted(chosen, key=lambda r: r.at)
        ]
    )
