"""The report of `trimtab simulate`, and the chains of reasons for single nodes and pods over all rounds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reports.node_costs import NodeReport, Saving, convert_saving, note_missing_prices, report_nodes
from trimtab.cli.reports.plan import (
    ExplainReport,
    StayReport,
    pool_names_by_node,
    report_stays,
)
from trimtab.cli.reports.plan_bound import BoundReport, report_bound
from trimtab.cli.reports.resizes import ResizeReport
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.compaction import explain
from trimtab.compaction.simulate import SimulatedMove, Simulation, SimulationRound
from trimtab.inputs.node_costs import compute_node_costs
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.scheduling.cluster_model import build_cluster_model


class LandingReport(ReportPart, frozen=True, kw_only=True):
    """The move of one pod in one round."""

    pod: str
    """The pod, as namespace/name."""
    source: str
    """The node from which the pod was evicted."""
    target: str
    """The node of the new pod that replaces it; empty if the new pod is pending."""
    surge: int
    """The number of pods that its Deployment is given for a while before the eviction; 0 if the budget needs none."""


class RoundReport(ReportPart, frozen=True, kw_only=True):
    """One round of a simulation: a plan, and the drain of the nodes in its first wave."""

    number: int
    """The number of the round, from 1."""
    nodes: list[str]
    """The nodes that are drained in this round."""
    new_nodes: list[str]
    """The nodes that node groups gave in this round, with --replace. Trimtab invents their names."""
    nodes_left: int
    """The number of nodes after the round."""
    evictions: int
    """The number of evictions of the round."""
    waiting: int
    """The number of pods that were evicted in this round and whose new pods wait for a node."""
    saved: Saving
    """What the round saves."""
    landings: list[LandingReport]
    """The moves of pods in this round."""


class SimulateReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab simulate`. Published as deploy/schemas/simulate-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab simulate --cluster SNAPSHOT"
    api_version: str = API_VERSION
    kind: str = "SimulateReport"
    scheduler: str
    """The model of the scheduler: `plan`, `spread` or `pack`."""
    nodes_before: int
    """The number of nodes at the beginning."""
    nodes_after: int
    """The number of nodes at the end."""
    nodes_bound: int
    """A lower bound on the number of nodes that any drains leave, computed from the sum of requests. Replacements may
    leave fewer."""
    evictions: int
    """The number of evictions of all rounds."""
    moved_twice: int
    """The number of pods that were evicted more than once."""
    waiting: int
    """The number of pods that wait for a node at the end."""
    saves: Saving
    """What all rounds save."""
    cost_before: Saving
    """The cost of all nodes at the beginning."""
    cost_after: Saving
    """The cost of the nodes at the end."""
    bound: BoundReport
    """What any plan could save at most."""
    rounds: list[RoundReport]
    """The rounds, in their order."""
    stays: list[StayReport]
    """The nodes at the end, each with the reason why it stays."""
    nodes: list[NodeReport]
    """The requests on every node before and after."""
    explained: list[ExplainReport]
    """The chains of reasons for the nodes and pods of --explain."""
    resize: ResizeReport | None = None
    """What is left if pods are made smaller first; null without --resize."""
    notes: list[str]
    """What the simulation assumes, one sentence each."""


_NO_SECOND_MOVE_NOTE = "pods that were moved stay on their new nodes: no pod is moved twice"


_REPLACEMENT_NOTE = (
    "every node group gave the new nodes that replacements need; a pod that a drain moved may move again when its node "
    "is replaced"
)


def _sum_costs(nodes: Iterable[NodeInfo], costs: Mapping[str, int]) -> int:
    """Returns the sum of what these nodes cost. A new node has its price, which is that of its node group."""
    return sum(costs.get(node.name, node.price or 0) for node in nodes)


def build_report(
    inputs: PlanInputs,
    simulation: Simulation,
    explained: Sequence[ExplainReport] = (),
    resize: ResizeReport | None = None,
) -> SimulateReport:
    """Returns the whole report of a simulation."""
    before, after = inputs.inventory.machines, simulation.after.machines
    removed_nodes = {node.name for node in before} - {node.name for node in after}
    costs, unit = compute_node_costs(inputs.inventory, inputs.pools)
    # Moved pod → its node at the end of the simulation.
    has_new_nodes = any(one.new_nodes for one in simulation.rounds)
    moved = {landing.pod for simulated_round in simulation.rounds for landing in simulated_round.landings}
    return SimulateReport(
        scheduler=simulation.scheduler.value,
        nodes_before=simulation.nodes_before,
        nodes_after=simulation.nodes_after,
        nodes_bound=simulation.nodes_before - simulation.first.bound.nodes,
        evictions=simulation.eviction_count,
        moved_twice=simulation.moved_twice,
        waiting=simulation.pending_successors,
        saves=convert_saving(simulation.saved, simulation.unit),
        cost_before=convert_saving(sum(costs.values()), unit),
        cost_after=convert_saving(_sum_costs(after, costs), unit),
        bound=report_bound(simulation.first.bound, simulation.unit, simulation.nodes_before),
        rounds=_report_rounds(simulation),
        stays=report_stays(simulation.last, pool_names_by_node(inputs), simulation.after.pods),
        explained=list(explained),
        resize=resize,
        nodes=report_nodes(
            inputs.inventory,
            inputs.pools,
            removed_nodes,
            {pod.key: pod.node for pod in simulation.after.pods if pod.key in moved},
            inputs.readmitted_requests,
        ),
        notes=[
            *inputs.notes,
            *simulation.first.notes,
            _REPLACEMENT_NOTE if has_new_nodes else _NO_SECOND_MOVE_NOTE,
            *note_missing_prices(inputs.inventory, inputs.pools),
        ],
    )


def _report_rounds(simulation: Simulation) -> list[RoundReport]:
    remaining, reports = simulation.nodes_before, []
    for number, simulated_round in enumerate(simulation.rounds, start=1):
        remaining += len(simulated_round.new_nodes) - len(simulated_round.nodes)
        reports.append(_report_round(number, simulated_round, remaining, simulation.unit))
    return reports


def _report_round(number: int, simulated_round: SimulationRound, remaining: int, unit: str) -> RoundReport:
    waiting = Counter(bool(landing.target) for landing in simulated_round.landings)[False]
    return RoundReport(
        number=number,
        nodes=list(simulated_round.nodes),
        new_nodes=list(simulated_round.new_nodes),
        nodes_left=remaining,
        evictions=len(simulated_round.landings),
        waiting=waiting,
        saved=convert_saving(simulated_round.saved, unit),
        landings=[
            LandingReport(pod=move.pod, source=move.source, target=move.target, surge=move.surge)
            for move in simulated_round.landings
        ],
    )


def explain_subject(inputs: PlanInputs, simulation: Simulation, kind: str, name: str) -> ExplainReport:
    """Returns the chain of reasons for a node or a pod. `check_subjects` has verified that it is in the snapshot."""
    sentences = _explain_node(inputs, simulation, name) if kind == "node" else _explain_pod(inputs, simulation, name)
    return ExplainReport(kind=kind, name=name, chain=list(sentences))


def _explain_node(inputs: PlanInputs, simulation: Simulation, name: str) -> Iterator[str]:
    """Yields sentences about the round that drains the node and the targets of its pods.

    If the node stays, they are about the pods that move to the node, and why it stays."""
    for number, simulated_round in enumerate(simulation.rounds, 1):
        arrivals = [landing for landing in simulated_round.landings if landing.target == name]
        if arrivals:
            yield f"round {number} of {len(simulation.rounds)}: {format_count(len(arrivals), 'pod')} moved to the node"
        if name in simulated_round.nodes:
            yield f"round {number} of {len(simulation.rounds)}: the node is drained"
            yield from (_describe_landing(landing) for landing in simulated_round.landings if landing.source == name)
            return
    yield from explain.explain_node(
        simulation.last, build_cluster_model(simulation.after, inputs.readmitted_requests), name
    )


def _explain_pod(inputs: PlanInputs, simulation: Simulation, key: str) -> Iterator[str]:
    """Yields a sentence for every round in which the pod moves, then the reason why it stays at the end."""
    is_moved = False
    for number, simulated_round in enumerate(simulation.rounds, 1):
        for landing in simulated_round.landings:
            if landing.pod == key:
                is_moved = True
                budget = f"PodDisruptionBudget {landing.budget} allows it" if landing.budget else "no budget applies"
                turn = f", turn {landing.turn + 1}" if landing.turn else ""
                yield (
                    f"round {number} of {len(simulation.rounds)}{turn}: node {landing.source} is drained, and {budget}"
                )
                yield _describe_landing(landing)
    if is_moved:
        yield "the pod was moved and stays on its new node"
        return
    is_running = any(pod.key == key for pod in simulation.after.pods if pod.node and not pod.is_finished)
    yield from (
        explain.explain_pod(simulation.last, build_cluster_model(simulation.after, inputs.readmitted_requests), key)
        if is_running
        else (
            "the pod uses no node at the end: the pod is finished or pending, or it was removed with its node (a "
            "DaemonSet's pod)",
        )
    )


def _describe_landing(landing: SimulatedMove) -> str:
    where = f"moves to node {landing.target}" if landing.target else "fits on no node and is pending"
    return f"pod {landing.pod} {where}"
