"""The report of `trimtab plan` as one page."""

from markupsafe import Markup

from trimtab.cli.page import html
from trimtab.cli.page.html import Better, Blocker, Choice, Page, PageStage, Row, blocks, render
from trimtab.cli.plan.comparison import KeeperReport, PresetReport
from trimtab.cli.plan.cost import counted, words
from trimtab.cli.plan.misplaced_pods import MisplacedReport
from trimtab.cli.plan.report import MoveReport, PlanReport, StepReport, WaveReport
from trimtab.cli.plan.table import because, dear, name_of, places


def page(report: PlanReport) -> str:
    going = {step.node: f"goes in wave {wave.number}" for wave in report.waves for step in wave.nodes}
    return render(
        Page(
            title="trimtab plan", headline=f"{report.nodes_before} nodes → {report.nodes_after}", facts=_facts(report),
            bound=report.bound.text, blocks=blocks(report.nodes, going, html.states(report.stays)), stage="Wave",
            stages=tuple(map(_stage, report.waves)),
            chart=html.rows([_line(wave) for wave in report.waves], "cpu goes"), groups=html.groups(report.stays),
            reasons=html.picture(report.stays), notes=[*_refused(report), *report.notes],
            choices=tuple(map(_choice, report.presets)), blockers=tuple(map(_blocker, dear(report))),
            frontier=_frontier(report), misplaced=tuple(map(_better, report.misplaced)),
        )
    )  # fmt: skip


def _facts(report: PlanReport) -> tuple[tuple[str, str], ...]:
    return (
        (words(report.saves), "saved"), (f"{report.nodes_before - report.nodes_after}", "nodes can go"),
        (f"{report.evictions:,}", "evictions"),
        *(((f"{report.evictions_without_requests:,}", "of them ask for nothing"),)
          if report.evictions_without_requests else ()),
        (str(len(report.waves)), "waves"),
        (f"{report.bound.nodes}", "nodes at most, by volume"),
    )  # fmt: skip


def _choice(found: PresetReport) -> Choice:
    return Choice(
        name=found.name, nodes_after=found.nodes_after, saves=words(found.saves),
        amount=found.saves.amount, evictions=found.evictions, is_planned=found.is_planned,
    )  # fmt: skip


def _blocker(found: KeeperReport) -> Blocker:
    return Blocker(
        costs=words(found.costs), amount=found.costs.amount, more_nodes=found.more_nodes, because=because(found),
        pods=tuple(found.pods), todo=found.todo,
    )  # fmt: skip


def _better(found: MisplacedReport) -> Better:
    return Better(text=found.text, pods=tuple(found.pods), policy=found.policy)


def _frontier(report: PlanReport) -> Markup:
    line = [
        (point.evictions, point.saves.amount,
         f"{counted(point.nodes, 'node')}, {counted(point.evictions, 'eviction')}, {words(point.saves)}")
        for point in report.frontier
    ]  # fmt: skip
    named: dict[tuple[float, float], list[str]] = {}
    for preset in report.presets:
        named.setdefault((preset.evictions, preset.saves.amount), []).append(preset.name)
    marks = [(evictions, saved, ", ".join(names)) for (evictions, saved), names in named.items()]
    return html.frontier(line, marks, report.saves.unit)


def _line(wave: WaveReport) -> tuple[str, int, str]:
    label = f"{counted(wave.evictions, 'eviction')}, {counted(len(wave.nodes), 'node')}"
    return f"Wave {wave.number}", wave.evictions, label


def _stage(wave: WaveReport) -> PageStage:
    return PageStage(
        name=f"Wave {wave.number}", nodes=len(wave.nodes), evictions=wave.evictions, saves=words(wave.saves),
        rows=tuple(map(_row, wave.nodes)),
    )  # fmt: skip


def _row(step: StepReport) -> Row:
    return Row(node=step.node, saves=words(step.saves), pods=len(step.moves), moves=folded(step.moves))


def folded(moves: list[MoveReport]) -> tuple[tuple[str, str], ...]:
    """Per workload: how many of its pods, and where they go."""
    by_workload: dict[str, list[str]] = {}
    for move in moves:
        by_workload.setdefault(name_of(move), []).append(move.target)
    return tuple(
        (f"{len(targets)} × {name}" if len(targets) > 1 else name, places(targets))
        for name, targets in by_workload.items()
    )


def _refused(report: PlanReport) -> list[str]:
    return [f"{pool.refused.text}: nothing is planned in it now" for pool in report.pools if pool.refused]
