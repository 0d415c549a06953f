"""How the report of `trimtab reserved formula` is shown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, number_column
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.reservation_formula import (
    NodeFormulaReport,
    ProfileReport,
    ReservationReport,
    ReservedFormulaReport,
    TermReport,
)
from trimtab.cluster.format_count import format_count
from trimtab.reservations.profile import GIB, MIB, TermKind

MAX_TABLES = 2
"""The number of groups of nodes that one screen shows."""


def view_formulas(*, explain: bool, is_screen: bool = False) -> ReportView[ReservedFormulaReport]:
    """Returns a table for each group of nodes, with `explain` followed by every term of every formula. One screen has
    the first groups alone."""
    max_tables = MAX_TABLES if is_screen else None

    def count_hidden_groups(report: ReservedFormulaReport) -> Iterator[Text]:
        hidden = len(report.nodes) - len(report.nodes[:max_tables])
        if hidden:
            yield Text(f"… and {format_count(hidden, 'more group')} of nodes: -o wide", style="bright_black")

    return ReportView(
        title="trimtab reserved formula",
        sections=lambda report: tuple(_list_profiles(node, explain=explain) for node in report.nodes[:max_tables]),
        after=count_hidden_groups,
    )


def _list_profiles(node: NodeFormulaReport, *, explain: bool) -> Section[ReservedFormulaReport, ProfileReport]:
    columns = tuple(_list_columns(node))
    node_column: Column[ProfileReport] = Column("node", lambda row: node.name)
    count = f" ({format_count(node.nodes, 'node')})" if node.nodes else ""
    title = (
        f"{node.name}{count}: {format_cpu(node.millicores)} cpu, {format_bytes(node.memory_bytes)}, "
        f"{format_count(node.max_pods, 'pod')}"
    )
    return Section(
        key="profiles",
        title=title,
        rows=lambda report: node.profiles,
        columns=columns,
        csv_columns=(node_column, *columns),
        name=lambda row: f"profile/{row.profile}",
        after=lambda report: [*_describe_node(node), *(_explain_terms(node) if explain else ())],
        empty=None,
    )


def _list_columns(node: NodeFormulaReport) -> Iterator[Column[ProfileReport]]:
    yield Column("Profile", lambda row: row.profile)
    yield Column("As", lambda row: "system" if row.memory.system or row.cpu.system else "kube", rank=6)
    yield number_column("CPU", lambda row: _reserved(row.cpu), format_cpu, rank=2)
    yield number_column("Memory", lambda row: _reserved(row.memory), format_bytes, rank=1)
    yield number_column("Eviction", lambda row: row.memory.eviction, format_bytes, rank=5)
    if any(row.memory.lost for row in node.profiles):
        yield number_column("Kernel", lambda row: row.memory.lost, format_bytes, rank=7)
    if any(row.ephemeral_storage is not None for row in node.profiles):
        yield number_column("Disk", _reserved_disk, format_bytes, rank=8)
    if any(row.process_ids is not None for row in node.profiles):
        yield number_column("PIDs", lambda row: row.process_ids, "{}", rank=9)
    yield number_column("Allocatable cpu", lambda row: row.cpu.allocatable, format_cpu, rank=4)
    yield number_column("Allocatable memory", lambda row: row.memory.allocatable, format_bytes, rank=3)
    yield Column("Share of the price", _price_text, value=lambda row: row.price_share, align="right")
    if any(row.dollars_per_month is not None for row in node.profiles):
        yield number_column("$ a month", lambda row: row.dollars_per_month, "{:,.2f}", rank=5)


def _reserved_disk(row: ProfileReport) -> float | None:
    return None if row.ephemeral_storage is None else _reserved(row.ephemeral_storage)


def _describe_node(node: NodeFormulaReport) -> Iterator[str]:
    if node.now is not None:
        yield (
            f"On these nodes {format_cpu(node.now.millicores)} cpu and {format_bytes(node.now.bytes)} memory "
            "are reserved now (capacity minus allocatable)."
        )
    if len(node.pod_limits) > 1:
        limits = ", ".join(f"{limit.kind} {limit.pods}" for limit in node.pod_limits)
        yield f"The maximum number of pods that each limit allows: {limits}."
    yield from group_notes(node.notes)


def _price_text(row: ProfileReport) -> str:
    if not row.fits_machine:
        return "the formula reserves more than the node has"
    return f"{row.price_share:.1%}"


def _explain_terms(node: NodeFormulaReport) -> Iterator[Paragraph]:
    for row in node.profiles:
        yield Text.assemble("\n", (row.profile, "bold"), f": {row.title}")
        if row.source:
            yield Text(f"  {row.source}")
        for name, reservation, write in (("cpu", row.cpu, format_cpu), ("memory", row.memory, format_bytes)):
            for term in reservation.terms:
                yield Text(f"  {name:<7}{_term_text(name, term):<52}{write(term.amount):>12}")
            yield f"  {name:<7}{_sum_text(reservation):<52}{write(_reserved(reservation)):>12}"


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
