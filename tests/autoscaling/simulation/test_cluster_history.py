"""Snapshots and lives of pods become a history: which nodes and pods are alike, and what keeps a node."""

from typing import Any

import pytest

from tests.cluster_of import budget, cluster, node, pod
from tests.reasons import has_facts
from trimtab.autoscaling.simulation.cluster_history import (
    SAFE_TO_EVICT,
    blocks_scale_down,
    build_history,
    count_lives,
    count_pods,
    workload_name,
)
from trimtab.autoscaling.simulation.replay_nodes import ReplayWorkload
from trimtab.cluster.autoscaler_evictions import DEFAULT_RULES


def owned(name: str, on: str = "a", kind: str = "StatefulSet", **more: Any) -> dict[str, Any]:
    created_pod = pod(name, on, **more)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u", "controller": True}
    created_pod["metadata"]["ownerReferences"] = [reference]
    return created_pod


def only_workload(*items: dict[str, Any]) -> ReplayWorkload:
    [workload] = build_history(cluster(*items), []).history.workloads.values()
    return workload


def test_nodes_with_the_same_amounts_are_of_one_shape_unless_a_pod_selects_by_what_differs() -> None:
    nodes = [node(name, labels={"disk": name}) for name in "ab"]
    assert len(build_history(cluster(*nodes, owned("web-0")), []).history.shapes) == 1
    choosy = owned("web-0", spec={"nodeSelector": {"disk": "a"}})
    history = build_history(cluster(*nodes, choosy), []).history
    assert len(history.shapes) == 2
    [workload] = history.workloads.values()
    assert workload.shapes == {history.nodes[0][0]}


def test_daemons_are_taken_from_the_room_and_counted_in_the_utilization() -> None:
    history = build_history(cluster(node("a", cpu="4"), owned("log-x", kind="DaemonSet", cpu="500m")), []).history
    [shape] = history.shapes.values()
    assert (shape.cpu, shape.daemon_cpu, history.workloads) == (3500, 500, {})


def test_a_workload_has_the_largest_requests_of_its_pods() -> None:
    both = owned("web-0", cpu="200m"), owned("web-1", cpu="300m")
    workload = only_workload(node("a"), *both)
    assert (workload.name, workload.cpu) == ("default/StatefulSet/web", 300)


def test_a_pod_that_selects_its_node_by_name_keeps_it() -> None:
    pinned = owned("web-0", spec={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    assert only_workload(node("a"), pinned).blocks


def test_a_budget_lets_the_autoscaler_move_pods_of_kube_system() -> None:
    system = owned("web-0", app="web")
    system["metadata"]["namespace"] = "kube-system"
    actual_budget = budget("web", 1)
    actual_budget["metadata"]["namespace"] = "kube-system"
    assert only_workload(node("a"), system).blocks
    assert not only_workload(node("a"), system, actual_budget).blocks


@pytest.mark.parametrize(
    ("volumes", "annotation", "is_owned", "blocks"),
    [
        ([], "", True, False),
        ([], "", False, True),
        ([], "false", True, True),
        ([], "true", False, False),
        ([{"name": "v", "emptyDir": {}}], "", True, True),
        ([{"name": "v", "emptyDir": {"medium": "Memory"}}], "", True, False),
        ([{"name": "v", "hostPath": {"path": "/x"}}], "", True, True),
        ([{"name": "v", "emptyDir": {}}], "true", True, False),
    ],
)
def test_what_keeps_a_node(volumes: list[Any], annotation: str, is_owned: bool, blocks: bool) -> None:
    item = owned("web-0", spec={"volumes": volumes})
    if annotation:
        item["metadata"]["annotations"] = {SAFE_TO_EVICT: annotation}
    [one] = cluster(node("a"), item).pods
    assert blocks_scale_down(one, DEFAULT_RULES, is_owned=is_owned, has_budget=False) is blocks


def test_pods_count_while_they_live() -> None:
    lives = {"web": [(0, 600), (300, 900)], "db": [(0, 900)]}
    assert count_lives(lives, 300) == [
        (0, {"web": 1, "db": 1}),
        (300, {"web": 2, "db": 1}),
        (600, {"web": 2, "db": 1}),
        (900, {"web": 1, "db": 1}),
    ]
    assert count_lives({}, 300) == []


def test_a_replica_set_is_named_by_its_deployment() -> None:
    item = owned("web-0", kind="ReplicaSet")
    item["metadata"]["ownerReferences"][0]["name"] = "web-7d4b9c6f5d"
    item["metadata"]["labels"] = {"pod-template-hash": "7d4b9c6f5d"}
    inventory = cluster(node("a"), item, pod("alone", "a"))
    names = {one.name: workload_name(one) for one in inventory.pods}
    assert names["web-0"] == "default/Deployment/web"
    assert count_pods(inventory) == {name: 1 for name in names.values() if name}


def test_workloads_without_a_pod_at_the_beginning_are_named() -> None:
    reading = build_history(cluster(node("a"), owned("web-0")), [(0, {"default/Deployment/new": 2})])
    assert reading.history.moments == [(0, {})]
    assert has_facts(reading.notes[0], "1 workload of the history is", "left out")
