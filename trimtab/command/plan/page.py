"""The report of `trimtab plan` as one page."""

from trimtab.command.page import pictures, stays
from trimtab.command.page.render import Page, Row, Stage, render
from trimtab.command.plan.draw import counted, name_of, places
from trimtab.command.plan.report import MoveReport, PlanReport, StepReport, WaveReport
from trimtab.command.plan.saving import words


def page(report: PlanReport) -> str:
    ordered = pictures.order(report.nodes, [step.node for wave in report.waves for step in wave.nodes])
    return render(
        Page(
            title="trimtab plan", headline=f"{report.nodes_before} nodes → {report.nodes_after}", facts=_facts(report),
            bound=report.bound.text, before=pictures.nodes(ordered, after=False),
            after=pictures.nodes(ordered, after=True), stage="Wave", stages=tuple(map(_stage, report.waves)),
            chart=pictures.rows([_line(wave) for wave in report.waves], "cpu goes"), groups=stays.groups(report.stays),
            reasons=stays.picture(report.stays), notes=[*_refused(report), *report.notes],
        )
    )  # fmt: skip


def _facts(report: PlanReport) -> tuple[tuple[str, str], ...]:
    return (
        (words(report.saves), "saved"), (f"{report.nodes_before - report.nodes_after}", "nodes can go"),
        (f"{report.evictions:,}", "evictions"), (str(len(report.waves)), "waves"),
        (f"{report.bound.nodes}", "nodes at most, by volume"),
    )  # fmt: skip


def _line(wave: WaveReport) -> tuple[str, int, str]:
    label = f"{counted(wave.evictions, 'eviction')}, {counted(len(wave.nodes), 'node')}"
    return f"Wave {wave.number}", wave.evictions, label


def _stage(wave: WaveReport) -> Stage:
    return Stage(
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
