"""The targets that only later waves need are reserved for them."""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from tests.compaction.plans import keeper
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.reserved_targets import reserved_targets
from trimtab.compaction.simulate import Scheduler, simulate_rounds
from trimtab.scheduling.cluster_model import ClusterModel, build_cluster_model


def small_first() -> list[Item]:
    """Node `first` goes with a small pod, then node `later` with a large one. Only `whole` has room for the large one,
    and it is emptier than `narrow`, which has room for the small one."""
    return [
        node("first", "16"),
        node("later", "8"),
        node("whole", "12"),
        node("narrow", "12"),
        pod("web-1", "first", "1"),
        pod("web-2", "later", "4"),
        budget("web", 1),
        keeper("stays-1", "whole", "8"),
        keeper("stays-2", "narrow", "10500m"),
    ]


def plan_of(*items: Item) -> tuple[Plan, ClusterModel]:
    model = build_cluster_model(cluster(*items))
    return make_plan(model, [ALL], PlanningContext(now=NOW)), model


def test_the_target_of_a_later_wave_is_reserved_while_the_first_wave_has_room_elsewhere() -> None:
    plan, model = plan_of(*small_first())
    assert [[step.node for step in wave.steps] for wave in plan.waves] == [["first"], ["later"]]
    assert reserved_targets(plan, model) == {"whole"}


def test_a_scheduler_that_spreads_frees_the_later_node_too() -> None:
    simulation = simulate_rounds(
        cluster(*small_first()), [ALL], Scheduler.SPREAD, PlanningContext(now=NOW), marked=True
    )
    assert [landing.target for one in simulation.rounds for landing in one.landings] == ["narrow", "whole"]


def test_without_taints_the_small_pod_takes_the_place_of_the_large_one() -> None:
    simulation = simulate_rounds(cluster(*small_first()), [ALL], Scheduler.SPREAD, PlanningContext(now=NOW))
    assert [landing.target for one in simulation.rounds for landing in one.landings] == ["later"]


def test_a_target_that_the_first_wave_needs_is_not_reserved() -> None:
    narrower = [node("narrow", "11") if item["metadata"]["name"] == "narrow" else item for item in small_first()]
    plan, model = plan_of(*narrower)
    assert {move.target for move in plan.all_moves} == {"whole"}
    assert reserved_targets(plan, model) == frozenset()


def test_a_plan_of_one_wave_that_needs_its_targets_and_an_empty_plan_reserve_nothing() -> None:
    plan, model = plan_of(*small_first())
    assert reserved_targets(replace(plan, waves=plan.waves[1:]), model) == frozenset()
    assert reserved_targets(replace(plan, waves=()), model) == frozenset()


def test_what_is_reserved_stays_so_while_pods_move_until_they_need_it() -> None:
    plan, model = plan_of(*small_first())
    without_later = replace(plan, waves=plan.waves[:1])
    assert reserved_targets(without_later, model, reserved={"whole", "gone"}) == {"whole"}
    assert reserved_targets(replace(plan, waves=()), model, ["later"], {"whole"}) == frozenset(), (
        "the large pod of a node that is being drained needs it"
    )
