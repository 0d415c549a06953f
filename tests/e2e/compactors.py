"""A compactor as a process of its own, on the suite's control plane, with its own login; and an eye on what it does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.controlplane import environ, objects
from tests.controlplane.cluster import Cluster
from trimtab.runtime.environment import variable_name

Object = dict[str, Any]
USER = "compactor"
SIGNING = "trimtab-compactor-signing"
NOTE = "trimtab.dev/cordoned-for"
QUICK = {
    "PLAN_INTERVAL_SECONDS": "2",
    "RECHECK_DELAY_SECONDS": "0.5",
    "DRAIN_POLL_INTERVAL_SECONDS": "0.2",
    "LEASE_DURATION_SECONDS": "3",
    "RENEW_DEADLINE_SECONDS": "1.5",
    "RETRY_PERIOD_SECONDS": "0.3",
    "WRITE_TIMEOUT_SECONDS": "1.2",
    "PENDING_TIMEOUT_SECONDS": "10",
    "POD_TERMINATION_TIMEOUT_SECONDS": "3",
    "READY_TIMEOUT_SECONDS": "60",
    "LOG_FORMAT": "json",
    "NODE_REMOVAL_TIMEOUT_SECONDS": "600",
    "MOVE_COOLDOWN_SECONDS": "600",
    "REQUIRE_AUTOSCALER_STATUS": "false",
    "LISTEN": "127.0.0.1:0",
}
EAGER = {
    "mode": "act",
    "underUsed": {"for": 0},
    "age": {"node": 0, "receiver": 0},
    "quiet": 0,
    "keep": {"nodes": 0, "headroom": {"percent": 0, "largestPod": False}},
    "preset": "keen",
    "protect": {"singleReplicas": True},
}


class Compactor:
    """One replica. `more` are settings; what is written to standard error is kept in a file."""

    def __init__(
        self, cluster: Cluster, folder: Path, *, program: Sequence[str] = ("trimtab", "compactor"), **more: str
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        signing_secret(cluster)
        self.ready = folder / f"ready-{time.monotonic_ns()}"
        self.log = folder / f"{self.ready.name}.log"
        environment = {
            **QUICK,
            "NAMESPACE": cluster.namespace,
            "SCALE_NAMESPACES": cluster.namespace,
            "READY_FILE": str(self.ready),
            **more,
        }
        user = environment.pop("USER", USER)
        environment.setdefault("KUBECONFIG", str(cluster.plane.kubeconfig_for(user, "system:masters")))
        settings = {variable_name("compactor", name.lower()): value for name, value in environment.items()}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *program], env={**environ.plain(), **settings}, stdout=log, stderr=log
            )

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, within: float = 60) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(number)
        return self.process.wait(within)

    def lines(self) -> list[Object]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def told(self, event: str) -> list[Object]:
        return [line for line in self.lines() if line["event"] == f"compactor.{event}"]


def signing_secret(cluster: Cluster) -> None:
    """As the manifests render it: empty, and left as it is where it is there."""
    if not [result for result in cluster.list("Secret") if result["metadata"]["name"] == SIGNING]:
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SIGNING}})


@contextmanager
def compactor(cluster: Cluster, folder: Path, **more: str) -> Iterator[Compactor]:
    compactor = Compactor(cluster, folder, **more)
    try:
        yield compactor
    except BaseException:
        print(compactor.log.read_text()[-6000:])
        raise
    finally:
        compactor.stop(signal.SIGKILL)


def pool(cluster: Cluster, name: str, **settings: Any) -> Object:
    """The pool's ConfigMap, as a person applies it: its nodes are those with `pool=NAME`."""
    text = {**EAGER, "nodes": {"labels": {"pool": name}}, **settings}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"pool-{name}", "namespace": cluster.namespace, "labels": {"trimtab.dev/pool": name}},
        "data": {"pool.yaml": json.dumps(text)},
    }


