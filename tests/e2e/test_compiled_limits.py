"""A compiled policy on a real API server leaves the limits that a runtime in the container reads."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from tests.build import policies, policy
from tests.controlplane.cluster import Cluster
from tests.windows_specs import NOT_ON_WINDOWS, ON_WINDOWS
from trimtab.cluster.request_parameters import PARAMETERS_NAME, NamespaceRules, build_parameters
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy

Object = dict[str, Any]
AMOUNTS = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}


def pod_of(namespace: str, container: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace, **metadata},
        "spec": {
            "containers": [{"name": "app", "image": "registry.example.com/web:1", "resources": AMOUNTS, **container}]
        },
    }


@pytest.fixture(scope="module")
def namespace(whole_cluster: Cluster) -> str:
    """A namespace in which a compiled policy removes limits."""
    whole_cluster.needs_own("policies for the whole cluster")
    name = f"limits-{uuid.uuid4().hex[:5]}"
    whole_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
    whole_cluster.apply(account)  # the controller may have made it already
    data = dict(build_parameters({}, NamespaceRules(limit_ranges=0, quotas=0, hpas=()), int(time.time())).data)
    meta = {"name": PARAMETERS_NAME, "namespace": name}
    whole_cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": meta})
    match = f"{{namespaces: {{include: [{name}]}}}}"
    loaded = policies(policy("{limits: {cpu: remove, memory: remove}}", name=name, match=match)).all
    for item in compile_mutating_policy(loaded[0], loaded, with_parameters=True).manifests:
        whole_cluster.apply(item)
    whole_cluster.eventually(lambda: limits(whole_cluster, pod_of(name, {})) == {}, what="the policy in force")
    return name


def limits(cluster: Cluster, pod: Object) -> Object:
    [container] = cluster.create(pod, dryRun="All")["spec"]["containers"]
    remaining: Object = container["resources"].get("limits", {})
    return remaining


@pytest.mark.parametrize(
    ("container", "resources"),
    [
        ({"env": [{"name": "ACME", "value": "-XX:MaxRAMPercentage=75"}]}, {"cpu", "memory"}),
        ({"env": [{"name": "JAVA_OPTS", "value": "x"}]}, {"cpu", "memory"}),
        ({"command": ["sh", "-c", "cd /app && exec java Main"]}, {"cpu", "memory"}),
        ({"command": ["tini", "--"], "args": ["node", "x"]}, {"memory"}),
        ({"args": ["-jar", "app.jar"]}, {"cpu", "memory"}),
        ({"image": "docker.io/library/node:22"}, {"memory"}),
        ({"image": "node:22"}, {"memory"}),
        ({"image": "gcr.io/distroless/java17-debian12@sha256:" + "a" * 64}, {"cpu", "memory"}),
        ({"env": [{"name": "GOGC", "value": "50"}]}, {"cpu"}),
        ({"image": "quay.io/calico/node:v3", "args": ["node", "--x"], "env": [{"name": "A", "value": "b"}]}, set()),
    ],
)
def test_a_limit_that_a_runtime_reads_stays(
    whole_cluster: Cluster, namespace: str, container: Object, resources: set[str]
) -> None:
    assert set(limits(whole_cluster, pod_of(namespace, container))) == resources


def test_a_label_of_the_pod_shows_the_runtime(whole_cluster: Cluster, namespace: str) -> None:
    labelled = pod_of(namespace, {}, labels={"app.kubernetes.io/runtime": "Java"})
    other = pod_of(namespace, {}, labels={"app": "java"})
    assert (set(limits(whole_cluster, labelled)), limits(whole_cluster, other)) == ({"cpu", "memory"}, {})


@pytest.mark.parametrize(
    ("spec", "resources"),
    [
        *(pytest.param(spec, {"cpu", "memory"}, id=f"windows-{name}") for name, spec in ON_WINDOWS.items()),
        *(pytest.param(spec, set(), id=f"other-{name}") for name, spec in NOT_ON_WINDOWS.items()),
    ],
)
def test_the_limits_of_a_pod_on_windows_stay(
    whole_cluster: Cluster, namespace: str, spec: Object, resources: set[str]
) -> None:
    pod = pod_of(namespace, {})
    pod["spec"].update(spec)
    assert set(limits(whole_cluster, pod)) == resources


def test_many_variables_do_not_exceed_the_cost_that_the_server_allows(whole_cluster: Cluster, namespace: str) -> None:
    env = [{"name": f"VARIABLE_{number}", "value": "https://service.example.com/path" * 3} for number in range(60)]
    assert limits(whole_cluster, pod_of(namespace, {"env": env})) == {}
