"""What does Trimtab cost when pods are made? Creation on a real API server, with and without, in alternating rounds.

    make bench-admission        (the first run builds the control plane, about eight minutes; later ones take two)

One pod after the other over one connection, each the typical one of `payloads.py` with an owner, as the controllers
send it. The webhook is registered as it is installed (IfNeeded, Ignore). The last line has the webhook's CPU per pod
and what the API server spends more per pod because of it.
"""

from __future__ import annotations

import base64
import json
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import certs
from tests.bench import servers
from tests.bench.servers import Server
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

ROUNDS = 5
PODS = 300
NAMESPACE = "payments"
MARK = "trimtab.dev/changed"
QUIET = ("kube-controller-manager", "kube-scheduler", "kwok")
"""They would work on the pods while creation is measured."""


@dataclass(frozen=True, slots=True)
class Round:
    """Microseconds per pod: CPU of the API server and of the webhook, and the times of creation."""

    apiserver: float
    hook: float
    times: list[float]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ControlPlane.start(binaries.find()) as plane:
        home, cluster = Path(folder), Cluster(plane.kubeconfig, NAMESPACE, plane)
        pod = _pod(servers.bodies(home)["typical"])
        _prepare(cluster)
        certs.write(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
        with servers.ours(home, Path()) as hook:
            _tell(_rounds(cluster, plane, hook, home / "certs", pod))


def _pod(body: Path) -> dict[str, Any]:
    """As a controller sends it: without what the API server adds."""
    pod: dict[str, Any] = json.loads(body.read_bytes())["request"]["object"]
    spec = pod["spec"]
    spec["volumes"] = [volume for volume in spec["volumes"] if "projected" not in volume]
    for container in (*spec["containers"], *spec["initContainers"]):
        container["volumeMounts"] = [m for m in container["volumeMounts"] if "kube-api-access" not in m["name"]]
    pod.pop("status", None)
    return pod


def _prepare(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "payments-api"}})
    running = cluster.plane.processes.running()
    for name in QUIET:
        if name in running:
            cluster.take_down(name)


def _rounds(
    cluster: Cluster, plane: ControlPlane, hook: Server, folder: Path, pod: dict[str, Any]
) -> dict[bool, list[Round]]:
    found: dict[bool, list[Round]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        for with_trimtab in (True, False) if number % 2 else (False, True):
            _switch(cluster, hook, folder, pod, on=with_trimtab)
            one = _round(cluster, plane, hook, pod)
            if number:  # the first is for warming up
                found[with_trimtab].append(one)
                half = statistics.median(one.times)
                print(f"round {number} {_word(with_trimtab):8} API server {one.apiserver:6.0f} µs, webhook"
                      f" {one.hook:4.0f} µs, p50 {half:.0f} µs", flush=True)  # fmt: skip
    return found


def _switch(cluster: Cluster, hook: Server, folder: Path, pod: dict[str, Any], *, on: bool) -> None:
    """In force on return."""
    there = bool(cluster.list("MutatingWebhookConfiguration"))
    if on and not there:
        cluster.create(_registered(hook, folder))
    elif there and not on:
        cluster.delete("MutatingWebhookConfiguration", "trimtab")
    cluster.eventually(lambda: _marked(cluster.create(pod, dryRun="All")) is on, what="the webhook in force, or gone")


def _registered(hook: Server, folder: Path) -> dict[str, Any]:
    bundle = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "trimtab"},
        "webhooks": [
            {
                "name": "pods.trimtab.dev",
                "clientConfig": {"url": f"{hook.url}/mutate", "caBundle": bundle},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "reinvocationPolicy": "IfNeeded",
                "timeoutSeconds": 3,
            }
        ],
    }


def _marked(pod: dict[str, Any]) -> bool:
    return MARK in pod["metadata"].get("annotations", {})


def _round(cluster: Cluster, plane: ControlPlane, hook: Server, pod: dict[str, Any]) -> Round:
    server = plane.processes.running()["kube-apiserver"]
    before, hooked, times = servers.cpu(server), hook.cpu(), []
    for _ in range(PODS):
        begun = time.perf_counter()
        cluster.create(pod)
        times.append((time.perf_counter() - begun) * 1e6)
    return Round((servers.cpu(server) - before) / PODS * 1e6, (hook.cpu() - hooked) / PODS * 1e6, times)


def _tell(found: dict[bool, list[Round]]) -> None:
    hook = statistics.median(one.hook for one in found[True])
    apiserver = {on: statistics.median(one.apiserver for one in found[on]) for on in (True, False)}
    for on in (False, True):
        times = sorted(t for one in found[on] for t in one.times)
        half, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
        print(f"{_word(on):8} API server {apiserver[on]:.0f} µs of CPU per pod,"
              f" created in {half:.0f} µs (p50), {slow:.0f} µs (p99)")  # fmt: skip
    print(f"RESULT hook_cpu_us={hook:.0f} apiserver_cpu_us={apiserver[True] - apiserver[False]:.0f}")


def _word(with_trimtab: bool) -> str:
    return "with" if with_trimtab else "without"


if __name__ == "__main__":
    main()
