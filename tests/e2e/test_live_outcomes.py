"""Pods that come out run, on the real scheduler and under the real quota."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from tests.controlplane.autoscaler import status
from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode

RULES = "{requests: {cpu: {from: usage, when: always}}}"


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def known(ours: Ours, cluster: Cluster, p95: str, *names: str) -> None:
    """What `main` of Deployment web uses, or of these, is known, and a policy goes by it."""
    usage = ContainerUsage(cpu=Percentiles(p5="10m", p95=p95), days=14)
    observations = {f"{cluster.namespace}/Deployment/{name}": {"main": usage} for name in names or ("web",)}
    name = f"trimtab-recommendations-{cluster.namespace[-5:]}"
    metadata = {"name": name, "namespace": ours.namespace, "labels": {RECOMMENDATIONS_LABEL: "v1"}}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(observations)}}
    )
    ours.policy(cluster, "usage", RULES)
    ours.serves(cluster)


def requested(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods]


def all_of(cluster: Cluster, count: int) -> list[dict[str, Any]]:
    def there() -> list[dict[str, Any]] | None:
        pods = cluster.list("Pod", selector="app=web")
        return pods if len(pods) == count else None

    result: list[dict[str, Any]] = cluster.eventually(there)
    return result


def test_a_pod_that_had_a_node_still_has_one(ours: Ours, cluster: Cluster) -> None:
    """P95 is less than the largest node holds, but that one is tainted: the pod was Pending for ever."""
    taint = {"key": "big", "value": "yes", "effect": "NoSchedule"}
    cluster.pool("small", 1, cpu="8", memory="32Gi")
    cluster.pool("big", 1, cpu="16", memory="32Gi", taints=[taint])
    known(ours, cluster, "12")
    cluster.deployment("web", replicas=1, cpu="100m")
    assert requested(all_of(cluster, 1)) == ["100m"]
    cluster.eventually(lambda: cluster.running("app=web"))


def test_containers_are_summed_before_a_node_is_asked_for_them(ours: Ours, cluster: Cluster) -> None:
    """Each of two containers was given what the largest node holds once: the pod was Pending for ever."""
    tag = cluster.namespace[-5:]
    cluster.pool(f"large-{tag}", 1, cpu="16", memory="32Gi")
    ours.policy(cluster, "ten", "{requests: {cpu: {from: policy, otherwise: '10', when: always}}}")
    ours.serves(cluster)
    small = {"image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    cluster.deployment("web", spec={"containers": [{"name": name, **small} for name in ("main", "proxy")]})
    assert requested(all_of(cluster, 1)) == ["100m"]
    cluster.eventually(lambda: cluster.running("app=web"))


def test_tolerations_of_two_policies_for_one_key_leave_no_pod_pending(ours: Ours, cluster: Cluster) -> None:
    """The second policy's toleration of the same key was dropped, its affinity stayed."""
    taint = {"key": "pool", "value": "batch", "effect": "NoSchedule"}
    cluster.pool("open", 1, cpu="8", memory="32Gi")
    cluster.pool("batch", 1, cpu="8", memory="32Gi", taints=[taint])
    spot = "{placement: {tolerate: [{key: pool, value: spot, effect: NoSchedule}]}}"
    ours.policy(cluster, "spot", spot, priority=500)
    tolerate = "tolerate: [{key: pool, value: batch, effect: NoSchedule}]"
    batch = f"{{placement: {{require: [{{label: pool, in: [batch]}}], {tolerate}}}}}"
    ours.policy(cluster, "batch", batch, priority=400)
    ours.serves(cluster)
    cluster.deployment("web", replicas=2, cpu="100m")
    result = cluster.eventually(lambda: all_running(cluster, 2))
    assert {pod["spec"]["nodeName"] for pod in result} == {"batch-0"}


def test_a_strict_spread_over_a_zone_that_is_closed_leaves_no_pod_pending(ours: Ours, cluster: Cluster) -> None:
    """The tainted zone stays empty, so the other one took a pod and no more. An author's own constraint does that.

    The autoscaler names its groups, and none may grow from zero: otherwise the constraint stays, with a warning.
    """
    tag = cluster.namespace[-5:]
    cluster.apply(status({f"open-{tag}": 1}))
    key, taint = f"zone-{tag}", {"key": "of", "value": "others", "effect": "NoSchedule"}
    cluster.pool(f"open-{tag}", 1, cpu="8", memory="32Gi", labels={key: "a"})
    cluster.pool(f"closed-{tag}", 1, cpu="8", memory="32Gi", labels={key: "b"}, taints=[taint])
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "strict"}},
    }
    cluster.deployment("strict", replicas=3, cpu="10m", spec={"topologySpreadConstraints": [constraint]})
    rule = f"{{topologySpread: {{constraints: [{{topologyKey: {key}, whenUnsatisfiable: DoNotSchedule}}]}}}}"
    ours.policy(cluster, "spread", rule)
    ours.serves(cluster)
    cluster.deployment("web", replicas=3, cpu="10m")
    result = cluster.eventually(lambda: all_running(cluster, 3))
    assert not any(pod["spec"].get("topologySpreadConstraints") for pod in result)
    assert len(cluster.running("app=strict")) == 1
    cluster.delete("ConfigMap", "cluster-autoscaler-status", "kube-system")


