"""The results of --resize: the outcome of the plan, the outcome if pods are made smaller first, and the resizes that
this needs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.text import Text

from trimtab.cli.output import ReportPart
from trimtab.cli.reporting.columns import Column, R, Row, Section, number_column
from trimtab.cli.reports.node_costs import Saving, convert_saving, format_saving
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.resize.plan_resizes import plan_with_resizes, with_resized_requests
from trimtab.compaction.resize.types import ResizeAdvice, ResizeProposal
from trimtab.compaction.simulate import Simulation
from trimtab.inputs.plan_inputs import PlanInputs


class ResizeOutcomeReport(ReportPart, frozen=True, kw_only=True):
    """What a plan or a simulation frees."""

    nodes: int
    """The number of nodes that are removed."""
    nodes_after: int
    """The number of nodes that the plan leaves."""
    evictions: int
    """The number of pods that the plan evicts."""
    saves: Saving
    """What the plan saves."""


class PodResizeReport(ReportPart, frozen=True, kw_only=True):
    """One pod whose requests are lowered while it runs."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The node of the pod."""
    owner: str
    """The pod's owner, as namespace/Kind/name."""
    changes: list[str]
    """The changes of requests, such as "app cpu 500m → 200m"."""
    policies: list[str]
    """The policies that want the resize."""
    frees: str
    """The first node that can be drained only after this resize; empty in a simulation."""


class ResizeRefusalReport(ReportPart, frozen=True, kw_only=True):
    """A reason why pods are not resized although a policy requires it."""

    code: str
    """The code of the reason."""
    todo: str
    """What to do about the reason."""
    count: int
    """The number of pods that are not resized for this reason."""
    pods: list[str]
    """Some of the pods that are not resized for this reason."""


class ResizeReport(ReportPart, frozen=True, kw_only=True):
    """What is freed with and without resizes.

    The resizes are not verified: the compactor first makes them and watches each pod, and only then plans with the
    capacity that they released."""

    without: ResizeOutcomeReport
    """What the plan frees with the pods as they are."""
    with_resizes: ResizeOutcomeReport
    """What a plan frees that assumes the resized pods."""
    proposed: int
    """The number of pods whose requests policies would lower or raise while they run."""
    resizes: list[PodResizeReport]
    """The resizes that are needed for the plan that assumes resized pods."""
    refusals: list[ResizeRefusalReport]
    """The reasons why pods are not resized, the most frequent first."""
    uncovered: list[str]
    """Pods on nodes of no pool, or of several, which the compactor does not resize."""
    text: str
    """The answer, as sentences."""


MAX_NAMES = 20
NO_ADVICE = ResizeAdvice()


def plan_resizes(inputs: PlanInputs, plan: Plan) -> ResizeReport:
    """Returns the outcome of this plan, and that of a plan after the pods are resized."""
    advice = inputs.resizes or NO_ADVICE
    resize_plan = plan_with_resizes(
        inputs.inventory, inputs.pools, advice.proposals, inputs.context, inputs.readmitted_requests, without=plan
    )
    frees = {proposal.uid: node for node, needed in resize_plan.resizes_by_node.items() for proposal in needed}
    nodes = len(inputs.inventory.machines)
    return _build_report(
        inputs, advice, resize_plan.resizes, frees, _plan_outcome(plan, nodes), _plan_outcome(resize_plan.plan, nodes)
    )


def simulate_resizes(
    inputs: PlanInputs, simulation: Simulation, simulate: Callable[[Inventory], Simulation]
) -> ResizeReport:
    """Returns the outcome of this simulation, and that of a simulation after the pods are resized."""
    advice = inputs.resizes or NO_ADVICE
    shrinks = tuple(proposal for proposal in advice.proposals if proposal.is_shrink)
    resized = simulate(with_resized_requests(inputs.inventory, shrinks)) if shrinks else simulation
    return _build_report(inputs, advice, shrinks, {}, _simulation_outcome(simulation), _simulation_outcome(resized))


def _plan_outcome(plan: Plan, nodes: int) -> ResizeOutcomeReport:
    removed = len(plan.all_steps)
    return ResizeOutcomeReport(
        nodes=removed,
        nodes_after=nodes - removed,
        evictions=len(plan.all_moves),
        saves=convert_saving(plan.total_savings, plan.unit),
    )


def _simulation_outcome(simulation: Simulation) -> ResizeOutcomeReport:
    return ResizeOutcomeReport(
        nodes=simulation.nodes_before - simulation.nodes_after,
        nodes_after=simulation.nodes_after,
        evictions=simulation.eviction_count,
        saves=convert_saving(simulation.saved, simulation.unit),
    )


