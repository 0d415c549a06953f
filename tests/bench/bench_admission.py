"""What does Trimtab cost when pods are made? Creation on a real API server, with and without, in alternating rounds.

    make bench-admission        (the first run builds the control plane, about eight minutes; later ones take two)

One pod after the other over one connection, each the typical one of `payloads.py` with an owner, as the controllers
send it: pods of one ReplicaSet, so all but the first are answered from memory. Three ways in alternating rounds: no
webhook, ours, and the reference in Go in its place, registered alike (IfNeeded, Ignore). Nothing else runs that would
work on the pods, nothing is audited, and what the API server spends while nobody asks it anything is taken off.

Calls per pod and connections opened per round are told: more than one call means that the server called again because
something changed the pod after us; connections that come with the pods mean that they are not kept. The last line has
the webhook's CPU per pod and what the API server spends more per pod because of it.
"""

from __future__ import annotations

import base64
import json
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import servers
from tests.bench.servers import Server
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

ROUNDS = 5
PODS = 300
NAMESPACE = "payments"
IDLE = 3.0
"""Seconds."""
QUIET = ("kube-controller-manager", "kube-scheduler", "kwok")
"""They would work on the pods while creation is measured."""


NO_AUDIT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"
"""The test bed's log of every write in full is no part of what a pod costs."""
WITHOUT = "without"
_CALLS = re.compile(r'^apiserver_admission_webhook_admission_duration_seconds_count.*"pods.trimtab.dev".* (\d+)$', re.M)


@dataclass(frozen=True, slots=True)
class Round:
    """Per pod: microseconds of CPU of API server and webhook, times of creation, calls. Connections in all."""

    apiserver: float
    hook: float
    calls: float
    connections: int
    times: list[float] = field(repr=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "audit.yaml").write_text(NO_AUDIT)
        unaudited = {"kube-apiserver": [f"--audit-policy-file={home / 'audit.yaml'}"]}
        with ControlPlane.start(binaries.find(), extra_flags=unaudited) as plane, servers.both(home) as (theirs, ours):
            cluster, pod = Cluster(plane.kubeconfig, NAMESPACE, plane), _pod(servers.bodies(home)["typical"])
            _prepare(cluster)
            _tell(_rounds(cluster, plane, [theirs, ours], home / "certs", pod))


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
    cluster: Cluster, plane: ControlPlane, hooks: list[Server], folder: Path, pod: dict[str, Any]
) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = defaultdict(list)
    arms: list[Server | None] = [None, *hooks]
    for number in range(ROUNDS + 1):
        random.shuffle(arms)
        for hook in arms:
            _switch(cluster, hook, folder, pod)
            one = _round(cluster, plane, hook, pod)
            if number:  # the first is for warming up
                name = hook.name if hook else WITHOUT
                found[name].append(one)
                print(f"round {number} {name:9} {one}, p50 {statistics.median(one.times):.0f} µs", flush=True)
    return found


def _switch(cluster: Cluster, hook: Server | None, folder: Path, pod: dict[str, Any]) -> None:
    """In force on return."""
    if cluster.list("MutatingWebhookConfiguration"):
        cluster.delete("MutatingWebhookConfiguration", "trimtab")
        cluster.eventually(lambda: not _changed(cluster, pod), what="no webhook in force")
    if hook is not None:
        cluster.create(_registered(hook, folder))
        cluster.eventually(lambda: _changed(cluster, pod), what="the webhook in force")


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


def _changed(cluster: Cluster, pod: dict[str, Any]) -> bool:
    made: dict[str, Any] = cluster.create(pod, dryRun="All")["spec"]["containers"][0]["resources"]
    return made != pod["spec"]["containers"][0]["resources"]


def _round(cluster: Cluster, plane: ControlPlane, hook: Server | None, pod: dict[str, Any]) -> Round:
    server = plane.processes.running()["kube-apiserver"]
    idle = _idle(server)
    calls, known, begun, before = _calls(cluster), _connections(hook), time.monotonic(), servers.cpu(server)
    hooked, times = hook.cpu() if hook else 0.0, []
    for _ in range(PODS):
        asked = time.perf_counter()
        cluster.create(pod)
        times.append((time.perf_counter() - asked) * 1e6)
    spent = servers.cpu(server) - before - idle * (time.monotonic() - begun)
    return Round(
        apiserver=spent / PODS * 1e6, hook=((hook.cpu() if hook else 0.0) - hooked) / PODS * 1e6,
        calls=(_calls(cluster) - calls) / PODS, connections=len(_connections(hook) - known), times=times,
    )  # fmt: skip


def _idle(server: int) -> float:
    """CPU seconds per second of an API server that nobody asks anything."""
    before = servers.cpu(server)
    time.sleep(IDLE)
    return (servers.cpu(server) - before) / IDLE


def _calls(cluster: Cluster) -> int:
    """Calls of the webhook so far, by the API server's own count."""
    return sum(map(int, _CALLS.findall(cluster.plane.api.request("GET", "/metrics"))))


def _connections(hook: Server | None) -> set[str]:
    """The other ends of all TCP connections to the webhook, of those that ended in the last minute, too."""
    if hook is None:
        return set()
    here = f":{int(hook.url.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {ends[2] for ends in lines if ends[1].endswith(here)} | {ends[1] for ends in lines if ends[2].endswith(here)}


def _tell(found: dict[str, list[Round]]) -> None:
    apiserver = {name: statistics.median(one.apiserver for one in rounds) for name, rounds in found.items()}
    hook = {name: statistics.median(one.hook for one in rounds) for name, rounds in found.items()}
    for name in (WITHOUT, "reference", "trimtab"):
        times = sorted(t for one in found[name] for t in one.times)
        half, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
        calls = statistics.median(one.calls for one in found[name])
        opened = max(one.connections for one in found[name])
        print(f"{name:9} API server {apiserver[name]:.0f} µs of CPU per pod, webhook {hook[name]:.0f} µs,"
              f" {calls:.2f} calls per pod, at most {opened} new connections in {PODS} pods;"
              f" created in {half:.0f} µs (p50), {slow:.0f} µs (p99)")  # fmt: skip
    more = {name: apiserver[name] - apiserver[WITHOUT] for name in ("reference", "trimtab")}
    print(f"reference: hook_cpu_us={hook['reference']:.0f} apiserver_cpu_us={more['reference']:.0f}")
    print(f"RESULT hook_cpu_us={hook['trimtab']:.0f} apiserver_cpu_us={more['trimtab']:.0f}")


if __name__ == "__main__":
    main()
