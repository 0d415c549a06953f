"""The watchdog as a process, beside a real API server: what came through unpatched is told, and no pod is touched."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import environ
from tests.controlplane.auditor import Auditor
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.installed import vacated
from tests.e2e.test_webhook import ROOT, Running, policy, trimtab
from tests.reasons import has_facts
from trimtab.cluster.timestamps import format_timestamp
from trimtab.installation import installed_processes
from trimtab.policy.schema import build_crd
from trimtab.runtime.environment import variable_name

OURS = "trimtab-system"
USER = "system:serviceaccount:trimtab-system:trimtab-watchdog"
OVERHEAD = {"cpu": "250m", "memory": "160Mi"}


@dataclass(frozen=True)
class Watchdog:
    """A running one, by its pages."""

    url: str

    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def value(self, name: str, **labels: str) -> float | None:
        """Of the first series with these labels; None where there is none."""
        for line in self.metrics().splitlines():
            series, _, number = line.rpartition(" ")
            if series.partition("{")[0] == name and all(f'{k}="{v}"' in series for k, v in labels.items()):
                return float(number)
        return None


@contextmanager
def watchdog(cluster: Cluster, home: Path, **settings: object) -> Iterator[Watchdog]:
    """`trimtab watchdog` under a login of its own, stopped at the end."""
    home.mkdir(exist_ok=True)
    ready = home / f"watchdog-{time.monotonic_ns()}.json"
    environment = {
        "LISTEN": "127.0.0.1:0",
        "READY_FILE": ready,
        "NAMESPACE": OURS,
        "CHECK_INTERVAL_SECONDS": 1,
        "STATUS_WRITE_INTERVAL_SECONDS": 1,
        "KUBECONFIG": cluster.plane.kubeconfig_for(USER),
        "LOG_FORMAT": "json",
        "LEASE_DURATION_SECONDS": 4,
        "RENEW_DEADLINE_SECONDS": 2,
        "RETRY_PERIOD_SECONDS": "0.5",
        "WRITE_TIMEOUT_SECONDS": 1,
        "CONFIGURATION_NAME": f"{cluster.namespace}-trimtab",
        **settings,
    }
    surroundings = {
        **environ.plain(),
        **{variable_name("watchdog", name.lower()): str(value) for name, value in environment.items()},
    }
    process = subprocess.Popen([sys.executable, "-m", "trimtab", "watchdog"], cwd=ROOT, env=surroundings)
    try:
        until = time.monotonic() + 90
        while not ready.exists():
            assert process.poll() is None, "trimtab watchdog did not start"
            assert time.monotonic() < until, "trimtab watchdog did not become ready"
            time.sleep(0.05)
        yield Watchdog(json.loads(ready.read_text())["url"])
    finally:
        process.terminate()
        assert process.wait(60) == 0


def allow(cluster: Cluster) -> None:
    """What `trimtab install` grants it, and nothing else."""
    name = f"watchdog-{cluster.namespace}"
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "name": USER, "apiGroup": group}
    for kind, rules in (
        ("ClusterRole", installed_processes.CLUSTER_RULES["watchdog"]),
        ("Role", installed_processes.NAMESPACE_RULES["watchdog"]),
    ):
        meta = {"name": name, **({"namespace": OURS} if kind == "Role" else {})}
        cluster.apply(
            {"apiVersion": f"{group}/v1", "kind": kind, "metadata": meta, "rules": [r.to_manifest() for r in rules]}
        )
        ref = {"apiGroup": group, "kind": kind, "name": name}
        binding = {"apiVersion": f"{group}/v1", "kind": f"{kind}Binding", "metadata": meta}
        cluster.apply({**binding, "roleRef": ref, "subjects": [subject]})


@pytest.fixture
def ready(cluster: Cluster) -> Cluster:
    """Nodes, the CRD in force, and what the watchdog may do."""
    cluster.needs_own("a login of the watchdog's own")
    cluster.some_nodes()
    with_policies(cluster)
    return cluster


def with_policies(cluster: Cluster) -> None:
    """The definition stays behind: taken away with one test, it would take the next one's policies along."""
    apart = Cluster(cluster.kubeconfig)
    vacated(apart)
    apart.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OURS}})

    def established() -> bool:
        [result] = apart.apply(build_crd())
        conditions = {c["type"]: c["status"] for c in result.get("status", {}).get("conditions") or ()}
        return "deletionTimestamp" not in result["metadata"] and conditions.get("Established") == "True"

    cluster.eventually(established, within=30, what="the CRD in force")
    allow(cluster)


