"""LimitRanges and quotas, with facts from the cluster itself: no pod is refused on our account.

Each world is tried with our second call and without it (`Never`): it may time out under `Ignore` at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following, kubectl

BOTH = pytest.mark.parametrize("again", ["IfNeeded", "Never"])
LIMITS = {"cpu": "1", "memory": "256Mi"}
SIZES = "{requests: {cpu: {from: policy, otherwise: '2', when: always}}, limits: {cpu: remove, memory: remove}}"
NO_LIMITS = "{limits: {cpu: remove, memory: remove}}"


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def bounded(cluster: Cluster, **limits: Any) -> None:
    """A LimitRange, in force at the API server on return."""
    spec = {"limits": [{"type": "Container", **limits}]}
    cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "guard"}, "spec": spec})
    cluster.eventually(lambda: resources(cluster.pod(name="probe", dry_run=True)) != {})


def resources(pod: dict[str, Any]) -> dict[str, Any]:
    resources: dict[str, Any] = pod["spec"]["containers"][0].get("resources", {})
    return resources


def container(**given: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "pause", **({"resources": given} if given else {})}]}


@BOTH
def test_a_default_limit_stays_and_no_request_rises_above_it(ours: Ours, cluster: Cluster, again: str) -> None:
    bounded(cluster, default={"cpu": "500m"}, defaultRequest={"cpu": "100m"})
    ours.policy(cluster, "sizes", SIZES)
    ours.serves(cluster, reinvocation_policy=again)
    cluster.eventually(lambda: resources(cluster.pod(dry_run=True))["requests"]["cpu"] == "500m")
    assert resources(cluster.pod()) == {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}


@BOTH
def test_a_maximum_keeps_the_limit_and_bounds_the_request(ours: Ours, cluster: Cluster, again: str) -> None:
    bounded(cluster, max={"cpu": "800m"})
    ours.policy(cluster, "sizes", SIZES)
    ours.serves(cluster, reinvocation_policy=again)
    container_report = container(requests={"cpu": "50m"}, limits={"cpu": "600m", "memory": "64Mi"})
    expected = {"requests": {"cpu": "600m", "memory": "64Mi"}, "limits": {"cpu": "600m"}}
    cluster.eventually(lambda: resources(cluster.pod(container_report, dry_run=True)) == expected)
    assert resources(cluster.pod(container_report)) == expected


@BOTH
def test_a_minimum_raises_what_we_give(ours: Ours, cluster: Cluster, again: str) -> None:
    bounded(cluster, min={"cpu": "200m"})
    ours.policy(cluster, "small", "{requests: {cpu: {from: policy, otherwise: 50m, when: always}}}")
    ours.serves(cluster, reinvocation_policy=again)
    container_report = container(requests={"cpu": "1"})
    cluster.eventually(lambda: resources(cluster.pod(container_report, dry_run=True))["requests"]["cpu"] == "200m")
    assert resources(cluster.pod(container_report))["requests"]["cpu"] == "200m"


@BOTH
def test_limits_that_a_quota_counts_stay_and_kubectl_says_why(ours: Ours, cluster: Cluster, again: str) -> None:
    hard = {"limits.cpu": "10"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}}
    cluster.apply(quota)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "team").get("status", {}).get("hard") == hard)
    ours.policy(cluster, "limits", NO_LIMITS)
    ours.serves(cluster, reinvocation_policy=again)
    container_report = container(requests={"cpu": "100m"}, limits=LIMITS)
    cluster.eventually(lambda: resources(cluster.pod(container_report, dry_run=True))["limits"] == {"cpu": "1"})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": container_report}
    client = kubectl(cluster, "create", "-f", "-", stdin=pod)
    assert client.code == 0
    assert [line for line in client.warnings if "team" in line]
    assert resources(cluster.get("Pod", "web"))["limits"] == {"cpu": "1"}


def test_a_quota_gone_lets_the_limits_go(ours: Ours, cluster: Cluster) -> None:
    hard = {"limits.cpu": "10"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}}
    cluster.apply(quota)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "team").get("status", {}).get("hard") == hard)
    ours.policy(cluster, "limits", NO_LIMITS)
    ours.serves(cluster)
    container_report = container(requests={"cpu": "100m"}, limits=LIMITS)
    cluster.eventually(lambda: resources(cluster.pod(container_report, dry_run=True)).get("limits") == {"cpu": "1"})
    cluster.delete("ResourceQuota", "team")
    cluster.eventually(lambda: "limits" not in resources(cluster.pod(container_report, dry_run=True)))
    assert "limits" not in resources(cluster.pod(container_report))
