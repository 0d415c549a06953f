"""Laws of room on purpose, in small clusters with ports, anti-affinity over nodes and zones, priorities and budgets.

The state after a plan is checked here by sums and by comparing all pods of a domain, with nothing of the planner.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from tests.cluster_of import HOST, ZONE, Item, apart, budget, cluster, node, pod
from trimtab.compaction.room.make_room import make_room
from trimtab.compaction.room.room_plan import NoRoom, RoomPlan

APPS = "xyz"
SIZES = (500, 1000, 1500, 2000, 3000)


@dataclass(frozen=True)
class Small:
    """A pod as the checks see it."""

    name: str
    cpu: int
    priority: int
    port: bool
    away: tuple[str, str] | None
    """(app, topology key) of its anti-affinity."""
    stays: bool = False

    @property
    def app(self) -> str:
        return self.name.partition("-")[0]

    def item(self, on: str) -> Item:
        more: dict[str, Any] = {"spec": {"priority": self.priority}}
        if self.away:
            more["spec"] |= apart(*self.away)
        if self.port:
            more["ports"] = [{"hostPort": 80, "containerPort": 80}]
        if self.stays:
            more["annotations"] = {"trimtab.dev/do-not-disrupt": "true"}
        return pod(self.name, on, f"{self.cpu}m", **more)


@dataclass
class World:
    """Nodes with their zones, and where each pod is."""

    zones: dict[str, str]
    places: dict[Small, str]
    wanted: list[Small]
    budgets: dict[str, int] = field(default_factory=dict)

    def faults(self, places: dict[Small, str]) -> list[str]:
        """What is wrong if pods are at these places."""
        faults = []
        for name, zone in self.zones.items():
            here = [one for one, at in places.items() if at == name]
            faults += [f"{name} is over"] if sum(one.cpu for one in here) > 4000 else []
            faults += [f"{name} has a port twice"] if sum(one.port for one in here) > 1 else []
            for one in here:
                for other, at in places.items():
                    if other is one or one.away is None or other.app != one.away[0]:
                        continue
                    if at == name or (one.away[1] == ZONE and self.zones[at] == zone):
                        faults.append(f"{one.name} is with {other.name}")
        return faults


def make_world(seed: int) -> World:
    chance = random.Random(seed)
    zones = {f"n{number}": chance.choice("12") for number in range(chance.randint(2, 4))}
    world = World(zones=zones, places={}, wanted=[])

    def make_pod(number: int, *, is_wanted: bool) -> Small:
        app = chance.choice(APPS)
        away = (chance.choice(APPS), chance.choice((HOST, ZONE))) if chance.random() < 0.3 else None
        return Small(
            name=f"{app}-{number}",
            cpu=chance.choice(SIZES),
            priority=chance.choice((5, 10)) if is_wanted else chance.choice((-100, 0, 0, 5, 10)),
            port=chance.random() < 0.2,
            away=away,
            stays=not is_wanted and chance.random() < 0.2,
        )

    for number in range(chance.randint(4, 16)):
        one, at = make_pod(number, is_wanted=False), chance.choice(list(zones))
        if not world.faults({**world.places, one: at}):
            world.places[one] = at
    world.wanted = [make_pod(100 + number, is_wanted=True) for number in range(chance.choice((1, 1, 2)))]
    world.budgets = {app: chance.choice((0, 1, 5)) for app in APPS if chance.random() < 0.3}
    return world


def solve(world: World) -> RoomPlan | NoRoom:
    nodes = [node(name, "4", labels={ZONE: zone}) for name, zone in world.zones.items()]
    items = [
        *nodes,
        *(one.item(at) for one, at in world.places.items()),
        *(budget(*one) for one in world.budgets.items()),
    ]
    return make_room(cluster(*items), cluster(*(one.item("") for one in world.wanted)).pods)


def needs_no_place(one: Small, wanted: list[Small]) -> bool:
    return one.priority < -10 and all(one.priority < other.priority for other in wanted)


SEEDS = range(400)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_leaves_a_legal_cluster(seed: int) -> None:
    world = make_world(seed)
    plan = solve(world)
    if isinstance(plan, NoRoom):
        return
    by_key = {f"default/{one.name}": one for one in (*world.places, *world.wanted)}
    after = {one: at for one, at in world.places.items() if f"default/{one.name}" not in plan.preempted}
    for move in plan.moves:
        one = by_key[move.pod]
        assert (move.source, one.stays, move.source != move.target) == (world.places[one], False, True)
        assert one.priority <= max(other.priority for other in world.wanted)
        after[one] = move.target
    assert len({move.pod for move in plan.moves}) == len(plan.moves)
    assert all(needs_no_place(by_key[key], world.wanted) for key in plan.preempted)
    after |= {by_key[place.pod]: place.node for place in plan.places}
    assert set(after) >= {*world.wanted}
    assert world.faults(after) == []
    turns = Counter((by_key[move.pod].app, move.turn) for move in plan.moves if move.budget is not None)
    assert all(count <= world.budgets[app] for (app, _), count in turns.items())


@pytest.mark.parametrize("seed", SEEDS)
def test_one_pod_has_room_if_one_eviction_or_none_makes_it(seed: int) -> None:
    world = make_world(seed)
    wanted = world.wanted[:1]
    world.wanted = wanted
    places = {one: at for one, at in world.places.items() if not needs_no_place(one, wanted)}
    movable = [
        one for one in places if not one.stays and one.priority <= wanted[0].priority and world.budgets.get(one.app, 1)
    ]
    least = None
    if any(not world.faults({**places, wanted[0]: at}) for at in world.zones):
        least = 0
    elif any(
        not world.faults({**places, one: target, wanted[0]: at})
        for one, at, target in product(movable, world.zones, world.zones)
        if target != places[one]
    ):
        least = 1
    plan = solve(world)
    if least is not None:
        assert isinstance(plan, RoomPlan)
        assert len(plan.moves) == least