def budget(name: str, unavailable: int = 1) -> Object:
    spec = {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def state(cluster: Cluster, name: str) -> Object:
    """What the compactor keeps of a pool."""
    document: Object = json.loads(cluster.get("ConfigMap", f"trimtab-state-{name}")["data"]["state.json"])
    return document


def nodes(cluster: Cluster, name: str) -> list[Object]:
    return cluster.list("Node", selector=f"pool={name}", everywhere=True)


def group_of_pool(name: str) -> Callable[[Object], str]:
    """Node → the pool's node group, which is called like it; empty for nodes of no pool or another."""
    return lambda node: name if node["metadata"]["labels"].get("pool") == name else ""


def adding(cluster: Cluster, name: str) -> Callable[[Object], str]:
    """A machine for a pod of this pool: a node of four cores."""

    def add(pod: Object) -> str:
        if pod["spec"].get("nodeSelector", {}).get("pool") != name:
            return ""
        machine = f"{name}-more-{time.monotonic_ns()}"
        cluster.create(objects.node(machine, cpu="4", memory="16Gi", pods=110, labels={"pool": name}, taints=()))
        return name

    return add


def is_cordoned(node: Object) -> bool:
    return bool(node["spec"].get("unschedulable"))


def noted(node: Object) -> Object | None:
    text = node["metadata"].get("annotations", {}).get(NOTE)
    return json.loads(text)["note"] if text else None


def wait_for_death(process: Compactor, is_over: Callable[[], object], grace_seconds: float = 3) -> bool:
    """Whether a compactor that kills itself after one of its writes did so. If its work is over, it has so many seconds
    for what it still writes, and is killed then."""
    deadline = time.monotonic() + 60
    while process.process.poll() is None and time.monotonic() < deadline:
        if is_over():
            deadline = min(deadline, time.monotonic() + grace_seconds)
        time.sleep(0.1)
    has_died = process.process.poll() == -signal.SIGKILL
    process.stop(signal.SIGKILL)
    return has_died


@dataclass
class Eye:
    """A watch of its own over pods: how few were ready, how long anybody waited. It knows nothing of the compactor.

    `fewest[app]` is the least number of ready pods seen after the app was whole once.
    """

    cluster: Cluster
    every: float = 0.05
    selector: str = ""
    """Label selector of the pods that count."""
    waits_for_start: bool = False
    """Whether a pod waits until its containers run; else only until it has a node."""
    watches_budgets: bool = False
    broken_budgets: set[str] = field(default_factory=set)
    """Names of budgets that had fewer healthy pods than they demand."""
    fewest: Counter[str] = field(default_factory=Counter)
    longest_wait: float = 0.0
    _waiting: dict[str, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Eye:
        self.fewest = Counter(self._ready())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            self.look(self._pods())
            if self.watches_budgets:
                self.broken_budgets |= {
                    budget["metadata"]["name"]
                    for budget in self.cluster.list("PodDisruptionBudget")
                    if (status := budget.get("status", {})).get("currentHealthy", 0) < status.get("desiredHealthy", 0)
                }

    def _pods(self) -> list[Object]:
        return self.cluster.list("Pod", selector=self.selector) if self.selector else self.cluster.list("Pod")

    def look(self, pods: list[Object]) -> None:
        now, ready = time.monotonic(), self._ready(pods)
        for app in self.fewest:
            self.fewest[app] = min(self.fewest[app], ready[app])
        waiting = {
            pod["metadata"]["uid"]
            for pod in pods
            if not pod["spec"].get("nodeName") or (self.waits_for_start and pod["status"]["phase"] == "Pending")
        }
        self._waiting = {uid: self._waiting.get(uid, now) for uid in waiting}
        self.longest_wait = max([self.longest_wait, *(now - since for since in self._waiting.values())])

    def _ready(self, pods: list[Object] | None = None) -> Counter[str]:
        counts: Counter[str] = Counter()
        for pod in self._pods() if pods is None else pods:
            conditions = pod["status"].get("conditions", ())
            is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            if is_ready and "deletionTimestamp" not in pod["metadata"]:
                counts[pod["metadata"]["labels"].get("app", "")] += 1
        return counts


def planned(cluster: Cluster, name: str, capture: Path | None = None) -> list[str]:
    """What `trimtab plan` says of the live cluster, or of its capture: nodes that go, in order."""
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "plan",
        "--cluster",
        str(capture or "live"),
        "--now",
        "now",
        "-o",
        "json",
    ]
    login = [] if capture else ["--kubeconfig", str(cluster.kubeconfig)]
    printed = subprocess.run([*command, *login], capture_output=True, text=True, timeout=60, check=True).stdout
    return [node["node"] for wave in json.loads(printed)["waves"] for node in wave["nodes"] if node["pool"] == name]


def captured(cluster: Cluster, folder: Path) -> Path:
    """`trimtab capture`, as a file."""
    path = folder / f"capture-{time.monotonic_ns()}.json.gz"
    command = [sys.executable, "-m", "trimtab", "capture", "-O", str(path), "--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    return path


def ask(cluster: Cluster, *words: str, expect: int = 0) -> Any:
    """`trimtab compactor WORDS`, its JSON where it prints some."""
    command = [sys.executable, "-m", "trimtab", "compactor", *words, "--system-namespace", cluster.namespace]
    login = ["--kubeconfig", str(cluster.kubeconfig)]
    done = subprocess.run([*command, *login], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout
