"""What happens around a surge: a rollout, another Deployment under the budget, a pod that lacks, and who reverts it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Eye, compactor, pool
from tests.e2e.surges import EndpointWatch, budget_of, call_repeatedly, is_closed, service, two_nodes
from tests.e2e.test_compactor_surge import SURGES, is_empty, plan_codes, scaled


def count(cluster: Cluster, app: str = "only") -> int:
    number: int = cluster.get("Deployment", app)["spec"]["replicas"]
    return number


def begin(cluster: Cluster) -> None:
    cluster.apply(pool(cluster, cluster.namespace, **SURGES))


def test_two_deployments_under_one_budget_move_one_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.namespace
    two_nodes(cluster, name, 1)
    # The second node is closed while the pod finds its place.
    cluster.patch("Node", f"{name}-b", {"spec": {"unschedulable": True}})
    spec = {"nodeSelector": {"pool": name}, "terminationGracePeriodSeconds": 1}
    cluster.deployment("also", replicas=1, cpu="300m", spec=spec)
    cluster.eventually(lambda: len(cluster.running("app=also")) == 1)
    cluster.patch("Node", f"{name}-b", {"spec": {"unschedulable": None}})
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["only", "also"]}]}
    cluster.apply([service("also"), budget_of(2, selector=selector)])
    cluster.eventually(lambda: is_closed(cluster), within=20)
    begin(cluster)
    eye, endpoints = Eye(cluster, watches_budgets=True), EndpointWatch(cluster)
    with eye, endpoints, compactor(cluster, tmp_path):
        cluster.eventually(lambda: is_empty(cluster, name), within=40)
    assert (count(cluster), count(cluster, "also")) == (1, 1)
    assert (dict(endpoints.dark), eye.broken_budgets) == ({}, set())


def test_a_rollout_that_begins_in_the_middle_ends_before_the_pod_moves(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.namespace
    two_nodes(cluster, name, 2)
    cluster.apply(budget_of(2))
    cluster.eventually(lambda: is_closed(cluster), within=20)
    begin(cluster)
    eye, endpoints = Eye(cluster, watches_budgets=True), EndpointWatch(cluster)
    with eye, endpoints, compactor(cluster, tmp_path):
        cluster.eventually(lambda: count(cluster) == 3, within=30)
        template = {"metadata": {"annotations": {"rolled": "out"}}}
        rolling = {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}, "template": template}
        cluster.patch("Deployment", "only", {"spec": rolling})
        cluster.eventually(lambda: count(cluster) == 2, within=60)
        cluster.eventually(lambda: len(cluster.running("app=only")) == 2, within=30)
    assert (dict(endpoints.dark), eye.broken_budgets) == ({}, set())
    assert endpoints.fewest["only"] >= 2


def test_two_of_three_are_left_to_recover(cluster: Cluster, tmp_path: Path) -> None:
    """The third pod is not ready, for a short time: the budget will allow an eviction by itself."""
    two_nodes(cluster, cluster.namespace, 2)
    cluster.apply(budget_of(2))
    never = {"metadata": {"annotations": {"testbed.trimtab.dev/ready-after": "900s"}}}
    cluster.patch("Deployment", "only", {"spec": {"paused": True}})
    [replica_set] = cluster.list("ReplicaSet", selector="app=only")
    cluster.patch("ReplicaSet", replica_set["metadata"]["name"], {"spec": {"template": never}})
    cluster.patch("Deployment", "only", {"spec": {"replicas": 3}})
    cluster.eventually(lambda: len(cluster.list("Pod", selector="app=only")) == 3, within=20)
    cluster.eventually(lambda: is_closed(cluster), within=20)
    begin(cluster)
    auditor = cluster.auditor
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("leads"), within=20)
        time.sleep(5)
        assert plan_codes(cluster) == {"budget-spent"}
    assert scaled(auditor) == []
    assert len(cluster.running("app=only")) == 2


@pytest.mark.parametrize("replicas", [1, 2])
def test_who_writes_the_count_back_keeps_the_pod_and_is_remembered(
    cluster: Cluster, tmp_path: Path, replicas: int
) -> None:
    """As a tool that delivers from Git does."""
    two_nodes(cluster, cluster.namespace, replicas)
    cluster.apply(budget_of(replicas))
    cluster.eventually(lambda: is_closed(cluster), within=20)
    begin(cluster)
    as_before = {"spec": {"replicas": replicas}}
    with (
        EndpointWatch(cluster) as endpoints,
        call_repeatedly(lambda: count(cluster) == replicas or cluster.patch("Deployment", "only", as_before)),
        compactor(cluster, tmp_path) as one,
    ):
        cluster.eventually(lambda: one.told("released"), within=60)
        time.sleep(5)
        assert len(one.told("started")) == 1
    assert count(cluster) == replicas
    assert endpoints.fewest["only"] >= replicas
