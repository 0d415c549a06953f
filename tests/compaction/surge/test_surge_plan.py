"""A drain that needs more pods first: its room is reserved, its place in the order pays for it, its count is shown."""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from tests.compaction.plans import keeper, planned
from tests.compaction.surge.test_find_surge import deployment
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.recheck import Recheck, holds_as_planned
from trimtab.compaction.simulate import simulate_rounds
from trimtab.scheduling.cluster_model import build_cluster_model

SURGES = replace(ALL, surge=1)


def workload(app: str, *on: str, cpu: str = "1") -> list[Item]:
    """A Deployment whose budget allows none while all of its pods are ready."""
    return [
        *(pod(f"{app}-{number}", name, cpu) for number, name in enumerate(on)),
        deployment(app, len(on)),
        deployment(app, len(on), kind="ReplicaSet"),
        budget(app, 0, most=0, spec={"minAvailable": 3}),
    ]


def three_nodes(free: str) -> list[Item]:
    """Node a has a pod of one core; b and c stay, and have a node's room less what their keepers request."""
    return [
        node("a"),
        node("b", free),
        node("c", "2"),
        *workload("web", "a", "c", "c"),
        keeper("keepb", "b", "10m"),
        keeper("keepc", "c", "0"),
    ]


def test_a_drain_that_needs_one_pod_more_says_so() -> None:
    plan = planned(*three_nodes("3"), pool=SURGES)
    assert [(move.pod, move.surge) for move in plan.all_moves] == [("default/web-0", 1)]
    assert plan.surge_peak == 1000
    assert any("surge.extraPods" in note for note in plan.notes)


def test_without_the_setting_nothing_moves() -> None:
    assert not planned(*three_nodes("3")).all_moves


def test_where_only_the_successor_fits_and_not_the_pod_in_between_the_node_stays() -> None:
    plan = planned(*three_nodes("1500m"), pool=SURGES)
    assert not plan.all_moves
    assert plan.refusals["a"].code.name == "surge-without-room"


def test_pods_of_one_budget_go_one_after_the_other() -> None:
    items = [node("a"), node("b", "8"), *workload("web", "a", "a", "b"), keeper("keepb", "b", "10m")]
    assert [(move.pod, move.turn) for move in planned(*items, pool=SURGES).all_moves] == [
        ("default/web-0", 0),
        ("default/web-1", 1),
    ]


def test_nodes_with_pods_of_one_such_budget_are_in_different_waves() -> None:
    items = [node("a"), node("b"), node("c", "8"), *workload("web", "a", "b", "c"), keeper("keepc", "c", "10m")]
    plan = planned(*items, pool=SURGES)
    assert [[step.node for step in wave.steps] for wave in plan.waves] == [["a"], ["b"]]


def test_of_two_equal_nodes_the_one_whose_pod_needs_another_first_goes_later() -> None:
    # Equal but for the budget: the node that costs no additional pod comes first.
    items = [
        node("a"),
        node("b"),
        node("c", "16"),
        *workload("web", "a", "c", "c"),
        pod("free-0", "b", "1"),
        pod("free-1", "c", "1"),
        deployment("free", 2, kind="ReplicaSet"),
        keeper("keepc", "c", "10m"),
    ]
    assert [step.node for step in planned(*items, pool=SURGES).all_steps] == ["b", "a"]


def test_the_check_before_a_drain_holds_with_room_and_not_without() -> None:
    plan = planned(*three_nodes("3"), pool=SURGES)
    context = PlanningContext(now=NOW)
    assert holds_as_planned(plan, build_cluster_model(cluster(*three_nodes("3"))), [SURGES], context)
    fuller = Recheck.prepare(build_cluster_model(cluster(*three_nodes("1500m"))), [SURGES], context)
    reason = fuller.rejection_reason(plan.all_steps[0])
    assert reason is not None
    assert reason.code.name == "surge-without-room"


def test_a_simulation_shows_the_count() -> None:
    simulation = simulate_rounds(cluster(*three_nodes("3")), [SURGES])
    assert [(landing.pod, landing.surge) for one in simulation.rounds for landing in one.landings] == [
        ("default/web-0", 1)
    ]


def quota_with_room(pods: int) -> Item:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": str(20 + pods)}},
        "status": {"hard": {"pods": str(20 + pods)}, "used": {"pods": "20"}},
    }


def test_pods_in_between_that_a_quota_has_no_room_for_together_are_in_different_waves() -> None:
    shared = [node("c", "8"), keeper("keepc", "c", "10m")]
    items = [node("a"), node("b"), *shared, *workload("web", "a", "c", "c"), *workload("api", "b", "c", "c")]
    waves = [planned(*items, quota_with_room(room), pool=SURGES).waves for room in (2, 1)]
    assert [[len(wave.steps) for wave in one] for one in waves] == [[2], [1, 1]]


def test_a_node_stays_if_a_quota_has_no_room_for_all_of_its_pods_in_between() -> None:
    shared = [node("c", "12"), keeper("keepc", "c", "10m")]
    items = [node("a"), *shared, *workload("web", "a", "c", "c"), *workload("api", "a", "c", "c")]
    assert len(planned(*items, quota_with_room(2), pool=SURGES).all_moves) == 2
    plan = planned(*items, quota_with_room(1), pool=SURGES)
    assert (plan.all_moves, plan.refusals["a"].code.name) == ((), "surge-without-quota")
