"""The report of `trimtab plan` on a terminal: within a screen or two, whatever the size of the cluster."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.command.plan.report import ExplainReport, MoveReport, PlanReport, StayReport, StepReport
from trimtab.command.plan.saving import words

GREY = "bright_black"
MOST_NODES = 6
"""Nodes of a plan's beginning that are shown with their moves."""
MOST_KINDS = 4
"""Workloads named per node."""
MOST_PLACES = 3


def draw(console: Console, report: PlanReport) -> None:
    """What it comes to, how it begins, why the others stay, what it rests on; or only what --explain asked for."""
    if report.explained:
        for found in report.explained:
            _explained(console, found)
        return
    _summary(console, report)
    _pools(console, report)
    _beginning(console, report)
    reasons(console, report.stays)
    notes(console, report.notes)


def _summary(console: Console, report: PlanReport) -> None:
    goes = report.nodes_before - report.nodes_after
    console.print(
        Text.assemble(
            (f"{counted(report.nodes_before, 'node')} → {report.nodes_after}", "bold green" if goes else "bold"),
            f": {goes} can go" if goes else ": none can go",
            f" in {counted(len(report.waves), 'wave')}, {counted(report.evictions, 'eviction')}, saving "
            if goes
            else "",
            (words(report.saves), "bold") if goes else "",
        )
    )
    console.print(Text(report.bound.text, style=GREY))


def counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _pools(console: Console, report: PlanReport) -> None:
    if len(report.pools) == 1 and report.pools[0].refused is None:
        return
    table = _table("Pool", ">Nodes", ">After", ">Evictions", ">Saves", "Nothing is planned because")
    for pool in report.pools:
        refused = Text(pool.refused.text, style="yellow") if pool.refused else ""
        numbers = (str(pool.nodes_before), str(pool.nodes_after), str(pool.evictions), words(pool.saves))
        table.add_row(pool.name, *numbers, refused)
    console.print(table)


def _table(*names: str) -> Table:
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name in names:
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    return table


def _beginning(console: Console, report: PlanReport) -> None:
    if not report.waves:
        return
    table = _table(">Wave", "Node", ">Saves", ">Pods", "Which go to")
    shown = 0
    for wave in report.waves:
        for step in wave.nodes[: MOST_NODES - shown]:
            table.add_row(str(wave.number), step.node, words(step.saves), str(len(step.moves)), _moves(step))
            shown += 1
    console.print(table)
    left = report.nodes_before - report.nodes_after - shown
    if left:
        console.print(Text(f"… and {counted(left, 'more node')}; all of them: -o html or -o json", style=GREY))


def _moves(step: StepReport) -> Text:
    """Folded per workload."""
    by_workload: dict[str, list[MoveReport]] = {}
    for move in step.moves:
        by_workload.setdefault(name_of(move), []).append(move)
    text = Text()
    for workload, moves in list(by_workload.items())[:MOST_KINDS]:
        text.append("\n" if text else "")
        text.append(f"{len(moves)} × " if len(moves) > 1 else "").append(workload).append(" → ", style=GREY)
        text.append(places(move.target for move in moves))
    if len(by_workload) > MOST_KINDS:
        text.append(f"\n… and {counted(len(by_workload) - MOST_KINDS, 'more workload')}", style=GREY)
    return text


def name_of(move: MoveReport) -> str:
    """namespace/workload, or the pod itself where nobody made it."""
    namespace = move.pod.partition("/")[0]
    return f"{namespace}/{move.workload.partition('/')[2]}" if move.workload else move.pod


def places(targets: Iterable[str]) -> str:
    counts = Counter(targets)
    named = [f"{node} ({count})" if count > 1 else node for node, count in counts.most_common(MOST_PLACES)]
    return ", ".join(named) + (f" and {len(counts) - MOST_PLACES} more" if len(counts) > MOST_PLACES else "")


def reasons(console: Console, stays: Sequence[StayReport]) -> None:
    """Why the others stay: by code, with one example each."""
    if not stays:
        return
    table = _table(">Nodes", "Stay because", "For example")
    for code, nodes in by_code(stays):
        table.add_row(str(len(nodes)), code, nodes[0].reason.text)
    console.print(table)


def by_code(stays: Sequence[StayReport]) -> list[tuple[str, list[StayReport]]]:
    """Most nodes first; a pod that must stay, by what keeps it."""
    found: dict[str, list[StayReport]] = {}
    for stay in stays:
        name = f"{stay.reason.code}: {stay.blocked_by}" if stay.blocked_by else stay.reason.code
        found.setdefault(name, []).append(stay)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def notes(console: Console, texts: Sequence[str]) -> None:
    for text in texts:
        console.print(Text(f"Note: {text}", style=GREY))


def _explained(console: Console, found: ExplainReport) -> None:
    console.print(Text(f"{found.kind} {found.name}", style="bold"))
    for number, sentence in enumerate(found.chain, start=1):
        console.print(Text.assemble((f"{number:>3}. ", GREY), sentence))
