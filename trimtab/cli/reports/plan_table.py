"""How the report of `trimtab plan` is shown: in one or two screens whatever the size of the cluster."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.text import Text

from trimtab.cli.reporting.columns import (
    Column,
    Paragraph,
    R,
    ReportView,
    Section,
    no_paragraphs,
    number_column,
    paragraph_section,
)
from trimtab.cli.reports.node_costs import PoolPriceReport, format_saving
from trimtab.cli.reports.plan import (
    ExplainReport,
    LeftToAutoscalerReport,
    MoveReport,
    PlanReport,
    PoolReport,
    StayReport,
    StepReport,
)
from trimtab.cli.reports.plan_comparison import KeeperReport, PresetReport
from trimtab.cli.reports.replacements import list_replacement_sections
from trimtab.cli.reports.resizes import list_resize_sections, saving_column
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS
from trimtab.cluster.format_count import format_count, join_first

MAX_NAMES = 2
"""The largest number of pods that are named per reason."""


def select_costly_keepers(report: PlanReport) -> list[KeeperReport]:
    """Returns the reasons without which at least one more node, or more than 1 % more, would be saved.

    The effects of other reasons are too small to be distinguished from random differences between plans."""
    least = report.saves.amount / 100
    return [keeper for keeper in report.keepers if keeper.more_nodes or keeper.costs.amount > least]


def _describe_misplaced(report: PlanReport) -> Iterator[Text]:
    """Yields the groups of misplaced pods, with the policy for the first of them."""
    for group in report.misplaced:
        yield Text(f"{group.text}: {join_first(group.pods, MAX_NAMES)}")
    policies = [group.policy for group in report.misplaced if group.policy]
    if policies:
        more = f", {len(policies) - 1} more with -o json" if len(policies) > 1 else ""
        yield Text(f"A PodPolicy that places such pods better ({'the first' if more else 'this one'}{more}):")
        yield Text(policies[0].rstrip(), style="bright_black")


def _describe_guesses(report: PlanReport) -> Iterator[Text]:
    if report.guessed.amount:
        sources = "; ".join(
            f"{format_count(price.nodes, 'node')} {price.text}" for price in report.prices if price.is_guessed
        )
        sentence = f"{format_saving(report.guessed)} of the saving depends on estimated prices: {sources}"
        yield Text(sentence, style="yellow")


def describe_keeper(keeper: KeeperReport) -> str:
    """Returns the reason with its pods as text, such as "these 4 pods: not-safe-to-evict (shop/a, shop/b, …)"."""
    if not keeper.pods:
        return f"{keeper.code} on {len(keeper.nodes)} node{'' if len(keeper.nodes) == 1 else 's'}"
    whose = "this pod" if len(keeper.pods) == 1 else f"these {len(keeper.pods):,} pods"
    return f"{whose}: {keeper.code} ({join_first(keeper.pods, MAX_NAMES)})"


GREY = "bright_black"
MAX_NODES = 6
"""The number of nodes that are shown with their moves; they are the first ones of the plan."""
MAX_WORKLOADS = 4
"""The largest number of workloads that are named per node."""
MAX_TARGETS = 3
MAX_PRICES = 10
"""The largest number of rows in the table of prices."""


def _describe_plan(report: PlanReport) -> Iterator[Paragraph]:
    removed = report.nodes_before - report.nodes_after
    yield Text.assemble(
        (f"{format_count(report.nodes_before, 'node')} → {report.nodes_after}", "bold green" if removed else "bold"),
        f": {removed} can be drained in {format_count(len(report.waves), 'wave')}, "
        f"{format_count(report.evictions, 'eviction')}, saving {format_saving(report.saves)}"
        if removed
        else ": none can be drained",
    )
    if report.evictions_without_requests:
        yield Text(describe_unknown_load(report.evictions_without_requests, report.evictions), style="yellow")
    if report.left_to_autoscaler.nodes:
        yield describe_left_to_autoscaler(report.left_to_autoscaler)
    if report.bound.text:
        yield Text(report.bound.text, style=GREY)


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
    companions = describe_companions(step)
    for sentence in companions[:MAX_WORKLOADS]:
        text.append("\n" if text else "").append(sentence)
    if len(companions) > MAX_WORKLOADS:
        text.append(f"\n… and {format_count(len(companions) - MAX_WORKLOADS, 'more group')}", style=GREY)
    return text


def describe_companions(step: StepReport) -> list[str]:
    """Returns a sentence for each group of pods on other nodes that are evicted with the node."""
    nodes_by_group: dict[str, list[str]] = {}
    for one in step.companions:
        nodes_by_group.setdefault(one.group, []).append(one.node)
    return [
        f"and {format_count(len(nodes), 'pod')} of group {group} on {format_targets(nodes)}"
        for group, nodes in nodes_by_group.items()
    ]


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


def group_by_code(stays: Sequence[StayReport]) -> list[tuple[str, list[StayReport]]]:
    """Returns the nodes that stay, grouped by reason code, the largest group first.

    If a pod blocks a node, the group is named by the code of the node's reason and the code of the pod's reason."""
    groups: dict[str, list[StayReport]] = {}
    for stay in stays:
        name = f"{stay.reason.code}: {stay.blocked_by}" if stay.blocked_by else stay.reason.code
        groups.setdefault(name, []).append(stay)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def describe_chains(chains: Iterable[ExplainReport]) -> Iterator[Text]:
    """Yields chains of reasons with numbered sentences."""
    for chain in chains:
        yield Text(f"{chain.kind} {chain.name}", style="bold")
        for number, sentence in enumerate(chain.chain, start=1):
            yield Text.assemble((f"{number:>3}. ", GREY), sentence)


def list_chains(read: Callable[[R], Sequence[ExplainReport]]) -> Section[R, ExplainReport]:
    """Returns the chains of reasons for which --explain asks."""
    return Section(
        key="explained",
        rows=read,
        columns=(
            Column("name", lambda chain: f"{chain.kind} {chain.name}"),
            Column("why", lambda chain: " ".join(chain.chain)),
        ),
        name=lambda chain: f"{chain.kind}/{chain.name}",
        lines=lambda report: describe_chains(read(report)),
    )


def list_stays(read: Callable[[R], Sequence[StayReport]]) -> tuple[Section[R, Any], ...]:
    """Returns the nodes that stay: a table grouped by reason with one example each, and in CSV every node."""
    groups: Section[R, tuple[str, list[StayReport]]] = Section(
        key="reasons",
        rows=lambda report: group_by_code(read(report)),
        columns=(
            number_column("Nodes", lambda group: len(group[1]), "{}"),
            Column("Why they stay", lambda group: group[0]),
            Column("For example", lambda group: group[1][0].reason.text, min_width=20),
        ),
        csv_columns=(),
    )
    nodes: Section[R, StayReport] = Section(
        key="stays",
        rows=read,
        columns=(
            Column("Pool", lambda stay: stay.pool),
            Column("Node", lambda stay: stay.node),
            Column("Why they stay", lambda stay: stay.blocked_by or stay.reason.code),
            Column("why", lambda stay: stay.reason.text),
        ),
        lines=no_paragraphs,
    )
    return groups, nodes


def list_stays_briefly(read: Callable[[R], Sequence[StayReport]]) -> Section[R, Any]:
    """Returns the nodes that stay as a table of short rows: a code and the name of one node each."""
    section: Section[R, tuple[str, list[StayReport]]] = Section(
        key="reasons",
        rows=lambda report: group_by_code(read(report)),
        columns=(
            number_column("Nodes", lambda group: len(group[1]), "{}"),
            Column("Why they stay", lambda group: group[1][0].blocked_by or group[1][0].reason.code),
            Column("For example", lambda group: group[1][0].node, rank=1),
        ),
        csv_columns=(),
    )
    return section


_PRESETS: Section[PlanReport, PresetReport] = Section(
    key="presets",
    rows=lambda report: report.presets,
    columns=(
        Column(
            "Preset",
            lambda preset: Text(
                f"{preset.name}{' (this plan)' if preset.is_planned else ''}", style="bold" * preset.is_planned
            ),
            value=lambda preset: preset.name,
        ),
        number_column("Nodes after", lambda preset: preset.nodes_after),
        saving_column("Saves", lambda preset: preset.saves),
        number_column("Evictions", lambda preset: preset.evictions, rank=1),
    ),
)


def _list_keepers(
    key: str, title: str, rows: Callable[[PlanReport], Sequence[KeeperReport]]
) -> Section[PlanReport, KeeperReport]:
    return Section(
        key=key,
        rows=rows,
        columns=(
            saving_column("Costs", lambda keeper: keeper.costs),
            number_column("More nodes", lambda keeper: keeper.more_nodes, "{}", rank=2),
            Column("Because", describe_keeper),
            Column("What to do", lambda keeper: keeper.todo, rank=1, min_width=20),
        ),
        before=lambda report: [Text(title)],
    )


def _describe_karpenter(report: PlanReport) -> Iterator[Text]:
    karpenter = report.karpenter
    if karpenter is not None:
        yield Text(
            f"Karpenter itself consolidates {format_count(karpenter.nodes, 'node')} ({', '.join(karpenter.pools)}), so "
            f"Trimtab does not drain them. {karpenter.could_go} of these nodes could be drained by "
            f"{format_count(karpenter.evictions, 'eviction')}, which would save {format_saving(karpenter.saves)}."
        )


def _list_pools(report: PlanReport) -> Sequence[PoolReport]:
    return () if len(report.pools) == 1 and report.pools[0].refused is None else report.pools


def _list_pool_columns(report: PlanReport) -> tuple[Column[PoolReport], ...]:
    causes = {pool.name: _explain_empty_plan(pool, report.stays) for pool in report.pools}
    why: Column[PoolReport] = Column(
        "Why nothing is planned", lambda pool: causes[pool.name], rank=1, is_below=True, min_width=20
    )
    return (
        Column("Pool", lambda pool: pool.name),
        number_column("Nodes", lambda pool: pool.nodes_before, rank=2),
        number_column("After", lambda pool: pool.nodes_after),
        number_column("Evictions", lambda pool: pool.evictions, rank=3),
        saving_column("Saves", lambda pool: pool.saves),
        *((why,) if any(causes.values()) else ()),
    )


def _list_prices(report: PlanReport) -> Sequence[PoolPriceReport]:
    """Returns what each pool pays for its nodes, the most expensive rows first; guessed prices are marked."""
    if not any(row.price for row in report.pool_prices):
        return ()
    return sorted(report.pool_prices, key=lambda row: -(row.price.amount if row.price else 0) * row.nodes)


_PRICES: Section[PlanReport, PoolPriceReport] = Section(
    key="prices",
    rows=_list_prices,
    columns=(
        Column("Pool", lambda row: row.pool or "–"),
        number_column("Nodes", lambda row: row.nodes, rank=2),
        Column("Machine type", lambda row: row.instance_type or "–"),
        Column(
            "Price each",
            lambda row: format_saving(row.price) if row.price else "not known",
            value=lambda row: row.price.amount if row.price else None,
            align="right",
        ),
        Column(
            "Price from", lambda row: Text(row.text, style="yellow" if row.is_guessed else ""), rank=1, min_width=20
        ),
    ),
    max_rows=MAX_PRICES,
    more=lambda hidden: Text(f"… and {format_count(hidden, 'more price')}: -o json", style=GREY),
)


class _DrainedNode(NamedTuple):
    wave: int
    step: StepReport


def _list_drained(report: PlanReport) -> list[_DrainedNode]:
    return [_DrainedNode(wave.number, step) for wave in report.waves for step in wave.nodes]


def _list_node_columns(report: PlanReport) -> tuple[Column[_DrainedNode], ...]:
    rows = _list_drained(report)
    surges: Column[_DrainedNode] = number_column("Surges", lambda row: _count_surges(row.step), "{}", rank=2)
    companions: Column[_DrainedNode] = number_column("Companions", lambda row: len(row.step.companions), "{}", rank=2)
    return (
        number_column("Wave", lambda row: row.wave, "{}", rank=1),
        Column("Node", lambda row: row.step.node),
        saving_column("Saves", lambda row: row.step.saves),
        number_column("Pods", lambda row: len(row.step.moves), "{}", rank=2),
        *((surges,) if any(_count_surges(row.step) for row in rows) else ()),
        *((companions,) if any(row.step.companions for row in rows) else ()),
        Column("Targets", lambda row: _format_moves(row.step)),
    )


def _count_surges(step: StepReport) -> int:
    """Returns how many evictions of the node need more pods of a Deployment first."""
    return sum(move.surge > 0 for move in step.moves)


_NODES: Section[PlanReport, _DrainedNode] = Section(
    key="nodes",
    rows=_list_drained,
    columns=_list_node_columns,
    name=lambda row: f"node/{row.step.node}",
    max_rows=MAX_NODES,
    more=lambda hidden: Text(
        f"… and {format_count(hidden, 'more node')}: -o html and -o json contain all of them", style=GREY
    ),
)
_CHAINS: Section[PlanReport, ExplainReport] = list_chains(lambda report: report.explained)
_SECTIONS: tuple[Section[PlanReport, Any], ...] = (
    *list_resize_sections(lambda report: report.resize),
    paragraph_section(_describe_guesses),
    _PRESETS,
    _list_keepers(
        "keepers", "Why the other nodes stay, and what a plan would save without each reason:", select_costly_keepers
    ),
    paragraph_section(_describe_karpenter),
    _list_keepers(
        "karpenter",
        "Pods that block Karpenter's consolidation:",
        lambda report: report.karpenter.keepers if report.karpenter is not None else (),
    ),
    Section(key="pools", rows=_list_pools, columns=_list_pool_columns),
    _PRICES,
    _NODES,
    *list_replacement_sections(lambda report: report.replace),
    *list_stays(lambda report: report.stays),
)


VIEW: ReportView[PlanReport] = ReportView(
    title="trimtab plan",
    before=lambda report: () if report.explained else _describe_plan(report),
    sections=lambda report: (_CHAINS,) if report.explained else _SECTIONS,
    after=lambda report: () if report.explained else _describe_misplaced(report),
    notes=lambda report: () if report.explained else report.notes,
)
"""The summary, the first nodes, the reasons why nodes stay, and the notes; with --explain, only the chains of
reasons."""
