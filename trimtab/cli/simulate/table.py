"""The report of `trimtab simulate` on a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.reports.plan_table import GREY, draw_explanation, draw_notes, draw_reasons
from trimtab.cli.reports.resizes import draw_resizes
from trimtab.cli.simulate.report import RoundReport, SimulateReport
from trimtab.cluster.format_count import format_count

BAR_WIDTH = 50
MAX_ROWS = 20
_SCHEDULER_NOTES = {
    "plan": "Every pod moves to the node that the plan chose for it",
    "spread": "A simulated scheduler that spreads pods (LeastAllocated, the default) chooses the nodes",
    "pack": "A simulated scheduler that packs pods (MostAllocated) chooses the nodes",
}


def draw_simulation(console: Console, report: SimulateReport) -> None:
    if report.explained:
        for chain in report.explained:
            draw_explanation(console, chain)
        return
    _draw_summary(console, report)
    if report.resize is not None:
        draw_resizes(console, report.resize)
    if report.rounds:
        console.print(draw_chart(report))
    draw_reasons(console, report.stays)
    draw_notes(console, report.notes)


def _draw_summary(console: Console, report: SimulateReport) -> None:
    removed = report.nodes_before - report.nodes_after
    head = f"{format_count(report.nodes_before, 'node')} → {report.nodes_after}"
    rest = (
        f" after {format_count(len(report.rounds), 'round')}: {format_count(report.evictions, 'eviction')}, "
        f"{format_count(report.moved_twice, 'pod')} moved twice, {format_count(report.waiting, 'pod')} left pending"
    )
    style = "bold green" if removed else "bold"
    console.print(Text.assemble((head, style), rest if removed else ": no node can be drained"))
    cost = (
        f"Cost {format_saving(report.cost_before)} → {format_saving(report.cost_after)}, saved"
        f" {format_saving(report.saves)}. "
    )
    console.print(Text(cost + f"{_SCHEDULER_NOTES[report.scheduler]}."))
    console.print(
        Text(
            f"At least {format_count(report.nodes_bound, 'node remains', 'nodes remain')} after any "
            f"plan. {report.bound.text}",
            style=GREY,
        )
    )


def draw_chart(report: SimulateReport) -> Table:
    """Returns a bar chart of the nodes after each round."""
    table = Table.grid(padding=(0, 2))
    for justify in ("right", "left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_row(
        "before", _draw_bar(report.nodes_before, 0, report.nodes_before), format_count(report.nodes_before, "node"), ""
    )
    for name, rounds in _group_rounds(report.rounds):
        remaining, removed = rounds[-1].nodes_left, sum(len(round_report.nodes) for round_report in rounds)
        evictions = format_count(sum(round_report.evictions for round_report in rounds), "eviction")
        table.add_row(
            name, _draw_bar(remaining, removed, report.nodes_before), format_count(remaining, "node"), evictions
        )
    return table


def _group_rounds(rounds: list[RoundReport]) -> list[tuple[str, list[RoundReport]]]:
    """Returns the rows of the chart: a name and its rounds. If there are more rounds than rows, a row has several
    rounds."""
    size = -(-len(rounds) // MAX_ROWS)
    parts = [rounds[start : start + size] for start in range(0, len(rounds), size)]
    return [(_name_rounds(part), part) for part in parts]


def _name_rounds(part: list[RoundReport]) -> str:
    return f"round {part[0].number}" if len(part) == 1 else f"rounds {part[0].number}–{part[-1].number}"


def _draw_bar(remaining: int, removed: int, total: int) -> Text:
    """Returns a bar of the nodes that remain, followed by the nodes that this round removed."""
    full, light = (count * BAR_WIDTH // max(1, total) for count in (remaining, remaining + removed))
    return Text.assemble(("█" * full, "green"), ("░" * (light - full), "yellow"), " " * (BAR_WIDTH - light))
