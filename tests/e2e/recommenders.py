"""`trimtab recommender` as a process, under the rights that `trimtab install` grants it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane import environ
from tests.controlplane.cluster import Cluster
from tests.e2e.test_webhook import ROOT
from trimtab.installation import installed_processes
from trimtab.runtime.environment import variable_name

USER = "system:serviceaccount:trimtab-system:trimtab-recommender"
GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Recommender:
    """A running one, by its pages."""

    process: subprocess.Popen[bytes]
    url: str
    home: Path

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def value(self, name: str) -> float:
        """Of a metric with its labels as they are written; 0 where it is not there."""
        lines = (line.rpartition(" ") for line in self.get("/metrics").splitlines() if not line.startswith("#"))
        return float({series: value for series, _, value in lines}.get(f"trimtab_recommender_{name}", 0.0))

    @property
    def missing(self) -> list[dict[str, str]]:
        return list(json.loads(self.get("/missing"))["missing"])

    def told(self, event: str) -> list[dict[str, Any]]:
        """Its log lines of one event."""
        lines = (self.home / "log").read_text().splitlines()
        return [line for line in (json.loads(one) for one in lines if one[:1] == "{") if line["event"] == event]


def environment(own: Cluster, prometheus: str, **settings: object) -> dict[str, str]:
    environment = {
        "LISTEN": "127.0.0.1:0",
        "NAMESPACE": own.namespace,
        "PROMETHEUS_URL": prometheus,
        "QUERY_STEP_SECONDS": 1800,
        "CPU_RATE_WINDOW": "2h",
        "KUBECONFIG": own.plane.kubeconfig_for(USER),
        "LOG_FORMAT": "json",
        "COLLECT_INTERVAL_SECONDS": 1,
        # Short, but a pause of a second, which a busy machine makes, must not cost the Lease.
        "LEASE_DURATION_SECONDS": 8,
        "RENEW_DEADLINE_SECONDS": 5,
        "RETRY_PERIOD_SECONDS": "0.5",
        "WRITE_TIMEOUT_SECONDS": 2,
        **settings,
    }
    return {
        **environ.plain(),
        **{variable_name("recommender", name.lower()): str(value) for name, value in environment.items()},
    }


@contextmanager
def recommender(own: Cluster, prometheus: str, home: Path, **settings: object) -> Iterator[Recommender]:
    """Stopped at the end, unless it was killed meanwhile."""
    home.mkdir(parents=True, exist_ok=True)
    ready = home / "ready.json"
    surroundings = environment(own, prometheus, READY_FILE=ready, **settings)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "recommender"], cwd=ROOT, env=surroundings, stderr=log
        )
        try:
            until = time.monotonic() + 90
            while not ready.exists():
                assert process.poll() is None, (home / "log").read_text()
                assert time.monotonic() < until, "trimtab recommender did not become ready"
                time.sleep(0.05)
            yield Recommender(process, json.loads(ready.read_text())["url"], home)
        finally:
            process.terminate()
            assert process.wait(30) in (0, -9)


def once(own: Cluster, prometheus: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """As a CronJob runs it."""
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "recommender", "--once"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment(own, prometheus, **settings),
        timeout=120,
        check=False,
    )


def allow(whole: Cluster, own: Cluster) -> None:
    """What `trimtab install` grants it, and nothing else."""
    subject = {"kind": "User", "name": USER, "apiGroup": GROUP}
    for kind, rules in (
        ("ClusterRole", installed_processes.CLUSTER_RULES["recommender"]),
        ("Role", installed_processes.NAMESPACE_RULES["recommender"]),
    ):
        meta = {"name": f"recommender-{own.namespace}", **({"namespace": own.namespace} if kind == "Role" else {})}
        role = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "rules": [r.to_manifest() for r in rules]}
        ref = {"apiGroup": GROUP, "kind": kind, "name": meta["name"]}
        binding = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Binding", "metadata": meta}
        own.apply([role, {**binding, "roleRef": ref, "subjects": [subject]}])
