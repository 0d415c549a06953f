"""The VPA's own programs and definitions, of the module `tests/controlplane/modules/vpa`: what acts on our numbers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import binaries, environ, modules
from tests.controlplane.cluster import Cluster
from tests.controlplane.ports import free
from tests.controlplane.supervisor import die_with_parent

Object = dict[str, Any]
CONFIGURATION = "vpa-webhook-config"
KIND = "VerticalPodAutoscaler"


@cache
def definitions() -> tuple[Object, ...]:
    """The CustomResourceDefinitions of VPAs and of their checkpoints, the former first."""
    module = modules.vertical_pod_autoscaler()
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.path]
    folder = subprocess.run(command, cwd=module.folder, check=True, capture_output=True, text=True).stdout.strip()
    text = (Path(folder) / "deploy/vpa-v1-crd-gen.yaml").read_text()
    documents = [document for document in yaml.safe_load_all(text) if document]
    return tuple(sorted(documents, key=lambda document: len(document["metadata"]["name"])))


def field_paths() -> set[str]:
    """Every field of spec and status that the definition has; `[]` is each entry of a list."""
    [definition] = [one for one in definitions() if one["spec"]["names"]["kind"] == KIND]
    [version] = [one for one in definition["spec"]["versions"] if one["name"] == "v1"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    return {path for name in ("spec", "status") for path in _paths(properties[name], name)}


def _paths(schema: Object, path: str) -> Iterator[str]:
    if "properties" in schema:
        for name, part in schema["properties"].items():
            yield from _paths(part, f"{path}.{name}")
    elif schema.get("type") == "array":
        yield from _paths(schema["items"], f"{path}[]")
    else:
        yield path


def autoscaler(name: str, *policies: Object, mode: str = "Recreate", recommenders: Any = None, **more: Any) -> Object:
    """A VPA of a Deployment of that name. Without `recommenders` it names us."""
    names = [{"name": "trimtab"}] if recommenders is None else recommenders
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "updatePolicy": {"updateMode": mode, "minReplicas": 1},
        **({"recommenders": names} if names else {}),
        **({"resourcePolicy": {"containerPolicies": list(policies)}} if policies else {}),
        **more.pop("spec", {}),
    }
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": KIND,
        "metadata": {"name": name, **more},
        "spec": spec,
    }


@dataclass
class Program:
    """One of them, running."""

    process: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


@contextmanager
def program(cluster: Cluster, home: Path, name: str, *flags: str) -> Iterator[Program]:
    """`updater`, `admission-controller` or `recommender` with an administrator's rights, for VPAs of this namespace."""
    home.mkdir(parents=True, exist_ok=True)
    (port,) = free(1)
    command = [
        str(binaries.vertical_pod_autoscaler()[f"vpa-{name}"]),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--vpa-object-namespace={cluster.namespace}",
        f"--address=127.0.0.1:{port}",
        "--kube-api-qps=50",
        "--kube-api-burst=100",
        "--v=4",
        *flags,
    ]
    log, mine = home / f"{name}-{time.monotonic_ns()}.log", os.getpid()
    surroundings = {**environ.plain(), "NAMESPACE": cluster.namespace}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=surroundings, stderr=out, stdout=out, preexec_fn=lambda: die_with_parent(mine)
        )
    running = Program(process, log)
    try:
        yield running
    finally:
        running.end()


@contextmanager
def updater(cluster: Cluster, home: Path) -> Iterator[Program]:
    """It looks each second."""
    with program(cluster, home, "updater", "--updater-interval=1s", "--min-replicas=1") as running:
        yield running


@contextmanager
def admission_controller(cluster: Cluster, home: Path) -> Iterator[Program]:
    """Registered on entry, and its registration taken away at the end."""
    assert cluster.plane is not None
    home.mkdir(parents=True, exist_ok=True)
    pair = cluster.plane.authority.server("vpa-webhook", ["localhost"])
    (port,) = free(1)
    flags = (
        f"--client-ca-file={cluster.plane.authority.certificate}",
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key={pair.key}",
        f"--port={port}",
        "--register-by-url",
        "--webhook-address=https://127.0.0.1",
        f"--webhook-port={port}",
        "--webhook-timeout-seconds=5",
    )
    with program(cluster, home, "admission-controller", *flags) as running:
        try:
            cluster.eventually(lambda: cluster.get("MutatingWebhookConfiguration", CONFIGURATION), within=60)
            yield running
        finally:
            cluster.delete("MutatingWebhookConfiguration", CONFIGURATION)


@contextmanager
def default_recommender(cluster: Cluster, home: Path) -> Iterator[Program]:
    """The VPA's own, with its checkpoints; it looks each second."""
    flags = ("--recommender-interval=1s", "--checkpoints-timeout=5s", "--storage=checkpoint")
    with program(cluster, home, "recommender", *flags) as running:
        yield running


def entry(vpa: Object, container: str = "main") -> Object:
    """What its status recommends for the container."""
    entries = vpa.get("status", {}).get("recommendation", {}).get("containerRecommendations", [])
    return next((one for one in entries if one["containerName"] == container), {})


def conditions(vpa: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in vpa.get("status", {}).get("conditions", [])}


def until_used(cluster: Cluster, name: str, is_there: Callable[[Object], bool] = lambda _: True) -> Object:
    """The VPA, when it has a recommendation."""

    def read() -> Object | None:
        vpa = cluster.get(KIND, name)
        return vpa if entry(vpa) and is_there(vpa) else None

    return cluster.eventually(read, within=60, what=f"a recommendation of VPA {name}")


def said(running: Program, pattern: str) -> bool:
    return re.search(pattern, running.text()) is not None
