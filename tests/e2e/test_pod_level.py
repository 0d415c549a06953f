"""Requests of whole pods on a real API server: what the webhook writes is stored, scheduled and classed as we say."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import jsonpatch
import msgspec
import pytest

from tests.build import policies, policy
from tests.controlplane import objects
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode
from trimtab.cluster.resources import pod_requests, qos_class
from trimtab.cluster.snapshot import load_snapshot
from trimtab.cluster.whole_pods import name_whole_pod
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.policy.pod_context import PodContext

Object = dict[str, Any]
WHOLE = "{podLevelRequests: {cpu: {rule: p95}, memory: {rule: p95}}}"
NEW, OLD = "v1.36.2", "v1.33.9"
DRAWN = 150
SEED = 42


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def usage(p95: str, memory: str) -> ContainerUsage:
    return ContainerUsage(
        cpu=Percentiles(p5="10m", p95=p95), memory=Percentiles(p5="10Mi", p95=memory), days=14, confidence=1.0
    )


def published(namespace: str, own: str, *names: str) -> Object:
    """The average container of the pod needs 200m and 100Mi at its P95; each alone needs more."""
    observation = {name: usage("300m", "200Mi") for name in names} | {name_whole_pod(names): usage("200m", "100Mi")}
    metadata = {
        "name": f"trimtab-recommendations-{namespace[-5:]}",
        "namespace": own,
        "labels": {RECOMMENDATIONS_LABEL: "v1"},
    }
    data = {PAYLOAD_KEY: encode({f"{namespace}/Deployment/web": observation})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def node(cluster: Cluster, name: str, version: str, cpu: str = "1") -> None:
    """A node of the pool of this namespace, with a kubelet of this version."""
    labels = {"pool": cluster.namespace}
    item = objects.node(name, cpu=cpu, memory="8Gi", pods=110, labels=labels, taints=[])
    item.setdefault("status", {})["nodeInfo"] = {"kubeletVersion": version}
    cluster.create(item)
    cluster.eventually(lambda: cluster.is_ready(name), what=f"{name} Ready")
    assert cluster.get("Node", name)["status"]["nodeInfo"]["kubeletVersion"] == version


def web(cluster: Cluster, name: str = "web", cpu: str = "350m") -> Object:
    """A pod of Deployment web with two containers, on the nodes of this namespace."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}
    requests = {"requests": {"cpu": cpu, "memory": "300Mi"}}
    metadata = {"name": name, "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": [owner]}
    containers = [{"name": one, "image": cluster.image, "resources": requests} for one in ("app", "proxy")]
    spec = {
        "automountServiceAccountToken": False,
        "containers": containers,
        "nodeSelector": {"pool": cluster.namespace},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def own_requests(pod: Object) -> Object:
    found: Object = pod["spec"].get("resources", {}).get("requests", {})
    return found


def test_the_pod_requests_once_and_the_scheduler_counts_that(ours: Ours, cluster: Cluster) -> None:
    node(cluster, f"new-{cluster.namespace[-5:]}", NEW)
    cluster.apply(published(cluster.namespace, ours.namespace, "app", "proxy"))
    ours.policy(cluster, "whole", WHOLE)
    ours.serves(cluster)
    whole = {"cpu": "400m", "memory": "200Mi"}
    cluster.eventually(lambda: own_requests(cluster.pod(web(cluster), dry_run=True)) == whole, what="a whole request")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": web(cluster)["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    cluster.eventually(lambda: len(cluster.list("Pod")) == 3, what="three pods")
    for pod in cluster.list("Pod"):
        assert own_requests(pod) == whole
        assert [c["resources"] for c in pod["spec"]["containers"]] == [{}, {}]
        assert pod["status"]["qosClass"] == "Burstable"
    # A core holds two of 400m, whatever their containers asked for, and not three.
    cluster.eventually(lambda: len(cluster.running()) == 2, what="two of them run")
    waiting = [pod for pod in cluster.list("Pod") if not pod["spec"].get("nodeName")]
    assert len(waiting) == 1
    assert "Insufficient cpu" in str(waiting[0]["status"])


def test_an_older_kubelet_gives_the_containers_their_requests_back(ours: Ours, cluster: Cluster) -> None:
    node(cluster, f"new-{cluster.namespace[-5:]}", NEW)
    cluster.apply(published(cluster.namespace, ours.namespace, "app", "proxy"))
    ours.policy(cluster, "whole", WHOLE)
    ours.serves(cluster)
    cluster.eventually(lambda: own_requests(cluster.pod(web(cluster), dry_run=True)) != {}, what="a whole request")
    node(cluster, f"old-{cluster.namespace[-5:]}", OLD)
    cluster.eventually(lambda: own_requests(cluster.pod(web(cluster), dry_run=True)) == {}, what="none any more")
    pod = cluster.pod(web(cluster), dry_run=True)
    assert [c["resources"]["requests"]["cpu"] for c in pod["spec"]["containers"]] == ["350m", "350m"]
    cluster.delete("Node", f"old-{cluster.namespace[-5:]}")
    cluster.eventually(
        lambda: own_requests(cluster.pod(web(cluster), dry_run=True)) != {}, what="a whole request again"
    )


def test_a_sidecar_that_comes_after_us_with_a_request_of_its_own_is_accepted(ours: Ours, cluster: Cluster) -> None:
    """Another webhook adds a container after ours: the pod's request still holds it, so the API server lets it in."""
    pod = web(cluster)
    pod["spec"]["resources"] = {"requests": {"cpu": "400m", "memory": "200Mi"}}
    for one in pod["spec"]["containers"]:
        del one["resources"]
    late = {"name": "late", "image": cluster.image, "resources": {"requests": {"cpu": "100m"}}}
    pod["spec"]["containers"].append(late)
    assert own_requests(cluster.pod(pod, dry_run=True))["cpu"] == "400m"


def drawn_pod(chance: Random, cluster: Cluster, number: int) -> Object:
    """A pod with one to three containers, init containers, and any mixture of requests and limits."""

    def resources() -> Object:
        amounts = {"cpu": ["50m", "300m", "2"], "memory": ["64Mi", "300Mi", "2Gi"]}
        requests, limits = {}, {}
        for resource, steps in amounts.items():
            low, high = sorted(chance.choices(range(3), k=2))
            shape = chance.choice(["none", "request", "request", "both", "limit"])
            if shape in ("request", "both"):
                requests[resource] = steps[low]
            if shape in ("both", "limit"):
                limits[resource] = steps[high]
        return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}

    pod = web(cluster, f"pod-{number}")
    names = ["app", "proxy", "log"][: chance.choice([1, 2, 2, 2, 3])]
    pod["spec"]["containers"] = [{"name": one, "image": "i", "resources": resources()} for one in names]
    if chance.random() < 0.3:
        restart = {"restartPolicy": "Always"} if chance.random() < 0.5 else {}
        pod["spec"]["initContainers"] = [{"name": "init", "image": "i", "resources": resources(), **restart}]
    if chance.random() < 0.1:
        pod["spec"]["resources"] = {"requests": {"cpu": "4"}}
    return pod


