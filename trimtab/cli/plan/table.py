"""The presets beside each other, and what keeps the rest, on a terminal.

The report of `trimtab plan` on a terminal: within a screen or two, whatever the size of the cluster.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.plan.comparison import KarpenterReport, KeeperReport
from trimtab.cli.plan.cost import counted, words
from trimtab.cli.plan.report import (
    ExplainReport,
    LeftToAutoscalerReport,
    MoveReport,
    PlanReport,
    StayReport,
    StepReport,
)
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS

MOST_NAMES = 2
"""Pods that are named of a reason."""


def draw_comparison(console: Console, report: PlanReport) -> None:
    _guesses(console, report)
    if report.presets:
        _presets(console, report)
    _keepers(console, dear(report), "What keeps the rest, each priced as if it alone were gone:")
    if report.karpenter is not None:
        _karpenter(console, report.karpenter)


def dear(report: PlanReport) -> list[KeeperReport]:
    """Reasons that keep a node, or more than a hundredth of what the plan saves: less is no answer of a search."""
    least = report.saves.amount / 100
    return [one for one in report.keepers if one.more_nodes or one.costs.amount > least]


def misplaced(console: Console, report: PlanReport) -> None:
    """Pods that would be better elsewhere, with the policy for the first of them."""
    for found in report.misplaced:
        console.print(Text(f"{found.text}: {_names(found.pods)}"))
    policies = [found.policy for found in report.misplaced if found.policy]
    if policies:
        more = f", {len(policies) - 1} more with -o json" if len(policies) > 1 else ""
        console.print(Text(f"A PodPolicy that gathers them ({'the first' if more else 'this one'}{more}):"))
        console.print(Text(policies[0].rstrip(), style="bright_black"))


def _names(pods: Sequence[str]) -> str:
    return ", ".join(pods[:MOST_NAMES]) + (", …" if len(pods) > MOST_NAMES else "")


def _guesses(console: Console, report: PlanReport) -> None:
    if not report.guessed.amount:
        return
    how = "; ".join(f"{found.nodes} nodes {found.text}" for found in report.prices if found.is_guessed)
    console.print(Text(f"{words(report.guessed)} of it rests on guessed prices: {how}", style="yellow"))


def _presets(console: Console, report: PlanReport) -> None:
    table = _comparison_table("Preset", ">Nodes after", ">Saves", ">Evictions")
    for found in report.presets:
        name = Text(f"{found.name}{' (this plan)' if found.is_planned else ''}", style="bold" * found.is_planned)
        table.add_row(name, str(found.nodes_after), words(found.saves), f"{found.evictions:,}")
    console.print(table)


def _keepers(console: Console, keepers: Sequence[KeeperReport], title: str) -> None:
    if not keepers:
        return
    console.print(Text(title))
    table = _comparison_table(">Costs", ">More nodes", "Because", "What to do")
    for one in keepers:
        table.add_row(words(one.costs), str(one.more_nodes), because(one), one.todo)
    console.print(table)


def because(found: KeeperReport) -> str:
    """ "these 4 pods: not-safe-to-evict (shop/a, shop/b, …)"."""
    if not found.pods:
        return f"{found.code} on {len(found.nodes)} node{'' if len(found.nodes) == 1 else 's'}"
    whose = "this pod" if len(found.pods) == 1 else f"these {len(found.pods):,} pods"
    return f"{whose}: {found.code} ({_names(found.pods)})"


def _karpenter(console: Console, found: KarpenterReport) -> None:
    pools = ", ".join(found.pools)
    console.print(
        Text(
            f"Karpenter consolidates {found.nodes} nodes ({pools}) itself, and Trimtab leaves them alone."
            f" {found.could_go} of them could go, saving {words(found.saves)} with {found.evictions} evictions."
        )
    )
    _keepers(console, found.keepers, "Pods that block Karpenter's own consolidation:")


def _comparison_table(*names: str) -> Table:
    table = Table(header_style="bold", expand=False, border_style="bright_black")
    for name in names:
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    return table


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
            explained(console, found)
        return
    _summary(console, report)
    draw_comparison(console, report)
    _pools(console, report)
    _beginning(console, report)
    reasons(console, report.stays)
    misplaced(console, report)
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
    if report.evictions_without_requests:
        console.print(Text(unknown_load(report.evictions_without_requests, report.evictions), style="yellow"))
    if report.left_to_autoscaler.nodes:
        console.print(left_to_autoscaler(report.left_to_autoscaler))
    console.print(Text(report.bound.text, style=GREY))


def left_to_autoscaler(left: LeftToAutoscalerReport) -> str:
    """What the cluster autoscaler will do by itself, and the setting that changes who does it."""
    verb, saves = "is" if left.nodes == 1 else "are", words(left.saves)
    return (
        f"{counted(left.nodes, 'node')} that could go {verb} left to the cluster autoscaler, which empties nodes under"
        f" its own threshold: {saves}, {counted(left.evictions, 'eviction')}. A pool with `autoscaler: lead` empties"
        " them in Trimtab's order"
    )


def unknown_load(count: int, evictions: int) -> str:
    """The warning about moved pods that ask for nothing."""
    cpu, memory = ASSUMED_REQUESTS["cpu"], ASSUMED_REQUESTS["memory"] >> 20
    ask = "asks" if count == 1 else "ask"
    return (
        f"{count:,} of {counted(evictions, 'moved pod')} {ask} for neither cpu nor memory: whether they fit is not"
        f" known. Each counts with {cpu}m and {memory}Mi; `trimtab recommend` proposes requests"
    )


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


def explained(console: Console, found: ExplainReport) -> None:
    """One chain of reasons, numbered."""
    console.print(Text(f"{found.kind} {found.name}", style="bold"))
    for number, sentence in enumerate(found.chain, start=1):
        console.print(Text.assemble((f"{number:>3}. ", GREY), sentence))
