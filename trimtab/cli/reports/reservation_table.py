"""Draws the report of `trimtab reserved formula` on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.reports.reservation_formula import (
    NodeFormulaReport,
    ProfileReport,
    ReservationReport,
    ReservedFormulaReport,
    TermReport,
)
from trimtab.cluster.format_count import format_count
from trimtab.reservations.profile import GIB, MIB, TermKind


def draw_formulas(console: Console, report: ReservedFormulaReport, *, explain: bool) -> None:
    """Draw one table for each node, and with `explain` every term of every formula."""
    for node in report.nodes:
        console.print(_profiles_table(node))
        if node.now is not None:
            console.print(
                f"On these nodes {format_cpu(node.now.millicores)} cpu and {format_bytes(node.now.bytes)} memory "
                "are reserved now (capacity minus allocatable)."
            )
        if len(node.pod_limits) > 1:
            limits = ", ".join(f"{limit.kind} {limit.pods}" for limit in node.pod_limits)
            console.print(f"The maximum number of pods that each limit allows: {limits}.")
        for note in node.notes:
            console.print(note)
        if explain:
            _draw_terms(console, node)


def _profiles_table(node: NodeFormulaReport) -> Table:
    count = f" ({format_count(node.nodes, 'node')})" if node.nodes else ""
    table = Table(
        title=f"{node.name}{count}: {format_cpu(node.millicores)} cpu, {format_bytes(node.memory_bytes)}, "
        f"{format_count(node.max_pods, 'pod')}",
        title_justify="left",
        header_style="bold",
    )
    has_lost = any(row.memory.lost for row in node.profiles)
    has_disk = any(row.ephemeral_storage is not None for row in node.profiles)
    has_ids = any(row.process_ids is not None for row in node.profiles)
    columns = [
        "Profile", "As", "CPU", "Memory", "Eviction", *(["Kernel"] if has_lost else []),
        *(["Disk"] if has_disk else []), *(["PIDs"] if has_ids else []), "Allocatable cpu", "Allocatable memory",
        "Share of the price",
    ]  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column in ("Profile", "As") else "right", overflow="fold")
    for row in node.profiles:
        disk = row.ephemeral_storage
        table.add_row(
            row.profile,
            "system" if row.memory.system or row.cpu.system else "kube",
            format_cpu(row.cpu.kube + row.cpu.system),
            format_bytes(row.memory.kube + row.memory.system),
            format_bytes(row.memory.eviction),
            *([format_bytes(row.memory.lost)] if has_lost else []),
            *(["–" if disk is None else format_bytes(disk.kube + disk.system)] if has_disk else []),
            *(["–" if row.process_ids is None else str(row.process_ids)] if has_ids else []),
            format_cpu(row.cpu.allocatable),
            format_bytes(row.memory.allocatable),
            _price_text(row),
        )
    return table


def _price_text(row: ProfileReport) -> str:
    if not row.fits_machine:
        return "the formula reserves more than the node has"
    month = "" if row.dollars_per_month is None else f", ${row.dollars_per_month:,.2f} a month"
    return f"{row.price_share:.1%}{month}"


def _draw_terms(console: Console, node: NodeFormulaReport) -> None:
    for row in node.profiles:
        console.print(Text.assemble("\n", (row.profile, "bold"), f": {row.title}"))
        if row.source:
            console.print(f"  {row.source}", highlight=False)
        for name, reservation, write in (("cpu", row.cpu, format_cpu), ("memory", row.memory, format_bytes)):
            for term in reservation.terms:
                console.print(f"  {name:<7}{_term_text(name, term):<52}{write(term.amount):>12}", highlight=False)
            console.print(f"  {name:<7}{_sum_text(reservation):<52}{write(_reserved(reservation)):>12}")


def _reserved(reservation: ReservationReport) -> float:
    return reservation.kube + reservation.system


def _sum_text(reservation: ReservationReport) -> str:
    return f"reserved ({'system' if reservation.system else 'kube'})"


def _term_text(resource: str, term: TermReport) -> str:
    write = format_cpu if resource == "cpu" else format_bytes
    if term.kind == TermKind.BRACKET:
        return f"{term.percent:g} % from {write(term.low)} to {write(term.high or 0)}"
    if term.kind == TermKind.PER_POD:
        return f"{write(term.low)} for each of {term.high:g} pods"
    if term.kind == TermKind.SMALL_MACHINE:
        return (
            "a fixed amount for a machine that shares its cores"
            if term.high is None
            else f"a fixed amount below {write(term.high)}"
        )
    return {
        TermKind.BASE: "a fixed amount for every node",
        TermKind.MAX_SHARE: f"at most {term.percent:g} % of the size",
        TermKind.MINIMUM: "the amount that raises the sum to the minimum",
        TermKind.ROUNDING: "rounded",
    }[TermKind(term.kind)]


def format_cpu(millicores: float) -> str:
    """Returns millicores as text with at most one decimal, such as 82.5m, 2, 940m."""
    rounded = round(millicores, 1)
    return f"{rounded / 1000:g}" if rounded and rounded % 1000 == 0 else f"{rounded:g}m"


def format_bytes(count: float) -> str:
    """Returns bytes as text in GiB with two decimals or in MiB with one, such as 3.56Gi, 100Mi."""
    if abs(count) >= GIB:
        return f"{count / GIB:.2f}".rstrip("0").rstrip(".") + "Gi"
    return f"{count / MIB:.1f}".rstrip("0").rstrip(".") + "Mi"
