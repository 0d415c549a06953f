"""The chart as its users meet it: the real helm, and what it renders as objects."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART, BASE = ROOT / "deploy" / "chart", ROOT / "deploy" / "kustomize"
NAMESPACE = "trimtab-system"

MUCH: dict[str, Any] = {
    "image": {
        "repository": "registry.example.com/trimtab",
        "tag": "1",
        "pullPolicy": "Always",
        "pullSecrets": [{"name": "registry"}],
    },
    "webhook": {
        "replicas": 3,
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"a": "b"},
        "settings": {"TRIMTAB_WEBHOOK_SHUTDOWN_DELAY_SECONDS": "3", "TRIMTAB_LOG_FORMAT": "console"},
    },
    "watchdog": {
        "maxUnavailable": 2,
        "spread": "DoNotSchedule",
        "affinity": {"nodeAffinity": {}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "pool", "operator": "Exists"}],
    },
    "compactor": {"enabled": False},
    "recommender": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    "networkPolicy": {
        "egress": {"enabled": True, "apiServerPorts": [6443], "more": [{"ports": [{"protocol": "TCP", "port": 9090}]}]},
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
    "dashboards": {"enabled": True, "labels": {"grafana": "yes"}},
    "uninstall": {"keepUsage": True, "nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}]},
    "policies": {"no-cpu-limits": {"actions": {"limits": {"cpu": "remove"}}}},
    "pools": {"batch": {"preset": "careful", "keep": {"nodes": 2}}},
}
"""Values of every kind."""

Objects = dict[tuple[str, str, str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Helm:
    """`helm`, with a home of its own."""

    path: Path
    home: Path

    def run(self, *arguments: str | Path, values: Any = None, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """What it says. `values` are given as a file. Fails with helm's own words, unless `ok` is False."""
        homes = {f"HELM_{kind}_HOME": str(self.home) for kind in ("CACHE", "CONFIG", "DATA")}
        flags = ["-f", "-"] if values is not None else []
        process = subprocess.run(
            [str(self.path), *map(str, arguments), *flags],
            env={"PATH": "/usr/bin:/bin", **homes},
            cwd=self.home,
            input=yaml.safe_dump(values or {}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not ok or process.returncode == 0, process.stderr + process.stdout
        return process

    def rendered(
        self, values: Any = None, *, namespace: str = NAMESPACE, crds: bool = True, hooks: bool = False
    ) -> str:
        """What is installed; with hooks, also what is there for a minute when it is removed."""
        more = [*(["--include-crds"] if crds else []), *([] if hooks else ["--no-hooks"])]
        return self.run("template", "trimtab", CHART, "--namespace", namespace, *more, values=values or {}).stdout

    def refusal(self, values: Any) -> str:
        """Why it renders nothing."""
        process = self.run("template", "trimtab", CHART, values=values, ok=False)
        assert process.returncode, "it was rendered"
        return process.stderr


def objects(documents: str | Iterable[dict[str, Any]]) -> Objects:
    """By kind, namespace and name; two of one name would be one too few."""
    objects = list(yaml.safe_load_all(documents)) if isinstance(documents, str) else list(documents)
    objects = [result for result in objects if result]
    listed_objects = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}
    assert len(listed_objects) == len(objects)
    return listed_objects
