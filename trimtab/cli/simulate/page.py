"""The report of `trimtab simulate` as one HTML page."""

from markupsafe import Markup

from trimtab.cli.page import html
from trimtab.cli.page.html import Page, PageStage, Row, build_blocks, render_html
from trimtab.cli.page.origin import find_origin, render_origin
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.simulate.report import LandingReport, RoundReport, SimulateReport
from trimtab.cluster.format_count import format_count


def render_page(report: SimulateReport) -> str:
    rounds_by_node = {
        node: f"removed in round {round_report.number}" for round_report in report.rounds for node in round_report.nodes
    }
    blocks = build_blocks(report.nodes, rounds_by_node, html.describe_stays(report.stays))
    return render_html(
        Page(
            title=f"trimtab simulate --scheduler {report.scheduler}",
            origin=render_origin(find_origin()),
            change=html.draw_pools(blocks),
            facts=_list_facts(report),
            bound=report.bound.text,
            headline=(
                f"{report.nodes_before - report.nodes_after} of {format_count(report.nodes_before, 'node')} can be "
                f"removed, which saves {format_saving(report.saves)}"
            ),
            blocks=blocks,
            stage="Round",
            stages=tuple(map(_round_stage, report.rounds)),
            chart=_render_chart(report),
            groups=html.group_stays(report.stays),
            reasons=html.draw_reason_bars(report.stays),
            notes=group_notes([*([report.resize.text] if report.resize else ()), *report.notes]),
        )
    )


def _list_facts(report: SimulateReport) -> tuple[tuple[str, str], ...]:
    return (
        (f"{format_saving(report.cost_before)} → {format_saving(report.cost_after)}", "cost"),
        (format_saving(report.saves), "saved"),
        (f"{report.evictions:,}", "evictions"),
        (str(report.moved_twice), "pods moved twice"),
        (str(report.waiting), "pods pending at the end"),
        (str(report.nodes_bound), "nodes remain at least after any plan"),
    )


def _render_chart(report: SimulateReport) -> Markup:
    start = [("before", report.nodes_before, format_count(report.nodes_before, "node"))]
    return html.draw_bars(start + [_round_row(round_report) for round_report in report.rounds], "cpu")


def _round_row(round_report: RoundReport) -> tuple[str, int, str]:
    label = f"{format_count(round_report.nodes_left, 'node')}, {format_count(round_report.evictions, 'eviction')}"
    return f"Round {round_report.number}", round_report.nodes_left, label


def _round_stage(round_report: RoundReport) -> PageStage:
    by_node: dict[str, list[LandingReport]] = {node: [] for node in round_report.nodes}
    for landing in round_report.landings:
        by_node[landing.source].append(landing)
    return PageStage(
        name=f"Round {round_report.number}",
        nodes=len(round_report.nodes),
        evictions=round_report.evictions,
        saves=format_saving(round_report.saved),
        rows=tuple(_node_row(node, landings) for node, landings in by_node.items()),
    )


def _node_row(node: str, landings: list[LandingReport]) -> Row:
    moves = tuple((landing.pod, landing.target or "waits") for landing in landings)
    return Row(node=node, saves="", pods=len(landings), moves=moves)
