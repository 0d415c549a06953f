"""How the reports of `trimtab machines profile` and `rank` are shown."""

from collections.abc import Iterator
from math import fsum

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, no_paragraphs, number_column
from trimtab.cli.reports.machines import (
    MachineProfileReport,
    MachineRankReport,
    MigrationReport,
    PackedSetReport,
    PresentTypeReport,
    SwitchReport,
    TypeReport,
    WorkloadReport,
)
from trimtab.cluster.format_count import format_count


def _describe_profile(report: MachineProfileReport) -> Iterator[Text]:
    """Yields the ratios of the workload, and the resource that fills the nodes first."""
    workload, fill = report.workload, report.fill
    yield from _describe_workload(workload, report.pool)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in fill.requested_share.items())
    if shares:
        yield Text(
            f"The pods of {format_count(fill.nodes, 'node')} request {shares} of the nodes' capacity: {fill.binding} "
            "is exhausted first."
        )
    else:
        yield Text("Trimtab does not know how full the nodes are, because no node has a capacity that can be read.")
    kinds = ", ".join(f"{count} × {name}" for name, count in list(fill.instance_types.items())[:6])
    yield Text(f"Nodes: {kinds}{', …' if len(fill.instance_types) > 6 else ''}")


PROFILE_VIEW: ReportView[MachineProfileReport] = ReportView(
    title="trimtab machines profile",
    sections=(
        Section(
            key="types",
            rows=lambda report: list(report.fill.instance_types.items()),
            columns=(Column("Type", lambda row: row[0]), number_column("Nodes", lambda row: row[1])),
            name=lambda row: f"machine/{row[0]}",
            lines=_describe_profile,
        ),
    ),
    notes=lambda report: report.notes,
)


def _describe_workload(workload: WorkloadReport, pool: str) -> Iterator[Text]:
    scope = f"pool {pool}" if pool else "all nodes"
    volumes = f", {format_count(workload.volumes, 'volume')}" if workload.volumes else ""
    yield Text(
        f"The workload of {scope}: {format_count(workload.pods, 'pod')}, {workload.cores:,.0f} cores and "
        f"{workload.gib:,.0f} GiB in {workload.zones} zone{'s' * (workload.zones != 1)}, "
        f"{workload.gib_per_core:.2f} GiB for each core{volumes}."
    )
    if workload.daemon_pods:
        yield Text(
            f"On each node, DaemonSets use {workload.daemon_cores:g} cores, {workload.daemon_gib:g} GiB and room "
            f"for {workload.daemon_pods:g} pods."
        )


def view_ranking(rows: int, *, is_screen: bool = False) -> ReportView[MachineRankReport]:
    """Returns the best types, as many as `rows`, the sets of types, and the types that were left out; on one screen,
    the answer first, and without sets, families and what was left out."""

    def select_shown(report: MachineRankReport) -> list[TypeReport]:
        # The present types are shown wherever they rank, to compare with.
        present = {one.type for one in report.today}
        return [row for number, row in enumerate(report.types) if number < rows or row.name in present]

    def note_hidden_types(report: MachineRankReport) -> Iterator[Text]:
        hidden = len(report.types) - rows
        if hidden > 0:
            yield Text(f"… and {format_count(hidden, 'more type')} (--rows, or -o json)", style="bright_black")

    section: Section[MachineRankReport, TypeReport] = Section(
        key="types",
        rows=lambda report: report.types,
        drawn=select_shown,
        columns=_list_columns,
        name=lambda row: f"machine/{row.name}",
        before=_describe_present,
        after=note_hidden_types,
        empty=None,
        frame=Frame.NONE,
    )
    return ReportView(
        title="trimtab machines rank",
        before=_describe_cheapest if is_screen else no_paragraphs,
        sections=(section,),
        after=_describe_choice if is_screen else _describe_ranking,
        notes=lambda report: report.notes,
    )


