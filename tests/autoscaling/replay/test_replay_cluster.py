"""The cluster in memory of a replay, at its beginning and when something happens."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from tests.autoscaling.replay.simulated_captures import owner_reference
from tests.autoscaling.replay.test_recording import MONDAY, Object, node, pod, record
from trimtab.autoscaling.churn.churn_cluster import ClusterTimes
from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions
from trimtab.autoscaling.replay.demand import list_events, order_initial_pods
from trimtab.autoscaling.replay.recorded_marks import list_unneeded
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.autoscaling.replay.replay_cluster import (
    ReplayCluster,
    describe_slot,
    make_templates,
    settle_deployments,
    with_counts,
)
from trimtab.autoscaling.replay.replay_scheduler import ReplayScheduler, can_ignore_labels
from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import Pdb
from trimtab.cluster.pool import pool_name
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import read_documents

BUDGET = Pdb(
    namespace="shop",
    name="web",
    selector=LabelSelector(),
    allowed=0,
    max_allowed=0,
    is_healthy=False,
    is_stale=True,
    selector_problem="",
    always_evictable=False,
)


def replay(*rounds: list[Object]) -> ReplayCluster:
    (stretch,) = record(*rounds).stretches
    return start(stretch)


def start(stretch: Stretch, top_owners: Mapping[OwnerKey, OwnerKey] | None = None) -> ReplayCluster:
    return ReplayCluster(
        Churn(options=ChurnOptions(), workloads=(), events=list_events(stretch, top_owners)),
        ClusterTimes(),
        epoch=stretch.begin,
        scheduler=ReplayScheduler(),
        stretch=stretch,
        recorded_top_owners=top_owners or {},
    )


def places(cluster: ReplayCluster) -> list[str]:
    return sorted(one.node for one in cluster.pods.values() if not one.is_daemon)


def test_it_begins_with_the_recorded_places() -> None:
    cluster = replay([node("a"), node("b"), pod("p1", "a"), pod("p2", "a")])
    assert places(cluster) == ["a", "a"]
    assert cluster.epoch == MONDAY


def test_a_new_pod_gets_the_place_of_the_scheduler_and_not_the_recorded_one() -> None:
    first = [node("a"), node("b"), pod("p1", "a")]
    cluster = replay(first, [*first, pod("p2", "a", created=100)])
    cluster.advance_to(200)
    assert places(cluster) == ["a", "b"]


def test_a_pod_that_found_no_node_gets_one_that_is_uncordoned() -> None:
    first = [node("a"), pod("p1", "a")]
    cluster = replay(first, [*first, pod("p2", "a", created=100)])
    cluster.set_node(replace(cluster.nodes["a"], is_cordoned=True))
    cluster.advance_to(200)
    assert places(cluster) == ["", "a"]
    cluster.set_node(replace(cluster.nodes["a"], is_cordoned=False))
    cluster.settle()
    assert places(cluster) == ["a", "a"]


def test_each_node_has_its_daemons_and_a_new_node_those_of_its_group() -> None:
    cluster = replay([node("a"), pod("p1", "a"), pod("log", "a", owner=("DaemonSet", "log"))])
    cluster.order_node("web")
    cluster.advance_to(200)
    assert [sum(one.is_daemon for one in cluster.pods_on(name)) for name in sorted(cluster.nodes)] == [1, 1]


def test_a_node_is_not_found_with_the_taint_of_its_end() -> None:
    rounds = [node("a"), pod("p1", "a")], [node("a", taint="spot/gone"), pod("p1", "a")]
    cluster = replay(*rounds)
    assert cluster.nodes["a"].taints == ()
    assert make_templates(cluster.stretch)["web"].taints == ()


def test_a_node_is_not_found_as_it_was_while_it_started() -> None:
    starting = node("a", taint="node.cilium.io/agent-not-ready")
    starting["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    cluster = replay([starting, pod("p1", "a")], [node("a"), pod("p1", "a")])
    found = cluster.nodes["a"]
    assert (found.taints, found.is_ready, found.allocatable) == ((), True, found.capacity)
    assert make_templates(cluster.stretch)["web"].taints == ()


def test_a_node_that_was_cordoned_at_the_beginning_takes_no_pod() -> None:
    first = [node("a"), node("b", cordoned=True), pod("p1", "a"), pod("p2")]
    cluster = replay(first, first)
    assert places(cluster) == ["a", "a"]
    assert [cluster.nodes[name].is_cordoned for name in ("a", "b")] == [False, True]


def test_a_broken_node_that_was_cordoned_is_no_reason_to_cordon_another() -> None:
    broken = node("b", cordoned=True)
    broken["status"] = {**broken["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}
    first = [node("a"), broken, pod("p1", "a")]
    cluster = replay(first, first)
    cluster.advance_to(60)
    assert [cluster.nodes[name].is_cordoned for name in ("a", "b")] == [False, True]


def test_a_new_node_is_like_the_latest_that_had_started() -> None:
    quiet = [node("a"), pod("p1", "a")]
    cluster = replay(quiet, quiet, quiet, [*quiet, node("b", taint="node.cilium.io/agent-not-ready", created=850)])
    assert make_templates(cluster.stretch)["web"].taints == ()


def test_nodes_of_a_renamed_group_are_found_by_the_new_name() -> None:
    cluster = replay([node("a"), pod("p1", "a")], [node("a", group="shop"), pod("p1", "a")])
    assert [pool_name(one) for one in (cluster.nodes["a"], cluster.templates["shop"])] == ["shop", "shop"]


def test_pods_with_other_requests_are_created_with_them() -> None:
    cluster = replay([node("a"), pod("p1", "a")], [node("a"), pod("p2", "a", created=100, cpu="2")])
    cluster.advance_to(299)
    requests = [one.requirements.requests["cpu"] for one in cluster.pods.values() if one.deletion_requested_at is None]
    assert requests == [2000]
    assert {describe_slot(cluster.stretch, slot, {}) for slot in cluster.stretch.samples} == {"ReplicaSet shop/web-1"}


def test_a_lost_machine_that_the_replay_does_not_have_is_another_one_of_its_group() -> None:
    cluster = replay(
        [node("a"), node("b"), node("c", group="other"), pod("p1", "b")],
        [node("a"), node("c", group="other"), pod("p2", "a", created=200)],
    )
    cluster.delete_node("b")
    cluster.advance_to(299)
    assert sorted(cluster.nodes) == ["c"]


def test_an_evicted_pod_comes_back_elsewhere() -> None:
    cluster = replay([node("a"), node("b"), pod("p1", "a")])
    (uid,) = cluster.pods
    cluster.set_node(replace(cluster.nodes["a"], is_cordoned=True))
    assert cluster.evict_pod(uid)
    cluster.advance_to(60)
    assert places(cluster) == ["b"]
    assert cluster.count_evictions().total() == 1


@pytest.mark.parametrize(
    ("rule", "ready", "allowed"),
    [
        ({"min_available": 2}, 3, 1),
        ({"min_available": "50%"}, 3, 1),
        ({"max_unavailable": 1}, 3, 1),
        ({"max_unavailable": 1}, 2, 0),
        ({"max_unavailable": "34%"}, 3, 2),
        ({"max_unavailable": 0}, 3, 0),
    ],
)
def test_a_budget_allows_what_the_disruption_controller_allows(
    rule: dict[str, int | str], ready: int, allowed: int
) -> None:
    budget = with_counts(replace(BUDGET, **rule), expected=3, ready=ready)  # type: ignore[arg-type]
    assert budget.allowed == allowed
    assert not budget.is_stale


def test_the_scheduler_forgets_workloads_that_are_gone() -> None:
    job, first = ("Job", "backup-1"), [node("a"), pod("p1", "a")]
    backup = pod("b1", "a", created=60, owner=job)
    backup["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    cluster = replay(first, [*first, backup], first)
    counts = []
    for second in (200, 590):
        cluster.advance_to(second)
        cluster.scheduler.is_outdated = True
        cluster.scheduler.refresh(cluster.nodes, cluster.pods.values())
        counts.append(len(cluster.scheduler.capacity.world.pending_pods))
    assert counts == [2, 1]


def test_another_repeat_gives_new_nodes_other_names_of_the_same_group() -> None:
    (stretch,) = record([node("a"), node("b"), node("c"), pod("p1", "a")]).stretches
    names = set()
    for naming in range(8):
        cluster = start(stretch)
        cluster.naming = naming
        cluster.order_node("web")
        cluster.advance_to(200)
        names |= set(cluster.nodes) - {"a", "b", "c"}
    assert len(names) > 1
    assert names <= {"a-1", "b-1", "c-1"}


def test_another_repeat_has_another_order_of_the_first_pods() -> None:
    (stretch,) = record([node("a"), node("b"), node("c"), pod("p1", "a"), pod("p2", "b"), pod("p3", "c")]).stretches
    assert [pod.node for pod in order_initial_pods(stretch, 0)] == ["a", "b", "c"]
    assert {order_initial_pods(stretch, repeat)[0].node for repeat in range(8)} == {"a", "b", "c"}


def test_labels_decide_nothing_unless_a_pod_asks_for_others() -> None:
    first = [node("a"), node("b"), pod("p1", "a")]
    (stretch,) = record(first, [*first, pod("p2", "a", created=100, owner=("Job", "backup-1"))]).stretches
    places_of = {}
    for ignores in (True, False):
        cluster = start(stretch)
        cluster.scheduler = ReplayScheduler(ignores_labels=ignores)
        cluster.advance_to(200)
        places_of[ignores] = places(cluster)
    assert places_of[True] == places_of[False]
    assert can_ignore_labels(stretch.samples.values())


def replica_set(name: str, deployment: str) -> Object:
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "ownerReferences": [owner_reference("apps/v1", "Deployment", deployment)],
        },
    }


def test_the_only_replica_of_a_deployment_gets_a_second_one_for_a_while() -> None:
    recorder = record([node("a"), node("b"), pod("p1", "a"), replica_set("web-1", "web")])
    cluster = start(recorder.stretches[0], recorder.top_owners)
    assert cluster.scale_workload("shop/web", 1, 2)
    cluster.advance_to(60)
    assert places(cluster) == ["a", "b"]
    counts = cluster.read_inventory().owners[OwnerKey("shop", "Deployment", "web")]
    assert (counts.wanted, counts.ready) == (2, 2)
    assert cluster.scale_workload("shop/web", 2, 1)
    cluster.advance_to(120)
    assert len(places(cluster)) == 1


@pytest.mark.parametrize(("deployment", "before"), [("shop/web", 3), ("shop/other", 1), ("else/web", 1)])
def test_a_count_that_is_not_the_present_one_is_not_changed(deployment: str, before: int) -> None:
    recorder = record([node("a"), pod("p1", "a"), replica_set("web-1", "web")])
    cluster = start(recorder.stretches[0], recorder.top_owners)
    assert not cluster.scale_workload(deployment, before, 2)
    assert len(cluster.pods) == 1


def test_a_workload_that_comes_back_shares_its_number_with_no_other_one() -> None:
    first, second = [node("a"), pod("p1", "a")], [node("a"), pod("p1", "a"), pod("q", "a", owner=("ReplicaSet", "b"))]
    third = [node("a"), pod("p1", "a"), pod("r", "a", created=700, owner=("ReplicaSet", "c"))]
    fourth = [*third, pod("q2", "a", created=1000, owner=("ReplicaSet", "b"))]
    fifth = [*fourth, pod("s", "a", created=1300, owner=("ReplicaSet", "d"))]
    cluster = replay(first, second, third, fourth, fifth)
    cluster.advance_to(1199)
    assert len({one.likeness for one in cluster.pods.values()}) == 3
    cluster.advance_to(1499)
    assert len({one.likeness for one in cluster.pods.values()}) == 4


def candidate(name: str, since: str) -> Object:
    one = node(name)
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule", "value": since}
    return {**one, "spec": {**one["spec"], "taints": [taint]}}


def test_a_node_has_been_unneeded_since_the_recorded_autoscaler_marked_it() -> None:
    later = [node("a"), candidate("d", str(MONDAY + 200))]
    recorded = record([node("a"), candidate("b", str(MONDAY - 500)), candidate("c", "")], later)
    assert list_unneeded(recorded.stretches[0]) == {"b": MONDAY - 500, "c": MONDAY}


def test_the_scheduler_avoids_a_node_that_the_recorded_autoscaler_had_marked() -> None:
    rounds = [[node("a"), candidate("b", str(MONDAY - 500)), pod("p1", "a")]] * 2
    cluster = replay(*rounds, [*rounds[0], pod("p2", "a")])
    cluster.advance_to(1000)
    assert [one.node for one in cluster.pods.values()] == ["a", "a"]


def test_a_node_that_is_being_emptied_is_not_cordoned_by_a_user() -> None:
    cordoned = [node("a", cordoned=True), node("b"), pod("p1", "a")]
    cluster = replay([node("a"), node("b"), pod("p1", "a")], cordoned, [node("a"), node("b"), pod("p1", "a")])
    cluster.set_node(replace(cluster.nodes["a"], is_cordoned=True))
    cluster.advance_to(599)
    assert cluster.nodes["a"].is_cordoned
    cluster.advance_to(700)
    assert cluster.nodes["a"].is_cordoned


def deployment(name: str, replicas: int, *, updated: int = 0) -> Object:
    return {
        "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": name, "generation": 3},
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 2, "replicas": replicas + 1, "updatedReplicas": updated},
    }


def budget(name: str) -> Object:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"selector": {}, "maxUnavailable": 1},
    }


def test_a_budget_expects_what_the_deployment_wants_while_a_rollout_adds_pods() -> None:
    new = pod("p3", "a", owner=("ReplicaSet", "web-2"))
    sets = [replica_set("web-1", "web"), replica_set("web-2", "web")]
    recorder = record([node("a"), pod("p1", "a"), pod("p2", "a"), new, *sets, deployment("web", 2), budget("web")])
    cluster = start(recorder.stretches[0], recorder.top_owners)
    (one,) = cluster.budgets
    assert (one.expected, one.healthy, one.allowed) == (2, 3, 2)
    assert cluster.read_inventory().owners[OwnerKey("shop", "Deployment", "web")].wanted == 2


def test_a_deployment_is_not_for_ever_in_the_rollout_with_which_the_recording_ends() -> None:
    recorder = record([node("a"), pod("p1", "a"), replica_set("web-1", "web"), deployment("web", 2, updated=1)])
    documents = read_documents("captures", msgspec.json.encode({"kind": "List", "items": [deployment("web", 2)]}))
    last = snapshot_inventory(build_snapshot(list(documents.documents)).snapshot, ()).deployments
    key = OwnerKey("shop", "Deployment", "web")
    before, after = last.find(key), settle_deployments(last).find(key)
    assert before is not None
    assert after is not None
    assert (before.is_rolling, after.is_rolling, after.available) == (True, False, 2)
    assert [count for _, _, count in recorder.stretches[0].counts] == [2]
