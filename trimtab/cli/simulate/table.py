"""The report of `trimtab simulate` on a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.plan.cost import format_count, format_saving
from trimtab.cli.plan.table import GREY, draw_explanation, draw_notes, draw_reasons
from trimtab.cli.simulate.report import RoundReport, SimulateReport

WIDTH = 50
MOST_ROWS = 20
_HOW = {
    "plan": "Every pod goes where the plan has room for it",
    "spread": "A scheduler that spreads (LeastAllocated, the default) chooses",
    "pack": "A scheduler that packs (MostAllocated) chooses",
}


def draw(console: Console, report: SimulateReport) -> None:
    if report.explained:
        for found in report.explained:
            draw_explanation(console, found)
        return
    _summary(console, report)
    if report.rounds:
        console.print(chart(report))
    draw_reasons(console, report.stays)
    draw_notes(console, report.notes)


def _summary(console: Console, report: SimulateReport) -> None:
    gone = report.nodes_before - report.nodes_after
    head = f"{report.nodes_before} nodes → {report.nodes_after}"
    rest = (
        f" after {format_count(len(report.rounds), 'round')}: {format_count(report.evictions, 'eviction')}, "
        f"{report.moved_twice} pods moved twice, {report.waiting} left waiting"
    )
    console.print(Text.assemble((head, "bold green" if gone else "bold"), rest if gone else ": nothing can go"))
    cost = (
        f"Cost {format_saving(report.cost_before)} → {format_saving(report.cost_after)}, saved"
        f" {format_saving(report.saves)}. "
    )
    console.print(Text(cost + f"{_HOW[report.scheduler]}."))
    console.print(Text(f"Lower bound {report.nodes_bound} nodes. {report.bound.text}", style=GREY))


def chart(report: SimulateReport) -> Table:
    """Nodes left after each round."""
    table = Table.grid(padding=(0, 2))
    for justify in ("right", "left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_row("before", _bar(report.nodes_before, 0, report.nodes_before), f"{report.nodes_before} nodes", "")
    for name, rounds in _rows(report.rounds):
        left, went = rounds[-1].nodes_left, sum(len(found.nodes) for found in rounds)
        evictions = format_count(sum(found.evictions for found in rounds), "eviction")
        table.add_row(name, _bar(left, went, report.nodes_before), f"{left} nodes", evictions)
    return table


def _rows(rounds: list[RoundReport]) -> list[tuple[str, list[RoundReport]]]:
    """One a round, or several rounds in a row where there are many."""
    size = -(-len(rounds) // MOST_ROWS)
    parts = [rounds[start : start + size] for start in range(0, len(rounds), size)]
    return [(_named(part), part) for part in parts]


def _named(part: list[RoundReport]) -> str:
    return f"round {part[0].number}" if len(part) == 1 else f"rounds {part[0].number}–{part[-1].number}"


def _bar(left: int, went: int, whole: int) -> Text:
    """What is left, then what went just now."""
    full, light = (count * WIDTH // max(1, whole) for count in (left, left + went))
    return Text.assemble(("█" * full, "green"), ("░" * (light - full), "yellow"), " " * (WIDTH - light))
