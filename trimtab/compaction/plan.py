"""All of it: which nodes go, in which waves, where every pod goes, and why every other node stays.

Which nodes should go right now? The first wave alone, for whoever will plan again before the second.

A pool empties a few nodes at a time, so most of a plan is never carried out. Here only the candidates that promise
most are looked at closely, the others are places for pods; so an answer for thousands of nodes takes a fraction of a
plan's time. It is as safe as a plan's first wave, and can be a little worse: one pass, no improvement.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import with_options
from trimtab.cluster.garbage_collection import uncollected
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.reason import Reason
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import DrainStep, LeftNode, Move, Plan, Wave
from trimtab.compaction.search.drain_search import DRAINED, Search
from trimtab.compaction.search.node_order import by_evictions
from trimtab.compaction.search.pool_limits import PoolLimits, by_itself
from trimtab.compaction.search.problem import CompactionProblem, prepare
from trimtab.compaction.search.strategy import best_only, searched
from trimtab.compaction.search.upper_bound import bounded
from trimtab.compaction.search.waves import arrange, led, replay, take_back, turns
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, gladly

EFFORT = 600_000_000_000
"""Places looked for after the first pass, divided by the cube of the number of nodes: large clusters pack well by
themselves, and each look costs more there."""
MOST_EFFORT = 20_000
EXACT = 400_000
"""Pod-and-node checks for nodes that need the order-bound way."""


@uncollected()
def plan(
    world: ClusterModel,
    pools: Sequence[Pool],
    now: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    effort: int | None = None,
) -> Plan:
    """The plan for these pools, now. Equal input gives an equal plan."""
    made = prepare(world, pools, now)
    if effort is None:
        effort = min(MOST_EFFORT, EFFORT // max(1, len(world.nodes) ** 3))
    search = searched(made, effort)
    return Planner(made, search).plan()


@dataclass(slots=True, eq=False)
class Planner:
    """Turns what the search found into waves that hold, move by move."""

    made: CompactionProblem
    search: Search
    waves: list[list[int]] = field(default_factory=list)
    dest: dict[int, int] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    left: dict[str, LeftNode] = field(default_factory=dict)
    overdue: set[str] = field(default_factory=set)
    allowed: list[int] = field(init=False)
    _turns_of: dict[int, tuple[Sequence[int], Sequence[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.allowed = [budget.allowed for budget in self.world.inventory.budgets]

    @property
    def world(self) -> ClusterModel:
        return self.made.world

    def plan(self) -> Plan:
        made, search, room = self.made, self.search, self._room()
        for wave in self._arranged():
            kept = [node for node in wave if self._replayed(room, node)]
            if kept:
                self.waves.append(kept)
        self._leftovers(room)
        waves = tuple(Wave(steps=tuple(map(self._step, wave))) for wave in self.waves)
        return Plan(
            waves=waves, refusals=self._refusals(), unit=made.unit, bound=bounded(made, search), notes=self._notes(),
            pods={self.world.pods[p].key: reason for p, reason in sorted(made.pods.items())}, pools=made.pools,
            left=self.left, overdue=tuple(sorted(self.overdue)),
        )  # fmt: skip

    def first(self) -> Wave:
        """Only the first wave; empty when nothing can go."""
        room = self._room()
        for wave in self._arranged():
            kept = [node for node in wave if self._replayed(room, node)]
            if kept:
                return Wave(steps=tuple(map(self._step, kept)))
        return Wave(steps=())

    def _arranged(self) -> list[list[int]]:
        """The nodes that go, by waves, as budgets allow."""
        made, search = self.made, self.search
        order = by_evictions(search.drained, made.loads, made.saves)
        order = [node for node in order if self._worth(node) and not self._left(node)]
        self.dest = dict(search.dest)
        budget = made.budget_of.get
        needs = {node: Counter([b for p in made.loads[node] if (b := budget(p)) is not None]) for node in order}
        value = {node: (len(made.loads[node]), made.saves[node]) for node in order}
        return arrange(led(order, needs, self.allowed, value), needs, self.allowed)

    def _room(self) -> FreeCapacity:
        room = FreeCapacity(self.world)
        room.keep_room_to_grow()
        room.closed[:] = bytes(
            1 if self.world.closed[n] or (self.made.room.closed[n] and self.search.state[n] != DRAINED) else 0
            for n in range(len(self.world.nodes))
        )
        for kind, node in self.made.reserved:
            room.take(kind, node)
        return room

    def _turns(self, node: int) -> tuple[Sequence[int], Sequence[int]]:
        """The pods of the node in order of their turns, and the turn of each."""
        if node not in self._turns_of:
            self._turns_of[node] = turns(self.made.loads[node], self.made.budget_of, self.allowed)
        return self._turns_of[node]

    def _replayed(self, room: FreeCapacity, node: int) -> bool:
        if replay(room, node, self._turns(node)[0], self.dest):
            return True
        self.failed.append(node)
        return False

    def _worth(self, node: int) -> bool:
        """Does it save enough for the pods that move?"""
        pool, limits = self.made.pool_of[node], self.made.limits[node]
        if not pool.least_gain or limits is None:
            return True
        mean = sum(self.made.saves[n] for n in limits.nodes) // len(limits.nodes)
        if self.made.saves[node] * 1000 >= pool.least_gain * mean * len(self.made.loads[node]):
            return True
        self.made.refusals[node] = r.NO_GAIN(
            f"node {self.world.nodes[node].name} would move {len(self.made.loads[node])} pods"
        )
        return False

    def _left(self, node: int) -> bool:
        """Will the autoscaler take it by itself? Its place in the plan is kept, but nothing is evicted by us.

        It removes a node under its threshold whose pods fit elsewhere; what it must not evict we don't either.
        """
        if self.made.pool_of[node].autoscaler is Precedence.LEAD:
            return False
        autoscaler = self.made.now.autoscaler
        options = self.made.pool_of[node].group_options
        threshold = None if autoscaler is None else by_itself(self.world, node, with_options(autoscaler, options))
        if threshold is None:
            return False
        name = self.world.nodes[node].name
        if name in self.made.now.overdue:
            self.overdue.add(name)
            return False
        self.left[name] = LeftNode(saves=self.made.saves[node], evictions=len(self.made.loads[node]))
        self.made.refusals[node] = r.AUTOSCALERS(
            f"node {name} is under the autoscaler's own threshold of {threshold} %: it will go by itself"
        )
        return True

    # ── what needs the exact, order-bound way ────────────────────────────
    def _leftovers(self, room: FreeCapacity) -> None:
        """Nodes whose pods could not be planned free of order, or that were opened for pods that went elsewhere in the
        end: one at a time after all others, each its own wave."""
        made = self.made
        gone = {node for wave in self.waves for node in wave}
        kept = set(self.dest.values())
        left = [n for n in self.search.order if n not in gone and n not in kept]
        bound = [n for n in left if n in self.failed or n not in self.search.refused or self._ordered(n)]
        checks, targets = EXACT, [n for n in range(len(self.world.nodes)) if not room.closed[n]]
        for node in by_evictions(bound, made.loads, made.saves):
            checks -= len(made.loads[node]) * len(targets)
            limits = made.limits[node]
            if checks < 0:
                break
            if limits is None or not self._worth(node) or self._left(node):
                continue
            refusal = limits.refuses(node) if node not in self.failed else None
            if refusal is None:
                self._drained_exactly(room, node, targets, kept)

    def _ordered(self, node: int) -> bool:
        """Was the search too strict with it? Spread is checked there as if every other domain could be empty."""
        if any(self.made.errands[pod] is None for pod in self.made.loads[node]):
            return True
        why = self.search.refused.get(node)
        errand = self.made.errands[why] if isinstance(why, int) else None
        return errand is not None and bool(errand.caps)

    def _drained_exactly(self, room: FreeCapacity, node: int, targets: Sequence[int], kept: set[int]) -> bool:
        """Places for all pods of the node, one after the other; a pool that would lack room is then left out."""
        if node in kept:
            return False
        gone = {n for wave in self.waves for n in wave}
        pods = self._turns(node)[0]
        open_nodes = [n for n in targets if n not in gone]
        while True:
            found = gladly(room, node, pods, open_nodes)
            if not isinstance(found, DrainPlacement):
                self.made.refusals.setdefault(node, found.reason)
                return False
            dest = dict(found.of)
            if not replay(room, node, pods, dest):
                return False
            short = self._short_pool(node, dest)
            if short is None:
                break
            take_back(room, node, pods, dest)
            self.made.refusals[node] = short[1]
            others = [n for n in open_nodes if self.made.limits[n] is not short[0]]
            if len(others) == len(open_nodes):
                return False
            open_nodes = others
        self.made.refusals.pop(node, None)
        self.dest.update(dest)
        kept.update(dest.values())
        self.waves.append([node])
        return True

    def _short_pool(self, node: int, dest: Mapping[int, int]) -> tuple[PoolLimits, Reason] | None:
        """The first pool that would lack the room it keeps, and how; the moves are counted where there is none."""
        own, kinds = self.made.limits[node], self.world.next_of
        counts = own is not None and node not in self.failed
        if own is not None and counts:
            own.go(node)
        arrivals = [(pool, pod, place) for pod, place in dest.items() if (pool := self.made.limits[place]) is not None]
        for pool, pod, place in arrivals:
            pool.arrive(kinds[pod], place)
        touched = {id(pool): pool for pool in (own, *(pool for pool, _, _ in arrivals)) if pool is not None}
        short = next(((pool, reason) for pool in touched.values() if (reason := pool.short()) is not None), None)
        if short is None:
            return None
        for pool, pod, place in arrivals:
            pool.arrive(kinds[pod], place, -1)
        if own is not None and counts:
            own.back(node)
        return short

    # ── telling it ───────────────────────────────────────────────────────
    def _step(self, node: int) -> DrainStep:
        made, nodes, dest = self.made, self.world.nodes, self.dest
        name = nodes[node].name
        turns_of = zip(*self._turns(node), strict=True)
        moves = tuple([self._move(name, pod, turn, nodes[dest[pod]].name) for pod, turn in turns_of])
        reason = r.GOES(
            f"all {len(moves)} pods of node {name} have a place elsewhere" if moves else f"node {name} is empty"
        )
        return DrainStep(node=name, pool=made.pool_of[node].name, saves=made.saves[node], moves=moves, reason=reason)

    def _move(self, source: str, number: int, turn: int, target: str) -> Move:
        budget, pod = self.made.budget_of.get(number), self.made.world.pods[number]
        return Move(
            pod=f"{pod.namespace}/{pod.name}", uid=pod.uid, source=source, target=target, turn=turn,
            budget=None if budget is None else self.world.inventory.budgets[budget].key,
        )  # fmt: skip

    def _refusals(self) -> dict[str, Reason]:
        gone = {node for wave in self.waves for node in wave}
        receivers = Counter([self.dest[pod] for node in gone for pod in self.made.loads[node]])
        return {
            node.name: self._refusal(number, receivers)
            for number, node in enumerate(self.world.nodes)
            if number not in gone
        }

    def _refusal(self, number: int, receivers: Counter[int]) -> Reason:
        found = self.made.refusals.get(number)
        if found is not None:
            return found
        name = self.world.nodes[number].name
        why = self.search.refused.get(number)
        if isinstance(why, Reason):
            return why
        if receivers[number]:
            own = (
                f"its own pod {self.world.pods[why].key} finds no place" if isinstance(why, int) else "no rule keeps it"
            )
            return r.WORTH_KEEPING(f"node {name} takes {receivers[number]} pods of nodes that go; {own}")
        if not isinstance(why, int):
            return r.NOT_TRIED(f"node {name} was not tried: the plan's effort went into other nodes")
        pod = self.world.pods[why].key
        return r.NO_PLACE(f"not all pods of node {name} find a place elsewhere: {pod} does not")

    def _notes(self) -> tuple[str, ...]:
        notes = [*self.world.inventory.notes, *self.made.ignored]
        if self.made.now.observations is None:
            notes.append("no observations were given: pools are taken for settled")
        if self.made.now.at is None:
            notes.append("no time was given: rules that need a clock were not applied")
        if self.made.now.autoscaler is None:
            notes.append("nothing is known of the cluster autoscaler: it is taken for healthy and quiet")
        return tuple(notes)


CLOSE = 400
"""Candidates looked at closely at first; four times as many when none of them can go."""


@uncollected()
def first_wave(
    world: ClusterModel,
    pools: Sequence[Pool],
    now: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    close: int = CLOSE,
) -> Wave:
    """Nodes to be emptied now, best first; empty when no node can go. Equal input gives an equal wave."""
    while True:
        made = prepare(world, pools, now, close)
        found = Planner(made, best_only(made)).first()
        if found.steps or not made.later:
            return found
        close *= 4
