"""The chain of reasons in words."""

import pytest

from tests.cluster_of import ALL, HOST, NOW, budget, cluster, node, pod
from tests.reasons import has_facts
from trimtab.compaction import explain
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

WORLD = build_cluster_model(
    cluster(
        node("a"),
        node("b"),
        node("c", "1"),
        pod("x-1", "a", "1"),
        budget("x", 1),
        pod("k-1", "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"}),
        pod("y-1", "c", "900m"),
        pod("z-1", "c", "100m", spec={"nodeSelector": {"disk": "fast"}}),
    )
)
PLAN = make_plan(WORLD, [ALL], PlanningContext(now=NOW))


def test_a_node_that_goes_tells_its_wave_and_where_each_pod_goes() -> None:
    lines = explain.explain_node(PLAN, WORLD, "a")
    assert has_facts(lines[0], "node a", "drained", "wave 1 of 1", "node 1 of 1")
    assert has_facts(lines[2], "pod default/x-1", "node b", "budget default/x")


def test_a_node_that_stays_names_the_pod_that_keeps_it_and_what_to_do() -> None:
    lines = explain.explain_node(PLAN, WORLD, "b")
    assert "must stay" in lines[1]
    assert "Remove the annotation" in lines[1]
    assert has_facts(lines[2], "node b", "receives 1 pod", "node a")


def test_several_pods_of_one_reason_are_named_with_what_to_do_once() -> None:
    marked_pods = (pod(name, "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"}) for name in ("k-1", "k-2"))
    world = build_cluster_model(cluster(node("a"), node("b"), pod("x-1", "a", "1"), *marked_pods))
    lines = explain.explain_node(make_plan(world, [ALL], PlanningContext(now=NOW)), world, "b")
    assert ["Remove the annotation" in line for line in lines if "must stay" in line] == [True, False]


def test_a_pod_without_a_place_counts_the_nodes_by_constraint() -> None:
    lines = explain.explain_pod(PLAN, WORLD, "default/z-1")
    assert has_facts(lines[-1], "default/z-1", "none of 2 nodes", "2 node-not-selected")


def test_a_pod_that_moves_and_one_that_could() -> None:
    assert has_facts(explain.explain_pod(PLAN, WORLD, "default/x-1")[0], "default/x-1", "evicted", "node a")
    assert has_facts(explain.explain_pod(PLAN, WORLD, "default/y-1")[-1], "fit", "2 of 2", "other nodes")


def test_a_pod_that_moves_tells_its_wave_its_budget_and_other_places() -> None:
    lines = explain.explain_pod(PLAN, WORLD, "default/x-1")
    eviction, target, budget, others = lines
    assert has_facts(eviction, "pod default/x-1", "evicted", "node a", "wave 1 of 1")
    assert has_facts(target, "pod default/x-1", "node b", "budget default/x")
    assert has_facts(budget, "at present", "budget default/x", "1 disruption")
    assert has_facts(others, "at present", "fit", "0 of 1", "other node")


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (
            {},
            "node b could be drained instead of other nodes: before any drain, the other nodes have room for its 1 pod",
        ),
        ({"spec": {"nodeSelector": {HOST: "b"}}}, "node b could not be drained instead of other nodes"),
    ],
)
def test_a_node_that_receives_pods_tells_whether_it_could_have_gone_instead(ask: dict[str, str], told: str) -> None:
    world = build_cluster_model(cluster(node("a"), node("b"), pod("x-1", "a", "500m"), pod("y-1", "b", **ask)))
    plan = make_plan(world, [ALL], PlanningContext(now=NOW))
    (stays,) = plan.refusals
    assert plan.refusals[stays].code.name == "receives-pods"
    assert explain.explain_node(plan, world, stays)[-1].startswith(told)


def test_a_pod_is_not_told_of_another_whose_name_begins_like_its_own_or_of_its_budget() -> None:
    stays = pod("y-1", "b", annotations={"trimtab.dev/do-not-disrupt": "true"})
    items = (node("a"), node("b"), pod("x-1", "a"), pod("x-10", "a"), stays, budget("x", 2, name="x-1"))
    world = build_cluster_model(cluster(*items))
    lines = explain.explain_pod(make_plan(world, [ALL], PlanningContext(now=NOW)), world, "default/x-1")
    assert has_facts(lines[1], "pod default/x-1", "node b", "budget default/x-1")


def test_what_is_not_there_has_no_reasons() -> None:
    assert explain.explain_node(PLAN, WORLD, "ghost") == explain.explain_pod(PLAN, WORLD, "default/ghost") == ()
