"""The reports of `trimtab compactor status` and `history`.

What was found, as reports.

The reports as tables.
"""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trimtab.cli.compactor.state import CompactorState
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds, open_now, written
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import closed, just_opened
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import Observations


class DrainReport(ReportPart, frozen=True, kw_only=True):
    """A node with our note."""

    node: str
    pool: str
    drain: str
    phase: str
    """emptying, emptied, unreadable, unknown to the pool's state, or whose it is where a compactor of another namespace
    wrote the note. As the annotation claims: it is unverified here."""
    since: str
    """RFC 3339."""
    pods_left: int
    pods: int


class PoolStatus(ReportPart, frozen=True, kw_only=True):
    name: str
    mode: str
    """act, rehearse, off; or gone where only its state is left."""
    closed: bool
    """By failures, or because it backs off; `resume --pool` opens it."""
    strikes: int
    evictions_last_hour: int
    evictions_per_hour: int | None
    saved_nodes: int
    """Taken by the autoscaler after we emptied them, ever."""
    next: list[str]
    """Nodes the last plan would empty, in order."""
    planned_at: str | None
    """Since when that is the plan."""
    waits_for: str
    """What has to be before the next one begins; empty where nothing has to."""


class StatusReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/compactor-status-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "CompactorStatusReport"
    paused: str
    """Why everything stands still; empty where it does not."""
    leader: str
    """The replica that leads; empty where none does."""
    pools: list[PoolStatus]
    drains: list[DrainReport]
    mistakes: list[str]
    """Of the pools' ConfigMaps."""


class RecordReport(ReportPart, frozen=True, kw_only=True):
    at: str
    pool: str
    what: str
    code: str
    why: str
    node: str
    pod: str
    drain: str
    rehearsed: bool


class HistoryReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/compactor-history-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "CompactorHistoryReport"
    records: list[RecordReport]
    """The oldest first."""


def status_report(found: CompactorState) -> StatusReport:
    pools = {pool.name: pool for pool in found.pools.pools}
    names = sorted({*pools, *found.memories})
    return StatusReport(
        paused=found.paused,
        leader=found.leader,
        pools=[_pool(name, pools.get(name), found) for name in names],
        drains=_drains(found),
        mistakes=[*map(str, found.pools.mistakes), *found.unread],
    )


def reopening(kept: PoolState | Unreadable, now: Seconds) -> Seconds:
    """Which moment's closing or back-off is ended: by the compactor's clock, which may differ from this one's."""
    if not isinstance(kept, PoolState):
        return now
    ended = [kept.closed, kept.backoff.last if kept.backoff is not None else None]
    return max((at for at in ended if at is not None), default=now)


def _pool(name: str, pool: Pool | None, found: CompactorState) -> PoolStatus:
    memory = found.memories.get(name, PoolState())
    shut = closed(pool, memory, found.at, DrainTimeouts()) if pool is not None else None
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


def _waits(pool: Pool | None, memory: PoolState, found: CompactorState) -> str:
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
    if (waits := just_opened(pool, memory, found.at)) is not None:
        return str(waits)
    busy = sorted(memory.drains)
    if len([node for node in busy if node not in memory.empty]) >= pool.drains:
        return f"the end of the drain of {busy[0]}"
    lately = Observations(evictions=memory.evictions).lately(found.at)
    if lately >= pool.evictions_per_hour:
        return f"the hour's ceiling of {pool.evictions_per_hour} evictions"
    return "" if memory.plan else memory.plan_why or "a plan that frees a node"


def _drains(found: CompactorState) -> list[DrainReport]:
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
                phase=_phase(node.name, note, found),
                pods_left=found.left(note),
                pods=len(note.moves),
            )
        )
    return sorted(made, key=lambda drain: (drain.since, drain.node))


def _phase(node: str, note: DrainAnnotation, found: CompactorState) -> str:
    if note.home not in ("", found.home):
        return f"left to the compactor of namespace {note.home}"
    if not found.memories.get(note.pool, PoolState()).knows(node, note.drain):
        return "unknown to the pool's state"
    return "emptying" if note.emptied is None else "emptied"


def history_report(found: CompactorState, pool: str | None, node: str | None) -> HistoryReport:
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


def status(console: Console, report: StatusReport) -> None:
    console.print(f"[bold red]paused:[/] {escape(report.paused)}" if report.paused else "not paused")
    console.print(f"leader: {escape(report.leader) or 'none'}")
    table = Table("pool", "mode", "evictions/h", "saved nodes", "next", "waits for", box=None, pad_edge=False)
    for pool in report.pools:
        most = pool.evictions_per_hour
        pace = f"{pool.evictions_last_hour} of {most}" if most is not None else str(pool.evictions_last_hour)
        table.add_row(pool.name, pool.mode, pace, str(pool.saved_nodes), _next(pool), escape(pool.waits_for))
    console.print(table)
    drains = Table("node", "pool", "phase", "since", "pods left", box=None, pad_edge=False)
    for drain in report.drains:
        drains.add_row(drain.node, drain.pool, drain.phase, drain.since, f"{drain.pods_left} of {drain.pods}")
    console.print(drains if report.drains else "no node is being emptied")
    if report.drains:
        console.print("The nodes' annotations are unverified here; `trimtab doctor` verifies them.")
    for mistake in report.mistakes:
        console.print(f"[yellow]{escape(mistake)}[/]")


def _next(pool: PoolStatus) -> str:
    more = len(pool.next) - 3
    return ", ".join(pool.next[:3]) + (f" and {more} more" if more > 0 else "") or "nothing"


def history(console: Console, report: HistoryReport) -> None:
    table = Table("at", "pool", "what", "why", "reason", box=None, pad_edge=False)
    for record in report.records:
        what = f"{record.what} (rehearsed)" if record.rehearsed else record.what
        table.add_row(record.at, record.pool, what, escape(record.why), record.code)
    console.print(table if report.records else "nothing has been decided yet")
