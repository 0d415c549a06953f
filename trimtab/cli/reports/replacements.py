"""The replacements that are advised beside a plan: one cheaper new node in place of one to four others."""

from collections.abc import Callable, Iterator
from typing import Any

from rich.text import Text

from trimtab.cli.output import ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, R, Section, number_column
from trimtab.cli.reports.node_costs import Saving, convert_saving, format_saving
from trimtab.cli.reports.resizes import saving_column
from trimtab.cluster.format_count import format_count, join_first
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.replace.advise import ReplacementAdvice, advise_replacements
from trimtab.compaction.replace.plan_replacements import Replacement
from trimtab.inputs.plan_inputs import PlanInputs

MICRO_DOLLARS = "micro-dollars an hour"
MAX_ROWS, MAX_NAMES = 8, 3


class ReplacedPodReport(ReportPart, frozen=True, kw_only=True):
    """A pod that moves to the new node."""

    pod: str
    """The pod, as namespace/name."""
    source: str
    """The node of the pod."""
    budget: str | None
    """The PodDisruptionBudget that the eviction counts against; null if none selects the pod."""
    turn: int
    """The number of the group in which the pod is evicted."""


class ReplacementCompanionReport(ReportPart, frozen=True, kw_only=True):
    """A pod on another node that is evicted too, because it is of one group with pods that move."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The pod's node, which is not replaced."""


class ReplacementReport(ReportPart, frozen=True, kw_only=True):
    """One new node, and the nodes that can be drained when it is there."""

    nodes: list[str]
    """The nodes that the new one replaces."""
    pool: str
    """The pool of the nodes."""
    group: str
    """The node group that has to give the new node."""
    zone: str
    """The zone of the new node."""
    instance_type: str
    """The machine type of the new node; empty if the nodes of the group do not name one."""
    label: str
    """A label that no other node of the zone has, as KEY=VALUE."""
    condition: str
    """The condition under which the replacement holds."""
    changes: list[str]
    """In what the new node differs from the nodes, as the pool's `replaceAcross` lets it: zones, capacityTypes or
    architectures."""
    is_before_drains: bool
    """Whether the replacement comes before the drains, because more is saved in that order."""
    price: Saving
    """What the new node costs."""
    saves: Saving
    """What the replaced nodes cost more than the new one."""
    moves: list[ReplacedPodReport]
    """The pods of the replaced nodes, which the new node has room for."""
    companions: list[ReplacementCompanionReport]
    """The pods on other nodes that are evicted too; empty unless the pool moves groups."""


class GroupRefusalReport(ReportPart, frozen=True, kw_only=True):
    """A node group that gets no part in a replacement."""

    group: str
    """The node group."""
    reason: ReasonReport
    """Why the group was not compared."""


class ReplacementsReport(ReportPart, frozen=True, kw_only=True):
    """What replacements save beside the drains, and under which conditions. Trimtab makes no node: they are advice."""

    text: str
    """The answer, as sentences."""
    nodes_after: int
    """The number of nodes after all replacements and drains."""
    drains: int
    """The number of nodes that are drained without being replaced."""
    evictions: int
    """The number of evictions of all replacements and drains, those of companions included. A pod that moves twice
    counts twice."""
    saves: Saving
    """What replacements and drains save together."""
    drains_alone: Saving
    """What the drains of the plan save without any replacement."""
    replacements: list[ReplacementReport]
    """The replacements, in the order in which they are made."""
    refusals: list[GroupRefusalReport]
    """The node groups that were not compared, each with the reason."""


def report_replacements(inputs: PlanInputs, plan: Plan) -> ReplacementsReport | None:
    """Returns the replacements beside the plan; None if the settings of all pools say `replace: off`, or if the cluster
    has no node group that is known."""
    advice = advise_replacements(inputs.inventory, plan, inputs.pools, inputs.context, inputs.readmitted_requests)
    if not advice.replacements and not advice.group_refusals:
        return None
    return describe_advice(advice)


def describe_advice(advice: ReplacementAdvice) -> ReplacementsReport:
    """Returns the report of an advice."""
    return ReplacementsReport(
        text=_describe(advice),
        nodes_after=len(advice.after.machines),
        drains=len(advice.drains.all_steps),
        evictions=sum(one.eviction_count for one in advice.drains.all_steps)
        + sum(len(one.moves) + len(one.companions) for one in advice.replacements),
        saves=convert_saving(advice.saves, MICRO_DOLLARS),
        drains_alone=convert_saving(advice.drain_saves, MICRO_DOLLARS),
        replacements=[
            *(_report_replacement(one, is_before_drains=True) for one in advice.first),
            *(_report_replacement(one, is_before_drains=False) for one in advice.then),
        ],
        refusals=[
            GroupRefusalReport(group=group, reason=report_reason(reason))
            for group, reason in sorted(advice.group_refusals.items())
        ],
    )


