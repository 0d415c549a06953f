"""Requests as parameters on a real API server: who writes them, and that pods get them while no process runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.test_compiled_policies import bind, send, shipped
from trimtab.cli.install.compiled_removal import remove_compiled_policies, remove_parameters
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, Workloads
from trimtab.cluster.request_parameters import PARAMETERS_NAME
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues
from trimtab.installation.parameter_access import render_parameter_access
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer, apply, delete
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy
from trimtab.recommender.parameter_writer import ParameterWriter
from trimtab.runtime.log import build_logger

# It waits for the end of the parameters.
pytestmark = pytest.mark.slow

OURS = "trimtab-of-parameters"
"""No namespace of another test: the guards restrict the account of this one."""
USER = f"system:serviceaccount:{OURS}:trimtab-recommender"
POLICY = "burstable-by-default"


@pytest.fixture
def guarded(cluster: Cluster) -> Iterator[Cluster]:
    """A namespace that opted in, with the guards in force; both are removed as an uninstallation does."""
    cluster.needs_own("policies for the whole cluster")
    values = InstallValues(namespace=OURS, parameter_namespaces=(cluster.namespace,))
    admin = Writer(client=connect_to_cluster(str(cluster.kubeconfig)), manager="trimtab-install")
    for manifest in (*render_parameter_access("recommender", values), *own_policy(values)):
        apply(admin, manifest)
    cluster.eventually(lambda: "may write" in refusal(cluster), what="the guard in force")
    yield cluster
    steps = [*remove_compiled_policies(admin), *remove_parameters(admin)]
    for manifest in own_policy(values):
        delete(admin, manifest["kind"], manifest["metadata"]["name"])
    assert {step.what for step in steps if step.how == "removed"} >= {
        f"ConfigMap {cluster.namespace}/{PARAMETERS_NAME}",
        f"MutatingAdmissionPolicy trimtab-{POLICY}",
        "ValidatingAdmissionPolicy trimtab-requests-writer",
        f"Role {cluster.namespace}/trimtab-recommender-parameters",
    }
    admin.client.close()


def own_policy(values: InstallValues) -> list[dict[str, Any]]:
    """The policy that restricts the recommender's account to this name in other namespaces, and its binding."""
    name = "trimtab-recommender-parameters"
    return [
        item
        for item in render_manifests(values)
        if item["metadata"]["name"] == name and item["kind"].startswith("ValidatingAdmissionPolicy")
    ]


def refusal(cluster: Cluster) -> str:
    """The API server's answer to an administrator who writes the parameters; empty where it lets them in."""
    meta = {"name": PARAMETERS_NAME}
    try:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def workloads(namespace: str, cpu: str, ends_at: int) -> Workloads:
    usage = ContainerUsage(
        cpu=Percentiles(p5="5m", p95=cpu, request=cpu),
        memory=Percentiles(p5="8Mi", p95="200Mi", request="200Mi"),
        days=14,
        samples=20000,
        confidence=1.0,
        computed_at=int(time.time()),
        ends_at=ends_at,
    )
    return {f"{namespace}/Deployment/api": {"main": usage}}


def requests(cluster: Cluster) -> dict[str, Any]:
    """What a pod of the Deployment is stored with now. Nothing is stored."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d9f", "uid": "u", "controller": True}
    meta = {"name": "api", "namespace": cluster.namespace, "labels": {"pod-template-hash": "7d9f"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "ownerReferences": [owner]},
        "spec": {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "i"}]},
    }
    stored = send(cluster, pod, POLICY)
    assert not isinstance(stored, str), stored
    requests: dict[str, Any] = stored["spec"]["containers"][0]["resources"].get("requests", {})
    return requests


def test_only_the_recommender_writes_parameters_and_pods_get_them_without_any_process(guarded: Cluster) -> None:
    own = connect_to_cluster(str(guarded.plane.kubeconfig_for(USER)))
    writer = Writer(client=own, manager="trimtab-recommender")
    parameters = ParameterWriter(writer, (guarded.namespace,), build_logger("error"))
    now = int(time.time())
    ends_at = now + 40
    assert parameters.write_changes(workloads(guarded.namespace, "333m", ends_at), now) == 1
    assert parameters.write_changes(workloads(guarded.namespace, "333m", ends_at), now + 5) == 0
    other = {"name": "anything-else", "namespace": guarded.namespace}
    # RBAC lets it patch only that name, and create any: the policy refuses what is created under another name.
    with pytest.raises(KubeFault, match="forbidden"):
        apply(writer, {"kind": "ConfigMap", "metadata": other, "data": {}})
    path = f"/api/v1/namespaces/{guarded.namespace}/configmaps"
    with pytest.raises(KubeFault, match="may write only ConfigMap trimtab-requests"):
        writer.write("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": other}, doing="create")
    with pytest.raises(ApiError, match="only trimtab-recommender may write"):
        guarded.patch("ConfigMap", PARAMETERS_NAME, {"data": {"Deployment.api.main": "until=2099 cpu=1"}})
    own.close()  # from here on neither the recommender nor a webhook runs
    [policy] = [policy for policy in shipped() if policy.name == POLICY]
    for manifest in bind(compile_mutating_policy(policy, (policy,), with_parameters=True)):
        guarded.apply(manifest)
    guarded.eventually(lambda: requests(guarded) == {"cpu": "333m", "memory": "200Mi"}, what="the last parameters")
    assert time.time() < ends_at + 1
    guarded.eventually(lambda: requests(guarded) == {"cpu": "50m", "memory": "128Mi"}, what="their end", within=60)
    assert time.time() >= ends_at
