"""The report of `trimtab simulate` as one page."""

from markupsafe import Markup

from trimtab.cli.page import html
from trimtab.cli.page.html import Page, PageStage, Row, blocks, render
from trimtab.cli.plan.cost import format_count, format_saving
from trimtab.cli.simulate.report import LandingReport, RoundReport, SimulateReport


def page(report: SimulateReport) -> str:
    going = {node: f"goes in round {found.number}" for found in report.rounds for node in found.nodes}
    return render(
        Page(
            title=f"trimtab simulate --scheduler {report.scheduler}", facts=_facts(report), bound=report.bound.text,
            headline=f"{report.nodes_before} nodes → {report.nodes_after}",
            blocks=blocks(report.nodes, going, html.states(report.stays)), stage="Round",
            stages=tuple(map(_stage, report.rounds)), chart=_chart(report), groups=html.groups(report.stays),
            reasons=html.picture(report.stays), notes=report.notes,
        )
    )  # fmt: skip


def _facts(report: SimulateReport) -> tuple[tuple[str, str], ...]:
    return (
        (f"{format_saving(report.cost_before)} → {format_saving(report.cost_after)}", "cost"),
        (format_saving(report.saves), "saved"),
        (f"{report.evictions:,}", "evictions"),
        (str(report.moved_twice), "pods moved twice"),
        (str(report.waiting), "left waiting"),
        (str(report.nodes_bound), "nodes at least, by volume"),
    )


def _chart(report: SimulateReport) -> Markup:
    start = [("before", report.nodes_before, f"{report.nodes_before} nodes")]
    return html.rows(start + [_line(found) for found in report.rounds], "cpu")


def _line(found: RoundReport) -> tuple[str, int, str]:
    label = f"{found.nodes_left} nodes, {format_count(found.evictions, 'eviction')}"
    return f"Round {found.number}", found.nodes_left, label


def _stage(found: RoundReport) -> PageStage:
    by_node: dict[str, list[LandingReport]] = {node: [] for node in found.nodes}
    for landing in found.landings:
        by_node[landing.source].append(landing)
    return PageStage(
        name=f"Round {found.number}",
        nodes=len(found.nodes),
        evictions=found.evictions,
        saves=format_saving(found.saved),
        rows=tuple(_row(node, landings) for node, landings in by_node.items()),
    )


def _row(node: str, landings: list[LandingReport]) -> Row:
    moves = tuple((landing.pod, landing.target or "waits") for landing in landings)
    return Row(node=node, saves="", pods=len(landings), moves=moves)