def put(cluster: Cluster, name: str, actions: str, match: str = "{}", **spec: object) -> str:
    """A PodPolicy of the cluster for this test's namespace alone; its text, for the webhook beside."""
    namespaces = f"namespaces: {{include: [{cluster.namespace}]}}"
    inner = match.strip("{}")
    text = policy(name, actions, f"{{{namespaces}{', ' + inner if inner else ''}}}")
    document = yaml.safe_load(text)
    document["spec"].update(spec)
    cluster.apply(document)
    return yaml.safe_dump(document)


def event(cluster: Cluster, reason: str) -> dict[str, Any] | None:
    items = json.loads(cluster.kubectl("get", "events", "-o", "json"))["items"]
    return next((one for one in items if one["reason"] == reason), None)


def status(cluster: Cluster, name: str) -> dict[str, Any]:
    status: dict[str, Any] = cluster.get("PodPolicy", name).get("status", {})
    return status


def condition(cluster: Cluster, name: str, kind: str = "HarmBrake") -> dict[str, Any]:
    return next((c for c in status(cluster, name).get("conditions", ()) if c["type"] == kind), {})


def touched(auditor: Auditor) -> list[Any]:
    return [w for w in auditor.writes(user=USER) if w.resource.startswith("pods")]


@pytest.fixture
def register(cluster: Cluster) -> Callable[[Running], None]:
    def registered(running: Running) -> None:
        cluster.webhook_configuration(
            "trimtab", running, failure_policy="Ignore", reinvocation_policy="IfNeeded", timeout_seconds=5
        )

    return registered


def test_pods_made_while_the_webhook_was_away_are_told(
    ready: Cluster, register: Callable[[Running], None], tmp_path: Path
) -> None:
    cluster, auditor, name = ready, ready.auditor, f"sizes-{ready.namespace[-5:]}"
    rules = put(cluster, name, "{requests: {cpu: {from: policy, otherwise: 50m}}}")
    time.sleep(1.1)  # times in Kubernetes are whole seconds
    with trimtab(tmp_path, rules, []) as running:
        register(running)
        cluster.deployment("seen", replicas=2)
        cluster.eventually(lambda: len(cluster.running("app=seen")) == 2)
    cluster.deployment("missed", replicas=3)
    cluster.eventually(lambda: len(cluster.running("app=missed")) == 3, within=30)
    with watchdog(cluster, tmp_path / "w") as process:
        cluster.eventually(
            lambda: process.value("trimtab_unpatched_pods", policy=name, reason="missed-by-webhook") == 3,
            within=30,
            what="three missed pods in the metrics",
        )
        cluster.eventually(lambda: status(cluster, name).get("unpatched") == 3, within=20, what="the policy's status")
        result = cluster.eventually(lambda: event(cluster, "MissedByWebhook"), within=20)
        shown = status(cluster, name)
    assert (result["involvedObject"]["kind"], result["involvedObject"]["name"]) == ("Deployment", "missed")
    assert "containers[main].requests.cpu: none → 50m" in result["message"]
    assert (shown["matched"], shown["changed"], shown["observedGeneration"]) == (5, 2, 1)
    assert {c["type"]: c["status"] for c in shown["conditions"]} == {"Loaded": "True", "HarmBrake": "False"}
    assert touched(auditor) == []


def test_a_pod_older_than_its_policy_is_told_as_such(ready: Cluster, tmp_path: Path) -> None:
    cluster, name = ready, f"late-{ready.namespace[-5:]}"
    serving = f"{cluster.namespace}-trimtab"
    cluster.apply(configuration(serving))
    time.sleep(1.1)
    cluster.deployment("web", replicas=2)
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2)
    with watchdog(cluster, tmp_path) as process:
        time.sleep(1.1)
        put(cluster, name, "{labels: {add: {team: a}}}")
        cluster.eventually(
            lambda: process.value("trimtab_unpatched_pods", policy=name, reason="created-before-policy") == 2, within=30
        )
        report = running_report(cluster)
    mine = [one for one in report["findings"] if one["policy"] == name]
    assert [(one["owner"], one["pods"], one["reason"]["code"]) for one in mine] == [
        ("Deployment/web", 2, "created-before-policy")
    ]


