"""What does Trimtab cost when pods are made? Creation on a real API server, with and without, in alternating rounds.

    make bench-admission        (the first run builds the control plane, about eight minutes; later ones take two)

One pod after the other over one connection, each the typical one of `payloads.py` with an owner, as the controllers
send it: pods of one ReplicaSet, so all but the first are answered from memory. Four ways in alternating rounds: no
webhook, ours, and the reference in Go in its place, registered alike (IfNeeded, Ignore), and the
compiled policies, all that `trimtab policies compile --params usage` gives of the shipped ones, with no webhook.
Nothing else runs that would work on the pods, nothing is audited, and what the API server spends while nobody asks it
anything is taken off.

Calls per pod and connections opened per round are told: more than one call means that the server called again because
something changed the pod after us; connections that come with the pods mean that they are not kept. The last line has
the webhook's CPU per pod, what the API server spends more per pod because of it and because of the compiled policies,
how many policies compile, and how many of the generated pods are, under each of those, as the webhook makes them, but
for listed reasons (`tests/e2e/test_compiled_policies.py`). PAIRS=0 leaves that comparison of some minutes out.
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

from tests.bench import crowd, servers
from tests.bench.results import choose_size, read_knob, report_result
from tests.bench.servers import Server
from tests.build import owner_key
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e import test_compiled_policies as pairs
from trimtab.cluster.request_parameters import PARAMETERS_NAME, NamespaceRules, build_parameters
from trimtab.policy.cel import Manifest
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy
from trimtab.policy.compiled_annotation import COMPILED_PREFIX

ROUNDS = int(read_knob("ROUNDS", choose_size("5", "2")))
PODS = choose_size(300, 60)
NAMESPACE = "payments"
IDLE = 3.0
"""Seconds."""
QUIET = ("kube-controller-manager", "kube-scheduler", "kwok")
"""They would work on the pods while creation is measured."""


NO_AUDIT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"
"""The test bed's log of every write in full is no part of what a pod costs."""
CHANGED = "trimtab.dev/changed"
WITHOUT, POLICIES = "without", "policies"
COMPARED = choose_size(600, 60) if read_knob("PAIRS", "1") != "0" else 0
"""Generated pods that are compared under every compiled policy."""
PROPAGATION = 3.0
"""Seconds after which the API server evaluates policies as they are stored: it reads them once a second."""
_CALLS = re.compile(r'^apiserver_admission_webhook_admission_duration_seconds_count.*"pods.trimtab.dev".* (\d+)$', re.M)


@dataclass(frozen=True, slots=True)
class Round:
    """Per pod: microseconds of CPU of API server and webhook, times of creation, calls. Connections in all."""

    apiserver: float
    hook: float
    calls: float
    connections: int
    times: list[float] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PolicyCount:
    """What becomes of the shipped policies, and of the pods that are compared."""

    compiled: tuple[Manifest, ...]
    """All manifests, as `trimtab policies compile --params usage` prints them."""
    carried: int
    refused: int
    equal: int | None
    """Pods that no compiled policy makes other than the webhook does, but for listed reasons; None: not compared."""


