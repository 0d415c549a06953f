"""Laws of every plan, over generated clusters with every kind of constraint.

The walk through all intermediate states is `tests/bench/verify.py`: it shares no code with the planner.
"""

import random
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bench import verify
from tests.cluster_of import ALL, HOST, NOW, SAFE, ZONE, Item, apart, budget, cluster, node, pod, spread
from trimtab.cluster.pool import Goal, Headroom, Pool, Spare
from trimtab.compaction.candidates import Now
from trimtab.compaction.plan import plan
from trimtab.compaction.search.first import first_wave
from trimtab.compaction.search.prepare import prepare
from trimtab.compaction.search.search import Search
from trimtab.compaction.simulate import Scheduler, simulate
from trimtab.compaction.values import Plan
from trimtab.packing.drain import Drains, Places
from trimtab.packing.fit import admits, why_not
from trimtab.packing.room import Room
from trimtab.packing.shelves import Shelves
from trimtab.packing.world import build

KINDS = ("plain", "plain", "plain", "apart", "zone-spread", "host-spread", "port", "team", "picky", "loose",
         "likes", "shy", "even")  # fmt: skip
PORT = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def wishing(kind: str, app: str) -> Item:
    """Preferences: of nodes, to be apart, to be spread."""
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {
        "likes": {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": fast}]}}},
        "shy": {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term}]}}},
        "even": spread(app, ZONE, whenUnsatisfiable="ScheduleAnyway"),
    }.get(kind, {})


@st.composite
def clusters(draw: st.DrawFn) -> list[Item]:
    """Up to a dozen nodes and workloads, budgets on some, a few pods that may not move."""
    items: list[Item] = []
    names = [f"n{i:02}" for i in range(draw(st.integers(2, 12)))]
    for number, name in enumerate(names):
        labels = {ZONE: f"z{number % draw(st.integers(1, 3))}", **({"disk": "fast"} if number % 3 == 0 else {})}
        taints = [TAINT] if draw(st.integers(0, 5)) == 0 else []
        size = draw(st.sampled_from(["2", "4", "8"]))
        items.append(node(name, size, draw(st.sampled_from(["4Gi", "16Gi"])), 12, labels=labels, taints=taints))
    for app in range(draw(st.integers(0, 10))):
        items += draw(workload(f"w{app}", names))
    return items


@st.composite
def workload(draw: st.DrawFn, app: str, names: list[str]) -> list[Item]:
    kind = draw(st.sampled_from(KINDS))
    spec: Item = {
        "apart": apart(app), "zone-spread": spread(app, ZONE), "host-spread": spread(app),
        "team": {"tolerations": [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]},
        "picky": {"nodeSelector": {"disk": "fast"}},
    }.get(kind, wishing(kind, app))  # fmt: skip
    cpu = draw(st.sampled_from(["100m", "250m", "500m", "1", "1900m"]))
    memory = draw(st.sampled_from(["64Mi", "512Mi", "2Gi"]))
    notes = {SAFE: "false"} if draw(st.integers(0, 9)) == 0 else {}
    more = {"ports": PORT} if kind == "port" else {}
    items = [
        pod(f"{app}-{i}", draw(st.sampled_from(names)), cpu, memory, spec=spec, annotations=notes, **more)
        for i in range(draw(st.integers(1, 5)))
    ]
    if draw(st.booleans()):
        items.append(budget(app, draw(st.integers(0, 2))))
    return items


