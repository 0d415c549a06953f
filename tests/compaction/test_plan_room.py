"""What room does a plan leave, in each pool, for whom?"""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, ZONE, Item, cluster, node, pod
from tests.compaction.plans import goes, keeper
from tests.reasons import assert_reason
from trimtab.cluster.pool import Headroom, Pool, Spare
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model


def test_headroom_is_really_left() -> None:
    items = [item for i in range(10) for item in (node(f"n{i}", "4"), pod(f"x-{i}", f"n{i}", "1"))]
    assert len(goes(*items)) == 7
    assert len(goes(*items, pool=replace(ALL, headroom=Headroom(percent=30)))) == 6
    assert len(goes(*items, pool=replace(ALL, headroom=Headroom(nodes=1)))) == 6
    assert len(goes(*items, pool=replace(ALL, spare=Spare.NODE))) == 6


def two_pools(**more: object) -> tuple[Pool, Pool]:
    p, q = (Pool(name=n, min_nodes=0, single_replicas=True) for n in "pq")
    return p, replace(q, **more)  # type: ignore[arg-type]


def of_pool(name: str, cpu: str = "4") -> Item:
    return node(name, cpu, labels={"trimtab.dev/pool": name[0]})


def test_an_empty_node_stays_where_its_pool_would_have_too_little_room() -> None:
    items = [node("a"), node("b"), keeper("k-1", "b", "3800m")]
    assert goes(*items, pool=replace(ALL, headroom=Headroom(percent=10))) == []


def test_pods_that_go_to_another_pool_leave_that_pool_its_headroom() -> None:
    items = [of_pool("p1"), of_pool("q1"), pod("x-1", "p1", "1"), keeper("k-1", "q1", "2500m")]
    for percent, gone in ((10, ["p1"]), (20, [])):
        pools = two_pools(headroom=Headroom(percent=percent))
        plan = make_plan(build_cluster_model(cluster(*items)), pools, PlanningContext(now=NOW))
        assert [step.node for step in plan.all_steps] == gone


def test_a_full_pool_does_not_keep_another_pools_node_while_there_are_other_places() -> None:
    items = [of_pool("p1"), of_pool("p2"), of_pool("q1", "8"), pod("x-1", "p1", "200m"), keeper("k-1", "p2", "1500m")]
    pools = tuple(replace(pool, headroom=Headroom(percent=5)) for pool in two_pools())
    plan = make_plan(
        build_cluster_model(cluster(*items, keeper("k-2", "q1", "7550m"))), pools, PlanningContext(now=NOW)
    )
    assert [(move.pod, move.target) for move in plan.all_moves] == [("default/x-1", "p2")]


def test_a_full_pool_is_left_out_for_pods_placed_by_the_exact_way_too() -> None:
    near = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
    }
    items = [of_pool("p1"), of_pool("p2", "8"), of_pool("q1"), pod("x-1", "p1", "1", spec=near)]
    items += [keeper("k-1", "p2", "1500m"), keeper("k-2", "q1", "2500m")]
    plan = make_plan(
        build_cluster_model(cluster(*items)), two_pools(headroom=Headroom(percent=20)), PlanningContext(now=NOW)
    )
    assert [(move.pod, move.target) for move in plan.all_moves] == [("default/x-1", "p2")]


def test_no_exchange_brings_back_a_node_that_leaves_its_pool_without_room() -> None:
    team = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    sizes = {"p1": "4", "r1": "2", "q1": "4", "p2": "2", "r2": "2", "q2": "2"}
    nodes = [
        node(name, cpu, "4Gi", labels={"trimtab.dev/pool": name[0]}, taints=team if cpu == "2" else [])
        for name, cpu in sizes.items()
    ]
    pods = [keeper("k-1", "q1", "1900m"), pod("x-1", "p2", "1900m", "64Mi")]
    pools = [replace(ALL, everything=False, name=name, headroom=Headroom(percent=7)) for name in "pqr"]
    plan = make_plan(build_cluster_model(cluster(*nodes, *pods)), pools, PlanningContext(now=NOW))
    assert {step.node for step in plan.all_steps}.isdisjoint({"p1"}) or "p2" in {step.node for step in plan.all_steps}


def test_the_pool_that_would_lack_room_is_named() -> None:
    items = [of_pool("p1"), of_pool("q1"), pod("x-1", "p1", "1"), keeper("k-1", "q1", "2500m")]
    plan = make_plan(
        build_cluster_model(cluster(*items)), two_pools(headroom=Headroom(percent=20)), PlanningContext(now=NOW)
    )
    reason = plan.refusals["p1"]
    assert reason.code.name == "headroom"
    assert_reason(reason, "headroom", pod="pod default/x-1", fits="fits only", pool="pool q")


def test_pods_placed_by_the_exact_way_leave_another_pool_its_headroom_too() -> None:
    near = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
    }
    items = [of_pool("p1"), of_pool("q1"), pod("x-1", "p1", "1", spec=near), keeper("k-1", "q1", "2500m")]
    for percent, gone in ((10, ["p1"]), (20, [])):
        pools = two_pools(headroom=Headroom(percent=percent))
        plan = make_plan(build_cluster_model(cluster(*items)), pools, PlanningContext(now=NOW))
        assert [step.node for step in plan.all_steps] == gone


def test_a_dying_zone_must_find_room_elsewhere() -> None:
    items = [
        item for i in range(6) for item in (node(f"n{i}", "4", labels={ZONE: f"z{i % 2}"}), pod(f"x-{i}", f"n{i}", "1"))
    ]
    assert len(goes(*items)) == 4
    assert len(goes(*items, pool=replace(ALL, spare=Spare.ZONE))) == 2


def test_room_for_the_largest_pod_is_kept() -> None:
    items = [item for i in range(4) for item in (node(f"n{i}", "4"), pod(f"x-{i}", f"n{i}", "2"))]
    assert len(goes(*items)) == 2
    assert len(goes(*items, pool=replace(ALL, headroom=Headroom(largest_pod=True)))) == 1
