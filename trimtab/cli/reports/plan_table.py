"""Draws the report of `trimtab plan` on a terminal, in one or two screens whatever the size of the cluster."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.reports.plan import (
    ExplainReport,
    LeftToAutoscalerReport,
    MoveReport,
    PlanReport,
    PoolReport,
    StayReport,
    StepReport,
)
from trimtab.cli.reports.plan_comparison import KarpenterReport, KeeperReport
from trimtab.cli.reports.resizes import draw_resizes
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS
from trimtab.cluster.format_count import format_count, join_first

MAX_NAMES = 2
"""The largest number of pods that are named per reason."""


def draw_comparison(console: Console, report: PlanReport) -> None:
    _draw_guesses(console, report)
    if report.presets:
        _draw_presets(console, report)
    _draw_keepers(
        console,
        select_costly_keepers(report),
        "Why the other nodes stay, and what a plan would save without each reason:",
    )
    if report.karpenter is not None:
        _draw_karpenter(console, report.karpenter)


def select_costly_keepers(report: PlanReport) -> list[KeeperReport]:
    """Returns the reasons without which at least one more node, or more than 1 % more, would be saved.

    The effects of other reasons are too small to be distinguished from random differences between plans."""
    least = report.saves.amount / 100
    return [keeper for keeper in report.keepers if keeper.more_nodes or keeper.costs.amount > least]


def draw_misplaced(console: Console, report: PlanReport) -> None:
    """Draw the groups of misplaced pods, with the policy for the first of them."""
    for group in report.misplaced:
        console.print(Text(f"{group.text}: {join_first(group.pods, MAX_NAMES)}"))
    policies = [group.policy for group in report.misplaced if group.policy]
    if policies:
        more = f", {len(policies) - 1} more with -o json" if len(policies) > 1 else ""
        console.print(Text(f"A PodPolicy that places such pods better ({'the first' if more else 'this one'}{more}):"))
        console.print(Text(policies[0].rstrip(), style="bright_black"))


def _draw_guesses(console: Console, report: PlanReport) -> None:
    if not report.guessed.amount:
        return
    sources = "; ".join(
        f"{format_count(price.nodes, 'node')} {price.text}" for price in report.prices if price.is_guessed
    )
    sentence = f"{format_saving(report.guessed)} of the saving depends on estimated prices: {sources}"
    console.print(Text(sentence, style="yellow"))


def _draw_presets(console: Console, report: PlanReport) -> None:
    table = _comparison_table("Preset", ">Nodes after", ">Saves", ">Evictions")
    for preset in report.presets:
        name = Text(f"{preset.name}{' (this plan)' if preset.is_planned else ''}", style="bold" * preset.is_planned)
        table.add_row(name, f"{preset.nodes_after:,}", format_saving(preset.saves), f"{preset.evictions:,}")
    console.print(table)


def _draw_keepers(console: Console, keepers: Sequence[KeeperReport], title: str) -> None:
    if not keepers:
        return
    console.print(Text(title))
    table = _comparison_table(">Costs", ">More nodes", "Because", "What to do")
    for keeper in keepers:
        table.add_row(format_saving(keeper.costs), str(keeper.more_nodes), describe_keeper(keeper), keeper.todo)
    console.print(table)


def describe_keeper(keeper: KeeperReport) -> str:
    """Returns the reason with its pods as text, such as "these 4 pods: not-safe-to-evict (shop/a, shop/b, …)"."""
    if not keeper.pods:
        return f"{keeper.code} on {len(keeper.nodes)} node{'' if len(keeper.nodes) == 1 else 's'}"
    whose = "this pod" if len(keeper.pods) == 1 else f"these {len(keeper.pods):,} pods"
    return f"{whose}: {keeper.code} ({join_first(keeper.pods, MAX_NAMES)})"


def _draw_karpenter(console: Console, karpenter: KarpenterReport) -> None:
    pools = ", ".join(karpenter.pools)
    console.print(
        Text(
            f"Karpenter itself consolidates {format_count(karpenter.nodes, 'node')} ({pools}), so Trimtab does "
            f"not drain them. "
            f"{karpenter.could_go} of these nodes could be drained by "
            f"{format_count(karpenter.evictions, 'eviction')}, which "
            f"would save {format_saving(karpenter.saves)}."
        )
    )
    _draw_keepers(console, karpenter.keepers, "Pods that block Karpenter's consolidation:")


def _comparison_table(*names: str) -> Table:
    table = Table(header_style="bold", expand=False, border_style="bright_black")
    for name in names:
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    return table


GREY = "bright_black"
MAX_NODES = 6
"""The number of nodes that are shown with their moves; they are the first ones of the plan."""
MAX_WORKLOADS = 4
"""The largest number of workloads that are named per node."""
MAX_TARGETS = 3
MAX_PRICES = 10
"""The largest number of rows in the table of prices."""


def draw_plan(console: Console, report: PlanReport) -> None:
    """Draw the summary, the first nodes, the reasons why nodes stay, and the notes; with --explain, only the chains of
    reasons."""
    if report.explained:
        for chain in report.explained:
            draw_explanation(console, chain)
        return
    _draw_summary(console, report)
    if report.resize is not None:
        draw_resizes(console, report.resize)
    draw_comparison(console, report)
    _draw_pools(console, report)
    _draw_prices(console, report)
    _draw_first_nodes(console, report)
    draw_reasons(console, report.stays)
    draw_misplaced(console, report)
    draw_notes(console, report.notes)


def _draw_summary(console: Console, report: PlanReport) -> None:
    removed = report.nodes_before - report.nodes_after
    console.print(
        Text.assemble(
            (
                f"{format_count(report.nodes_before, 'node')} → {report.nodes_after}",
                "bold green" if removed else "bold",
            ),
            f": {removed} can be drained in {format_count(len(report.waves), 'wave')}, "
            f"{format_count(report.evictions, 'eviction')}, saving {format_saving(report.saves)}"
            if removed
            else ": none can be drained",
        )
    )
    if report.evictions_without_requests:
        console.print(Text(describe_unknown_load(report.evictions_without_requests, report.evictions), style="yellow"))
    if report.left_to_autoscaler.nodes:
        console.print(describe_left_to_autoscaler(report.left_to_autoscaler))
    console.print(Text(report.bound.text, style=GREY))


def describe_left_to_autoscaler(nodes: LeftToAutoscalerReport) -> str:
    """Returns a sentence about the nodes that the cluster autoscaler removes by itself, with the setting that leaves
    these nodes to the autoscaler."""
    verb, saves = "is" if nodes.nodes == 1 else "are", format_saving(nodes.saves)
    return (
        f"{format_count(nodes.nodes, 'node')} that could be drained {verb} left to the cluster autoscaler, which "
        f"drains nodes whose utilization is under its own threshold (saving {saves}, "
        f"{format_count(nodes.evictions, 'eviction')}). With `autoscaler: lead` in the pool, Trimtab drains "
        "these nodes in its own order"
    )


def describe_unknown_load(count: int, evictions: int) -> str:
    """Returns the warning about moved pods without requests."""
    cpu, memory = ASSUMED_REQUESTS["cpu"], ASSUMED_REQUESTS["memory"] >> 20
    ask, fit, each = (
        ("asks", "it fits on its new node", "It")
        if count == 1
        else ("ask", "they fit on their new nodes", "Each of these pods")
    )
    return (
        f"{count:,} of {format_count(evictions, 'moved pod')} {ask} for neither cpu nor memory, so Trimtab does "
        f"not know whether {fit}. {each} is planned with its known usage, or "
        f"else with {cpu}m cpu and {memory}Mi of memory; `trimtab recommend` proposes requests"
    )


def _draw_pools(console: Console, report: PlanReport) -> None:
    if len(report.pools) == 1 and report.pools[0].refused is None:
        return
    causes = {pool.name: _explain_empty_plan(pool, report.stays) for pool in report.pools}
    columns = ("Why nothing is planned",) if any(causes.values()) else ()
    table = _table("Pool", ">Nodes", ">After", ">Evictions", ">Saves", *columns)
    for pool in report.pools:
        numbers = (f"{pool.nodes_before:,}", f"{pool.nodes_after:,}", f"{pool.evictions:,}", format_saving(pool.saves))
        table.add_row(pool.name, *numbers, *(causes[pool.name] for _ in columns))
    console.print(table)


def _draw_prices(console: Console, report: PlanReport) -> None:
    """Draw what each pool pays for its nodes, the most expensive rows first; guessed prices are marked."""
    rows = sorted(report.pool_prices, key=lambda row: -(row.price.amount if row.price else 0) * row.nodes)
    if not any(row.price for row in rows):
        return
    table = _table("Pool", ">Nodes", "Machine type", ">Price each", "Price from")
    for row in rows[:MAX_PRICES]:
        price = format_saving(row.price) if row.price else "not known"
        source = Text(row.text, style="yellow" if row.is_guessed else "")
        table.add_row(row.pool or "–", f"{row.nodes:,}", row.instance_type or "–", price, source)
    console.print(table)
    if len(rows) > MAX_PRICES:
        console.print(Text(f"… and {format_count(len(rows) - MAX_PRICES, 'more price')}: -o json", style=GREY))


def _explain_empty_plan(pool: PoolReport, stays: Sequence[StayReport]) -> Text:
    """Returns the reason why no node of the pool is drained: the reason that applies to the whole pool, or else the
    most frequent reason of its nodes."""
    if pool.refused:
        return Text(pool.refused.text, style="yellow")
    nodes = [stay for stay in stays if stay.pool == pool.name]
    if pool.nodes_after < pool.nodes_before or not nodes:
        return Text("")
    code, stopped = group_by_code(nodes)[0]
    return Text(f"{code} on {format_count(len(stopped), 'node')}")


def _table(*names: str) -> Table:
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name in names:
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    return table


def _draw_first_nodes(console: Console, report: PlanReport) -> None:
    if not report.waves:
        return
    table = _table(">Wave", "Node", ">Saves", ">Pods", "Targets")
    shown = 0
    for wave in report.waves:
        for step in wave.nodes[: MAX_NODES - shown]:
            table.add_row(
                str(wave.number), step.node, format_saving(step.saves), str(len(step.moves)), _format_moves(step)
            )
            shown += 1
    console.print(table)
    hidden = report.nodes_before - report.nodes_after - shown
    if hidden:
        console.print(
            Text(f"… and {format_count(hidden, 'more node')}: -o html and -o json contain all of them", style=GREY)
        )


def _format_moves(step: StepReport) -> Text:
    """Returns the moves of a node, one line per workload."""
    by_workload: dict[str, list[MoveReport]] = {}
    for move in step.moves:
        by_workload.setdefault(workload_of(move), []).append(move)
    text = Text()
    for workload, moves in list(by_workload.items())[:MAX_WORKLOADS]:
        text.append("\n" if text else "")
        text.append(f"{len(moves)} × " if len(moves) > 1 else "").append(workload).append(" → ", style=GREY)
        text.append(format_targets(move.target for move in moves))
    if len(by_workload) > MAX_WORKLOADS:
        text.append(f"\n… and {format_count(len(by_workload) - MAX_WORKLOADS, 'more workload')}", style=GREY)
    return text


def workload_of(move: MoveReport) -> str:
    """Returns namespace/workload of the moved pod, or namespace/pod if it has no owner."""
    namespace = move.pod.partition("/")[0]
    return f"{namespace}/{move.workload.partition('/')[2]}" if move.workload else move.pod


def format_targets(targets: Iterable[str]) -> str:
    pods_by_node = Counter(targets)
    parts = [f"{node} ({count})" if count > 1 else node for node, count in pods_by_node.most_common(MAX_TARGETS)]
    return ", ".join(parts) + (
        f" and {len(pods_by_node) - MAX_TARGETS} more" if len(pods_by_node) > MAX_TARGETS else ""
    )


def draw_reasons(console: Console, stays: Sequence[StayReport]) -> None:
    """Draw the reasons of the nodes that stay, grouped by code, with one example each."""
    if not stays:
        return
    table = _table(">Nodes", "Why they stay", "For example")
    for code, nodes in group_by_code(stays):
        table.add_row(str(len(nodes)), code, nodes[0].reason.text)
    console.print(table)


def group_by_code(stays: Sequence[StayReport]) -> list[tuple[str, list[StayReport]]]:
    """Returns the nodes that stay, grouped by reason code, the largest group first.

    If a pod blocks a node, the group is named by the code of the node's reason and the code of the pod's reason."""
    groups: dict[str, list[StayReport]] = {}
    for stay in stays:
        name = f"{stay.reason.code}: {stay.blocked_by}" if stay.blocked_by else stay.reason.code
        groups.setdefault(name, []).append(stay)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def draw_notes(console: Console, texts: Sequence[str]) -> None:
    for text in texts:
        console.print(Text(f"Note: {text}", style=GREY))


def draw_explanation(console: Console, chain: ExplainReport) -> None:
    """Draw one chain of reasons with numbered sentences."""
    console.print(Text(f"{chain.kind} {chain.name}", style="bold"))
    for number, sentence in enumerate(chain.chain, start=1):
        console.print(Text.assemble((f"{number:>3}. ", GREY), sentence))
