"""The stand-in for the cluster autoscaler, rule by rule: each rule of the table has a test here that names it."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.cluster_of import Item, budget, cluster, node, pod
from trimtab.autoscaling.churn.stand_in import StandInScan, scan_cluster, utilization_of
from trimtab.autoscaling.churn.stand_in_rules import RULES, StandInFlags
from trimtab.autoscaling.churn.stand_in_view import (
    GROUP_LABEL,
    AddNodes,
    BeginRemoval,
    DeleteNode,
    EvictFrom,
    GiveBack,
    MarkCandidate,
    StandInState,
    read_stand_in_view,
)
from trimtab.cluster.node import NodeInfo

NOW = 1_800_000_000.0
FLAGS = StandInFlags()
TESTED: set[str] = set()
"""The rules that have a test."""
DELETED = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}


def stands_for(rule: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Says which rule a test is about."""
    TESTED.add(rule)
    return lambda test: test


def grouped(name: str, cpu: str = "4", group: str = "web", **more: Any) -> Item:
    return node(name, cpu, labels={GROUP_LABEL: group, **more.pop("labels", {})}, **more)


def template(cpu: str, group: str) -> NodeInfo:
    return cluster(grouped("new", cpu, group)).nodes[0]


def waiting(name: str, cpu: str) -> Item:
    item = pod(name, "", cpu)
    item["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return item


def scan(
    *items: Item,
    state: StandInState = StandInState(),  # noqa: B008  a frozen value
    flags: StandInFlags = FLAGS,
    templates: Mapping[str, NodeInfo] | None = None,
    coming: tuple[NodeInfo, ...] = (),
    now: float = NOW,
) -> StandInScan:
    return scan_cluster(state, read_stand_in_view(cluster(*items), now, coming), flags, templates or {})


def unneeded_for(seconds: float, *names: str) -> StandInState:
    return StandInState(unneeded=dict.fromkeys(names, NOW - seconds))


@stands_for("threshold")
def test_a_node_is_a_candidate_below_the_threshold_of_the_scarcer_resource() -> None:
    world = (grouped("a"), grouped("b"), pod("p", "a", "1990m"), pod("q", "b", "2"))
    assert set(scan(*world).state.unneeded) == {"a"}
    [described] = cluster(grouped("c", memory="4Gi")).nodes
    assert utilization_of(described, cluster(grouped("c"), pod("p", "c", "1", "3Gi")).pods) == 0.75


@stands_for("places")
def test_a_candidate_stays_if_a_pod_has_no_other_place() -> None:
    full = (grouped("b"), pod("q", "b", "3"))
    assert set(scan(grouped("a"), pod("p", "a", "900m"), *full).state.unneeded) == {"a"}
    assert set(scan(grouped("a"), pod("p", "a", "1100m"), *full).state.unneeded) == set()
    closed = (grouped("b", cordoned=True), pod("q", "b", "3"))
    assert set(scan(grouped("a"), pod("p", "a", "900m"), *closed).state.unneeded) == set()


@stands_for("room-once")
def test_room_for_the_pods_of_one_node_counts_for_no_other() -> None:
    world = (grouped("a"), grouped("b"), grouped("c"), pod("p", "a", "900m"), pod("q", "b", "900m"), pod("r", "c", "3"))
    assert len(scan(*world).state.unneeded) == 1


@stands_for("earlier-first")
def test_nodes_that_were_unneeded_before_are_examined_first() -> None:
    world = (grouped("a"), grouped("b"), pod("p", "a", "900m"), pod("q", "b", "900m"))
    assert set(scan(*world).state.unneeded) == {"a"}
    assert set(scan(*world, state=unneeded_for(60, "b")).state.unneeded) == {"b"}


@stands_for("empty-first")
def test_empty_nodes_are_examined_before_those_with_pods() -> None:
    # The pod of `a` fits only on `b`: had `a` come first, `b` would have received it and would not be empty any more.
    assert "b" in scan(grouped("a"), grouped("b"), pod("p", "a", "900m")).state.unneeded


@stands_for("recheck")
def test_a_node_without_places_is_not_examined_again_for_five_minutes() -> None:
    blocked = scan(grouped("a"), pod("p", "a", "1")).state
    free = (grouped("a"), grouped("b", "8"), pod("p", "a", "1"), pod("q", "b", "5"))
    assert "a" not in scan(*free, state=blocked, now=NOW + 290).state.unneeded
    assert "a" in scan(*free, state=blocked, now=NOW + 310).state.unneeded


@stands_for("blocking-pods")
def test_a_pod_that_may_not_move_keeps_its_node() -> None:
    bare, unsafe = pod("p", "a"), pod("p", "a")
    bare["metadata"]["ownerReferences"] = []
    unsafe["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    other = (grouped("b"), pod("q", "b", "3"))
    assert [set(scan(grouped("a"), item, *other).state.unneeded) for item in (bare, unsafe)] == [set(), set()]


@stands_for("budgets")
def test_what_one_node_needs_of_a_budget_is_spent() -> None:
    # `0` is the first place of every pod: no pod would have to move twice.
    nodes = (grouped("0", "16"), grouped("a"), grouped("b"), pod("r", "0", "9"))
    pods = (pod("p", "a", app="web"), pod("q", "b", app="web"))
    assert set(scan(*nodes, *pods, budget("web", 0)).state.unneeded) == set()
    assert len(scan(*nodes, *pods, budget("web", 1)).state.unneeded) == 1
    assert len(scan(*nodes, *pods, budget("web", 2)).state.unneeded) == 2


@stands_for("unneeded-time")
def test_a_node_goes_after_it_was_unneeded_for_longer_than_the_unneeded_time() -> None:
    world = (grouped("a"), grouped("b"), pod("q", "b", "3"))
    assert scan(*world, state=unneeded_for(600, "a")).state.unneeded == {"a": NOW - 600}
    assert scan(*world, state=unneeded_for(601, "a")).actions == (BeginRemoval("a"), DeleteNode("a"))
    # One scan in which it is needed makes the time begin again.
    busy = scan(*world, pod("p", "a", "3"), state=unneeded_for(601, "a")).state
    assert scan(*world, state=busy).state.unneeded == {"a": NOW}


@stands_for("min-size")
def test_a_group_keeps_its_minimum() -> None:
    world = (grouped("a"), grouped("b"), grouped("c"), pod("q", "c", "3"))
    state = unneeded_for(700, "a", "b")
    assert scan(*world, state=state, flags=StandInFlags(min_size=2)).actions[:2] == (BeginRemoval("a"), DeleteNode("a"))
    assert len(scan(*world, state=state, flags=StandInFlags(min_size=2)).actions) == 2
    assert scan(grouped("a"), state=unneeded_for(700, "a")).actions[:1] != (BeginRemoval("a"),)


@stands_for("parallelism")
def test_empty_nodes_go_together_and_others_one_at_a_time() -> None:
    world = (*(grouped(name) for name in "abcd"), grouped("z", "64"), pod("r", "z", "40"))
    pods = (pod("p", "a"), pod("q", "b"))
    found = scan(*world, *pods, state=unneeded_for(700, "a", "b", "c", "d"))
    begun = [action.node for action in found.actions if isinstance(action, BeginRemoval)]
    assert begun == ["c", "d", "a"]
    assert list(found.state.draining) == ["a"]
    few = scan(*world, *pods, state=unneeded_for(700, "a", "b", "c", "d"), flags=StandInFlags(max_removals=1))
    assert [action.node for action in few.actions if isinstance(action, BeginRemoval)] == ["c"]


@stands_for("delay-after-add")
def test_nothing_goes_for_a_while_after_nodes_were_added() -> None:
    world = (grouped("a"), grouped("b"), pod("q", "b", "3"))
    added = StandInState(unneeded={"a": NOW - 700}, added_at=NOW - 590)
    assert scan(*world, state=added).actions == ()
    assert scan(*world, state=added).state.unneeded == {"a": NOW - 700}
    assert scan(*world, state=added, now=NOW + 20).actions == (BeginRemoval("a"), DeleteNode("a"))


@stands_for("one-thing-a-scan")
def test_a_scan_that_adds_nodes_removes_none() -> None:
    world = (grouped("a", "1"), grouped("b"), pod("q", "b", "3"), waiting("p", "2"))
    found = scan(*world, state=unneeded_for(700, "a"), templates={"web": template("4", "web")})
    assert found.actions == (AddNodes("web", 1),)
    assert found.state.added_at == NOW
    assert found.state.unneeded == {"a": NOW - 700}


@stands_for("new-pods")
def test_a_pod_that_has_just_been_created_adds_nothing() -> None:
    item = waiting("p", "2")
    [read] = cluster(grouped("a", "1"), item).pods
    assert read.created is not None
    templates = {"web": template("4", "web")}
    assert not adds(scan(grouped("a", "1"), item, templates=templates, now=read.created + 1))
    assert scan(grouped("a", "1"), item, templates=templates, now=read.created + 2).actions == (AddNodes("web", 1),)


@stands_for("upcoming")
def test_a_pod_that_fits_on_a_node_that_is_there_or_coming_adds_none() -> None:
    templates = {"web": template("4", "web")}
    assert not adds(scan(grouped("a"), waiting("p", "2"), templates=templates))
    assert not adds(scan(grouped("a", ready=False), waiting("p", "2"), templates=templates))
    assert adds(scan(grouped("a", cordoned=True), waiting("p", "2"), templates=templates))
    two = (grouped("a", "1"), waiting("p", "3"), waiting("q", "3"))
    assert scan(*two, templates=templates, coming=(templates["web"],)).actions == (AddNodes("web", 1),)


def adds(found: StandInScan) -> bool:
    return any(isinstance(action, AddNodes) for action in found.actions)


@stands_for("first-fit")
def test_the_number_of_new_nodes_is_what_first_fit_needs() -> None:
    pods = [waiting(f"p{n}", cpu) for n, cpu in enumerate(("1", "1", "2", "3", "3"))]
    assert scan(grouped("a", "500m"), *pods, templates={"web": template("4", "web")}).actions == (AddNodes("web", 3),)
    assert not adds(scan(grouped("a", "500m"), waiting("p", "9"), templates={"web": template("4", "web")}))


@stands_for("least-waste")
def test_the_group_that_wastes_least_gets_the_nodes() -> None:
    templates = {"big": template("16", "big"), "small": template("4", "small")}
    assert scan(grouped("a", "500m"), waiting("p", "3"), templates=templates).actions == (AddNodes("small", 1),)
    assert scan(grouped("a", "500m"), waiting("p", "14"), templates=templates).actions == (AddNodes("big", 1),)


@stands_for("soft-taint")
def test_unneeded_nodes_are_marked_in_a_scan_that_removes_none() -> None:
    world = (grouped("a"), grouped("b"), pod("q", "b", "3"))
    found = scan(*world)
    assert found.actions == (MarkCandidate("a", is_candidate=True),)
    assert found.state.marked == {"a"}
    assert scan(*world, state=found.state).actions == ()
    lost = scan(*world, pod("p", "a", "3"), state=found.state)
    assert lost.actions == (MarkCandidate("a", is_candidate=False),)
    assert lost.state.marked == frozenset()


@stands_for("eviction-retries")
def test_a_node_whose_pods_do_not_leave_takes_pods_again() -> None:
    world = (grouped("a", taints=[DELETED], cordoned=True), grouped("b"), pod("p", "a"), pod("q", "b", "3"))
    [first, _] = cluster(*world).pods
    state = StandInState(draining={"a": NOW - 60})
    assert scan(*world, state=state).actions[:1] == (EvictFrom("a", first.uid),)
    assert scan(*world, state=state, now=NOW + 70).actions[:1] == (GiveBack("a"),)
    empty = scan(*world[:2], world[3], state=state)
    assert empty.actions[:1] == (DeleteNode("a"),)
    assert empty.state.draining == {}


def test_each_rule_of_the_table_has_a_test() -> None:
    assert {rule.name for rule in RULES} == TESTED
    assert len({rule.name for rule in RULES}) == len(RULES)
