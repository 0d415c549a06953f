"""Our own webhook as a process that follows a cluster: facts and policies from its watches, as in production."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

import certs
from tests.controlplane import environ
from tests.controlplane.cluster import Cluster
from tests.e2e.test_webhook import ROOT
from trimtab.policy.schema import build_crd
from trimtab.runtime.environment import variable_name


@dataclass(frozen=True)
class Ours:
    """The process, and what it says of itself."""

    cluster: Cluster
    """Where our own namespace is."""
    home: Path
    process: subprocess.Popen[bytes]
    host: str
    port: int
    ca_bundle: str
    path: str = "/mutate"

    @property
    def namespace(self) -> str:
        return self.cluster.namespace

    def get(self, path: str) -> str:
        """A page of its own; an error status is an assertion that does not hold."""
        trust = ssl.create_default_context(cadata=base64.b64decode(self.ca_bundle).decode())
        try:
            with urllib.request.urlopen(f"https://localhost:{self.port}{path}", timeout=30, context=trust) as answer:
                return str(answer.read().decode())
        except OSError as error:
            raise AssertionError(str(error)) from error

    def metric(self, name: str) -> float:
        """The value of a metric without labels, or with them as they are written."""
        lines = (line.rpartition(" ") for line in self.get("/metrics").splitlines() if not line.startswith("#"))
        values = {series: value for series, _, value in lines}
        return float(values.get(name, 0.0))

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "log").read_text().splitlines() if line.startswith("{")]

    def told(self, event: str) -> list[dict[str, Any]]:
        """Its log lines of one event."""
        return [line for line in self.log if line["event"] == event]

    def serves(self, cluster: Cluster, name: str = "trimtab", **more: Any) -> None:
        """Called for the pods of this namespace from now on, as it is installed."""
        values = {"failure_policy": "Ignore", "reinvocation_policy": "IfNeeded", "timeout_seconds": 5, **more}
        cluster.webhook_configuration(name, self, **values)

    def policy(self, cluster: Cluster, name: str, actions: str, match: str = "", **spec: Any) -> str:
        """A PodPolicy for the pods of this namespace, in force on return; the name it has."""
        document = podpolicy(cluster, name, actions, match, **spec)
        cluster.apply(document)
        own = str(document["metadata"]["name"])
        cluster.eventually(lambda: own in self.in_force, within=10, what=f"policy {own} in force")
        return own

    @property
    def in_force(self) -> list[str]:
        """Names of the policies it goes by."""
        lines = (self.home / "log").read_text().splitlines()
        last = next((line for line in reversed(lines) if '"policies in force"' in line), None)
        return list(json.loads(last)["policies"]) if last else []


def podpolicy(cluster: Cluster, name: str, actions: str, match: str = "", **spec: Any) -> dict[str, Any]:
    """For this namespace's pods only. `actions` and `match` (the rest of it) as flow-style YAML."""
    meant = {"namespaces": {"include": [cluster.namespace]}, **(yaml.safe_load(match) if match else {})}
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": f"{name}-{cluster.namespace[-5:]}"},
        "spec": {**spec, "match": meant, "actions": yaml.safe_load(actions)},
    }


@contextmanager
def following(whole: Cluster, home: Path, **settings: Any) -> Iterator[Ours]:
    """`trimtab webhook --cluster live` with a namespace of its own and the CRD installed; ready on entry."""
    whole.needs_own("our webhook on this machine")
    own = whole.in_namespace(f"trimtab-{uuid.uuid4().hex[:5]}")
    install_crd(own, build_crd())
    pair = certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC))
    certs.write_folder(home / "certs", pair)
    environment = {
        "LISTEN": "127.0.0.1:0",
        "CERTS_FOLDER": home / "certs",
        "CLUSTER": "live",
        "NAMESPACE": own.namespace,
        "READY_FILE": home / "ready.json",
        "SHUTDOWN_DELAY_SECONDS": 0,
        "GRACEFUL_TIMEOUT_SECONDS": 5,
        "LOG_FORMAT": "json",
        **settings,
    }
    surroundings = {**environ.plain(), "KUBECONFIG": str(whole.kubeconfig)}
    surroundings |= {variable_name("webhook", name.lower()): str(value) for name, value in environment.items()}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "trimtab", "webhook"], cwd=ROOT, env=surroundings, stderr=log)
        try:
            own.eventually((home / "ready.json").exists, what="trimtab webhook listens")
            port = int(json.loads((home / "ready.json").read_text())["port"])
            bundle = base64.b64encode((home / "certs" / "ca.crt").read_bytes()).decode()
            installation = Ours(own, home, process, "127.0.0.1", port, bundle)
            own.eventually(lambda: installation.get("/readyz"), what="trimtab webhook is ready")
            yield installation
        finally:
            process.terminate()
            process.wait(60)
            own.clean_up()


def install_crd(cluster: Cluster, document: dict[str, Any]) -> None:
    """Served on return, also where an earlier one of that name was just on its way out."""
    name = document["metadata"]["name"]

    def served() -> bool:
        cluster.apply(document)
        result = cluster.get("CustomResourceDefinition", name)
        conditions = {c["type"]: c["status"] for c in result.get("status", {}).get("conditions") or ()}
        return conditions.get("Established") == "True" and "deletionTimestamp" not in result["metadata"]

    cluster.eventually(served, what=f"{name} served", every=0.2)
    kind, version = document["spec"]["names"]["kind"], document["spec"]["versions"][0]["name"]
    cluster.eventually(lambda: _discovered(cluster, kind, f"{document['spec']['group']}/{version}"))


def _discovered(cluster: Cluster, kind: str, group_version: str) -> bool:
    try:
        cluster.api.kind(kind, group_version)
        cluster.list(kind, everywhere=True)
    except LookupError:
        return False
    return True


@dataclass(frozen=True)
class Said:
    """What a run of kubectl printed."""

    code: int
    out: str
    err: str

    @property
    def warnings(self) -> list[str]:
        """As a person sees them."""
        return [line.removeprefix("Warning: ") for line in self.err.splitlines() if line.startswith("Warning: ")]


def kubectl(cluster: Cluster, *arguments: str, stdin: Any = None) -> Said:
    """Like `Cluster.kubectl`, with all it says. `stdin`: one object, or several."""
    values = stdin if isinstance(stdin, list) else [stdin]
    argv = [cluster.plane.binaries["kubectl"], "--namespace", cluster.namespace, *arguments]
    done = subprocess.run(
        argv,
        input=yaml.safe_dump_all(values),
        env={**environ.plain(), "KUBECONFIG": str(cluster.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)
