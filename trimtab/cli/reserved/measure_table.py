"""Draws the report of `trimtab reserved measure` on a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from trimtab.cli.reports.reservation_table import format_bytes, format_cpu
from trimtab.cli.reserved.measure_report import PoolReservationReport, ReservedMeasureReport, UseReport
from trimtab.cluster.format_count import format_count


def draw_measurements(console: Console, report: ReservedMeasureReport) -> None:
    """Draw one table of all pools, then the recommendation for each."""
    table = Table(title="Kubelet and container runtime of a node", title_justify="left", header_style="bold")
    left = ("Pool", "Nodes", "Resource")
    for column in (*left, "Base", "Each pod", "p95", "Maximum", "Reserved", "Used", "Advised"):
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    for pool in report.pools:
        _add_pool(table, pool)
    console.print(table)
    for pool in report.pools:
        _draw_decision(console, pool)
    for note in report.notes:
        console.print(note)


def _add_pool(table: Table, pool: PoolReservationReport) -> None:
    nodes = f"{pool.measured_nodes} of {pool.nodes}"
    if pool.cpu is None or pool.memory is None:
        table.add_row(_pool_name(pool), nodes, "not measured", *("–",) * 7)
        return
    now, recommended = pool.reserved_now, pool.recommended
    for resource, use, write, is_cpu in (
        ("cpu", pool.cpu, format_cpu, True),
        ("memory", pool.memory, format_bytes, False),
    ):
        first = (_pool_name(pool), nodes) if is_cpu else ("", "")
        reserved = None if now is None else now.millicores if is_cpu else now.bytes
        wanted = None if recommended is None else recommended.millicores if is_cpu else recommended.bytes
        share = pool.used_of_reserved.get(resource)
        table.add_row(
            *first,
            resource,
            *_fit_texts(use, write),
            write(use.p95),
            write(use.maximum),
            "–" if reserved is None else write(reserved),
            "–" if share is None else f"{share:.0%}",
            "–" if wanted is None else write(wanted),
        )


def _fit_texts(use: UseReport, write: Callable[[float], str]) -> tuple[str, str]:
    if use.fit is None:
        return "–", "–"
    # A pod adds less than a millicore of cpu: two decimals.
    per_pod = f"{use.fit.per_pod:.2f}m" if write is format_cpu else write(use.fit.per_pod)
    return write(use.fit.base), per_pod


def _pool_name(pool: PoolReservationReport) -> str:
    return f"{pool.pool} ({pool.runtime})" if pool.runtime else pool.pool


def _draw_decision(console: Console, pool: PoolReservationReport) -> None:
    name = _pool_name(pool)
    if pool.missing is not None:
        console.print(f"{name}: {pool.missing.reason.text} (have {pool.missing.have}, need {pool.missing.need})")
        return
    days = f"{pool.days:g} days" if pool.days else "one moment"
    text = pool.reason.text if pool.reason is not None else ""
    console.print(f"{name}: {pool.change}: {text} ({days}, up to {format_count(pool.max_pods_seen, 'pod')} on a node)")
    if pool.unused_dollars_per_month is not None and pool.overdraft_dollars_per_month is not None:
        console.print(
            f"  reserved but not used: ${pool.unused_dollars_per_month:,.2f} a month; used but not reserved: "
            f"${pool.overdraft_dollars_per_month:,.2f}"
        )
    for use, resource in ((pool.cpu, "cpu"), (pool.memory, "memory")):
        if use is not None and use.missing_fit is not None:
            console.print(f"  {resource}: {use.missing_fit.reason.text}; {use.missing_fit.need} are needed")
    for note in pool.notes:
        console.print(f"  {note}")
