"""Somebody who may `edit` one namespace takes nothing from anybody else."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.controlplane.api import ApiError, Unreachable
from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import config_map, denied, tenant
from tests.e2e.installed import Installed, changed, pod
from tests.e2e.replicas import Replica

Object = dict[str, Any]
LABEL = "kubernetes.io/metadata.name"
CLASS = "e2e-sandbox"


@pytest.fixture(scope="module")
def attacker(here: Installed) -> Cluster:
    """With a namespace of their own, in which a policy gives every pod a RuntimeClass."""
    inside = here.cluster.in_namespace(f"{here.cluster.namespace}-theirs")
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": CLASS}, "handler": "runc"}
    spec = {
        "match": {"namespaces": {"include": [inside.namespace]}},
        "actions": {"runtimeClass": {"name": CLASS}, "requests": {"cpu": {"from": "policy", "otherwise": "50m"}}},
    }
    inside.apply(runtime)
    inside.apply(
        {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": "e2e-class"}, "spec": spec}
    )
    cluster = tenant(inside)
    for replica in here.replicas:  # each by itself: the API server keeps its connection to one of them
        inside.eventually(lambda replica=replica: gives_class(replica, inside.namespace), what="the class given")
    inside.eventually(lambda: changed(cluster.create(pod(), dryRun="All")), what="the tenant's pods changed")
    return cluster


def gives_class(replica: Replica, namespace: str) -> bool:
    return CLASS in base64.b64decode(replica.asked(pod(), namespace).get("patch", "")).decode()


def many_terms(count: int) -> Object:
    """So many node selector keys and so many required terms, each of which every term is compared with."""
    terms = [{"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["v"]}]} for n in range(count)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return shaped(nodeSelector={f"k{n}": "v" for n in range(count)}, affinity={"nodeAffinity": required})


def many_tolerations(count: int) -> Object:
    return shaped(tolerations=[{"key": f"k{n}", "operator": "Exists", "effect": "NoSchedule"} for n in range(count)])


def many_containers(count: int) -> Object:
    return shaped(containers=[{"name": f"c{n}", "image": "app:1"} for n in range(count)])


def many_values(count: int) -> Object:
    values = [f"v{n}" for n in range(count)]
    expressions = [{"key": f"k{n}", "operator": "NotIn", "values": values} for n in range(40)]
    terms = [{"matchExpressions": expressions}]
    return shaped(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    )


def many_spreads(count: int) -> Object:
    return shaped(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "ScheduleAnyway"} for n in range(count)
        ]
    )


def shaped(**spec: Any) -> Object:
    created_pod = pod()
    return {**created_pod, "spec": {**created_pod["spec"], **spec}}


SHAPES: dict[str, Callable[[], Object]] = {
    "terms": lambda: many_terms(2500),
    "tolerations": lambda: many_tolerations(4000),
    "containers": lambda: many_containers(6000),
    "values": lambda: many_values(1000),
    "spreads": lambda: many_spreads(4000),
}
"""What kept the webhook busy for seconds each, once; the API server takes all of it."""


def tried(attacker: Cluster, shape: Object) -> None:
    """Sent, and never stored; whether it is admitted is the policies' business."""
    try:
        attacker.create(shape, dryRun="All")
    except (ApiError, Unreachable):
        return


@pytest.mark.parametrize("name", SHAPES)
def test_no_pod_of_a_tenant_takes_the_webhook_away_from_others(
    here: Installed, attacker: Cluster, name: str, two_replicas: None
) -> None:
    """Four at a time, as fast as one client sends them; every pod of the others is changed meanwhile."""
    shape, before = SHAPES[name](), here.lost
    with ThreadPoolExecutor(4) as pool:
        attacks = [pool.submit(tried, attacker, shape) for _ in range(4)]
        assert all(changed(result) for result in here.create(4, clients=2))
        while not all(attack.done() for attack in attacks):
            assert all(changed(result) for result in here.create(4, clients=2))
    assert here.lost == before
    assert all(replica.process.poll() is None for replica in here.replicas)


@pytest.mark.slow
def test_nor_does_half_a_minute_of_all_of_them(here: Installed, attacker: Cluster, two_replicas: None) -> None:
    """The worst that was found took the webhook away for as long as it was repeated."""
    shapes, before, until = [make() for make in SHAPES.values()], here.lost, time.monotonic() + 30
    with ThreadPoolExecutor(5) as pool:

        def keep(shape: Object) -> None:
            while time.monotonic() < until:
                tried(attacker, shape)

        attacks = [pool.submit(keep, shape) for shape in shapes]
        while not all(attack.done() for attack in attacks):
            assert all(changed(result) for result in here.create(4, clients=2))
    assert here.lost == before
    assert all(replica.process.poll() is None for replica in here.replicas)


def test_a_tenants_pod_gets_nothing_that_is_another_namespaces(here: Installed, attacker: Cluster) -> None:
    """The team's policy asks for their namespace; what a tenant writes on a pod makes it no pod of the team."""
    team = here.cluster.namespace
    claiming = pod("claiming")
    claiming["metadata"] |= {"labels": {LABEL: team}, "annotations": {"trimtab.dev/policies": "e2e-sizes"}}
    stored = attacker.create(claiming, dryRun="All")
    assert stored["spec"]["runtimeClassName"] == CLASS
    assert "e2e-sizes" not in str(stored["metadata"]["annotations"].get("trimtab.dev/changed"))
    denied(lambda: attacker.api.request("POST", f"/api/v1/namespaces/{team}/pods", pod("theirs")))


def test_a_tenant_writes_nothing_that_any_process_reads_as_settings(here: Installed, attacker: Cluster) -> None:
    own = here.values.namespace
    for name, labels in (("p", {"trimtab.dev/pool": "p"}), ("trimtab-state-p", {"trimtab.dev/state": "p"})):
        denied(
            lambda name=name, labels=labels: attacker.api.request(
                "POST", f"/api/v1/namespaces/{own}/configmaps", config_map(name, labels)
            )
        )
    policy = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": "theirs"}, "spec": {}}
    denied(lambda: attacker.create(policy))
    denied(lambda: attacker.patch("Namespace", attacker.namespace, {"metadata": {"labels": {"a": "b"}}}))
    denied(lambda: attacker.list("Lease", own))
    denied(lambda: attacker.list("Node", everywhere=True))


def test_a_tenants_config_maps_are_no_pools_and_stop_no_probe(
    here: Installed, attacker: Cluster, two_replicas: None
) -> None:
    """Labelled as a pool, in a namespace that is theirs, as large as the API takes it, and four at a time."""
    unknown = "\n".join(f"unknown{n}: 1" for n in range(40_000))
    large = config_map("p", {"trimtab.dev/pool": "p"}, **{"pool.yaml": unknown})
    path = f"/api/v1/namespaces/{attacker.namespace}/configmaps?dryRun=All"
    before = here.lost
    with ThreadPoolExecutor(4) as pool:
        attacks = [pool.submit(attacker.api.request, "POST", path, large) for _ in range(4)]
        while not all(attack.done() for attack in attacks):
            assert all(replica.ready() for replica in here.replicas)
    assert [attack.result()["metadata"]["name"] for attack in attacks] == ["p"] * 4
    assert all(replica.ready() for replica in here.replicas)
    assert here.lost == before
