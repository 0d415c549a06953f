"""`trimtab drain` as a process of its own, with the narrow login of a user, and an eye on what it does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import environ
from tests.controlplane.api import Api, ApiError, Unreachable
from tests.controlplane.cluster import Cluster

Object = dict[str, Any]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "drain-nodes.md"
RECORD = "trimtab.dev/drain-order"
USER = "drainer"


def role_of_page() -> Object:
    """Returns the ClusterRole of the page, which is all that the user of these tests has."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return next(role for role in map(yaml.safe_load, blocks) if role["kind"] == "ClusterRole")


def grant_role(cluster: Cluster, user: str = USER, role: Object | None = None) -> Path:
    """Returns the kubeconfig of a user who has the role of the page, or another one, and nothing else."""
    role = role or role_of_page()
    cluster.apply(role)
    name = role["metadata"]["name"]
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{name}-{user}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        }
    )
    return cluster.plane.kubeconfig_for(user)


@dataclass
class Drain:
    """One run of the command."""

    kubeconfig: Path
    words: Sequence[str]
    program: Sequence[str] = ("trimtab", "drain")
    log: Path = field(init=False)

    def start(self) -> Drain:
        self.log = Path(tempfile.mkdtemp(prefix="drain-")) / "log"
        words = [*self.program, *self.words, "--kubeconfig", str(self.kubeconfig), "-o", "json"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, "-m", *words], env=environ.plain(), stdout=log, stderr=log)
        return self

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def code(self) -> int:
        return self.process.returncode

    def finish(self, within: float = 120) -> int:
        """Returns the exit code."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(self.text) from None

    def events(self, what: str = "") -> list[Object]:
        documents = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [document for document in documents if not what or document["event"] == what]

    def codes(self, what: str) -> set[str]:
        return {event["reason"]["code"] for event in self.events(what) if event["reason"]}

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def drain(kubeconfig: Path, *words: str, within: float = 120, program: Sequence[str] = ("trimtab", "drain")) -> Drain:
    """Returns a run of the command that has ended."""
    run = Drain(kubeconfig, words, program).start()
    run.finish(within)
    return run


def records(cluster: Cluster, names: Sequence[str]) -> dict[str, Object]:
    """Returns node → its record."""
    found = {}
    for name in names:
        text = cluster.get("Node", name)["metadata"].get("annotations", {}).get(RECORD)
        if text:
            found[name] = json.loads(text)
    return found


def cordoned(cluster: Cluster, names: Sequence[str]) -> set[str]:
    return {name for name in names if cluster.get("Node", name)["spec"].get("unschedulable")}


def pods_on(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Returns the pods of the test's namespace on these nodes that stay."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.list("Pod")
        if pod["spec"].get("nodeName") in names and "deletionTimestamp" not in pod["metadata"]
    ]


@dataclass
class Onlooker:
    """Watches the pods of one namespace: on how many nodes of the order each successor was ever placed."""

    cluster: Cluster
    order: Sequence[str]
    moved_twice: list[str] = field(default_factory=list)
    """Pods that came to be on a node of the order while the order was carried out."""
    _born: set[str] = field(default_factory=set)

    @contextmanager
    def watching(self) -> Iterator[Onlooker]:
        known = {pod["metadata"]["uid"] for pod in self.cluster.list("Pod")}
        stop = threading.Event()

        def run() -> None:
            api = Api(self.cluster.kubeconfig)
            while not stop.is_set():
                try:
                    path = api.path(api.kind("Pod"), self.cluster.namespace)
                    for pod in api.request("GET", path, timeout=10)["items"]:
                        is_new = pod["metadata"]["uid"] not in known
                        if is_new and pod["spec"].get("nodeName") in self.order:
                            self.moved_twice.append(pod["metadata"]["name"])
                except (ApiError, Unreachable):
                    pass
                stop.wait(0.1)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join(5)


def interrupt(run: Drain) -> None:
    run.process.send_signal(signal.SIGINT)
