"""Laws of every plan, over generated clusters with every kind of constraint.

The walk through all intermediate states is `tests/bench/verify.py`: it shares no code with the planner.
"""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bench import verify
from tests.bench.node_drains import DrainSimulation
from tests.cluster_of import ALL, HOST, NOW, SAFE, ZONE, Item, apart, budget, cluster, node, pod, spread
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pool import Goal, Headroom, Pool, Spare
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import first_wave, make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.reserved_targets import reserved_targets
from trimtab.compaction.search.drain_search import Search
from trimtab.compaction.search.problem import prepare_problem
from trimtab.compaction.simulate import Scheduler, simulate_rounds
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.drain_simulation import DrainPlacement
from trimtab.scheduling.filters import fits_on_node, rejection_reason
from trimtab.scheduling.placement import BestFitIndex

KINDS = (
    "plain",
    "plain",
    "plain",
    "apart",
    "zone-spread",
    "host-spread",
    "port",
    "team",
    "picky",
    "loose",
    "likes",
    "shy",
    "even",
)
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
        "apart": apart(app),
        "zone-spread": spread(app, ZONE),
        "host-spread": spread(app),
        "team": {"tolerations": [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]},
        "picky": {"nodeSelector": {"disk": "fast"}},
    }.get(kind, wishing(kind, app))
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
# `clusters()` are small: five times as many of them as of others. Twice as many where plans are carried out as well.
EASY = settings(max_examples=5 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def steps_of(plan: Plan) -> list[Any]:
    return [
        [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
        for wave in plan.waves
    ]


def printed(plan: Plan) -> bytes:
    return msgspec.json.encode(
        (steps_of(plan), plan.total_savings, {n: str(r) for n, r in plan.refusals.items()}, plan.bound, plan.notes)
    )


@EASY
@given(clusters(), POOLS)
def test_no_plan_breaks_a_budget_overfills_a_node_or_moves_a_pod_that_must_stay(items: list[Item], pool: Pool) -> None:
    plan = make_plan(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW))
    moved, gone = verify.verify(items, steps_of(plan))
    assert moved == len(plan.all_moves)
    assert gone == {step.node for step in plan.all_steps}


def free_share(inventory: Inventory, left_out: set[str], targets: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Pool → (free share of cpu, of memory) on its nodes that take pods and are not left out, by plain sums."""
    have: dict[tuple[str, str], int] = Counter()
    free: dict[tuple[str, str], int] = Counter()
    stays = [n for n in inventory.nodes if n.is_ready and not n.is_cordoned and n.name not in left_out]
    pool_of = {place.name: place.labels["trimtab.dev/pool"] for place in stays}
    for place in stays:
        for resource in ("cpu", "memory"):
            have[pool_of[place.name], resource] += place.allocatable.get(resource, 0)
            free[pool_of[place.name], resource] += place.allocatable.get(resource, 0)
    for moving in inventory.pods:
        target = targets.get(moving.key, moving.node)
        for resource in ("cpu", "memory") if target in pool_of else ():
            free[pool_of[target], resource] -= moving.requirements.requests.get(resource, 0)
    return {name: tuple(free[name, r] / max(1, have[name, r]) for r in ("cpu", "memory")) for name in pool_of.values()}


@EASY
@given(clusters(), st.integers(5, 40))
def test_no_plan_takes_the_room_that_another_pool_keeps(items: list[Item], percent: int) -> None:
    for number, item in enumerate([item for item in items if item["kind"] == "Node"]):
        item["metadata"]["labels"]["trimtab.dev/pool"] = f"p{number % 3}"
    inventory = cluster(*items)
    pools = [replace(ALL, everything=False, name=f"p{i}", headroom=Headroom(percent=percent)) for i in range(3)]
    plan = make_plan(build_cluster_model(inventory), pools, PlanningContext(now=NOW))
    gone = {step.node for step in plan.all_steps}
    before = free_share(inventory, set(), {})
    after = free_share(inventory, gone, {move.pod: move.target for move in plan.all_moves})
    for name, shares in after.items():
        for share, was in zip(shares, before[name], strict=True):
            # A pool that has less already gets no more pods; what it lacks is not the plan's doing.
            assert share >= min(percent / 100, was) - 0.01


@EASY
@given(clusters(), POOLS, st.integers(1, 6))
def test_a_first_wave_alone_keeps_the_same_laws(items: list[Item], pool: Pool, close: int) -> None:
    wave = first_wave(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW), close)
    moved, gone = verify.verify(
        items, [[(s.node, [(m.pod, m.source, m.target, m.turn) for m in s.moves]) for s in wave.steps]]
    )
    assert (moved, gone) == (wave.eviction_count, {step.node for step in wave.steps})


@EASY
@given(clusters(), POOLS, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_its_input(items: list[Item], pool: Pool, chance: random.Random) -> None:
    shuffled = chance.sample(items, len(items))
    first, second = (
        make_plan(build_cluster_model(cluster(*value)), [pool], PlanningContext(now=NOW)) for value in (items, shuffled)
    )
    assert printed(first) == printed(second)


@EASY
@given(clusters(), POOLS)
def test_every_node_goes_or_has_a_reason_and_never_both(items: list[Item], pool: Pool) -> None:
    plan = make_plan(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW))
    going = {step.node for step in plan.all_steps}
    assert not going & set(plan.refusals)
    assert going | set(plan.refusals) == {item["metadata"]["name"] for item in items if item["kind"] == "Node"}


@EASY
@given(clusters(), st.sampled_from([ALL, replace(ALL, goal=Goal.NODES)]))
def test_no_plan_saves_more_than_its_bound(items: list[Item], pool: Pool) -> None:
    plan = make_plan(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW))
    assert plan.total_savings <= plan.bound.saves
    assert len(plan.all_steps) <= plan.bound.nodes


@EASY
@given(clusters())
def test_the_quick_answer_and_the_answer_in_words_agree(items: list[Item]) -> None:
    world = build_cluster_model(cluster(*items))
    room = FreeCapacity(world)
    for kind in {id(k): k for k in world.successor_class_of}.values():
        for target in range(len(world.nodes)):
            assert fits_on_node(room, kind, target) == (rejection_reason(room, kind, target) is None)


@EASY
@given(clusters())
def test_a_node_that_can_go_has_places_for_all_its_pods(items: list[Item]) -> None:
    world = build_cluster_model(cluster(*items))
    drains = DrainSimulation(world)
    for number, pods in enumerate(world.pods_on_node):
        assert not drains.can_drain(number, pods) or isinstance(drains.place_pods(number, pods), DrainPlacement)


@EASY
@given(clusters())
def test_a_search_that_is_set_aside_leaves_the_room_as_it_was_and_can_be_taken_up_again(items: list[Item]) -> None:
    world = build_cluster_model(cluster(*items))
    compaction_problem = prepare_problem(world, [replace(ALL, headroom=Headroom(percent=10))], PlanningContext(now=NOW))
    left = [limits.allowance for limits in compaction_problem.limits if limits is not None]
    search = Search(
        compaction_problem.capacity,
        compaction_problem.candidates,
        compaction_problem.pods_to_move,
        compaction_problem.requests,
        BestFitIndex(compaction_problem.placement_requests),
        compaction_problem.limits,
        0,
    )
    before, rest = compaction_problem.capacity.save_state(), [*map(list, left)]
    search.run_first_pass()
    filled, then = compaction_problem.capacity.save_state(), [*map(list, left)]
    after = search.suspend_search(before)
    assert (compaction_problem.capacity.save_state(), left) == (before, rest)
    search.resume_search(after)
    assert (compaction_problem.capacity.save_state(), left) == (filled, then)


@settings(max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.sampled_from(list(Scheduler)))
def test_a_simulation_ends_moves_no_pod_twice_and_leaves_none_waiting_as_planned(
    items: list[Item], scheduler: Scheduler
) -> None:
    simulation = simulate_rounds(cluster(*items), [ALL], scheduler, PlanningContext(now=NOW))
    assert simulation.moved_twice == 0
    assert simulation.nodes_after == simulation.nodes_before - sum(len(result.nodes) for result in simulation.rounds)
    assert scheduler is not Scheduler.PLAN or simulation.pending_successors == 0


@settings(max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.booleans())
def test_only_targets_are_reserved_and_the_first_wave_has_room_on_the_others(
    items: list[Item], is_draining: bool
) -> None:
    world = build_cluster_model(cluster(*items))
    plan = make_plan(world, [ALL], PlanningContext(now=NOW))
    going = {step.node for step in plan.all_steps}
    targets = reserved_targets(plan, world, going if is_draining else ())
    assert targets <= {move.target for move in plan.all_moves} - going
    room = FreeCapacity(world)
    for name in going | targets:
        room.cordon_node(world.node_numbers[name])
    classes = {pod.key: kind for pod, kind in zip(world.pods, world.successor_class_of, strict=True)}
    for move in (move for step in (plan.waves[0].steps if plan.waves else ()) for move in step.moves):
        kind = classes[move.pod]
        assert kind.has_constraints or any(fits_on_node(room, kind, number) for number in range(len(world.nodes)))