def _build_report(
    inputs: PlanInputs,
    advice: ResizeAdvice,
    needed: Sequence[ResizeProposal],
    frees: Mapping[str, str],
    outcome: ResizeOutcomeReport,
    with_resizes: ResizeOutcomeReport,
) -> ResizeReport:
    counts = Counter(refusal.reason.code for refusal in advice.refusals)
    return ResizeReport(
        without=outcome,
        with_resizes=with_resizes,
        proposed=len(advice.proposals),
        resizes=[
            PodResizeReport(
                pod=proposal.pod,
                node=proposal.node,
                owner=proposal.owner,
                changes=list(map(str, proposal.changes)),
                policies=list(proposal.policies),
                frees=frees.get(proposal.uid, ""),
            )
            for proposal in needed
        ],
        refusals=[
            ResizeRefusalReport(
                code=code.name,
                todo=code.todo,
                count=count,
                pods=[refusal.pod for refusal in advice.refusals if refusal.reason.code is code][:MAX_NAMES],
            )
            for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0].name))
        ],
        uncovered=list(advice.uncovered),
        text=_describe(inputs, advice, needed, outcome, with_resizes),
    )


def _describe(
    inputs: PlanInputs,
    advice: ResizeAdvice,
    needed: Sequence[ResizeProposal],
    without: ResizeOutcomeReport,
    with_resizes: ResizeOutcomeReport,
) -> str:
    if inputs.resizes is None:
        return "No policy has `running: resize`, so nothing is resized."
    if not advice.proposals:
        return "At present no running pod can be resized to its recommendation."
    if with_resizes.nodes <= without.nodes and with_resizes.saves == without.saves:
        return (
            f"{format_count(len(advice.proposals), 'pod')} can be resized, but that allows no additional node to "
            "be drained."
        )
    return (
        f"If {format_count(len(needed), 'pod')} {'shrinks' if len(needed) == 1 else 'shrink'} first, "
        f"{format_count(with_resizes.nodes, 'node')} can be drained instead of {without.nodes}."
    )


MAX_ROWS = 8


class _Outcome(NamedTuple):
    name: str
    outcome: ResizeOutcomeReport
    resizes: int


def _list_outcomes(report: ResizeReport) -> list[_Outcome]:
    return [
        _Outcome("without resizes", report.without, 0),
        _Outcome("with resizes", report.with_resizes, len(report.resizes)),
    ]


def _describe_resizes(report: ResizeReport) -> Iterator[Text]:
    """Yields the first resizes, and the reasons why pods are not resized."""
    for resize in report.resizes[:MAX_ROWS]:
        frees = f", for node {resize.frees}" if resize.frees else ""
        yield Text(f"  {resize.pod} on {resize.node}: {', '.join(resize.changes)}{frees}")
    if len(report.resizes) > MAX_ROWS:
        yield Text(f"  … and {len(report.resizes) - MAX_ROWS:,} more resizes with -o json", style="bright_black")
    for refusal in report.refusals:
        pods = f"{', '.join(refusal.pods[:2])}{', …' if refusal.count > 2 else ''}"
        yield Text(f"  {refusal.code}: {format_count(refusal.count, 'pod')} ({pods})", style="bright_black")
    if report.uncovered:
        names = ", ".join(report.uncovered[:MAX_ROWS])
        more = f" and {len(report.uncovered) - MAX_ROWS} more" if len(report.uncovered) > MAX_ROWS else ""
        yield Text(f"The nodes of {names}{more} belong to no pool.", style="yellow")


def list_resize_sections(read: Callable[[R], ResizeReport | None]) -> tuple[Section[R, Any], ...]:
    """Returns both outcomes, and the resizes; nothing for a report without resizes."""

    def describe(report: R) -> Iterable[Text]:
        resize = read(report)
        return () if resize is None else _describe_resizes(resize)

    outcomes: Section[R, _Outcome] = Section(
        key="outcomes",
        rows=lambda report: _list_outcomes(resize) if (resize := read(report)) is not None else (),
        columns=(
            Column("", lambda row: row.name, csv_title="outcome"),
            number_column("Nodes after", lambda row: row.outcome.nodes_after),
            saving_column("Saves", lambda row: row.outcome.saves),
            number_column("Evictions", lambda row: row.outcome.evictions, rank=1),
            number_column("Resizes", lambda row: row.resizes, rank=2),
        ),
        before=lambda report: [Text(resize.text, style="bold")] if (resize := read(report)) is not None else (),
    )
    resizes: Section[R, PodResizeReport] = Section(
        key="resizes",
        rows=lambda report: resize.resizes if (resize := read(report)) is not None else (),
        columns=(
            Column("pod", lambda row: row.pod),
            Column("node", lambda row: row.node),
            Column("change", lambda row: ", ".join(row.changes)),
            Column("frees", lambda row: row.frees),
        ),
        lines=describe,
    )
    return outcomes, resizes


def saving_column(title: str, read: Callable[[Row], Saving], **options: Any) -> Column[Row]:
    """Returns a column of savings."""
    return Column(
        title, lambda row: format_saving(read(row)), value=lambda row: read(row).amount, **{"align": "right", **options}
    )