Arm = Server | str | None
"""A webhook, POLICIES, or nothing."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "audit.yaml").write_text(NO_AUDIT)
        unaudited = {"kube-apiserver": [f"--audit-policy-file={home / 'audit.yaml'}"]}
        with ControlPlane.start(binaries.find(), extra_flags=unaudited) as plane:
            cluster = Cluster(plane.kubeconfig, NAMESPACE, plane)
            count = _compile(cluster)
            with servers.both(home) as (theirs, ours):
                pod = _pod(servers.bodies(home)["typical"])
                _prepare(cluster)
                _tell(_rounds(cluster, plane, [theirs, ours], home / "certs", pod, count.compiled), count)


def _compile(cluster: Cluster) -> PolicyCount:
    """Compile every shipped policy, and compare pods where that is asked for; no policy is in force on return."""
    shipped = pairs.shipped()
    compiled = [compile_mutating_policy(policy, shipped, with_parameters=True) for policy in shipped]
    manifests = tuple(manifest for one in compiled for manifest in one.manifests)
    refused = sum(bool(one.problem) for one in compiled)
    if not COMPARED:
        return PolicyCount(manifests, len(compiled) - refused, refused, None)
    result = pairs.compare_all(pairs.prepare(cluster, COMPARED))
    print(f"pairs: {dict(result.verdicts)}", flush=True)
    for pair in result.unexplained:
        print(f"unexplained: {pair[:3]}", flush=True)
    _remove_policies(cluster)
    return PolicyCount(manifests, len(compiled) - refused, refused, COMPARED - len(result.unequal_pods))


def _remove_policies(cluster: Cluster) -> None:
    for kind in ("MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"):
        for item in cluster.list(kind):
            cluster.delete(kind, item["metadata"]["name"])


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
    usage = {
        (owner_key(f"{kind}/{owner}", NAMESPACE), name): used for kind, owner, name, used in crowd.own_containers()
    }
    parameters = build_parameters(usage, NamespaceRules(), int(time.time()))
    cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PARAMETERS_NAME}, "data": dict(parameters.data)}
    )
    running = cluster.plane.processes.running()
    for name in QUIET:
        if name in running:
            cluster.take_down(name)


def _rounds(
    cluster: Cluster,
    plane: ControlPlane,
    hooks: list[Server],
    folder: Path,
    pod: dict[str, Any],
    compiled: tuple[Manifest, ...],
) -> dict[str, list[Round]]:
    results: dict[str, list[Round]] = defaultdict(list)
    arms: list[Arm] = [None, POLICIES, *hooks]
    for number in range(ROUNDS + 1):
        random.shuffle(arms)
        for arm in arms:
            _switch(cluster, arm, folder, pod, compiled)
            hook = arm if isinstance(arm, Server) else None
            one = _round(cluster, plane, hook, pod)
            if number:  # the first is for warming up
                name = hook.name if hook else arm if isinstance(arm, str) else WITHOUT
                results[name].append(one)
                print(f"round {number} {name:9} {one}, p50 {statistics.median(one.times):.0f} µs", flush=True)
    return results


def _switch(cluster: Cluster, arm: Arm, folder: Path, pod: dict[str, Any], compiled: tuple[Manifest, ...]) -> None:
    """In force on return."""
    if cluster.list("MutatingWebhookConfiguration"):
        cluster.delete("MutatingWebhookConfiguration", "trimtab")
    if cluster.list("MutatingAdmissionPolicyBinding"):
        _remove_policies(cluster)
        time.sleep(PROPAGATION)
    cluster.eventually(lambda: not _changed(cluster, pod), what="nothing in force")
    if isinstance(arm, Server):
        cluster.create(_registered(arm, folder))
    elif arm == POLICIES:
        for manifest in compiled:
            cluster.create(manifest)
        time.sleep(PROPAGATION)
    if arm is not None:
        cluster.eventually(lambda: _changed(cluster, pod), what=f"in force: {arm}")


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
    """Whether a webhook or a compiled policy changes the pod. Not every way changes the same fields of it."""
    item: dict[str, Any] = cluster.create(pod, dryRun="All")
    marks = [key for key in item["metadata"].get("annotations", {}) if key.startswith((COMPILED_PREFIX, CHANGED))]
    return bool(marks) or item["spec"]["containers"][0]["resources"] != pod["spec"]["containers"][0]["resources"]


def _round(cluster: Cluster, plane: ControlPlane, hook: Server | None, pod: dict[str, Any]) -> Round:
    server = plane.processes.running()["kube-apiserver"]
    idle = _idle(server)
    calls, connections, begun, before = _calls(cluster), _connections(hook), time.monotonic(), servers.cpu(server)
    hooked, times = hook.cpu() if hook else 0.0, []
    for _ in range(PODS):
        request = time.perf_counter()
        cluster.create(pod)
        times.append((time.perf_counter() - request) * 1e6)
    spent = servers.cpu(server) - before - idle * (time.monotonic() - begun)
    return Round(
        apiserver=spent / PODS * 1e6,
        hook=((hook.cpu() if hook else 0.0) - hooked) / PODS * 1e6,
        calls=(_calls(cluster) - calls) / PODS,
        connections=len(_connections(hook) - connections),
        times=times,
    )


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


def _tell(result: dict[str, list[Round]], count: PolicyCount) -> None:
    apiserver = {name: statistics.median(one.apiserver for one in rounds) for name, rounds in result.items()}
    hook = {name: statistics.median(one.hook for one in rounds) for name, rounds in result.items()}
    for name in (WITHOUT, "reference", "trimtab", POLICIES):
        times = sorted(t for one in result[name] for t in one.times)
        half, slow = times[len(times) // 2], times[int(len(times) * 0.99)]
        calls = statistics.median(one.calls for one in result[name])
        opened = max(one.connections for one in result[name])
        print(
            f"{name:9} API server {apiserver[name]:.0f} µs of CPU per pod, webhook {hook[name]:.0f} µs,"
            f" {calls:.2f} calls per pod, at most {opened} new connections in {PODS} pods;"
            f" created in {half:.0f} µs (p50), {slow:.0f} µs (p99)"
        )
    more = {name: apiserver[name] - apiserver[WITHOUT] for name in ("reference", "trimtab", POLICIES)}
    print(f"reference: hook_cpu_us={hook['reference']:.0f} apiserver_cpu_us={more['reference']:.0f}")
    report_result(
        "admission",
        f"webhook_hook_cpu_us={hook['trimtab']:.0f}"
        f" webhook_apiserver_cpu_us={more['trimtab']:.0f}"
        f" policies_apiserver_cpu_us={more[POLICIES]:.0f} compiled={count.carried} refused={count.refused}"
        f" equal={'not-compared' if count.equal is None else count.equal}",
        broken={},
    )


if __name__ == "__main__":
    main()
