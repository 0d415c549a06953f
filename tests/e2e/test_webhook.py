"""Our own webhook, as a process over TLS, where a real API server calls it: the main job with real parts."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import certs
from tests.controlplane import environ
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.reasons import has_facts
from trimtab.policy.schema import build_crd
from trimtab.runtime.environment import variable_name

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Running:
    """Where the API server reaches our process."""

    host: str
    port: int
    ca_bundle: str
    path: str = "/mutate"


@contextmanager
def trimtab(home: Path, policies: str, world: list[dict[str, Any]]) -> Iterator[Running]:
    """`trimtab webhook` with these policies and facts, stopped at the end."""
    certs.write_folder(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
    (home / "policies.yaml").write_text(policies)
    (home / "cluster.yaml").write_text(yaml.safe_dump_all(world))
    settings = {
        "LISTEN": "127.0.0.1:0",
        "CERTS_FOLDER": home / "certs",
        "POLICIES": home / "policies.yaml",
        "CLUSTER": home / "cluster.yaml",
        "READY_FILE": home / "ready.json",
        "SHUTDOWN_DELAY_SECONDS": 0,
        "GRACEFUL_TIMEOUT_SECONDS": 5,
    }
    surroundings = {
        **environ.plain(),
        **{variable_name("webhook", name.lower()): str(value) for name, value in settings.items()},
    }
    process = subprocess.Popen([sys.executable, "-m", "trimtab", "webhook"], cwd=ROOT, env=surroundings)
    try:
        port = _port(process, home / "ready.json")
        bundle = base64.b64encode((home / "certs" / "ca.crt").read_bytes()).decode()
        yield Running("127.0.0.1", port, bundle)
    finally:
        process.terminate()
        process.wait(60)


def _port(process: subprocess.Popen[bytes], ready: Path) -> int:
    until = time.monotonic() + 90
    while not ready.exists():
        assert process.poll() is None, "trimtab webhook did not start"
        assert time.monotonic() < until, "trimtab webhook did not become ready"
        time.sleep(0.05)
    return int(json.loads(ready.read_text())["port"])


def policy(name: str, actions: str, match: str = "{}") -> str:
    return (
        f"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {{name: {name}}}\n"
        f"spec:\n  match: {match}\n  actions: {actions}\n"
    )


@pytest.fixture
def register(cluster: Cluster) -> Callable[[Running], None]:
    def registered(running: Running) -> None:
        cluster.webhook_configuration(
            "trimtab", running, failure_policy="Ignore", reinvocation_policy="IfNeeded", timeout_seconds=5
        )

    return registered


def test_a_policy_chooses_the_class_and_the_server_brings_its_overhead(
    cluster: Cluster, register: Callable[[Running], None], tmp_path: Path
) -> None:
    name = f"kata-{cluster.namespace[-5:]}"
    kata = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}},
        "scheduling": {"nodeSelector": {"pool": "kata"}},
    }
    cluster.apply(kata)
    rules = policy("sandbox", f"{{runtimeClass: {{name: {name}}}}}", "{podLabels: {tier: untrusted}}")
    with trimtab(tmp_path, rules, [kata]) as running:
        register(running)
        stored = cluster.create(pod({"tier": "untrusted"}))["spec"]
    assert stored["runtimeClassName"] == name
    assert stored["overhead"] == {"cpu": "250m", "memory": "160Mi"}
    assert stored["nodeSelector"] == {"pool": "kata"}


def test_requests_are_filled_and_needless_limits_go(
    cluster: Cluster, register: Callable[[Running], None], tmp_path: Path
) -> None:
    rules = policy("sizes", "{requests: {cpu: {from: policy, otherwise: 50m}}, limits: {cpu: remove}}")
    with trimtab(tmp_path, rules, []) as running:
        register(running)
        empty, limited = (cluster.create(pod({}, r)) for r in ({}, {"limits": {"cpu": "1", "memory": "64Mi"}}))
    assert empty["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "50m"}}
    assert "trimtab.dev/changed" in empty["metadata"]["annotations"]
    # Cpu and memory limits alone make the pod Guaranteed: it is left as it came.
    assert limited["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "64Mi"}


def test_a_namespace_whose_limit_range_brings_the_limit_back_refuses_no_pod(
    cluster: Cluster, register: Callable[[Running], None], tmp_path: Path
) -> None:
    guard = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "guard", "namespace": cluster.namespace},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]},
    }
    cluster.apply(guard)
    rules = policy("sizes", "{requests: {cpu: {from: policy, otherwise: '2', when: always}}, limits: {cpu: remove}}")
    with trimtab(tmp_path, rules, [guard]) as running:
        register(running)
        stored = cluster.create(pod({}))
    assert stored["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}


def test_the_custom_resource_definition_is_taken_and_takes_a_policy(cluster: Cluster) -> None:
    cluster.apply(build_crd())
    rules = yaml.safe_load(policy(f"p-{cluster.namespace[-5:]}", "{limits: {cpu: remove}}"))
    cluster.eventually(lambda: cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(rules)), within=20)
    assert has_facts(cluster.kubectl("explain", "podpolicies"), "policy that changes pods")
    rules["spec"]["mode"] = "aply"
    with pytest.raises((ApiError, subprocess.CalledProcessError, AssertionError), match="Unsupported value"):
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(rules))
    cluster.kubectl("delete", "podpolicy", rules["metadata"]["name"])


def pod(labels: dict[str, str], resources: dict[str, Any] | None = None) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": resources or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-", "labels": labels},
        "spec": {"containers": [container]},
    }
