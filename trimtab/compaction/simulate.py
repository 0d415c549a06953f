"""Simulates plans round by round on a snapshot until no node can be drained any more.

The simulation is a pure function. A round plans, drains the nodes of the first wave, and lets a model of the scheduler
place the successors: `plan` uses the targets of the plan, `spread` the emptiest node that fits (LeastAllocated of the
default scheduler), and `pack` the fullest (MostAllocated). A pod with another scheduler is placed as that scheduler
does. With `marked`, targets that are reserved for later waves are used only when no other node fits, and nodes that
later waves drain only when no such target fits either, as with the compactor's soft taints (PreferNoSchedule); without
it the scheduler knows nothing of the plan. Then the budgets are full again, the drained nodes are removed, and the next
round begins. A pod that was moved once is not moved again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pool import Pool
from trimtab.cluster.schedulers import DEFAULT_SCHEDULER, SchedulerPlacement
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.cluster_after import cluster_after_drains
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.reasons import BLOCKED, WORTH_KEEPING
from trimtab.compaction.reserved_targets import reserved_targets
from trimtab.scheduling.cluster_model import Again, ClusterModel, FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass

MAX_ROUNDS = 500


class Scheduler(StrEnum):
    """The model of the default scheduler: on which node it places successors."""

    PLAN = "plan"
    SPREAD = "spread"
    PACK = "pack"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMove:
    """A move, with the node on which the successor runs; `target` is empty if the successor is pending."""

    pod: str
    source: str
    target: str
    turn: int
    budget: str | None
    surge: int = 0
    """The number of pods that the pod's Deployment is given for a while before the eviction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRound:
    """One round of a simulation: an executed wave, or replacements."""

    nodes: tuple[str, ...]
    landings: tuple[SimulatedMove, ...]
    saved: int
    new_nodes: tuple[str, ...] = ()
    """The nodes that node groups gave in this round, in place of `nodes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """All rounds of a simulation, and the cluster after them."""

    scheduler: Scheduler
    rounds: tuple[SimulationRound, ...]
    nodes_before: int
    nodes_after: int
    saved: int
    unit: str
    first: Plan
    """The plan of the first round, with its upper bound and its reasons."""
    last: Plan
    """The plan of the last round, with the reasons of the nodes that stay. The reason "moved before" is given only for
    a node without another reason."""
    after: Inventory

    @property
    def eviction_count(self) -> int:
        """The number of evictions in all rounds."""
        return sum(len(one.landings) for one in self.rounds)

    @property
    def moved_twice(self) -> int:
        """The number of pods that were evicted more than once."""
        once: set[str] = set()
        twice: set[str] = set()
        for landing in (landing for one in self.rounds for landing in one.landings):
            (twice if landing.pod in once else once).add(landing.pod)
        return len(twice)

    @property
    def pending_successors(self) -> int:
        """The number of successors that fit on no node."""
        return sum(not landing.target for one in self.rounds for landing in one.landings)


def simulate_rounds(
    inventory: Inventory,
    pools: Sequence[Pool],
    scheduler: Scheduler = Scheduler.PLAN,
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    effort: int | None = None,
    *,
    marked: bool = False,
    again: Again | None = None,
) -> Simulation:
    """Returns the rounds until a plan is empty.

    `again` returns what a pod would request if it were admitted again; successors then have these requests.
    """
    rounds: list[SimulationRound] = []
    before, moved = inventory, set(context.moved_pods)
    first: Plan | None = None
    while True:
        model = build_cluster_model(inventory, again)
        current = make_plan(model, pools, replace(context, moved_pods=frozenset(moved)), effort)
        first = first or current
        if not current.waves or len(rounds) >= MAX_ROUNDS:
            break
        # The model "plan" follows the plan exactly, so all its waves hold; any other scheduler changes the next wave.
        for number in range(len(current.waves) if scheduler is Scheduler.PLAN else 1):
            one = _execute_wave(
                build_cluster_model(inventory, again) if number else model, current, number, scheduler, marked=marked
            )
            rounds.append(one)
            target_of = {landing.pod: landing.target for landing in one.landings}
            inventory = cluster_after_drains(inventory, frozenset(one.nodes), target_of, again)
            moved.update(landing.pod for landing in one.landings)
    return Simulation(
        scheduler=scheduler,
        rounds=tuple(rounds),
        nodes_before=len(before.machines),
        nodes_after=len(inventory.machines),
        saved=sum(one.saved for one in rounds),
        unit=first.unit,
        first=first,
        after=inventory,
        last=_with_lasting_reasons(current, model, pools, context) if moved else current,
    )


def _with_lasting_reasons(
    last_plan: Plan, model: ClusterModel, pools: Sequence[Pool], context: PlanningContext
) -> Plan:
    """Returns the plan in which each node that stays because its pods were moved before has the reason that would keep
    it otherwise."""
    refusals = make_plan(model, pools, context, effort=0).refusals
    lasting = {
        node: refusals[node]
        for node, reason in last_plan.refusals.items()
        if reason.code is BLOCKED and node in refusals and refusals[node].code is not WORTH_KEEPING
    }
    return replace(last_plan, refusals={**last_plan.refusals, **lasting})


def _execute_wave(
    model: ClusterModel, current: Plan, number: int, scheduler: Scheduler, *, marked: bool
) -> SimulationRound:
    """Executes one wave in the model: cordons its nodes together, then evicts pod by pod, and returns where the
    successors run.

    With `marked`, nodes that later waves drain receive pods only if no other node fits."""
    wave, capacity = current.waves[number], FreeCapacity(model)
    taint_counts = _taint_counts(replace(current, waves=current.waves[number:]), model) if marked else {}
    pods = {pod.key: n for n, pod in enumerate(model.pods)}
    # All nodes of the wave are cordoned first, or successors of the first node would be placed on the second.
    for step in wave.steps:
        capacity.cordon_node(model.node_numbers[step.node])
    landings = []
    # The moves turn by turn, those of the largest pods first, as the compactor evicts. `pods` is pod → number.
    classes = model.successor_class_of
    for move in sorted(
        (move for step in wave.steps for move in step.moves),
        key=lambda move: (move.turn, classes[pods[move.pod]].sort_key),
    ):
        pod = pods[move.pod]
        capacity.uncount_pod(model.class_of[pod].member_groups, model.node_of[pod])
        pod_class = model.successor_class_of[pod]
        if scheduler is Scheduler.PLAN:
            target = model.node_numbers[move.target]
        else:
            target = _choose_node(capacity, pod_class, taint_counts, _placement_of(model, pod_class, scheduler))
        if target >= 0:
            capacity.add_pod(pod_class, target)
        name = model.nodes[target].name if target >= 0 else ""
        landings.append(
            SimulatedMove(
                pod=move.pod, source=move.source, target=name, turn=move.turn, budget=move.budget, surge=move.surge
            )
        )
    return SimulationRound(
        nodes=tuple(step.node for step in wave.steps), landings=tuple(landings), saved=sum(s.saves for s in wave.steps)
    )


def _taint_counts(current: Plan, model: ClusterModel) -> dict[int, int]:
    """Returns node → the number of its soft taints while the first wave of this plan is executed: two for nodes that
    later waves drain, and one for the targets that are reserved for them."""
    later = [step.node for wave in current.waves[1:] for step in wave.steps]
    counts = dict.fromkeys(reserved_targets(current, model), 1) | dict.fromkeys(later, 2)
    return {model.node_numbers[name]: count for name, count in counts.items()}


def _placement_of(model: ClusterModel, pod_class: PodClass, scheduler: Scheduler) -> SchedulerPlacement:
    """Returns how the pod's scheduler places it; `scheduler` is the model of the default scheduler."""
    if pod_class.ask.scheduler == DEFAULT_SCHEDULER:
        return SchedulerPlacement(scheduler.value)
    return model.inventory.schedulers[pod_class.ask.scheduler]


def _choose_node(
    capacity: FreeCapacity, pod_class: PodClass, taint_counts: Mapping[int, int], placement: SchedulerPlacement
) -> int:
    sign = -1 if placement is SchedulerPlacement.SPREAD else 1
    best, score = -1, (3, 0)
    for node in range(len(capacity.world.nodes)):
        rank = (taint_counts.get(node, 0), sign * _free_share(capacity, pod_class, node))
        if rank < score and fits_on_node(capacity, pod_class, node):
            best, score = node, rank
    return best


def _free_share(capacity: FreeCapacity, pod_class: PodClass, node: int) -> int:
    """Returns the share in thousandths that is free when the pod is on the node, cpu and memory weighed equally.

    As NodeResourcesFit scores: it adds the pod's own requests (noderesources `calculateResourceAllocatableRequest`).
    """
    model = capacity.world
    allocatable = [max(1, model.allocatable_amount(node, resource)) for resource in model.main_resources]
    major, minor = capacity.major[node] - pod_class.major, capacity.minor[node] - pod_class.minor
    return major * 1000 // allocatable[0] + minor * 1000 // allocatable[1]
