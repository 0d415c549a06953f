"""The report of `trimtab simulate`.

Why did this node go or stay, where did this pod go, when the plan was carried out round by round?
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.plan.cost import Saving, compute_node_costs, convert_saving, note_missing_prices
from trimtab.cli.plan.inputs import PlanInputs
from trimtab.cli.plan.report import (
    BoundReport,
    ExplainReport,
    NodeReport,
    StayReport,
    pool_names_by_node,
    report_bound,
    report_nodes,
    report_stays,
)
from trimtab.compaction import explain
from trimtab.compaction.simulate import SimulatedMove, Simulation, SimulationRound
from trimtab.scheduling.cluster_model import build


class LandingReport(ReportPart, frozen=True, kw_only=True):
    pod: str
    """namespace/name."""
    source: str
    target: str
    """Empty where its successor found no place and waits."""


class RoundReport(ReportPart, frozen=True, kw_only=True):
    number: int
    nodes: list[str]
    """Emptied in this round."""
    nodes_left: int
    evictions: int
    waiting: int
    saved: Saving
    landings: list[LandingReport]


class SimulateReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/simulate-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "SimulateReport"
    scheduler: str
    """`plan`, `spread` or `pack`."""
    nodes_before: int
    nodes_after: int
    nodes_bound: int
    """No plan leaves fewer, by volume alone."""
    evictions: int
    moved_twice: int
    waiting: int
    saves: Saving
    cost_before: Saving
    cost_after: Saving
    bound: BoundReport
    rounds: list[RoundReport]
    stays: list[StayReport]
    """What is left at the end, and why nothing more can go."""
    nodes: list[NodeReport]
    explained: list[ExplainReport]
    """What --explain asked for."""
    notes: list[str]


_PEACE = "what was moved once is left in peace, and keeps its new node: nobody is moved twice"


def report(asked: PlanInputs, made: Simulation, explained: Sequence[ExplainReport] = ()) -> SimulateReport:
    before, after = asked.inventory.nodes, made.after.nodes
    gone = {node.name for node in before} - {node.name for node in after}
    costs, unit = compute_node_costs(asked.inventory, asked.pools)
    return SimulateReport(
        scheduler=made.scheduler.value,
        nodes_before=made.nodes_before,
        nodes_after=made.nodes_after,
        nodes_bound=made.nodes_before - made.first.bound.nodes,
        evictions=made.evictions,
        moved_twice=made.moved_twice,
        waiting=made.waiting,
        saves=convert_saving(made.saved, made.unit),
        cost_before=convert_saving(sum(costs.values()), unit),
        cost_after=convert_saving(sum(costs[node.name] for node in after), unit),
        bound=report_bound(made.first.bound, made.unit),
        rounds=_rounds(made),
        stays=report_stays(made.last, pool_names_by_node(asked), made.after.pods),
        explained=list(explained),
        nodes=report_nodes(asked.inventory, asked.pools, gone, _places(made), asked.again),
        notes=[*asked.notes, *made.first.notes, _PEACE, *note_missing_prices(asked.inventory, asked.pools)],
    )


def _places(made: Simulation) -> dict[str, str]:
    """Where moved pods run at the end."""
    moved = {landing.pod for found in made.rounds for landing in found.landings}
    return {pod.key: pod.node for pod in made.after.pods if pod.key in moved}


def _rounds(made: Simulation) -> list[RoundReport]:
    left, reports = made.nodes_before, []
    for number, found in enumerate(made.rounds, start=1):
        left -= len(found.nodes)
        reports.append(_round(number, found, left, made.unit))
    return reports


def _round(number: int, found: SimulationRound, left: int, unit: str) -> RoundReport:
    waiting = Counter(bool(landing.target) for landing in found.landings)[False]
    return RoundReport(
        number=number, nodes=list(found.nodes), nodes_left=left, evictions=len(found.landings), waiting=waiting,
        saved=convert_saving(found.saved, unit),
        landings=[LandingReport(pod=move.pod, source=move.source, target=move.target) for move in found.landings],
    )  # fmt: skip


def chain(asked: PlanInputs, made: Simulation, kind: str, name: str) -> ExplainReport:
    """`kind` is node or pod; what is not in the snapshot was refused before (`plan.explain.check`)."""
    found = _node(asked, made, name) if kind == "node" else _pod(asked, made, name)
    return ExplainReport(kind=kind, name=name, chain=list(found))


def _node(asked: PlanInputs, made: Simulation, name: str) -> Iterator[str]:
    """Its round and where its pods went; else what came to it, and why it stays at the end."""
    for number, each in enumerate(made.rounds, 1):
        came = [landing for landing in each.landings if landing.target == name]
        if came:
            yield f"round {number} of {len(made.rounds)}: {len(came)} pods come to it"
        if name in each.nodes:
            yield f"round {number} of {len(made.rounds)}: it goes"
            yield from (_landed(landing) for landing in each.landings if landing.source == name)
            return
    yield from explain.node(made.last, build(made.after, asked.again), name)


def _pod(asked: PlanInputs, made: Simulation, key: str) -> Iterator[str]:
    """Every round in which it moved; then what keeps it where it is at the end."""
    moved = False
    for number, each in enumerate(made.rounds, 1):
        for landing in each.landings:
            if landing.pod == key:
                moved = True
                budget = f"budget {landing.budget} pays" if landing.budget else "no budget has a say"
                turn = f", turn {landing.turn + 1}" if landing.turn else ""
                yield f"round {number} of {len(made.rounds)}{turn}: node {landing.source} goes, {budget}"
                yield _landed(landing)
    if moved:
        yield "what was moved once is left in peace"
        return
    known = any(pod.key == key for pod in made.after.pods if pod.node and not pod.finished)
    yield from (
        explain.pod(made.last, build(made.after, asked.again), key)
        if known
        else (
            "it holds nothing at the end: it is finished, waits for a node, or went with its node (a DaemonSet's pod)",
        )
    )


def _landed(landing: SimulatedMove) -> str:
    where = f"comes to run on node {landing.target}" if landing.target else "finds no place and waits"
    return f"pod {landing.pod} {where}"
