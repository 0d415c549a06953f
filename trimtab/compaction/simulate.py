"""What would be left, if the plan were carried out round by round until nothing more can go?

A pure function on nouns. A round plans, empties the nodes of the first wave, and lets a model of the scheduler put
the successors somewhere: `plan` puts them where the plan said, `spread` on the emptiest node that admits them
(the default scheduler's LeastAllocated), `pack` on the fullest (MostAllocated); a pod that names another scheduler
goes where that one puts it. With
`marked` the nodes that later waves mean to empty are taken only when nothing else is left, as with the soft taint that
the compactor puts on them (PreferNoSchedule); without it the scheduler knows nothing of the plan. Then budgets are full
again, emptied nodes are gone, and the next round begins. What was moved once is left in peace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import larger
from trimtab.cluster.schedulers import DEFAULT_SCHEDULER, SchedulerPlacement
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import plan
from trimtab.compaction.plan_types import Move, Plan, Wave
from trimtab.compaction.reasons import BLOCKED, WORTH_KEEPING
from trimtab.scheduling.cluster_model import Again, ClusterModel, FreeCapacity, build
from trimtab.scheduling.filters import admits
from trimtab.scheduling.pod_class import PodClass

MOST_ROUNDS = 500


class Scheduler(StrEnum):
    PLAN = "plan"
    SPREAD = "spread"
    PACK = "pack"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMove:
    """Where a successor came to run; empty when it found no place and waits."""

    pod: str
    source: str
    target: str
    turn: int
    budget: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRound:
    nodes: tuple[str, ...]
    landings: tuple[SimulatedMove, ...]
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    scheduler: Scheduler
    rounds: tuple[SimulationRound, ...]
    nodes_before: int
    nodes_after: int
    saved: int
    unit: str
    first: Plan
    """The plan of the first round: it carries the bound and the reasons."""
    last: Plan
    """The plan of the last round: why what is left stays, were no pod left in peace for having moved; only where that
    alone keeps a node is it told."""
    after: Inventory

    @property
    def evictions(self) -> int:
        return sum(len(found.landings) for found in self.rounds)

    @property
    def moved_twice(self) -> int:
        """Pods evicted more than once."""
        seen: set[str] = set()
        twice: set[str] = set()
        for landing in (landing for found in self.rounds for landing in found.landings):
            (twice if landing.pod in seen else seen).add(landing.pod)
        return len(twice)

    @property
    def waiting(self) -> int:
        """Successors that found no place."""
        return sum(not landing.target for found in self.rounds for landing in found.landings)


def simulate(
    inventory: Inventory,
    pools: Sequence[Pool],
    scheduler: Scheduler = Scheduler.PLAN,
    now: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    effort: int | None = None,
    *,
    marked: bool = False,
    again: Again | None = None,
) -> Simulation:
    """Rounds until a plan is empty. `again`: what pods would ask for if they were admitted again; successors do."""
    rounds: list[SimulationRound] = []
    before, moved = inventory, set(now.moved)
    first: Plan | None = None
    while True:
        world = build(inventory, again)
        found = plan(world, pools, replace(now, moved=frozenset(moved)), effort)
        first = first or found
        if not found.waves or len(rounds) >= MOST_ROUNDS:
            break
        for number in range(len(found.waves) if scheduler is Scheduler.PLAN else 1):
            made = _carry_out(build(inventory, again) if number else world, found, number, scheduler, marked=marked)
            rounds.append(made)
            inventory = _after(inventory, made, again)
            moved.update(landing.pod for landing in made.landings)
    return Simulation(
        scheduler=scheduler, rounds=tuple(rounds), nodes_before=len(before.nodes), nodes_after=len(inventory.nodes),
        saved=sum(made.saved for made in rounds), unit=first.unit, first=first, after=inventory,
        last=_plainly(found, world, pools, now) if moved else found,
    )  # fmt: skip


def _plainly(found: Plan, world: ClusterModel, pools: Sequence[Pool], now: PlanningContext) -> Plan:
    """What keeps each node, beside that pods on it moved already: nodes that would stay anyway tell why."""
    free = plan(world, pools, now, effort=0).refusals
    told = {
        node: free[node] for node, why in found.refusals.items()
        if why.code is BLOCKED and node in free and free[node].code is not WORTH_KEEPING
    }  # fmt: skip
    return replace(found, refusals={**found.refusals, **told})


def _carry_out(world: ClusterModel, found: Plan, number: int, scheduler: Scheduler, *, marked: bool) -> SimulationRound:
    """One wave: its nodes cordoned together, then pod by pod."""
    wave, room = found.waves[number], FreeCapacity(world)
    after = found.waves[number + 1 :] if marked else ()
    later = {world.index[step.node] for wave in after for step in wave.steps}
    pods = {pod.key: n for n, pod in enumerate(world.pods)}
    for step in wave.steps:
        room.close(world.index[step.node])
    landings = []
    for move in _in_turn(wave):
        pod = pods[move.pod]
        room.uncount(world.kind_of[pod].adds, world.node_of[pod])
        kind = world.next_of[pod]
        if scheduler is Scheduler.PLAN:
            target = world.index[move.target]
        else:
            target = _choose(room, kind, later, _placement(world, kind, scheduler))
        if target >= 0:
            room.take(kind, target)
        name = world.nodes[target].name if target >= 0 else ""
        landings.append(
            SimulatedMove(pod=move.pod, source=move.source, target=name, turn=move.turn, budget=move.budget)
        )
    return SimulationRound(
        nodes=tuple(step.node for step in wave.steps), landings=tuple(landings), saved=sum(s.saves for s in wave.steps)
    )


def _in_turn(wave: Wave) -> Iterable[Move]:
    """Node by node, as the plan replayed it."""
    return (move for step in wave.steps for move in step.moves)


def _placement(world: ClusterModel, kind: PodClass, scheduler: Scheduler) -> SchedulerPlacement:
    """How the pod's own scheduler places it; `scheduler` says how the default scheduler does."""
    if kind.ask.scheduler == DEFAULT_SCHEDULER:
        return SchedulerPlacement(scheduler.value)
    return world.inventory.schedulers[kind.ask.scheduler]


