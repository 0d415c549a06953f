"""The report of `trimtab simulate`."""

from collections import Counter

from trimtab.command.output import API_VERSION
from trimtab.command.plan.asked import Asked
from trimtab.command.plan.fills import nodes
from trimtab.command.plan.report import BoundReport, NodeReport, StayReport
from trimtab.command.plan.saving import Saving, cost, saving, unpriced
from trimtab.command.plan.tell import bound, members_of, stays
from trimtab.command.why import Part
from trimtab.compaction.simulate import Round, Simulation


class LandingReport(Part, frozen=True, kw_only=True):
    pod: str
    """namespace/name."""
    source: str
    target: str
    """Empty where its successor found no place and waits."""


class RoundReport(Part, frozen=True, kw_only=True):
    number: int
    nodes: list[str]
    """Emptied in this round."""
    nodes_left: int
    evictions: int
    waiting: int
    saved: Saving
    landings: list[LandingReport]


class SimulateReport(Part, frozen=True, kw_only=True):
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
    notes: list[str]


_PEACE = "what was moved once is left in peace, and keeps its new node: nobody is moved twice"


def report(asked: Asked, made: Simulation) -> SimulateReport:
    before, after = asked.inventory.nodes, made.after.nodes
    costs, unit = cost(asked.inventory, asked.pools)
    return SimulateReport(
        scheduler=made.scheduler.value, nodes_before=made.nodes_before, nodes_after=made.nodes_after,
        nodes_bound=made.nodes_before - made.first.bound.nodes, evictions=made.evictions,
        moved_twice=made.moved_twice, waiting=made.waiting, saves=saving(made.saved, made.unit),
        cost_before=saving(sum(costs.values()), unit), cost_after=saving(sum(costs[node.name] for node in after), unit),
        bound=bound(made.first.bound, made.unit), rounds=_rounds(made),
        stays=stays(made.last, members_of(asked), made.after.pods),
        nodes=nodes(asked.inventory, {n.name for n in before} - {n.name for n in after}, _places(made), asked.again),
        notes=[*asked.notes, *made.first.notes, _PEACE, *unpriced(asked.inventory, asked.pools)],
    )  # fmt: skip


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


def _round(number: int, found: Round, left: int, unit: str) -> RoundReport:
    waiting = Counter(bool(landing.target) for landing in found.landings)[False]
    return RoundReport(
        number=number, nodes=list(found.nodes), nodes_left=left, evictions=len(found.landings), waiting=waiting,
        saved=saving(found.saved, unit),
        landings=[LandingReport(pod=move.pod, source=move.source, target=move.target) for move in found.landings],
    )  # fmt: skip
