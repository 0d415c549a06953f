"""May this node be tried? The cases of §5.1 and the reasons of §5.4 no. 72."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from tests.reasons import assert_reason, has_facts
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import WeeklyWindow
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Failure, Observations, Plan
from trimtab.scheduling.cluster_model import build_cluster_model

HALF = replace(ALL, under={"cpu": 50})


def planned(*items: Item, pool: Pool = ALL, now: PlanningContext = PlanningContext(now=NOW)) -> Plan:  # noqa: B008
    return make_plan(build_cluster_model(cluster(*items)), [pool], now)


def why(name: str, *items: Item, pool: Pool = ALL, now: PlanningContext = PlanningContext(now=NOW)) -> str:  # noqa: B008
    plan = planned(*items, pool=pool, now=now)
    return plan.refusals[name].code.name if name in plan.refusals else "goes"


def test_case_1_a_node_above_the_threshold_is_not_under_used() -> None:
    assert (
        why("a", node("a", "1000m"), node("b"), pod("x-1", "a", "600m"), pod("x-2", "b"), pool=HALF)
        == "node-not-under-used"
    )


def test_a_node_exactly_at_the_threshold_is_under_used() -> None:
    assert why("a", node("a", "1000m"), node("b"), pod("x-1", "a", "500m"), pod("x-2", "b", "3"), pool=HALF) == "goes"


def test_case_3_a_node_that_is_being_deleted_is_left_alone() -> None:
    going = node("a", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}])
    plan = planned(going, node("b"))
    assert plan.refusals["a"].code.name == "node-being-deleted"
    assert "is being deleted" in str(plan.refusals["a"])


def test_a_node_that_is_being_deleted_is_no_place_and_counts_for_no_minimum() -> None:
    going = node("b", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}])
    anywhere = {"tolerations": [{"key": "ToBeDeletedByClusterAutoscaler", "operator": "Exists"}]}
    items = (node("a"), going, pod("x-1", "a", spec=anywhere), pod("x-2", "b", spec=anywhere))
    assert why("a", *items) == "no-place"
    two = replace(ALL, min_nodes=2)
    assert why("c", *items, node("c"), node("d"), pool=two) == "goes"
    assert why("c", *items, node("c"), pool=two) == "pool-at-minimum"


@pytest.mark.parametrize(
    "note",
    [
        "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        "karpenter.sh/do-not-disrupt",
        "trimtab.dev/do-not-disrupt",
    ],
)
def test_case_4_a_node_that_is_said_to_stay_stays(note: str) -> None:
    assert why("a", node("a", annotations={note: "true"}), node("b")) == "node-kept"


def test_a_node_that_is_said_to_stay_by_the_earlier_name_stays() -> None:
    assert why("a", node("a", annotations={"trimtab.dev/keep": "true"}), node("b")) == "annotation-not-understood"


@pytest.mark.parametrize("cpu", ["0", "nonsense"])
def test_case_5_a_node_whose_cpu_makes_no_sense_has_that_reason(cpu: str) -> None:
    assert why("a", node("a", cpu), node("b")) == "node-unreadable"


def test_case_6_a_node_that_is_not_ready_is_left_alone() -> None:
    assert why("a", node("a", ready=False), node("b")) == "node-not-ready"


def test_case_7_daemon_set_pods_count_for_the_threshold() -> None:
    items = [node("a", "1000m"), node("b"), pod("d-1", "a", "500m", owner="DaemonSet"), pod("x-1", "a", "100m")]
    assert why("a", *items, pool=HALF) == "node-not-under-used"


def test_case_9_all_thresholds_must_be_kept() -> None:
    nodes = [node(n, "4000m", pods=10) for n in "abc"]
    pods = [pod(f"x-{n}{i}", n, "400m") for n in "abc" for i in range(3)]
    assert not planned(*nodes, *pods, pool=replace(ALL, under={"cpu": 20, "pods": 20})).all_moves


DEVICE = "example.com/device"


@pytest.mark.parametrize(("have", "moved"), [("8", ["default/x-1", "default/x-2"]), ("0", [])])
def test_case_10_and_11_extended_resources_have_thresholds_and_must_be_there(have: str, moved: list[str]) -> None:
    extra = {DEVICE: "1"}
    items = [
        node("n1", "4", extra={DEVICE: "8"}),
        node("n2", "4", extra={DEVICE: have}),
        node("n3", cordoned=True),
        *(pod(f"x-{i}", "n1", "100m", extra=extra) for i in (1, 2)),
        *(pod(f"y-{i}", "n2", "500m", extra=extra if have == "8" else {}) for i in range(4)),
    ]
    plan = planned(*items, pool=replace(ALL, under={"cpu": 20, DEVICE: 40}))
    assert sorted(move.pod for move in plan.all_moves) == moved


@pytest.mark.parametrize("cpu", ["12 apples", "-4"])
def test_case_12_a_pod_whose_request_is_nonsense_keeps_its_node_out_of_all_plans(cpu: str) -> None:
    plan = planned(node("a"), node("b"), pod("x-1", "a", cpu), pod("y-1", "b"), pod("y-2", "b"))
    assert plan.refusals["a"].code.name == "node-unreadable"
    assert cpu in str(plan.refusals["a"])
    assert not plan.all_moves


def test_karpenters_nodes_and_the_control_plane_are_left_alone() -> None:
    assert why("a", node("a", labels={"karpenter.sh/nodepool": "x"}), node("b")) == "karpenter-node"
    assert why("a", node("a", labels={"node-role.kubernetes.io/control-plane": ""}), node("b")) == "control-plane-node"


def test_a_cordon_of_somebody_else_is_left_alone() -> None:
    assert why("a", node("a", cordoned=True), node("b")) == "cordoned-by-another"


def test_a_command_without_keys_takes_the_annotation_of_a_drain_at_its_word() -> None:
    drained = node("a", cordoned=True, annotations={"trimtab.dev/cordoned-for": "{}"})
    refusal = planned(drained, node("b")).refusals["a"]
    assert refusal.code.name == "drained-by-trimtab"
    assert_reason(refusal, "drained-by-trimtab", node="node a", command="trimtab why node a")
    assert "kubectl uncordon" not in refusal.code.todo
    assert "compactor release --yes NODE" in refusal.code.todo


def test_two_nodes_of_one_name_are_both_left_alone() -> None:
    plan = planned(node("a"), node("a", cpu="8"), node("b"))
    assert plan.refusals["a"].code.name == "node-unreadable"
    assert any(has_facts(note, "2 nodes", "same name a") for note in plan.notes)


def test_a_node_whose_pod_is_told_of_in_two_ways_is_left_alone() -> None:
    plan = planned(node("a"), node("b"), node("c"), pod("x-1", "a"), pod("x-1", "b"), pod("x-2", "c"))
    assert [plan.refusals[name].code.name for name in "ab"] == ["node-unreadable"] * 2
    assert any(has_facts(note, "pod default/x-1", "more than once") for note in plan.notes)


def test_a_pod_on_a_node_that_is_not_there_is_told() -> None:
    assert any("ghost" in note for note in planned(node("a"), pod("x-1", "ghost")).notes)


def test_nodes_in_no_pool_or_in_two_are_told() -> None:
    mine, other = Pool(name="a", labels={"p": "a"}), Pool(name="b", labels={"q": "b"})
    world = build_cluster_model(cluster(node("a", labels={"p": "a", "q": "b"}), node("b")))
    plan = make_plan(world, [mine, other], PlanningContext(now=NOW))
    assert [plan.refusals[n].code.name for n in "ab"] == ["node-in-two-pools", "node-in-no-pool"]


def test_a_pool_that_matches_nothing_is_told() -> None:
    plan = make_plan(build_cluster_model(cluster(node("a"))), [Pool(name="web")], PlanningContext(now=NOW))
    assert plan.pools["web"].code.name == "pool-matches-nothing"


# ── no. 72: not yet ──────────────────────────────────────────────────────
TWO = (node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b"), pod("x-3", "b"))


def seen(**more: object) -> PlanningContext:
    return PlanningContext(now=NOW, observations=Observations(under_since={"a": NOW - 300, "b": NOW - 300}, **more))  # type: ignore[arg-type]


def test_case_72_under_the_line_for_five_minutes_of_ten() -> None:
    assert why("a", *TWO, now=seen()) == "not-under-used-long-enough"
    assert why("a", *TWO, pool=replace(ALL, under_for=300), now=seen()) == "goes"


def test_case_72_in_no_group_annotation_set_and_at_minimum() -> None:
    assert why("a", *TWO, pool=Pool(name="web")) == "node-in-no-pool"
    assert why("a", *TWO, pool=replace(ALL, min_nodes=2)) == "pool-at-minimum"


def test_a_failed_drain_backs_off_doubling() -> None:
    failed = Failure(times=3, last=NOW - 1000)
    assert failed.retry_after == NOW - 1000 + 1200
    now = PlanningContext(now=NOW, observations=Observations(under_since={"a": 0, "b": 0}, failures={"a": failed}))
    assert why("a", *TWO, now=now) == "drain-failed-before"
    assert Failure(times=50, last=0).retry_after == 7200


def test_case_79_a_young_node_is_not_taken_old_ones_are() -> None:
    young = node("a", created="2026-01-02T23:58:00Z")
    plan = planned(young, node("b"), node("c"), pool=replace(ALL, node_age=420, quiet=0))
    assert plan.refusals["a"].code.name == "node-too-young"
    assert sorted(step.node for step in plan.all_steps) == ["b", "c"]


def test_a_pool_with_a_new_node_is_not_quiet() -> None:
    plan = planned(node("a", created="2026-01-02T23:58:00Z"), node("b"))
    assert plan.pools["all"].code.name == "pool-not-quiet"


def test_outside_its_window_a_pool_does_nothing() -> None:
    night = WeeklyWindow(start=22 * 60, end=5 * 60, zone="Europe/Berlin")
    assert why("a", *TWO, pool=replace(ALL, windows=(night,))) == "goes"
    assert why("a", *TWO, pool=replace(ALL, windows=(replace(night, zone="Asia/Tokyo"),))) == "outside-window"


CALM = NodeGroupStatus(name="gke-all-1", healthy=True, scale_up="NoActivity")


@pytest.mark.parametrize(
    ("autoscaler", "code"),
    [
        (Autoscaler(updated=NOW - 10), "goes"),
        (Autoscaler(updated=NOW - 121), "autoscaler-silent"),
        (Autoscaler(), "autoscaler-silent"),
        (Autoscaler(updated=NOW, healthy=False), "autoscaler-unhealthy"),
        (Autoscaler(updated=NOW, scale_up="InProgress"), "scaling-up"),
        (Autoscaler(updated=NOW, scale_down=False), "scale-down-disabled"),
        (Autoscaler(updated=NOW, scale_up="InProgress", groups=(CALM,)), "goes"),
    ],
)
def test_the_autoscalers_word(autoscaler: Autoscaler, code: str) -> None:
    # A threshold of 0 leaves nothing to the autoscaler itself.
    assert why("a", *TWO, now=PlanningContext(now=NOW, autoscaler=replace(autoscaler, threshold=0))) == code


def test_too_few_nodes_under_the_line() -> None:
    assert why("a", *TWO, pool=replace(ALL, under_count=3)) == "too-few-under-used"


def test_too_many_unready_nodes_stop_everything() -> None:
    nodes = [node(f"n{i}", ready=i > 3) for i in range(8)]
    assert planned(*nodes).pools["all"].code.name == "too-many-nodes-not-ready"


def test_the_autoscalers_own_minimum_of_the_pools_groups_is_kept() -> None:
    groups = tuple(replace(CALM, name=f"gke-all-{n}", min_size=1) for n in (1, 2))
    now = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, threshold=0, groups=groups))
    plan = planned(*TWO, now=now)
    assert plan.refusals["a"].code.name == "pool-at-minimum"
    assert_reason(plan.refusals["a"], "pool-at-minimum", minimum="2 nodes")
    assert (
        why("a", *TWO, now=replace(now, autoscaler=Autoscaler(updated=NOW, threshold=0, groups=groups[:1]))) == "goes"
    )


GROUPS = tuple(
    replace(CALM, name=f"https://cloud/zones/z{n}/instanceGroups/gke-c-all-{n}-grp", min_size=1) for n in (1, 2)
)
SCALED = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, threshold=0, groups=GROUPS))


def of_group(name: str, group: int) -> Item:
    described_node = node(name)
    described_node["spec"]["providerID"] = f"gce://project/z{group}/gke-c-all-{group}-x{name}yz"
    return described_node


def test_each_group_keeps_its_own_minimum_whatever_the_others_have() -> None:
    items = [of_group("a", 1), *(of_group(n, 2) for n in "bcd")]
    assert why("a", *items, now=SCALED) == "pool-at-minimum"
    assert len(planned(*items, now=SCALED).all_steps) == 2


def test_a_node_that_takes_no_pods_is_none_of_those_a_minimum_keeps() -> None:
    emptied = node("c", cordoned=True, annotations={"trimtab.dev/cordoned-for": "x"})
    ill = node("d", ready=False)
    for other in (emptied, ill):
        assert not {"a", "b"} & {s.node for s in planned(*TWO, other, pool=replace(ALL, min_nodes=2)).all_steps}


@pytest.mark.parametrize(("chips", "code"), [("4", "node-group-scales-as-a-whole"), ("16", "goes")])
def test_a_node_of_a_slice_that_spans_several_nodes_is_left_alone(chips: str, code: str) -> None:
    slice_ = node("a", labels={"cloud.google.com/gke-tpu-topology": "4x4"}, extra={"google.com/tpu": chips})
    assert why("a", slice_, node("b")) == code


def under_way(*nodes: str) -> PlanningContext:
    return PlanningContext(now=NOW, aims={"all": nodes})


def test_while_pods_move_no_node_goes_but_those_of_the_plan_they_move_by() -> None:
    items = (node("a"), node("b"), node("c"), pod("x-1", "a"), pod("x-2", "b"), pod("x-3", "c", "3"))
    assert [step.node for step in planned(*items).all_steps] == ["a", "b"]
    assert [step.node for step in planned(*items, now=under_way("b")).all_steps] == ["b"]
    assert why("a", *items, now=under_way("b")) == "not-in-the-plan-under-way"


def test_a_pool_without_a_plan_under_way_is_planned_afresh() -> None:
    items = (node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b"))
    assert planned(*items, now=PlanningContext(now=NOW, aims={"another": ()})) == planned(*items)


def test_a_node_of_the_plan_under_way_that_cannot_go_now_is_no_place_for_pods() -> None:
    """Its budget is spent for the moment: what came to it would move twice."""
    items = (
        node("a"),
        node("b"),
        node("c"),
        pod("x-1", "a"),
        pod("y-1", "b"),
        pod("y-2", "c"),
        pod("z-1", "c", "3500m"),
        budget("y", 0, most=1),
    )
    assert [(move.pod, move.target) for move in planned(*items).all_moves] == [("default/x-1", "b")]
    assert planned(*items, now=under_way("a", "b")).all_steps == ()
    allowed = (*items[:-1], budget("y", 1))
    assert len(planned(*allowed, now=under_way("a", "b")).all_steps) == 1