def _choose(room: FreeCapacity, kind: PodClass, later: set[int], placement: SchedulerPlacement) -> int:
    sign = -1 if placement is SchedulerPlacement.SPREAD else 1
    best, score = -1, (2, 0)
    for node in range(len(room.world.nodes)):
        rank = (1 if node in later else 0, sign * _free(room, node))
        if rank < score and admits(room, kind, node):
            best, score = node, rank
    return best


def _free(room: FreeCapacity, node: int) -> int:
    """Thousandths free, cpu and memory weighed equally, as NodeResourcesFit scores."""
    world = room.world
    have = [max(1, world.amount(node, resource)) for resource in world.resources]
    return room.major[node] * 1000 // have[0] + room.minor[node] * 1000 // have[1]


def _after(inventory: Inventory, made: SimulationRound, again: Again | None) -> Inventory:
    """The cluster when all successors run and the autoscaler has taken the empty nodes."""
    gone, landed = set(made.nodes), {landing.pod: landing.target for landing in made.landings}
    pods: list[PodInfo] = []
    asks: dict[object, SchedulingRequirements] = {}
    for pod in inventory.pods:
        if pod.key in landed and pod.node in gone:
            ask = successor(pod, again)
            like = (id(pod.ask), str(ask.requests))
            pods.append(change(pod, node=landed[pod.key], ask=asks.setdefault(like, ask)))
        elif pod.node not in gone:
            pods.append(pod)
    nodes = tuple(node for node in inventory.nodes if node.name not in gone)
    return replace(inventory, nodes=nodes, pods=tuple(pods))


def successor(pod: PodInfo, again: Again | None) -> SchedulingRequirements:
    """What its successor asks for."""
    found = again(pod) if again is not None else None
    if found is None or isinstance(found, Unreadable) or isinstance(pod.ask.requests, Unreadable):
        return pod.ask
    return replace(pod.ask, requests=larger(pod.ask.requests, found))
