"""How the report of `trimtab simulate` is shown."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, no_paragraphs, number_column
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.reports.plan import ExplainReport
from trimtab.cli.reports.plan_table import GREY, list_chains, list_stays, list_stays_briefly
from trimtab.cli.reports.resizes import list_resize_sections
from trimtab.cli.simulate.report import RoundReport, SimulateReport
from trimtab.cluster.format_count import format_count

BAR_WIDTH = 50
MAX_ROWS = 20
_SCHEDULER_NOTES = {
    "plan": "Every pod moves to the node that the plan chose for it",
    "spread": "A simulated scheduler that spreads pods (LeastAllocated, the default) chooses the nodes",
    "pack": "A simulated scheduler that packs pods (MostAllocated) chooses the nodes",
}


def _describe_simulation(report: SimulateReport) -> Iterator[Text]:
    removed = report.nodes_before - report.nodes_after
    head = f"{format_count(report.nodes_before, 'node')} → {report.nodes_after}"
    moved_twice, waiting = (format_count(count, "pod") for count in (report.moved_twice, report.waiting))
    rest = (
        f" after {format_count(len(report.rounds), 'round')}: {format_count(report.evictions, 'eviction')}"
        + (f", {moved_twice} moved twice" if report.moved_twice else "")
        + (f", {waiting} left pending" if report.waiting else "")
    )
    style = "bold green" if removed else "bold"
    yield Text.assemble((head, style), rest if removed else ": no node can be drained")
    cost = (
        f"Cost {format_saving(report.cost_before)} → {format_saving(report.cost_after)}, saved"
        f" {format_saving(report.saves)}. "
    )
    yield Text(cost + f"{_SCHEDULER_NOTES[report.scheduler]}.")
    any_plan = "drains alone" if any(one.new_nodes for one in report.rounds) else "any plan"
    yield Text(
        f"At least {format_count(report.nodes_bound, 'node remains', 'nodes remain')} after {any_plan}. "
        f"{report.bound.text}".rstrip(),
        style=GREY,
    )


def _count_assumptions(report: SimulateReport) -> Iterator[Text]:
    if not report.explained:
        notes = f", and {format_count(len(group_notes(report.notes)), 'assumption')}" if report.notes else ""
        yield Text(f"Why these nodes stay{notes}: -o wide", style=GREY)


class _ChartRow(NamedTuple):
    """The nodes before the first round, or after one round or several."""

    name: str
    removed: int
    """The nodes that were drained, less the new ones."""
    remaining: int
    evictions: int | None


def _list_chart_rows(report: SimulateReport) -> list[_ChartRow]:
    if not report.rounds:
        return []
    rows = [_ChartRow("before", 0, report.nodes_before, None)]
    # The rows of the chart: a name and its rounds. If there are more rounds than rows, a row has several rounds.
    size = -(-len(report.rounds) // MAX_ROWS)
    parts = [report.rounds[start : start + size] for start in range(0, len(report.rounds), size)]
    for name, rounds in [
        (f"round {part[0].number}" if len(part) == 1 else f"rounds {part[0].number}–{part[-1].number}", part)
        for part in parts
    ]:
        removed = sum(len(one.nodes) - len(one.new_nodes) for one in rounds)
        rows.append(_ChartRow(name, removed, rounds[-1].nodes_left, sum(one.evictions for one in rounds)))
    return rows


def _list_chart_columns(report: SimulateReport) -> tuple[Column[_ChartRow], ...]:
    return (
        Column("round", lambda row: row.name, align="right"),
        Column("", lambda row: _draw_bar(row.remaining, row.removed, report.nodes_before), rank=2),
        number_column("nodes", lambda row: row.remaining, lambda nodes: format_count(int(nodes), "node"), min_width=12),
        number_column(
            "evictions",
            lambda row: row.evictions,
            lambda count: format_count(int(count), "eviction"),
            none="",
            rank=1,
            min_width=14,
        ),
    )


def _draw_bar(remaining: int, removed: int, total: int) -> Text:
    """Returns a bar of the nodes that remain, followed by the nodes that this round removed."""
    full, light = (count * BAR_WIDTH // max(1, total) for count in (remaining, remaining + removed))
    return Text.assemble(("█" * full, "green"), ("░" * (light - full), "yellow"), " " * (BAR_WIDTH - light))


def _list_removed(report: SimulateReport) -> list[tuple[RoundReport, str]]:
    """Returns each removed node with its round."""
    return [(one, node) for one in report.rounds for node in one.nodes]


_ROUNDS: tuple[Section[SimulateReport, Any], ...] = (
    *list_resize_sections(lambda report: report.resize),
    Section(key="rounds", rows=_list_chart_rows, columns=_list_chart_columns, csv_columns=(), frame=Frame.GRID),
    Section(
        key="rounds",
        rows=_list_removed,
        columns=(number_column("round", lambda row: row[0].number, "{}"), Column("node", lambda row: row[1])),
        name=lambda row: f"node/{row[1]}",
        lines=no_paragraphs,
    ),
)
_CHAINS: Section[SimulateReport, ExplainReport] = list_chains(lambda report: report.explained)
VIEW: ReportView[SimulateReport] = ReportView(
    title="trimtab simulate",
    before=lambda report: () if report.explained else _describe_simulation(report),
    sections=lambda report: (_CHAINS,) if report.explained else (*_ROUNDS, *list_stays(lambda report: report.stays)),
    notes=lambda report: () if report.explained else report.notes,
)
SCREEN_VIEW: ReportView[SimulateReport] = replace(
    VIEW,
    sections=lambda report: (
        (_CHAINS,) if report.explained else (*_ROUNDS, list_stays_briefly(lambda report: report.stays))
    ),
    after=_count_assumptions,
    notes=lambda report: (),
)
"""The simulation on one screen: the reasons with one node each, and the notes as their number."""
