"""All of it: which nodes go, in which waves, where every pod goes, and why every other node stays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import Now
from trimtab.compaction.search.bounded import bounded
from trimtab.compaction.search.by_itself import by_itself
from trimtab.compaction.search.choose import searched
from trimtab.compaction.search.prepare import Prepared, prepare
from trimtab.compaction.search.replay import replay, take_back
from trimtab.compaction.search.search import DRAINED, Search
from trimtab.compaction.search.waves import arrange, led, turns
from trimtab.compaction.search.weigh import by_evictions
from trimtab.compaction.values import Move, Plan, Step, Wave
from trimtab.packing.drain import Places, gladly
from trimtab.packing.room import Room
from trimtab.packing.world import World

EFFORT = 2_000_000_000
"""Places looked for after the first pass, divided by the square of the number of nodes: large clusters pack well by
themselves, and each look costs more there."""
MOST_EFFORT = 20_000
EXACT = 400_000
"""Pod-and-node checks for nodes that need the order-bound way."""


def plan(world: World, pools: Sequence[Pool], now: Now = Now(), effort: int | None = None) -> Plan:  # noqa: B008
    """The plan for these pools, now. Equal input gives an equal plan."""
    made = prepare(world, pools, now)
    if effort is None:
        effort = min(MOST_EFFORT, EFFORT // max(1, len(world.nodes) ** 2))
    search = searched(made, effort)
    return Planner(made, search).plan()


@dataclass(slots=True, eq=False)
class Planner:
    """Turns what the search found into waves that hold, move by move."""

    made: Prepared
    search: Search
    waves: list[list[int]] = field(default_factory=list)
    dest: dict[int, int] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    allowed: list[int] = field(init=False)
    _turns_of: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.allowed = [budget.allowed for budget in self.world.inventory.budgets]

    @property
    def world(self) -> World:
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
        needs = {
            node: Counter(b for p in made.loads[node] if (b := made.budget_of.get(p)) is not None) for node in order
        }
        value = {node: (len(made.loads[node]), made.saves[node]) for node in order}
        return arrange(led(order, needs, self.allowed, value), needs, self.allowed)

    def _room(self) -> Room:
        room = Room(self.world)
        room.closed[:] = bytes(
            1 if self.world.closed[n] or (self.made.room.closed[n] and self.search.state[n] != DRAINED) else 0
            for n in range(len(self.world.nodes))
        )
        for kind, node in self.made.reserved:
            room.take(kind, node)
        return room

    def _turns(self, node: int) -> list[tuple[int, int]]:
        if node not in self._turns_of:
            self._turns_of[node] = turns(self.made.loads[node], self.made.budget_of, self.allowed)
        return self._turns_of[node]

    def _replayed(self, room: Room, node: int) -> bool:
        if replay(room, node, [pod for pod, _ in self._turns(node)], self.dest):
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
        autoscaler = self.made.now.autoscaler
        threshold = None if autoscaler is None else by_itself(self.world, node, autoscaler)
        if threshold is None:
            return False
        name = self.world.nodes[node].name
        self.made.refusals[node] = r.AUTOSCALERS(
            f"node {name} is under the autoscaler's own threshold of {threshold} %: it will go by itself"
        )
        return True

    # ── what needs the exact, order-bound way ────────────────────────────
    def _leftovers(self, room: Room) -> None:
        """Nodes whose pods could not be planned free of order: one at a time after all others, each its own wave."""
        made = self.made
        gone = {node for wave in self.waves for node in wave}
        kept = set(self.dest.values())
        left = [n for n in self.search.order if n not in gone and n not in kept]
        bound = [n for n in left if n in self.failed or self._ordered(n)]
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

    def _drained_exactly(self, room: Room, node: int, targets: Sequence[int], kept: set[int]) -> bool:
        if node in kept:
            return False
        gone = {n for wave in self.waves for n in wave}
        pods = [pod for pod, _ in self._turns(node)]
        found = gladly(room, node, pods, [n for n in targets if n not in gone])
        if not isinstance(found, Places):
            self.made.refusals[node] = found.reason
            return False
        dest = dict(found.of)
        if not replay(room, node, pods, dest):
            return False
        if not self._within(node, dest):
            take_back(room, node, pods, dest)
            return False
        self.dest.update(dest)
        kept.update(dest.values())
        self.waves.append([node])
        return True

    def _within(self, node: int, dest: Mapping[int, int]) -> bool:
        """Do the pools still have the room they keep? Counted when they have."""
        own, kinds = self.made.limits[node], self.world.next_of
        counts = own is not None and node not in self.failed
        if own is not None and counts:
            own.go(node)
        arrivals = [
            (found, pod, place) for pod, place in dest.items() if (found := self.made.limits[place]) is not None
        ]
        for found, pod, place in arrivals:
            found.arrive(kinds[pod], place)
        touched = {id(limits): limits for limits in (own, *(found for found, _, _ in arrivals)) if limits is not None}
        short = next((short for limits in touched.values() if (short := limits.short()) is not None), None)
        if short is None:
            return True
        self.made.refusals[node] = short
        for found, pod, place in arrivals:
            found.arrive(kinds[pod], place, -1)
        if own is not None and counts:
            own.back(node)
        return False

    # ── telling it ───────────────────────────────────────────────────────
    def _step(self, node: int) -> Step:
        made, world = self.made, self.world
        name = world.nodes[node].name
        moves = tuple([self._move(name, pod, turn) for pod, turn in self._turns(node)])
        reason = r.GOES(
            f"all {len(moves)} pods of node {name} have a place elsewhere" if moves else f"node {name} is empty"
        )
        return Step(node=name, pool=made.pool_of[node].name, saves=made.saves[node], moves=moves, reason=reason)

    def _move(self, source: str, number: int, turn: int) -> Move:
        world, budget = self.world, self.made.budget_of.get(number)
        pod, target = world.pods[number], world.nodes[self.dest[number]]
        return Move(
            pod=pod.key, uid=pod.uid, source=source, target=target.name, turn=turn,
            budget=None if budget is None else world.inventory.budgets[budget].key,
        )  # fmt: skip

    def _refusals(self) -> dict[str, Reason]:
        gone = {node for wave in self.waves for node in wave}
        receivers = Counter(self.dest[pod] for node in gone for pod in self.made.loads[node])
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
            return r.WORTH_KEEPING(f"node {name} takes {receivers[number]} pods of nodes that go")
        pod = self.world.pods[why].key if isinstance(why, int) else "one of its pods"
        return r.NO_PLACE(f"not all pods of node {name} find a place elsewhere: {pod} does not")

    def _notes(self) -> tuple[str, ...]:
        notes = list(self.world.inventory.notes)
        if self.made.now.observations is None:
            notes.append("no observations were given: pools are taken for settled")
        if self.made.now.at is None:
            notes.append("no time was given: rules that need a clock were not applied")
        if self.made.now.autoscaler is None:
            notes.append("nothing is known of the cluster autoscaler: it is taken for healthy and quiet")
        return tuple(notes)
