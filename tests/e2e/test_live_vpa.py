"""Pods that a VPA manages: P5 while it has nothing to say and could act, hands off once it has.

The stand-in for its webhook is called before ours and after it, by name: the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e import vpa
from tests.e2e.ours import Ours, following, install_crd
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode

P5, P95 = "40m", "300m"  # above the least the VPA itself would give
RULES = "{requests: {cpu: {from: usage, otherwise: 50m, when: always}}, limits: {cpu: remove}}"
EVEN_ONE = {"updateMode": "Recreate", "minReplicas": 1}
"""An updater that acts on single replicas: nobody tells how many these pods' owner wants."""
ORDERS = pytest.mark.parametrize(("vpas", "mine"), [("a-vpa", "b-ours"), ("z-vpa", "b-ours")], ids=["before", "after"])


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        install_crd(installation.cluster, vpa.definition())  # it comes while our process runs
        yield installation


@pytest.fixture
def web(ours: Ours, cluster: Cluster) -> Ours:
    """What `main` of Deployment web uses is known, and a policy goes by it."""
    observation = {
        f"{cluster.namespace}/Deployment/web": {"main": ContainerUsage(cpu=Percentiles(p5=P5, p95=P95), days=14)}
    }
    name = f"trimtab-recommendations-{cluster.namespace[-5:]}"
    metadata = {"name": name, "namespace": ours.namespace, "labels": {RECOMMENDATIONS_LABEL: "v1"}}
    shard = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(observation)}}
    cluster.apply(shard)
    ours.policy(cluster, "usage", RULES)
    return ours


def owned(cluster: Cluster, **resources: Any) -> dict[str, Any]:
    """A pod of Deployment web, by way of a ReplicaSet that no watch has seen."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}
    metadata = {"generateName": "web-5d4f-", "labels": {"app": "web", "pod-template-hash": "5d4f"}}
    container = {"name": "main", "image": cluster.image, **({"resources": resources} if resources else {})}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "ownerReferences": [owner]}}
    return {**whole, "spec": {"containers": [container]}}


def stored(cluster: Cluster, **resources: Any) -> dict[str, Any]:
    """What `main` asks for as stored (of a dry run)."""
    container: dict[str, Any] = cluster.create(owned(cluster, **resources), dryRun="All")["spec"]["containers"][0]
    return dict(container.get("resources", {}))


def test_without_a_vpa_it_is_p95(web: Ours, cluster: Cluster) -> None:
    web.serves(cluster)
    cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})


@ORDERS
def test_a_vpa_that_says_nothing_yet_begins_with_p5(web: Ours, cluster: Cluster, vpas: str, mine: str) -> None:
    vpa.autoscaler(cluster, "Deployment/web", updatePolicy=EVEN_ONE)
    with vpa.webhook() as hook:
        vpa.registered(cluster, vpas, hook)
        web.serves(cluster, mine)
        cluster.eventually(lambda: stored(cluster, limits={"cpu": "1"}) == {"requests": {"cpu": P5}})


@ORDERS
def test_a_vpa_that_would_not_raise_a_single_replica_begins_with_p95(
    web: Ours, cluster: Cluster, vpas: str, mine: str
) -> None:
    vpa.autoscaler(cluster, "Deployment/web")
    cluster.deployment("web", replicas=1)
    with vpa.webhook() as hook:
        vpa.registered(cluster, vpas, hook)
        web.serves(cluster, mine)
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})
        cluster.patch("Deployment", "web", {"spec": {"replicas": 2}})
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P5}})


@pytest.mark.parametrize(
    ("mode", "replicas", "first"),
    [
        ("Off", 3, P95),
        ("Initial", 3, P95),
        ("Recreate", 1, P95),
        ("InPlaceOrRecreate", 1, P95),
        ("Recreate", 3, P5),
        ("Auto", 3, P5),
        ("InPlaceOrRecreate", 3, P5),
    ],
)
def test_pods_begin_with_p5_only_where_the_real_updater_raises_it(
    web: Ours, cluster: Cluster, mode: str, replicas: int, first: str
) -> None:
    """What VPA 1.7.1 was seen to do with pods that began with P5: after five minutes those of modes Off and Initial,
    and single replicas ("Too few replicas"), still had it."""
    vpa.autoscaler(cluster, "Deployment/web", updatePolicy={"updateMode": mode})
    cluster.deployment("web", replicas=replicas)
    with vpa.webhook() as hook:
        vpa.registered(cluster, "z-vpa", hook)
        web.serves(cluster, "b-ours")
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": first}})


@pytest.mark.parametrize("mode", ["Initial", "Recreate"])
def test_a_dead_webhook_behind_a_ready_endpoint_leaves_no_pod_without_requests(
    web: Ours, cluster: Cluster, mode: str
) -> None:
    """Its process is gone, its endpoint still listed as ready: six of six pods were stored with `{}`."""
    vpa.autoscaler(cluster, "Deployment/web", {"cpu": "120m"}, updatePolicy={"updateMode": mode})
    with vpa.webhook(names=[f"a-vpa.{cluster.namespace}.svc"]) as hook:
        vpa.registered(cluster, "a-vpa", hook, by="service")
    endpoints(cluster, "a-vpa", ready=True)
    web.serves(cluster, "b-ours")
    cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": "120m"}})


@ORDERS
def test_a_pod_that_the_vpas_webhook_misses_gets_the_vpas_target(
    web: Ours, cluster: Cluster, vpas: str, mine: str
) -> None:
    """By its own log it did not know the pod's ReplicaSet yet: called first, for 33 of 120 pods of rollouts."""
    vpa.autoscaler(cluster, "Deployment/web", {"cpu": "120m"})
    with vpa.webhook() as hook:  # it answers, and changes nothing, as the real one where it knows no ReplicaSet yet
        vpa.registered(cluster, vpas, hook)
        web.serves(cluster, mine)
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": "120m"}})


