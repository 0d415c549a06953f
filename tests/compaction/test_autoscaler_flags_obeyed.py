"""What the cluster autoscaler's flags say about pods holds for Trimtab too: the autoscaler would remove these nodes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, node, pod
from tests.compaction.plans import planned
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import Plan

SCRATCH = {"spec": {"volumes": [{"name": "envoy", "emptyDir": {}}]}}
CUSTOM = {"owner": "CloneSet"}
YOUNG_SYSTEM_POD = {"namespace": "kube-system", "created": "2026-01-02T23:30:00Z"}
LOCAL_STORAGE, CUSTOM_CONTROLLERS, SYSTEM_PODS = (
    "skip-nodes-with-local-storage",
    "skip-nodes-with-custom-controller-pods",
    "skip-nodes-with-system-pods",
)


def plan(pods: Mapping[str, object], flags: Mapping[str, str], *, threshold: int = 0) -> Plan:
    autoscaler = Autoscaler(updated=NOW, flags=flags, threshold=threshold)
    items = [pod("web-0", "a", "1", **pods), pod("web-1", "b", "2", **pods)]
    return planned(node("a"), node("b"), *items, now=PlanningContext(now=NOW, autoscaler=autoscaler))


def blocks(made: Plan) -> set[str]:
    return {reason.code.name for reason in made.pods.values()}


@pytest.mark.parametrize(
    ("pods", "flag", "code"),
    [
        (SCRATCH, LOCAL_STORAGE, "local-data"),
        (CUSTOM, CUSTOM_CONTROLLERS, "pod-of-unknown-owner"),
        (YOUNG_SYSTEM_POD, SYSTEM_PODS, "system-pod-without-budget"),
    ],
)
def test_a_flag_decides_whether_such_pods_keep_their_node(pods: Item, flag: str, code: str) -> None:
    assert blocks(plan(pods, {})) == {code}
    assert blocks(plan(pods, {flag: "true"})) == {code}
    assert (blocks(plan(pods, {flag: "false"})), len(plan(pods, {flag: "false"}).all_steps)) == (set(), 1)


def test_a_node_of_such_pods_under_the_threshold_is_left_to_the_autoscaler() -> None:
    assert list(plan(SCRATCH, {LOCAL_STORAGE: "False"}, threshold=50).left) == ["a"]


def test_a_local_persistent_volume_keeps_its_node_whatever_the_flag_says() -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"volumeName": "v"},
    }
    volume = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"local": {"path": "/d"}}}
    user = pod("db-0", "a", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]})
    context = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, flags={LOCAL_STORAGE: "false"}))
    assert blocks(planned(node("a"), node("b"), user, pod("db-1", "b"), claim, volume, now=context)) == {"local-volume"}


def test_a_group_of_pods_of_an_unknown_owner_stays_together() -> None:
    group = {**CUSTOM, "labels": {"ray.io/cluster": "train"}}
    assert blocks(plan(group, {CUSTOM_CONTROLLERS: "false"})) == {"pod-group-spans-nodes"}


def test_the_age_from_which_a_system_pod_may_move_is_that_of_the_autoscaler() -> None:
    flag = "blocking-system-pod-distruption-timeout"
    assert blocks(plan(YOUNG_SYSTEM_POD, {flag: "20m"})) == set()
    assert blocks(plan({"namespace": "kube-system"}, {flag: "20000h"})) == {"system-pod-without-budget"}


def test_a_node_with_a_workload_under_the_replica_minimum_is_drained_because_the_autoscaler_keeps_it() -> None:
    flags = {"min-replica-count": "3"}
    scale = {
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2},
        "status": {"readyReplicas": 2},
    }
    items = [node("a"), node("b"), pod("web-0", "a", "1", app="web"), pod("web-1", "b", "2", app="web"), scale]
    made = planned(*items, now=PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, flags=flags)))
    assert ([step.node for step in made.all_steps], list(made.left)) == (["a"], [])
    custom = {**flags, CUSTOM_CONTROLLERS: "false"}
    made = planned(*items, now=PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, flags=custom)))
    assert list(made.left) == ["a"]


def autoscaler_of_group(name: str, **flags: str) -> Autoscaler:
    group = NodeGroupStatus(name=name, healthy=True, scale_up="NotNeeded", min_size=0, target=2)
    return Autoscaler(name=name, updated=NOW, groups=(group,), threshold=0, flags=flags)


def test_of_several_autoscalers_only_the_flags_of_the_one_that_looks_after_a_node_count() -> None:
    members = [autoscaler_of_group("asg-a", **{LOCAL_STORAGE: "false"}), autoscaler_of_group("asg-b")]
    nodes = [node(f"{g}{i}", labels={"alpha.eksctl.io/nodegroup-name": f"asg-{g}"}) for g in "ab" for i in "01"]
    pods = [pod(f"web-{g}{i}", f"{g}{i}", "1", **SCRATCH) for g in "ab" for i in "01"]
    context = PlanningContext(now=NOW, autoscaler=join_autoscalers(members))
    made = planned(*nodes, *pods, now=context)
    assert {key[-2] for key in made.pods} == {"b"}
    assert {step.node[0] for step in made.all_steps} == {"a"}


def test_a_node_of_which_the_autoscaler_is_not_known_must_be_free_of_every_block() -> None:
    members = [autoscaler_of_group("x", **{LOCAL_STORAGE: "false"}), autoscaler_of_group("y")]
    items = [node("a"), node("b"), pod("web-0", "a", "1", **SCRATCH), pod("web-1", "b", "2")]
    context = PlanningContext(now=NOW, autoscaler=join_autoscalers(members))
    assert blocks(planned(*items, now=context)) == {"local-data"}


@pytest.mark.parametrize(
    ("flags", "is_refused"),
    [
        ({}, False),
        ({"ok-total-unready-count": "1"}, True),
        ({"ok-total-unready-count": "1", "max-total-unready-percentage": "80"}, False),
    ],
)
def test_the_autoscalers_limits_of_unready_nodes_hold(flags: dict[str, str], *, is_refused: bool) -> None:
    nodes = [node("a"), node("b"), *(node(f"c{i}", ready=False) for i in range(2))]
    context = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, flags=flags))
    made = planned(*nodes, pod("web-0", "a", "1"), pod("web-1", "b", "2"), now=context)
    assert ("too-many-nodes-not-ready" in {reason.code.name for reason in made.refusals.values()}) is is_refused


def test_a_pool_may_limit_the_grace_of_the_pods_that_move() -> None:
    slow = {"spec": {"terminationGracePeriodSeconds": 900}}
    limited = replace(ALL, max_grace=899)
    items = [node("a"), node("b"), pod("web-0", "a", "1", **slow), pod("web-1", "b", "2")]
    assert {key: reason.code.name for key, reason in planned(*items, pool=limited).pods.items()} == {
        "default/web-0": "grace-period-too-long"
    }
    assert planned(*items, pool=replace(ALL, max_grace=900)).pods == {}
    assert planned(*items, pool=ALL).pods == {}


def test_of_like_pods_only_those_with_the_long_grace_stay() -> None:
    items = [node(name) for name in "abc"]
    items += [pod(f"web-{i}", "a", "1", spec={"terminationGracePeriodSeconds": 60 * i}) for i in range(1, 4)]
    assert list(planned(*items, pool=replace(ALL, max_grace=120)).pods) == ["default/web-3"]


def test_a_daemon_set_pod_with_a_long_grace_keeps_no_node() -> None:
    slow = pod("log-0", "a", owner="DaemonSet", spec={"terminationGracePeriodSeconds": 9000})
    items = [node("a"), node("b"), slow, pod("web-0", "a", "1"), pod("web-1", "b", "2")]
    assert planned(*items, pool=replace(ALL, max_grace=60)).pods == {}