def all_running(cluster: Cluster, count: int) -> list[dict[str, Any]] | None:
    running_pod = cluster.running("app=web")
    return running_pod if len(running_pod) == count else None


def counts(cluster: Cluster, hard: dict[str, str]) -> None:
    """A quota, in force on return."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}}
    cluster.apply(quota)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "team").get("status", {}).get("hard") == hard)


@pytest.mark.parametrize(("hard", "given"), [("1500m", "50m"), ("4", "200m")])
def test_all_replicas_fit_the_quota_with_one_answer_for_all(
    ours: Ours, cluster: Cluster, hard: str, given: str
) -> None:
    """Eight pods of 50m ran in a quota of 1500m. Raised to 200m each, seven did, and one was refused for ever."""
    counts(cluster, {"requests.cpu": hard})
    known(ours, cluster, "200m")
    cluster.deployment("web", replicas=8, cpu="50m")
    pods = all_of(cluster, 8)
    [answer] = set(requested(pods))
    # Pods of a Deployment of which the watch does not tell yet are not raised.
    assert answer in {given, "50m"}
    if given != "50m":
        second_result = {
            "name": "again",
            "labels": {"app": "web"},
            "ownerReferences": pods[0]["metadata"]["ownerReferences"],
        }
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "50m"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": second_result, "spec": {"containers": [container]}}
        cluster.eventually(lambda: requested([cluster.pod(pod, dry_run=True)]) == [given], what="one more is raised")


def test_limits_are_counted_by_the_quota_as_requests_are(ours: Ours, cluster: Cluster) -> None:
    """Four pods with limits of 100m run in a quota of 1. Raised to 400m each, two were refused for ever."""
    counts(cluster, {"limits.cpu": "1"})
    ours.policy(cluster, "wide", "{limits: {cpu: request x 4}}")
    ours.serves(cluster)
    hundred = {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}
    cluster.deployment(
        "web", replicas=4, spec={"containers": [{"name": "main", "image": "pause", "resources": hundred}]}
    )
    assert [pod["spec"]["containers"][0]["resources"] for pod in all_of(cluster, 4)] == [hundred] * 4


def test_pods_of_fresh_deployments_are_mostly_raised_where_all_of_them_fit(ours: Ours, cluster: Cluster) -> None:
    """The first pod comes before the watch tells how many there will be: it waits for that, and decides for all."""
    names = [f"web-{number}" for number in range(10)]
    counts(cluster, {"requests.cpu": "40"})
    known(ours, cluster, "200m", *names)
    for name in names:
        cluster.deployment(name, replicas=4, cpu="50m")
    result = [cluster.eventually(partial(of_four, cluster, name)) for name in names]
    answers = [set(requested(pods)) for pods in result]
    assert {len(answer) for answer in answers} == {1}
    print("raised:", answers.count({"200m"}), "of", len(answers))
    assert answers.count({"200m"}) > len(names) // 2


def of_four(cluster: Cluster, name: str) -> list[dict[str, Any]] | None:
    pods = cluster.list("Pod", selector=f"app={name}")
    return pods if len(pods) == 4 else None


def test_a_rollout_under_a_quota_is_of_one_answer_and_ends(ours: Ours, cluster: Cluster) -> None:
    cluster.some_nodes()
    counts(cluster, {"requests.cpu": "2"})
    cluster.deployment("web", replicas=6, cpu="50m")
    cluster.eventually(lambda: all_running(cluster, 6))
    known(ours, cluster, "200m")
    cluster.patch("Deployment", "web", {"spec": {"template": {"metadata": {"annotations": {"again": "1"}}}}})

    def is_done() -> bool:
        deployment = cluster.get("Deployment", "web")
        status, generation = deployment["status"], deployment["metadata"]["generation"]
        is_seen = status.get("observedGeneration", 0) >= generation
        return is_seen and bool(status.get("updatedReplicas") == status.get("replicas") == 6)

    cluster.eventually(is_done, within=120, what="rolled out")
    newest = [
        pod for pod in cluster.list("Pod", selector="app=web") if "again" in pod["metadata"].get("annotations", {})
    ]
    assert len(newest) == 6
    assert len(set(requested(newest))) == 1


BATCH = "{placement: {require: [{label: pool, in: [%s]}], tolerate: [{key: pool, value: batch, effect: NoSchedule}]}}"
OWN_TOLERATION = {"tolerations": [{"key": "own", "operator": "Exists"}]}
OWN_AFFINITY = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
                ]
            }
        }
    }
}


@pytest.mark.parametrize("own", [OWN_TOLERATION, OWN_AFFINITY], ids=["tolerations", "affinity"])
def test_a_bare_pod_that_kubectl_keeps_is_placed_whole_or_not_at_all(
    ours: Ours, cluster: Cluster, own: dict[str, Any]
) -> None:
    """With tolerations of its own it got the affinity alone, and was Pending for ever; with an affinity of its own it
    got the toleration alone, and was let onto the dedicated nodes."""
    tag = cluster.namespace[-5:]
    cluster.pool(f"open-{tag}", 1, cpu="8", memory="32Gi")
    batch = {"key": "pool", "value": "batch", "effect": "NoSchedule"}
    cluster.pool(f"batch-{tag}", 1, cpu="8", memory="32Gi", taints=[batch])
    ours.policy(cluster, "batch", BATCH % f"batch-{tag}")
    ours.serves(cluster)
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "labels": {"app": "web"}},
        "spec": {"containers": [container], **own},
    }
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    [result] = cluster.eventually(lambda: cluster.running("app=web"))
    assert result["spec"]["nodeName"] != f"batch-{tag}-0"
    assert batch not in result["spec"]["tolerations"]


def test_a_class_that_selects_nodes_keeps_no_daemon_from_its_node(ours: Ours, cluster: Cluster) -> None:
    """The class's node selector stood on all three pods: each was Pending on every node but the class's."""
    tag = cluster.namespace[-5:]
    mine = {"of": tag}
    cluster.pool(f"plain-{tag}", 2, labels=mine)
    cluster.pool(f"kata-{tag}", 1, labels=mine)
    scheduling = {"nodeSelector": {"pool": f"kata-{tag}"}}
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata"}
    cluster.apply({**kind, "metadata": {"name": f"kata-{tag}"}, "scheduling": scheduling})
    ours.policy(cluster, "class", f"{{runtimeClass: {{name: kata-{tag}}}}}")
    ours.serves(cluster)
    cluster.eventually(lambda: cluster.pod(dry_run=True)["spec"].get("runtimeClassName") == f"kata-{tag}")
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], "nodeSelector": mine}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec})
    cluster.eventually(lambda: all_running(cluster, 3))


def test_an_overhead_that_the_quota_has_no_room_for_costs_no_replica(ours: Ours, cluster: Cluster) -> None:
    """Four pods of 120m fit; with the class's overhead of 250m each the quota refused all four."""
    tag = cluster.namespace[-5:]
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata"}
    cluster.apply({**kind, "metadata": {"name": f"kata-{tag}"}, "overhead": {"podFixed": {"cpu": "250m"}}})
    counts(cluster, {"requests.cpu": "600m"})
    ours.policy(cluster, "class", f"{{runtimeClass: {{name: kata-{tag}}}, labels: {{add: {{cost: low}}}}}}")
    ours.serves(cluster)
    cluster.deployment("web", replicas=4, cpu="120m")
    pods = all_of(cluster, 4)
    assert {pod["spec"].get("runtimeClassName") for pod in pods} == {None}
    assert {pod["metadata"]["labels"]["cost"] for pod in pods} == {"low"}


SSA = """
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {team: a}}
spec:
  tolerations: [{key: own, operator: Exists}]
  containers: [{name: main, image: pause, resources: {requests: {cpu: 50m}, limits: {cpu: 100m, memory: 64Mi}}}]
"""


def test_a_bare_pod_can_be_applied_on_the_server_again_and_again(ours: Ours, cluster: Cluster) -> None:
    """The second apply was refused: "pod updates may not change fields other than …"."""
    actions = (
        "{limits: {cpu: remove}, requests: {memory: {from: policy, otherwise: 32Mi}}, labels: {add: {cost: low}}, "
        "placement: {tolerate: [{key: pool, value: spot, effect: NoSchedule}]}}"
    )
    ours.policy(cluster, "bare", actions)
    ours.serves(cluster)
    for _ in range(2):
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=SSA)
    pod = cluster.get("Pod", "bare")
    [main] = pod["spec"]["containers"]
    assert main["resources"]["limits"] == {"cpu": "100m", "memory": "64Mi"}
    assert (main["resources"]["requests"], pod["metadata"]["labels"]) == (
        {"cpu": "50m", "memory": "64Mi"},
        {"team": "a", "cost": "low"},
    )