@ORDERS
def test_a_vpa_that_recommends_decides(web: Ours, cluster: Cluster, vpas: str, mine: str) -> None:
    recommended = {"cpu": "120m"}
    vpa.autoscaler(cluster, "Deployment/web", recommended)
    with vpa.webhook(recommended) as hook:
        vpa.registered(cluster, vpas, hook)
        web.serves(cluster, mine)
        values = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
        cluster.eventually(lambda: stored(cluster, **values) == {"requests": recommended})


def test_a_vpa_switched_off_is_none(web: Ours, cluster: Cluster) -> None:
    vpa.autoscaler(cluster, "Deployment/web", {"cpu": "120m"}, updatePolicy={"updateMode": "Off"})
    with vpa.webhook() as hook:
        vpa.registered(cluster, "a-vpa", hook)
        web.serves(cluster, "b-ours")
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})


def test_memory_alone_is_the_vpas_then_cpu_is_ours(web: Ours, cluster: Cluster) -> None:
    only = [{"containerName": "*", "controlledResources": ["memory"]}]
    vpa.autoscaler(cluster, "Deployment/web", {"memory": "1Gi"}, resourcePolicy={"containerPolicies": only})
    with vpa.webhook() as hook:
        vpa.registered(cluster, "a-vpa", hook)
        web.serves(cluster, "b-ours")
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})


def test_p5_only_while_somebody_answers_behind_the_vpas_service(web: Ours, cluster: Cluster) -> None:
    vpa.autoscaler(cluster, "Deployment/web", updatePolicy=EVEN_ONE)
    with vpa.webhook(names=[f"a-vpa.{cluster.namespace}.svc"]) as hook:
        vpa.registered(cluster, "a-vpa", hook, by="service")
        web.serves(cluster, "b-ours")
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})
        endpoints(cluster, "a-vpa", ready=True)
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P5}})
        endpoints(cluster, "a-vpa", ready=False)
        cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})


def endpoints(cluster: Cluster, service: str, *, ready: bool) -> None:
    endpoint_slice = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
    }
    cluster.apply(endpoint_slice)


def test_the_first_pods_of_a_rollout_are_known_by_name(web: Ours, cluster: Cluster) -> None:
    """Made by the real controllers in one go, before any watch could have told."""
    web.serves(cluster)
    cluster.eventually(lambda: stored(cluster) == {"requests": {"cpu": P95}})
    cluster.deployment("web", replicas=3)
    pods = cluster.eventually(lambda: three(cluster.list("Pod", selector="app=web")))
    assert [pod["spec"]["containers"][0]["resources"] for pod in pods] == [{"requests": {"cpu": P95}}] * 3


def three(pods: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    return pods if len(pods) == 3 else None