POOLS = st.sampled_from(
    [
        ALL,
        replace(ALL, goal=Goal.NODES),
        replace(ALL, headroom=Headroom(percent=20, largest_pod=True)),
        replace(ALL, spare=Spare.NODE, min_nodes=2),
        replace(ALL, under={"cpu": 70}),
    ]
)
EASY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def steps_of(found: Plan) -> list[Any]:
    return [
        [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
        for wave in found.waves
    ]


def printed(found: Plan) -> bytes:
    return msgspec.json.encode(
        (steps_of(found), found.saves, {n: str(r) for n, r in found.refusals.items()}, found.bound, found.notes)
    )


@EASY
@given(clusters(), POOLS)
def test_no_plan_breaks_a_budget_overfills_a_node_or_moves_a_pod_that_must_stay(items: list[Item], pool: Pool) -> None:
    found = plan(build(cluster(*items)), [pool], Now(at=NOW))
    moved, gone = verify.verify(items, steps_of(found))
    assert moved == len(found.moves)
    assert gone == {step.node for step in found.steps}


@EASY
@given(clusters(), POOLS, st.integers(1, 6))
def test_a_first_wave_alone_keeps_the_same_laws(items: list[Item], pool: Pool, close: int) -> None:
    wave = first_wave(build(cluster(*items)), [pool], Now(at=NOW), close)
    moved, gone = verify.verify(
        items, [[(s.node, [(m.pod, m.source, m.target, m.turn) for m in s.moves]) for s in wave.steps]]
    )
    assert (moved, gone) == (wave.evictions, {step.node for step in wave.steps})


@EASY
@given(clusters(), POOLS, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_its_input(items: list[Item], pool: Pool, chance: random.Random) -> None:
    shuffled = chance.sample(items, len(items))
    first, second = (plan(build(cluster(*given)), [pool], Now(at=NOW)) for given in (items, shuffled))
    assert printed(first) == printed(second)


@EASY
@given(clusters(), POOLS)
def test_every_node_goes_or_has_a_reason_and_never_both(items: list[Item], pool: Pool) -> None:
    found = plan(build(cluster(*items)), [pool], Now(at=NOW))
    going = {step.node for step in found.steps}
    assert not going & set(found.refusals)
    assert going | set(found.refusals) == {item["metadata"]["name"] for item in items if item["kind"] == "Node"}


@EASY
@given(clusters(), st.sampled_from([ALL, replace(ALL, goal=Goal.NODES)]))
def test_no_plan_saves_more_than_its_bound(items: list[Item], pool: Pool) -> None:
    found = plan(build(cluster(*items)), [pool], Now(at=NOW))
    assert found.saves <= found.bound.saves
    assert len(found.steps) <= found.bound.nodes


@EASY
@given(clusters())
def test_the_quick_answer_and_the_answer_in_words_agree(items: list[Item]) -> None:
    world = build(cluster(*items))
    room = Room(world)
    for kind in {id(k): k for k in world.next_of}.values():
        for target in range(len(world.nodes)):
            assert admits(room, kind, target) == (why_not(room, kind, target) is None)


@EASY
@given(clusters())
def test_a_node_that_can_go_has_places_for_all_its_pods(items: list[Item]) -> None:
    world = build(cluster(*items))
    drains = Drains(world)
    for number, pods in enumerate(world.on):
        assert not drains.can(number, pods) or isinstance(drains.where(number, pods), Places)


@EASY
@given(clusters())
def test_a_search_that_is_taken_back_leaves_the_room_as_it_was(items: list[Item]) -> None:
    world = build(cluster(*items))
    made = prepare(world, [ALL], Now(at=NOW))
    search = Search(made.room, made.candidates, made.loads, made.errands, Shelves(made.ways), made.limits, 0)
    before = Room(world)
    search.fill()
    search.clear()
    assert (made.room.major, made.room.minor, made.room.slots) == (before.major, before.minor, before.slots)
    assert (made.room.rest, made.room.counts, made.room.closed) == (before.rest, before.counts, before.closed)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.sampled_from(list(Scheduler)))
def test_a_simulation_ends_moves_no_pod_twice_and_leaves_none_waiting_as_planned(
    items: list[Item], scheduler: Scheduler
) -> None:
    made = simulate(cluster(*items), [ALL], scheduler, Now(at=NOW))
    assert made.moved_twice == 0
    assert made.nodes_after == made.nodes_before - sum(len(found.nodes) for found in made.rounds)
    assert scheduler is not Scheduler.PLAN or made.waiting == 0
