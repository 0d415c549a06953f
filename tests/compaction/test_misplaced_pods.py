"""Pods that cost more where they are: critical ones on spot, those that may not move all over, services among Jobs."""

from tests.cluster_of import ALL, SAFE, Item, apart, budget, cluster, node, pod
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.misplaced_pods import Misplaced, find_misplaced
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

SPOT = {"labels": {"karpenter.sh/capacity-type": "spot"}}
HELD = {"annotations": {SAFE: "false"}}
CRITICAL = {"spec": {"priority": 2_000_000_000}}


def found(*items: Item) -> list[Misplaced]:
    world = build_cluster_model(cluster(*items))
    return list(find_misplaced(world, make_plan(world, [ALL], PlanningContext())))


def kinds(*items: Item) -> list[tuple[str, str, int]]:
    return [(one.kind.value, one.why, len(one.nodes)) for one in found(*items)]


def test_critical_pods_on_spot_are_found() -> None:
    critical = [pod("dns-0", "a", **CRITICAL), pod("web-0", "a", **HELD), pod("web-1", "b", **HELD), pod("web-2", "a")]
    assert kinds(node("a", **SPOT), node("b"), *critical) == [
        ("critical-on-spot", "not-safe-to-evict", 1),
        ("critical-on-spot", "system-critical", 1),
    ]


def test_daemons_on_spot_are_where_they_belong() -> None:
    assert kinds(node("a", **SPOT), pod("log-0", "a", owner="DaemonSet", **CRITICAL)) == []


def test_pods_that_may_not_move_are_scattered_when_few_nodes_would_hold_them() -> None:
    nodes = [node(name) for name in "abcd"]
    (one,) = found(*nodes, *(pod(f"web-{name}", name, "500m", **HELD) for name in "abcd"))
    assert (one.kind.value, one.fewest, one.annotation) == ("scattered", 1, (SAFE, "false"))


def test_pods_that_fill_their_nodes_are_not_scattered() -> None:
    assert kinds(*(node(name) for name in "abcd"), *(pod(f"web-{n}", n, "3", **HELD) for n in "abcd")) == []


def test_pods_that_must_be_apart_are_not_scattered() -> None:
    nodes = [node(name) for name in "abcdef"]
    pods = [pod(f"web-{name}", name, "50m", **HELD, spec=apart("web")) for name in "abc"]
    assert found(*nodes, *pods) == []
    (one,) = found(*nodes, *pods, *(pod(f"api-{name}", name, "50m", **HELD) for name in "def"))
    assert one.fewest == 3


def test_reasons_that_pass_scatter_nobody() -> None:
    nodes = [node(name) for name in "abcd"]
    assert kinds(*nodes, *(pod(f"web-{n}", n) for n in "abcd"), budget("web", 0, most=1)) == []


def test_services_among_jobs_are_found() -> None:
    jobs = [
        pod("sum-0", "a", "3", owner="Job"),
        pod("web-0", "a"),
        pod("web-1", "b"),
        pod("sum-1", "b", "100m", owner="Job"),
    ]
    (one,) = found(node("a"), node("b"), *jobs)
    assert (one.kind.value, [each.key for each in one.pods]) == ("long-running-on-temporary", ["default/web-0"])
