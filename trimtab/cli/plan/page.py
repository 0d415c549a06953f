"""The report of `trimtab plan` as one HTML page."""

from markupsafe import Markup

from trimtab.cli.page import html
from trimtab.cli.page.html import (
    Better,
    Blocker,
    Choice,
    Page,
    PageReplacement,
    PageStage,
    Row,
    build_blocks,
    render_html,
)
from trimtab.cli.page.origin import find_origin, render_origin
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.reports.plan import MoveReport, PlanReport, StepReport, WaveReport
from trimtab.cli.reports.plan_table import (
    describe_companions,
    describe_keeper,
    format_targets,
    select_costly_keepers,
    workload_of,
)
from trimtab.cluster.format_count import format_count


def render_page(report: PlanReport) -> str:
    waves_by_node = {step.node: f"removed in wave {wave.number}" for wave in report.waves for step in wave.nodes}
    blocks = build_blocks(report.nodes, waves_by_node, html.describe_stays(report.stays))
    return render_html(
        Page(
            title="trimtab plan",
            headline=_describe_answer(report),
            origin=render_origin(find_origin()),
            change=html.draw_pools(blocks),
            facts=_list_facts(report),
            bound=report.bound.text,
            blocks=blocks,
            stage="Wave",
            stages=tuple(
                PageStage(
                    name=f"Wave {wave.number}",
                    nodes=len(wave.nodes),
                    evictions=wave.evictions,
                    saves=format_saving(wave.saves),
                    rows=tuple(map(_node_row, wave.nodes)),
                )
                for wave in report.waves
            ),
            chart=html.draw_bars([_wave_row(wave) for wave in report.waves], "cpu goes"),
            groups=html.group_stays(report.stays),
            reasons=html.draw_reason_bars(report.stays),
            replacements=_list_replacements(report),
            replacements_text=report.replace.text if report.replace else "",
            notes=group_notes(
                (
                    *[
                        f"{pool.refused.text}: at present no drain is planned in this pool"
                        for pool in report.pools
                        if pool.refused
                    ],
                    *([report.resize.text] if report.resize else ()),
                    *report.notes,
                )
            ),
            choices=tuple(
                Choice(
                    name=preset.name,
                    nodes_after=preset.nodes_after,
                    saves=format_saving(preset.saves),
                    amount=preset.saves.amount,
                    evictions=preset.evictions,
                    is_planned=preset.is_planned,
                )
                for preset in report.presets
            ),
            blockers=tuple(
                Blocker(
                    costs=format_saving(keeper.costs),
                    amount=keeper.costs.amount,
                    more_nodes=keeper.more_nodes,
                    because=describe_keeper(keeper),
                    pods=tuple(keeper.pods),
                    todo=keeper.todo,
                )
                for keeper in select_costly_keepers(report)
            ),
            frontier=_frontier(report),
            misplaced=tuple(
                Better(text=group.text, pods=tuple(group.pods), policy=group.policy) for group in report.misplaced
            ),
        )
    )


def _describe_answer(report: PlanReport) -> str:
    removed = report.nodes_before - report.nodes_after
    nodes = format_count(report.nodes_before, "node")
    if not removed:
        return f"None of {nodes} can be drained"
    return f"{removed} of {nodes} can be drained, which saves {format_saving(report.saves)}"


def _list_replacements(report: PlanReport) -> tuple[PageReplacement, ...]:
    return tuple(
        PageReplacement(
            nodes=tuple(one.nodes),
            group=one.group,
            zone=one.zone,
            kind=one.instance_type,
            cost=format_saving(one.price),
            saves=format_saving(one.saves),
            amount=one.saves.amount,
            pods=(*(move.pod for move in one.moves), *(pod.pod for pod in one.companions)),
        )
        for one in (report.replace.replacements if report.replace else ())
    )


def _list_facts(report: PlanReport) -> tuple[tuple[str, str], ...]:
    return (
        (format_saving(report.saves), "saved"),
        (f"{report.nodes_before - report.nodes_after}", "nodes can be drained"),
        (f"{report.evictions:,}", "evictions"),
        *(
            ((f"{report.evictions_without_requests:,}", "evictions of pods without requests"),)
            if report.evictions_without_requests
            else ()
        ),
        (str(len(report.waves)), "waves"),
        (f"{report.bound.nodes}", "nodes at most can be drained by any plan"),
    )


def _frontier(report: PlanReport) -> Markup:
    line = [
        (
            point.evictions,
            point.saves.amount,
            f"{format_count(point.nodes, 'node')}, {format_count(point.evictions, 'eviction')},"
            f" {format_saving(point.saves)}",
        )
        for point in report.frontier
    ]
    names_by_point: dict[tuple[float, float], list[str]] = {}
    for preset in report.presets:
        names_by_point.setdefault((preset.evictions, preset.saves.amount), []).append(preset.name)
    marks = [(evictions, saved, ", ".join(names)) for (evictions, saved), names in names_by_point.items()]
    return html.draw_frontier(line, marks, report.saves.unit)


def _wave_row(wave: WaveReport) -> tuple[str, int, str]:
    label = f"{format_count(wave.evictions, 'eviction')}, {format_count(len(wave.nodes), 'node')}"
    return f"Wave {wave.number}", wave.evictions, label


def _node_row(step: StepReport) -> Row:
    return Row(
        node=step.node,
        saves=format_saving(step.saves),
        pods=len(step.moves),
        moves=fold_moves(step.moves),
        companions=tuple(describe_companions(step)),
    )


def fold_moves(moves: list[MoveReport]) -> tuple[tuple[str, str], ...]:
    """Returns a tuple for each workload of the moves: the workload with its number of moved pods, and the target
    nodes."""
    by_workload: dict[str, list[str]] = {}
    for move in moves:
        by_workload.setdefault(workload_of(move), []).append(move.target)
    return tuple(
        (f"{len(targets)} × {name}" if len(targets) > 1 else name, format_targets(targets))
        for name, targets in by_workload.items()
    )
