"""Is the ground firm that the other tests stand on?"""

from __future__ import annotations

import signal
import time

import pytest

from tests.controlplane.api import ApiError, Unreachable
from tests.controlplane.cluster import Cluster


def test_a_deployments_pods_get_running(cluster: Cluster) -> None:
    cluster.some_nodes()
    cluster.deployment("web", replicas=3, cpu="100m")
    assert cluster.eventually(lambda: len(cluster.running("app=web")) == 3, within=60)


def test_pods_of_a_pool_go_where_their_selector_and_toleration_say(cluster: Cluster) -> None:
    names = cluster.pool("batch", nodes=2, taints=["pool=batch:NoSchedule"])
    tolerated = [{"key": "pool", "value": "batch", "effect": "NoSchedule"}]
    cluster.deployment("work", replicas=4, spec={"nodeSelector": {"pool": "batch"}, "tolerations": tolerated})
    pods = cluster.eventually(lambda: cluster.running() if len(cluster.running()) == 4 else [])
    assert {pod["spec"]["nodeName"] for pod in pods} == set(names)


def test_a_pod_too_large_for_every_node_stays_pending(cluster: Cluster) -> None:
    cluster.pool("small", cpu="2")
    cluster.deployment("big", cpu="64")
    why = cluster.eventually(lambda: _unschedulable(cluster))
    assert "Insufficient cpu" in why


def test_a_job_ends(cluster: Cluster) -> None:
    cluster.pool("jobs")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": cluster.image}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": template}}
    cluster.apply(job)
    assert cluster.eventually(lambda: cluster.get("Job", "once")["status"].get("succeeded") == 1)


def test_an_evicted_pod_of_a_job_ends_and_is_replaced(cluster: Cluster) -> None:
    """With a podFailurePolicy, the Job controller waits until the pod has ended."""
    cluster.some_nodes()
    template = {
        "metadata": {"annotations": {"testbed.trimtab.dev/runs-for": "1h"}},
        "spec": {"containers": [{"name": "main", "image": "pause"}], "restartPolicy": "Never"},
    }
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    spec = {"template": template, "podFailurePolicy": {"rules": rules}}
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "long"}, "spec": spec})
    first = cluster.eventually(lambda: cluster.running("job-name=long"))[0]["metadata"]["name"]
    cluster.evict(first)

    def present() -> list[str]:
        return [pod["metadata"]["name"] for pod in cluster.list("Pod", selector="job-name=long")]

    assert cluster.eventually(lambda: first not in present() and present(), within=20)


def test_a_pod_may_take_its_time_to_get_ready(cluster: Cluster) -> None:
    cluster.pool("slow")
    cluster.deployment("web", annotations={"testbed.trimtab.dev/ready-after": "3s"})
    begun = time.monotonic()
    cluster.eventually(cluster.running)
    assert time.monotonic() - begun > 2


def test_an_evicted_pod_comes_back_and_a_spent_budget_answers_429(cluster: Cluster) -> None:
    cluster.some_nodes()
    cluster.deployment("web", replicas=2, annotations={"testbed.trimtab.dev/ready-after": "2s"})
    cluster.apply(BUDGET)
    cluster.eventually(lambda: cluster.get("PodDisruptionBudget", "web")["status"].get("disruptionsAllowed") == 1)
    first, second = (pod["metadata"]["name"] for pod in cluster.running())
    cluster.evict(first)
    with pytest.raises(ApiError, match="429 TooManyRequests"):
        cluster.evict(second)
    there = cluster.eventually(lambda: cluster.running() if len(cluster.running()) == 2 else [])
    assert first not in {pod["metadata"]["name"] for pod in there}


def test_kubectl_sees_the_same_cluster(cluster: Cluster) -> None:
    cluster.pod(name="lonely")
    assert cluster.kubectl("get", "pods", "-o", "name") == "pod/lonely\n"


def test_roles_are_enforced(cluster: Cluster) -> None:
    nobody = Cluster(cluster.plane.kubeconfig_for("nobody", "strangers"), cluster.namespace)
    with pytest.raises(ApiError, match="403 Forbidden"):
        nobody.list("Pod")


def test_the_version_is_the_one_that_was_built(cluster: Cluster) -> None:
    assert cluster.api.request("GET", "/version")["gitVersion"] == f"v{cluster.plane.binaries.kubernetes}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked-to-go", "killed"])
def test_the_api_server_comes_back_with_everything(cluster: Cluster, number: int) -> None:
    cluster.pod(name="before")
    cluster.restart("kube-apiserver", number)
    assert cluster.get("Pod", "before")["metadata"]["name"] == "before"
    cluster.pool("after")
    cluster.deployment("web", replicas=2)
    assert cluster.eventually(lambda: len(cluster.running("app=web")) == 2, within=30)


def test_an_outage_is_refused_connections_and_then_over(cluster: Cluster) -> None:
    cluster.take_down("kube-apiserver", signal.SIGKILL)
    try:
        with pytest.raises(Unreachable, match="refused"):
            cluster.list("Pod")
    finally:
        cluster.bring_back("kube-apiserver")
    assert cluster.list("Pod") == []


def test_a_frozen_api_server_is_silent_until_it_thaws(cluster: Cluster) -> None:
    cluster.freeze("kube-apiserver")
    try:
        with pytest.raises(Unreachable):
            cluster.api.request("GET", "/version", timeout=1)
    finally:
        cluster.thaw("kube-apiserver")
    assert cluster.eventually(lambda: cluster.api.request("GET", "/readyz") == "ok")


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: web}}
"""


def _unschedulable(cluster: Cluster) -> str:
    conditions = [c for pod in cluster.list("Pod") for c in pod["status"].get("conditions", ())]
    return next((c["message"] for c in conditions if c.get("reason") == "Unschedulable"), "")
