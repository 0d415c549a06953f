"""The report of `trimtab drain --dry-run`: what an order would do, and what stands in the way."""

from collections.abc import Sequence
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.quantity import format_quantity
from trimtab.compaction.order.order_plan import OrderPlan
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.plan_types import DrainStep

MAX_PODS = 3
"""The largest number of pods that a sentence names."""


class OrderMoveReport(ReportPart, frozen=True, kw_only=True):
    """One pod of a node, and where its successor fits."""

    pod: str
    """The pod as namespace/name."""
    target: str | None
    """The node that has room for the successor; the scheduler may choose another one. Null if the pod has no
    successor."""
    budget: str | None
    """The PodDisruptionBudget that the eviction counts against; null if none selects the pod."""
    turn: int
    """The turn of the eviction: a turn begins when the successors of the previous one are ready."""
    surge: int
    """How many more pods the Deployment gets for a while before the eviction (`--surge-pods`)."""
    warnings: list[ReasonReport]
    """What the owner of the pod should know, and what its eviction waits for."""


class OrderNodeReport(ReportPart, frozen=True, kw_only=True):
    """One node of the order."""

    name: str
    """The name of the node."""
    wave: int | None
    """The number of its wave, from 1; null if the node cannot be emptied."""
    moves: list[OrderMoveReport]
    """The evictions of the node's pods, each with the node that has room for the new pod."""
    longest_grace_seconds: int
    """The longest termination grace period of the node's pods, in seconds."""
    blocked: ReasonReport | None
    """Why the node cannot be emptied; null if it can."""


class UnmovablePodReport(ReportPart, frozen=True, kw_only=True):
    """A pod that cannot move, with the reason, which names what would permit it."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The node of the pod."""
    reason: ReasonReport
    """Why the pod cannot move, and what would permit it."""


class OrderBudgetReport(ReportPart, frozen=True, kw_only=True):
    """A PodDisruptionBudget of pods of the order."""

    name: str
    """The budget, as namespace/name."""
    allowed: int
    """How many evictions it allows at present."""
    needed: int
    """How many pods of the order it selects."""


class MissingRoomReport(ReportPart, frozen=True, kw_only=True):
    """What the nodes outside the order lack."""

    pods: list[str]
    """The pods for which there is no room."""
    requests: dict[str, str]
    """Resource → what these pods request together."""


class DrainPlanReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab drain --dry-run`. Published as deploy/schemas/drain-plan-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab drain --dry-run"
    api_version: str = API_VERSION
    kind: str = "DrainPlanReport"
    may_begin: bool
    """Whether the order would begin."""
    waves: int
    """The number of waves in which the nodes are emptied."""
    nodes: list[OrderNodeReport]
    """The nodes of the order."""
    evictions: int
    """The number of evictions."""
    stop_seconds: int
    """How many seconds the pods may take to stop, all waves together: an estimate without the time in which successors
    start."""
    budgets: list[OrderBudgetReport]
    """The PodDisruptionBudgets of pods of the order."""
    unmovable: list[UnmovablePodReport]
    """The pods that cannot be evicted, each with the reason; empty if all can."""
    missing: MissingRoomReport | None
    """Null if there is room for all pods."""
    notes: list[str]
    """What the order rests on, one sentence each."""


def build_drain_report(
    plan: OrderPlan, names: Sequence[str], rules: OrderRules, notes: Sequence[str] = ()
) -> DrainPlanReport:
    """Returns the report of a plan. `names`: the nodes of the order."""
    steps = {step.node: (number, step) for number, wave in enumerate(plan.waves, start=1) for step in wave.steps}
    order = {name: number for number, name in enumerate([*steps, *(name for name in names if name not in steps)])}
    return DrainPlanReport(
        may_begin=plan.may_begin(rules),
        waves=len(plan.waves),
        nodes=[_report_node(name, steps.get(name), plan) for name in sorted(names, key=order.__getitem__)],
        evictions=sum(len(step.moves) for step in plan.steps),
        stop_seconds=sum(plan.stop_seconds),
        budgets=[
            OrderBudgetReport(name=each.budget, allowed=each.allowed, needed=each.needed) for each in plan.budgets
        ],
        unmovable=[
            UnmovablePodReport(pod=each.pod, node=each.node, reason=report_reason(each.reason))
            for each in plan.unmovable
        ],
        missing=_report_missing(plan),
        notes=list(notes),
    )


def _report_node(name: str, numbered: tuple[int, DrainStep] | None, plan: OrderPlan) -> OrderNodeReport:
    refusal = plan.refusals.get(name)
    if numbered is None:
        return OrderNodeReport(
            name=name,
            wave=None,
            moves=[],
            longest_grace_seconds=0,
            blocked=None if refusal is None else report_reason(refusal),
        )
    wave, step = numbered
    return OrderNodeReport(
        name=name,
        wave=wave,
        moves=[
            OrderMoveReport(
                pod=move.pod,
                target=move.target or None,
                budget=move.budget,
                turn=move.turn,
                surge=move.surge,
                warnings=[report_reason(reason) for reason in plan.warnings.get(move.pod, ())],
            )
            for move in step.moves
        ],
        longest_grace_seconds=step.longest_grace_seconds,
        blocked=None,
    )


def _report_missing(plan: OrderPlan) -> MissingRoomReport | None:
    if not plan.homeless:
        return None
    requests = {
        name: str(amount) if name == "pods" else format_quantity(name, amount) for name, amount in plan.missing.items()
    }
    return MissingRoomReport(pods=list(plan.homeless), requests=requests)


def describe_missing(missing: MissingRoomReport) -> str:
    """Returns a sentence about the room that is missing."""
    amounts = ", ".join(f"{name} {amount}" for name, amount in missing.requests.items() if name != "pods")
    return (
        f"Room is missing for {format_count(len(missing.pods), 'pod')} ({join_first(missing.pods, MAX_PODS)}), which "
        f"request {amounts}."
    )


def _summarize(report: DrainPlanReport) -> list[str]:
    count = format_count(sum(node.wave is not None for node in report.nodes), "node")
    lines = [
        f"{count} in {format_count(report.waves, 'wave')}, {format_count(report.evictions, 'eviction')}; the pods may "
        f"take {report.stop_seconds} s to stop, and their successors need time to start."
        if report.waves
        else "No node can be emptied."
    ]
    if not report.may_begin:
        lines.append(
            "The order does not begin, because not every node can be emptied (--keep-going drains the others)."
        )
    surged = sum(move.surge > 0 for node in report.nodes for move in node.moves)
    if surged:
        lines.append(
            f"{format_count(surged, 'eviction')} can be made only after a Deployment was given more pods for a while "
            "(--surge-pods)."
        )
    if report.missing is not None:
        lines.append(describe_missing(report.missing))
    return lines


def _list_warnings(report: DrainPlanReport) -> list[str]:
    return [f"note: {warning.text}" for node in report.nodes for move in node.moves for warning in move.warnings]


def _describe_target(move: OrderMoveReport) -> str:
    return move.target or "–"


VIEW: ReportView[DrainPlanReport] = ReportView(
    title="trimtab drain",
    before=_summarize,
    sections=(
        Section(
            key="nodes",
            rows=lambda report: report.nodes,
            columns=(
                Column("node", lambda node: node.name),
                Column("wave", lambda node: "–" if node.wave is None else str(node.wave), value=lambda node: node.wave),
                Column("pods", lambda node: str(len(node.moves)), value=lambda node: len(node.moves)),
                Column("longest grace", lambda node: f"{node.longest_grace_seconds} s", rank=2),
                Column("why it stays", lambda node: node.blocked.text if node.blocked else "–", min_width=20),
            ),
            name=lambda node: f"node/{node.name}",
            frame=Frame.NONE,
        ),
        Section(
            key="moves",
            rows=lambda report: [(node.name, move) for node in report.nodes for move in node.moves],
            columns=(
                Column("pod", lambda row: row[1].pod),
                Column("from", lambda row: row[0], rank=1),
                Column("target", lambda row: _describe_target(row[1])),
                Column("budget", lambda row: row[1].budget or "–", rank=2),
                Column("turn", lambda row: str(row[1].turn + 1), value=lambda row: row[1].turn + 1, rank=3),
            ),
            frame=Frame.NONE,
        ),
        Section(
            key="budgets",
            rows=lambda report: report.budgets,
            columns=(
                Column("budget", lambda budget: budget.name),
                Column("allows now", lambda budget: str(budget.allowed), value=lambda budget: budget.allowed),
                Column("pods of the order", lambda budget: str(budget.needed), value=lambda budget: budget.needed),
            ),
            frame=Frame.NONE,
        ),
        Section(
            key="unmovable",
            rows=lambda report: report.unmovable,
            columns=(
                Column("pod that cannot move", lambda row: row.pod),
                Column("node", lambda row: row.node, rank=1),
                Column("why", lambda row: row.reason.text, min_width=20),
            ),
            frame=Frame.NONE,
        ),
    ),
    after=_list_warnings,
    notes=lambda report: report.notes,
)
"""A table of the nodes, one of the pods with their targets, one of the budgets, and one of the pods that stay."""