def _describe_cheapest(report: MachineRankReport) -> Iterator[Text]:
    """Yields the answer: the cheapest nodes for the pods of the snapshot, and what the present ones cost."""
    best = report.recommended if report.recommended is not None else report.winner
    if best is None:
        return
    is_packed = best.packed_nodes is not None and best.packed_cost is not None
    nodes = (best.packed_nodes if is_packed else None) or best.modelled_nodes
    cost = best.packed_cost if is_packed and best.packed_cost is not None else best.modelled_cost
    names = " + ".join(f"{count:,} × {name}" for count, name in zip(nodes, best.types, strict=True))
    how = "with the pods of the snapshot placed on them" if is_packed else "by the sum of requests"
    yield Text.assemble("Cheapest: ", (f"{names}, ${cost:,.2f} an hour", "bold green"), f", {how}.")


def _describe_choice(report: MachineRankReport) -> Iterator[Text]:
    """Yields how the best type by sums differs from the answer, what a switch needs, and where the rest is."""
    if report.winner is not None and report.winner != report.recommended:
        yield Text(f"Best type by sums: {_describe_set(report.winner, explains=False)}")
    yield from map(Text, _describe_migrations(report.migrations))
    if report.switch is not None:
        yield Text(_describe_switch(report.switch))
    yield Text("Sets of types, prices of cores and GiB, types that are left out: -o wide", style="bright_black")


def _describe_present(report: MachineRankReport) -> Iterator[Text]:
    yield from _describe_workload(report.workload, report.pool)
    for paid in report.commitments:
        unused = f"; {paid.unused} more of these nodes are not needed" if paid.unused else ""
        yield Text(
            f"Nodes that you pay for anyway: {paid.nodes} × {paid.type} hold {paid.share:.1%} of the whole "
            f"workload{unused}."
        )
    if report.today:
        yield Text(f"Today: {_describe_today(report.today)}")


def _list_columns(report: MachineRankReport) -> tuple[Column[TypeReport], ...]:
    present = {one.type for one in report.today}
    return (
        Column(
            "Type", lambda row: f"{row.name} (today)" if row.name in present else row.name, value=lambda row: row.name
        ),
        number_column("$/h each", lambda row: row.price, "{:,.3f}", rank=3),
        Column("Bound by", lambda row: row.bottleneck, rank=4),
        number_column("Usable GiB", lambda row: row.usable_gib, "{:,.1f}", rank=7),
        number_column("GiB per $/h", lambda row: row.gib_per_dollar, "{:,.2f}", rank=8),
        number_column("Efficiency", lambda row: row.efficiency, "{:.0%}", rank=5),
        Column("Surcharges $/h", _format_surcharges, value=_sum_surcharges, align="right", rank=6, min_width=22),
        number_column("Nodes", lambda row: row.nodes, rank=1),
        number_column("$/h", lambda row: row.cost, "{:,.2f}"),
        number_column("Lost with one", lambda row: row.node_share, "{:.1%}", rank=2),
    )


def _format_surcharges(row: TypeReport) -> str:
    parts = row.surcharges
    return f"{parts.last_node:.3f} + {parts.volumes:.3f} + {parts.scale_down:.3f}"


def _sum_surcharges(row: TypeReport) -> float:
    parts = row.surcharges
    return round(parts.last_node + parts.volumes + parts.scale_down, 6)


def _describe_ranking(report: MachineRankReport) -> Iterator[Text]:
    if report.winner is not None:
        yield Text(f"Best type: {_describe_set(report.winner)}")
    for one in report.sets[:MAX_SETS]:
        yield Text(f"Set of types: {_describe_set(one)}")
    if len(report.sets) > MAX_SETS:
        more = format_count(len(report.sets) - MAX_SETS, "more set")
        yield Text(f"… and {more} of types (-o json)", style="bright_black")
    if report.recommended is not None and report.recommended.packed_cost is not None:
        names = " and ".join(report.recommended.types)
        yield Text(f"The cheapest types when the pods of the snapshot are placed: {names}", style="bold")
    for family in report.families:
        price = f"a core costs ${family.core_price:.4f} an hour and a GiB ${family.gib_price:.4f}"
        if family is report.families[0]:
            yield Text(f"In the best family {family.family} ({family.type}), {price}.")
        else:
            yield Text(
                f"In {family.family} ({family.type}), {price}; it would be as good at "
                f"${family.break_even_core_price:.4f} and ${family.break_even_gib_price:.4f}."
            )
    for point in report.break_evens:
        yield Text(
            f"For workloads with up to {point.gib_per_core:.2f} GiB for each core, {point.less_memory} costs "
            f"less than {point.more_memory}; with more memory, it costs more."
        )
    yield from map(Text, _describe_migrations(report.migrations))
    if report.switch is not None:
        yield Text(_describe_switch(report.switch))
    for group in report.left_out:
        types = format_count(group.count, "type is", "types are")
        yield Text(f"{types} left out ({group.reason.code}): {group.reason.text}")