@pytest.mark.parametrize("bounds", [None, {"defaultRequest": {"cpu": "100m"}}, {"default": {"memory": "500Mi"}}])
def test_no_drawn_pod_is_refused_because_of_us_and_each_is_stored_as_we_say(
    cluster: Cluster, bounds: Object | None
) -> None:
    chance, rules, changed = Random(SEED), policies(policy(WHOLE, name="whole")), 0
    kinds: list[Object] = [published(cluster.namespace, "trimtab-system", *names) for names in (("app", "proxy"),)]
    item = objects.node("n", cpu="8", memory="32Gi", pods=110, labels={"pool": cluster.namespace}, taints=[])
    item.setdefault("status", {})["nodeInfo"] = {"kubeletVersion": NEW}
    kinds.append(item)
    if bounds is not None:
        meta = {"name": "sizes", "namespace": cluster.namespace}
        limits = {"limits": [{"type": "Container", **bounds}]}
        limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": limits}
        cluster.create(limit_range)
        cluster.eventually(lambda: cluster.pod(dry_run=True)["spec"]["containers"][0].get("resources"), what="in force")
        kinds.append(cluster.get("LimitRange", "sizes"))
    document = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": kinds})
    facts = from_snapshot(load_snapshot([("w.json", document)]).snapshot)
    for number in range(DRAWN):
        pod = drawn_pod(chance, cluster, number)
        try:
            before = cluster.pod(pod, dry_run=True)
        except ApiError:
            continue
        received = msgspec.convert(without_nulls({key: before[key] for key in ("metadata", "spec")}), Pod)
        context = PodContext(pod=received, namespace=cluster.namespace, facts=facts)
        decision = decide_pod(context, rules)
        if not decision.operations:
            continue
        changed += 1
        after = decision.apply_to(received)
        own = {key: value for key, value in before["metadata"].items() if key not in ("uid", "creationTimestamp")}
        own.pop("managedFields", None)
        sent = jsonpatch.apply_patch({**before, "metadata": own}, list(decision.operations))
        del sent["status"]
        stored = cluster.pod(sent, dry_run=True)
        again = msgspec.convert(without_nulls({key: stored[key] for key in ("metadata", "spec")}), Pod)
        assert pod_requests(again.spec) == pod_requests(after.spec), (number, stored["spec"])
        # From 1.37 on the API server also writes what the containers request of the other resource.
        written = msgspec.to_builtins(after)["spec"]["resources"]["requests"]
        assert {name: own_requests(stored)[name] for name in written} == written
        assert stored["status"]["qosClass"] == str(qos_class(after.spec))
        if all("cpu" in c["resources"].get("requests", {}) for c in before["spec"]["containers"]):
            assert pod_requests(after.spec)["cpu"] <= pod_requests(received.spec)["cpu"]
    print(f"RESULT drawn={DRAWN} changed={changed}")
    assert changed > 5


@pytest.mark.parametrize("limits", [{}, {"cpu": "2", "memory": "1Gi"}], ids=["no-limits", "limits"])
def test_a_pod_with_our_request_can_be_updated(cluster: Cluster, limits: Object) -> None:
    """A controller that adds an annotation must not be refused because of what the API server completes."""
    pod = web(cluster)
    del pod["metadata"]["ownerReferences"]
    pod["spec"]["resources"] = {"requests": {"cpu": "400m"}}
    for one in pod["spec"]["containers"]:
        one["resources"] = {"requests": {"memory": "64Mi"}, "limits": limits} if limits else {}
        if limits:
            one["resources"]["requests"]["cpu"] = "100m"
    stored = cluster.pod(pod)
    cluster.kubectl("annotate", "pod", stored["metadata"]["name"], "a=b")
    cluster.kubectl("label", "pod", stored["metadata"]["name"], "a=b")
    after = cluster.get("Pod", stored["metadata"]["name"])
    assert after["metadata"]["annotations"]["a"] == "b"
    assert own_requests(after)["cpu"] == "400m"
    assert after["spec"]["resources"] == stored["spec"]["resources"]