def configuration(name: str) -> dict[str, Any]:
    """A webhook configuration of ours that calls nobody."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "trimtab"}},
        "webhooks": [],
    }


def running_report(cluster: Cluster, *more: str) -> dict[str, Any]:
    """`trimtab admit --cluster live --running`, as JSON."""
    argv = [
        sys.executable,
        "-m",
        "trimtab",
        "admit",
        "--cluster",
        "live",
        "--kubeconfig",
        str(cluster.kubeconfig),
        "--running",
        "-o",
        "json",
        *more,
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def runtime_class(cluster: Cluster, overhead: dict[str, str] = OVERHEAD) -> dict[str, Any]:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": f"kata-{cluster.namespace[-5:]}"},
        "handler": "kata",
        "overhead": {"podFixed": overhead},
    }


def test_overhead_of_before_the_classs_change_is_stale(ready: Cluster, tmp_path: Path) -> None:
    cluster = ready
    kata = runtime_class(cluster)
    cluster.apply(kata)
    cluster.deployment("boxed", spec={"runtimeClassName": kata["metadata"]["name"]})
    cluster.eventually(lambda: len(cluster.running("app=boxed")) == 1)
    with watchdog(cluster, tmp_path) as process:
        cluster.eventually(lambda: process.value("trimtab_running_pods"), within=20)
        assert process.value("trimtab_wrong_overhead_pods") is None
        time.sleep(1.1)
        cluster.apply(runtime_class(cluster, {**OVERHEAD, "cpu": "500m"}))
        cluster.eventually(
            lambda: process.value("trimtab_wrong_overhead_pods", reason="overhead-stale") == 1, within=20
        )
        result = cluster.eventually(lambda: event(cluster, "OverheadStale"), within=20)
    assert "cpu 250m, memory 160Mi" in result["message"]
    assert has_facts(result["message"], "now defines", "cpu 500m, memory 160Mi")


def test_a_setting_that_says_webhook_where_the_server_writes_is_told(ready: Cluster, tmp_path: Path) -> None:
    cluster = ready
    kata = runtime_class(cluster)
    cluster.apply(kata)
    cluster.deployment("boxed", spec={"runtimeClassName": kata["metadata"]["name"]})
    cluster.eventually(lambda: len(cluster.running("app=boxed")) == 1)
    with watchdog(cluster, tmp_path, OVERHEAD="webhook") as process:
        cluster.eventually(lambda: process.value("trimtab_overhead_setting_wrong") == 1, within=20)
    with watchdog(cluster, tmp_path, OVERHEAD="server") as process:
        cluster.eventually(lambda: process.value("trimtab_overhead_setting_wrong") == 0, within=20)


@pytest.fixture(scope="module")
def without_the_plugin(built: Binaries) -> Iterator[ControlPlane]:
    flags = {"kube-apiserver": ["--disable-admission-plugins=RuntimeClass"]}
    with ControlPlane.start(built, extra_flags=flags) as plane:
        yield plane


def test_where_the_servers_admission_is_off_missing_overhead_is_told(
    without_the_plugin: ControlPlane, tmp_path: Path
) -> None:
    cluster = Cluster(without_the_plugin.kubeconfig, plane=without_the_plugin).in_namespace("off")
    cluster.some_nodes()
    with_policies(cluster)
    kata = runtime_class(cluster)
    cluster.apply(kata)
    time.sleep(4)  # a pod from just after the class's change shows nothing
    cluster.deployment("boxed", spec={"runtimeClassName": kata["metadata"]["name"]})
    cluster.eventually(lambda: len(cluster.running("app=boxed")) == 1)
    with watchdog(cluster, tmp_path) as process:
        cluster.eventually(
            lambda: process.value("trimtab_wrong_overhead_pods", reason="overhead-missing") == 1, within=20
        )
        assert process.value("trimtab_overhead_setting_wrong") == 1
    with watchdog(cluster, tmp_path, OVERHEAD="webhook") as process:
        cluster.eventually(lambda: process.value("trimtab_overhead_setting_wrong") == 0, within=20)


def kill(cluster: Cluster, pods: list[dict[str, Any]]) -> None:
    """As a kubelet tells that a container was killed for memory and is up again."""
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": format_timestamp(int(time.time()))}
    for pod in pods:
        container = {**pod["status"]["containerStatuses"][0], "restartCount": 1, "lastState": {"terminated": ended}}
        patch = json.dumps({"status": {"containerStatuses": [container]}})
        cluster.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)


def test_a_policy_that_has_pods_killed_is_set_to_warn(
    ready: Cluster, register: Callable[[Running], None], tmp_path: Path
) -> None:
    cluster, auditor, name = ready, ready.auditor, f"memory-{ready.namespace[-5:]}"
    cluster.deployment("before", replicas=6)
    cluster.eventually(lambda: len(cluster.running("app=before")) == 6)
    time.sleep(1.1)
    rules = put(cluster, name, "{requests: {memory: {from: policy, otherwise: 16Mi}}}")
    with trimtab(tmp_path, rules, []) as running, watchdog(cluster, tmp_path / "w") as process:
        register(running)
        cluster.deployment("after", replicas=8)
        cluster.eventually(lambda: len(cluster.running("app=after")) == 8)
        cluster.eventually(lambda: status(cluster, name).get("changed") == 8, within=20)
        pods = cluster.running("app=after")
        kill(cluster, pods[:2])
        cluster.eventually(
            lambda: (
                process.value("trimtab_harm_pods", policy=name, trouble="oom-killed", side="after", count="hit") == 2
            ),
            within=20,
        )
        assert status(cluster, name).get("brakedGeneration", 0) == 0, "two may be chance"
        kill(cluster, pods[2:4])
        cluster.eventually(lambda: status(cluster, name).get("brakedGeneration") == 1, within=20)
        cluster.eventually(lambda: condition(cluster, name).get("status") == "True", within=20)
        assert process.value("trimtab_harm_brakes_total", policy=name, done="set-to-warn") == 1
    says = condition(cluster, name)["message"]
    assert has_facts(says, "of 8 pods", "change of policy")
    assert has_facts(says, "0 of 6 pods", "did not change")
    events = json.loads(cluster.kubectl("get", "events", "-n", "default", "-o", "json"))["items"]
    assert any(e["reason"] == "HarmBrake" and e["involvedObject"]["name"] == name for e in events)
    writes = [w for w in auditor.writes(user=USER, resource="podpolicies", name=name) if w.allowed]
    assert [w for w in writes if w.asked.get("spec")] == [], "only the status is ever written"
    assert cluster.get("PodPolicy", name)["spec"].get("mode", "apply") == "apply"
    assert touched(auditor) == []
    # It stays that way, and a policy that somebody arms again is told as such.
    with watchdog(cluster, tmp_path / "again"):
        time.sleep(4)
        assert (status(cluster, name)["brakedGeneration"], condition(cluster, name)["status"]) == (1, "True")
        cluster.patch("PodPolicy", name, {"spec": {"priority": 7}})
        cluster.eventually(lambda: condition(cluster, name).get("reason") == "AppliedAgain", within=20)


def test_it_may_do_what_its_role_says_and_no_more(ready: Cluster) -> None:
    login = Cluster(ready.plane.kubeconfig_for(USER))
    for verb, what in (
        ("create", "pods"),
        ("patch", "pods"),
        ("delete", "pods"),
        ("create", "pods/eviction"),
        ("patch", "nodes"),
        ("get", "secrets"),
        ("create", "podpolicies"),
        ("delete", "podpolicies"),
        ("update", "deployments"),
        ("patch", "podpolicies"),
        ("update", "podpolicies"),
    ):
        assert answer(login, verb, what) == "no", f"{verb} {what}"
    for verb, what in (("watch", "pods"), ("patch", "podpolicies/status")):
        assert answer(login, verb, what) == "yes", f"{verb} {what}"


def answer(cluster: Cluster, verb: str, what: str) -> str:
    from tests.controlplane.binaries import kubectl

    resource, _, sub = what.partition("/")
    argv = [str(kubectl()), "auth", "can-i", verb, resource, *([f"--subresource={sub}"] if sub else [])]
    done = subprocess.run(
        argv,
        env={**environ.plain(), "KUBECONFIG": str(cluster.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