MAX_PRESENT_TYPES = 6
MAX_SETS = 3
"""The largest number of sets of types that are printed."""


def _describe_today(today: list[PresentTypeReport]) -> str:
    """Returns the present nodes with their prices, and what they cost together if every price is known."""
    parts = [
        f"{one.nodes:,} × {one.type}" + ("" if one.price is None else f" at ${one.price:,.3f} an hour each")
        for one in today[:MAX_PRESENT_TYPES]
    ]
    more = ", …" if len(today) > MAX_PRESENT_TYPES else ""
    unknown = sum(one.price is None for one in today)
    if unknown:
        which = "their prices are" if unknown == len(today) else f"the price of {format_count(unknown, 'type')} is"
        return f"{', '.join(parts)}{more}; {which} not known."
    prices = [one.nodes * one.price for one in today if one.price is not None]
    return f"{', '.join(parts)}{more}; ${fsum(prices):,.2f} an hour together."


def _describe_switch(switch: SwitchReport) -> str:
    """Returns whether a switch is worth it: what the best type would save, and how certain that is."""
    if switch.is_switch:
        return f"Switch to {switch.preferred}: {switch.why}."
    if switch.runs >= switch.needed_runs or switch.saving is None or switch.best == switch.current:
        return f"Keep {switch.current}: {switch.why}."
    money = f"${abs(switch.saving):,.2f}"
    change = "would save" if switch.saving >= 0 else "would cost"
    effect = "would cost as much" if money == "$0.00" else f"{change} {money} an hour"
    return (
        f"{switch.best} instead of {switch.current} {effect} by the sums of requests ({switch.why}). "
        f"Certainty: {switch.runs} of the {switch.needed_runs} consecutive runs after which "
        "Trimtab recommends a switch; run it again with a later snapshot and --wins."
    )


def _describe_set(one: PackedSetReport, *, explains: bool = True) -> str:
    modelled = " + ".join(f"{count} × {name}" for count, name in zip(one.modelled_nodes, one.types, strict=True))
    text = f"{modelled}, ${one.modelled_cost:,.2f} an hour by the sum of requests"
    if one.packed_nodes is not None and one.packed_cost is not None:
        packed = " + ".join(f"{count:,}" for count in one.packed_nodes)
        text += (
            f"; {packed} node{'s' * (one.packed_nodes != [1])}, ${one.packed_cost:,.2f} an hour after the pods "
            "of the snapshot were placed"
        )
    return f"{text}{f' ({one.explanation})' if one.explanation and explains else ''}"


def _describe_migrations(migrations: list[MigrationReport]) -> Iterator[str]:
    """Yields a sentence about each migration."""
    for one in migrations:
        where = f"node group {one.group}{f' ({one.type})' if one.type else ''}"
        if one.unplaced:
            yield f"Migration to {where}: {format_count(len(one.unplaced), 'pod')} would fit on no node of it."
            continue
        saving = f"${one.saves:,.2f} less" if one.saves >= 0 else f"${-one.saves:,.2f} more"
        limit = "" if one.is_possible else "; its maximum does not allow that many"
        nodes = format_count(one.nodes, "new node")
        yield f"Migration to {where}: {nodes}, ${one.cost:,.2f} an hour, {saving} than today's nodes{limit}."
