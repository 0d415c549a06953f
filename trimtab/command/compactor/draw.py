"""The reports as tables."""

from rich.console import Console
from rich.table import Table

from trimtab.command.compactor.report import HistoryReport, PoolStatus, StatusReport


def status(console: Console, report: StatusReport) -> None:
    console.print(f"[bold red]paused:[/] {report.paused}" if report.paused else "not paused")
    console.print(f"leader: {report.leader or 'none'}")
    table = Table("pool", "mode", "evictions/h", "saved nodes", "next", "waits for", box=None, pad_edge=False)
    for pool in report.pools:
        most = pool.evictions_per_hour
        pace = f"{pool.evictions_last_hour} of {most}" if most is not None else str(pool.evictions_last_hour)
        table.add_row(pool.name, pool.mode, pace, str(pool.saved_nodes), _next(pool), pool.waits_for)
    console.print(table)
    drains = Table("node", "pool", "phase", "since", "pods left", box=None, pad_edge=False)
    for drain in report.drains:
        drains.add_row(drain.node, drain.pool, drain.phase, drain.since, f"{drain.pods_left} of {drain.pods}")
    console.print(drains if report.drains else "no node is being emptied")
    for mistake in report.mistakes:
        console.print(f"[yellow]{mistake}[/]")


def _next(pool: PoolStatus) -> str:
    more = len(pool.next) - 3
    return ", ".join(pool.next[:3]) + (f" and {more} more" if more > 0 else "") or "nothing"


def history(console: Console, report: HistoryReport) -> None:
    table = Table("at", "pool", "what", "why", "reason", box=None, pad_edge=False)
    for record in report.records:
        what = f"{record.what} (rehearsed)" if record.rehearsed else record.what
        table.add_row(record.at, record.pool, what, record.why, record.code)
    console.print(table if report.records else "nothing has been decided yet")
