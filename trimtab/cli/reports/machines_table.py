"""The reports of `trimtab machines profile` and `rank` on a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.reports.machines import (
    MachineProfileReport,
    MachineRankReport,
    PackedSetReport,
    PresentTypeReport,
    SwitchReport,
    TypeReport,
    WorkloadReport,
)
from trimtab.cluster.format_count import format_count


def draw_profile(console: Console, report: MachineProfileReport) -> None:
    """Draw the ratios of the workload, and the resource that fills the nodes first."""
    workload, fill = report.workload, report.fill
    scope = f"pool {report.pool}" if report.pool else "all nodes"
    _draw_workload(console, workload, scope)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in fill.requested_share.items())
    if shares:
        console.print(
            Text(
                f"The pods of {format_count(fill.nodes, 'node')} request {shares} of the nodes' capacity: "
                f"{fill.binding} is "
                "exhausted first."
            )
        )
    else:
        console.print(
            Text("Trimtab does not know how full the nodes are, because no node has a capacity that can be read.")
        )
    kinds = ", ".join(f"{count} × {name}" for name, count in list(fill.instance_types.items())[:6])
    console.print(Text(f"Nodes: {kinds}{', …' if len(fill.instance_types) > 6 else ''}"))
    _draw_notes(console, report.notes)


def _draw_workload(console: Console, workload: WorkloadReport, scope: str) -> None:
    console.print(
        Text(
            f"The workload of {scope}: {format_count(workload.pods, 'pod')}, {workload.cores:,.0f} cores and "
            f"{workload.gib:,.0f} GiB in {workload.zones} zone{'s' * (workload.zones != 1)}, "
            f"{workload.gib_per_core:.2f} GiB for each core, {format_count(workload.volumes, 'volume')}."
        )
    )
    console.print(
        Text(
            f"On each node, DaemonSets use {workload.daemon_cores:g} cores, {workload.daemon_gib:g} GiB and room "
            f"for {workload.daemon_pods:g} pods."
        )
    )


def draw_ranking(console: Console, report: MachineRankReport, rows: int) -> None:
    """Draw the best types, the sets of types, and the types that were left out."""
    _draw_workload(console, report.workload, f"pool {report.pool}" if report.pool else "all nodes")
    for paid in report.commitments:
        unused = f"; {paid.unused} more of these nodes are not needed" if paid.unused else ""
        console.print(
            Text(
                f"Nodes that you pay for anyway: {paid.nodes} × {paid.type} hold {paid.share:.1%} of the whole "
                f"workload{unused}."
            )
        )
    if report.today:
        console.print(Text(f"Today: {_describe_today(report.today)}"))
    table = Table(box=None, pad_edge=False)
    for title, justify in (
        ("Type", "left"), ("$/h each", "right"), ("Bound by", "left"), ("Usable GiB", "right"),
        ("GiB per $/h", "right"), ("Efficiency", "right"), ("Surcharges $/h", "right"), ("Nodes", "right"),
        ("$/h", "right"), ("Lost with one", "right"),
    ):  # fmt: skip
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    present = {one.type for one in report.today}
    for number, row in enumerate(report.types):
        # The present types are shown wherever they rank, to compare with.
        if number < rows or row.name in present:
            table.add_row(*_type_cells(row, is_present=row.name in present))
    console.print(table)
    if len(report.types) > rows:
        console.print(
            Text(
                f"… and {format_count(len(report.types) - rows, 'more type')} (--rows, or -o json)",
                style="bright_black",
            )
        )
    if report.winner is not None:
        console.print(Text(f"Best type: {_describe_set(report.winner)}"))
    for one in report.sets:
        console.print(Text(f"Set of types: {_describe_set(one)}"))
    if report.recommended is not None and report.recommended.packed_cost is not None:
        names = " and ".join(report.recommended.types)
        console.print(Text(f"The cheapest types when the pods of the snapshot are placed: {names}", style="bold"))
    for point in report.break_evens:
        console.print(
            Text(
                f"For workloads with up to {point.gib_per_core:.2f} GiB for each core, {point.less_memory} costs "
                f"less than {point.more_memory}; with more memory, it costs more."
            )
        )
    if report.switch is not None:
        console.print(Text(_describe_switch(report.switch)))
    for group in report.left_out:
        console.print(
            Text(
                f"{format_count(group.count, 'type is', 'types are')} left out ({group.reason.code}): "
                f"{group.reason.text}"
            )
        )
    _draw_notes(console, report.notes)


MAX_PRESENT_TYPES = 6


def _describe_today(today: list[PresentTypeReport]) -> str:
    """Returns the present nodes with their prices, and what they cost together if every price is known."""
    parts = [
        f"{one.nodes:,} × {one.type} at "
        + ("a price that is not known" if one.price is None else f"${one.price:,.3f} an hour each")
        for one in today[:MAX_PRESENT_TYPES]
    ]
    more = ", …" if len(today) > MAX_PRESENT_TYPES else ""
    prices = [one.nodes * one.price for one in today if one.price is not None]
    total = f"; ${sum(prices):,.2f} an hour together" if len(prices) == len(today) else ""
    return f"{', '.join(parts)}{more}{total}."


def _describe_switch(switch: SwitchReport) -> str:
    """Returns whether a switch is worth it: what the best type would save, and how certain that is."""
    if switch.is_switch:
        return f"Switch to {switch.preferred}: {switch.why}."
    if switch.runs >= switch.needed_runs or switch.saving is None or switch.best == switch.current:
        return f"Keep {switch.current}: {switch.why}."
    change = "would save" if switch.saving >= 0 else "would cost"
    return (
        f"{switch.best} instead of {switch.current} {change} ${abs(switch.saving):,.2f} an hour by the sums of "
        f"requests ({switch.why}). Certainty: {switch.runs} of the {switch.needed_runs} consecutive runs after which "
        "Trimtab recommends a switch; run it again with a later snapshot and --wins."
    )


def _type_cells(row: TypeReport, *, is_present: bool) -> tuple[str, ...]:
    parts = row.surcharges
    surcharges = f"{parts.last_node:.3f} + {parts.volumes:.3f} + {parts.scale_down:.3f}"
    return (
        f"{row.name} (today)" if is_present else row.name, f"{row.price:,.3f}", row.bottleneck,
        f"{row.usable_gib:,.1f}", f"{row.gib_per_dollar:,.2f}", f"{row.efficiency:.0%}",
        surcharges, f"{row.nodes:,}", f"{row.cost:,.2f}", f"{row.node_share:.1%}",
    )  # fmt: skip


def _describe_set(one: PackedSetReport) -> str:
    modelled = " + ".join(f"{count} × {name}" for count, name in zip(one.modelled_nodes, one.types, strict=True))
    text = f"{modelled}, ${one.modelled_cost:,.2f} an hour by the sum of requests"
    if one.packed_nodes is not None and one.packed_cost is not None:
        packed = " + ".join(f"{count:,}" for count in one.packed_nodes)
        text += (
            f"; {packed} node{'s' * (one.packed_nodes != [1])}, ${one.packed_cost:,.2f} an hour after the pods "
            "of the snapshot were placed"
        )
    return f"{text}{f' ({one.explanation})' if one.explanation else ''}"


def _draw_notes(console: Console, notes: list[str]) -> None:
    for note in notes:
        console.print(Text(f"Note: {note}", style="bright_black"))