def _describe(advice: ReplacementAdvice) -> str:
    count = len(advice.replacements)
    if not count:
        return "No node is worth replacing by a new node of a group that may grow."
    nodes = sum(len(one.nodes) for one in advice.replacements)
    saves, alone = (format_saving(convert_saving(one, MICRO_DOLLARS)) for one in (advice.saves, advice.drain_saves))
    order = f"{len(advice.first)} of them before the drains" if advice.first else "after the drains"
    result = (
        f" ({order}), and replacements and drains save {saves} together, instead of {alone}"
        if advice.drain_saves
        else f", which saves {saves}"
    )
    groups = (
        "No autoscaler names its node groups, so the pools of the platform count as groups."
        if advice.is_assumed
        else "Trimtab makes no node, and no process acts on this."
    )
    new_nodes, old_nodes = format_count(count, "new node"), format_count(nodes, "node")
    return f"If node groups give {new_nodes}, {old_nodes} can be replaced{result}. {groups}"


def _report_replacement(one: Replacement, *, is_before_drains: bool) -> ReplacementReport:
    zone = f" in zone {one.zone}" if one.zone else ""
    return ReplacementReport(
        nodes=list(one.nodes),
        pool=one.pool,
        group=one.group,
        zone=one.zone,
        instance_type=one.instance_type,
        label="=".join(one.label),
        condition=f"if node group {one.group} gives a node{zone}",
        changes=list(map(str, one.changes)),
        is_before_drains=is_before_drains,
        price=convert_saving(one.price, MICRO_DOLLARS),
        saves=convert_saving(one.saves, MICRO_DOLLARS),
        moves=[
            ReplacedPodReport(pod=move.pod, source=move.source, budget=move.budget, turn=move.turn)
            for move in one.moves
        ],
        companions=[ReplacementCompanionReport(pod=each.pod, node=each.node) for each in one.companions],
    )


def _describe_refusals(report: ReplacementsReport) -> Iterator[Text]:
    groups_by_code: dict[str, list[str]] = {}
    for refusal in report.refusals:
        groups_by_code.setdefault(refusal.reason.code, []).append(refusal.group)
    for code, groups in sorted(groups_by_code.items(), key=lambda item: (-len(item[1]), item[0])):
        count = format_count(len(groups), "node group")
        yield Text(f"Not compared: {code} on {count} ({join_first(groups, MAX_NAMES)})", style="bright_black")


def list_replacement_sections(read: Callable[[R], ReplacementsReport | None]) -> tuple[Section[R, Any], ...]:
    """Returns the table of replacements, with the sentence about them before it; nothing for a report without any."""

    def describe(report: R) -> list[Text]:
        replacements = read(report)
        if replacements is None or not replacements.replacements:
            return []
        return [Text(replacements.text, style="bold")]

    def list_refusals(report: R) -> list[Text]:
        replacements = read(report)
        # Without any replacement, the reasons of groups would only be in the way of what a plan says.
        return list(_describe_refusals(replacements)) if replacements is not None and replacements.replacements else []

    rows: Section[R, ReplacementReport] = Section(
        key="replacements",
        rows=lambda report: replacements.replacements if (replacements := read(report)) is not None else (),
        columns=(
            Column("Replace", lambda row: join_first(row.nodes, MAX_NAMES), value=lambda row: " ".join(row.nodes)),
            Column("By a node of", lambda row: row.group),
            Column("Zone", lambda row: row.zone, rank=2),
            Column("Machine type", lambda row: row.instance_type or "–", rank=1),
            saving_column("Costs", lambda row: row.price, rank=2),
            saving_column("Saves", lambda row: row.saves),
            number_column("Evictions", lambda row: len(row.moves) + len(row.companions), rank=1),
        ),
        before=describe,
        max_rows=MAX_ROWS,
        more=lambda hidden: Text(f"… and {format_count(hidden, 'more replacement')}: -o json", style="bright_black"),
    )
    refusals: Section[R, GroupRefusalReport] = Section(
        key="groups",
        rows=lambda report: replacements.refusals if (replacements := read(report)) is not None else (),
        columns=(
            Column("group", lambda row: row.group),
            Column("why", lambda row: row.reason.text),
        ),
        lines=list_refusals,
    )
    return rows, refusals
