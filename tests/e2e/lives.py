"""An installation as its users have it: the chart by the real helm, its pods as plain processes, from the first to the
last day.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.boxes import ROOT, Box
from tests.e2e.charts import CHART, NAMESPACE, Helm
from tests.e2e.installed import vacated
from tests.e2e.kubelet import PLACED, Kubelet
from trimtab.installation.names import PROCESSES
from trimtab.runtime.environment import variable_name

POOL = "batch"
_LEASE = {
    "lease_duration_seconds": "6",
    "renew_deadline_seconds": "3",
    "retry_period_seconds": "0.5",
    "write_timeout_seconds": "2",
}
_INTERVAL = {
    "watchdog": "check_interval_seconds",
    "compactor": "plan_interval_seconds",
    "recommender": "collect_interval_seconds",
}
QUICK = {
    process: {variable_name(process, field): value for field, value in {**_LEASE, interval: "1"}.items()}
    for process, interval in _INTERVAL.items()
}
EAGER: dict[str, Any] = {
    "preset": "keen",
    "nodes": {"labels": {"pool": POOL}},
    "underUsed": {"for": 0},
    "age": {"node": 0, "receiver": 0},
    "quiet": 0,
    "keep": {"nodes": 0, "headroom": {"percent": 0, "largestPod": False}},
}
Inventory = dict[tuple[str, str, str], str]


def values(team: str, port: int, **pool: Any) -> dict[str, Any]:
    """Of the chart: nothing but haste, a policy for the team, a pool, and where pods run here."""
    waits = {
        "TRIMTAB_COMPACTOR_RECHECK_DELAY_SECONDS": "0.5",
        "TRIMTAB_COMPACTOR_DRAIN_POLL_INTERVAL_SECONDS": "0.2",
        "TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS": "false",
        "TRIMTAB_COMPACTOR_NODE_REMOVAL_TIMEOUT_SECONDS": "600",
    }
    return {
        "webhook": {
            **PLACED,
            "servicePort": port,
            "settings": {
                "TRIMTAB_WEBHOOK_CERTS_CHECK_INTERVAL_SECONDS": "0.5",
                "TRIMTAB_WEBHOOK_SHUTDOWN_DELAY_SECONDS": "2",
            },
        },
        "watchdog": {**PLACED, "settings": QUICK["watchdog"]},
        "compactor": {**PLACED, "settings": {**QUICK["compactor"], **waits}},
        "recommender": {**PLACED, "settings": QUICK["recommender"]},
        "uninstall": PLACED,
        "policies": {
            "sizes": {
                "match": {"namespaces": {"include": [team]}},
                "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}},
            }
        },
        "pools": {POOL: {**EAGER, **pool}},
    }


class Life:
    """One installation. `cluster` is seen from the namespace of a team."""

    def __init__(self, cluster: Cluster, helm: Helm, kubelet: Kubelet) -> None:
        self.cluster, self.helm, self.kubelet = cluster, helm, kubelet
        self.before: Inventory = {}
        self.begun = self.removed = 0
        """Where the audit log ended when it was installed, and when the uninstall began."""
        self._login = ("--kubeconfig", cluster.kubeconfig, "--namespace", NAMESPACE)

    def install(self) -> None:
        vacated(self.cluster)
        self.begun = self.log.stat().st_size
        self.before = inventory(self.cluster)
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        label = "pod-security.kubernetes.io/enforce=restricted"
        self.cluster.kubectl("label", "namespace", NAMESPACE, label)
        self.helm.run("install", "trimtab", CHART, *self._login, values=self.values())
        # A cluster's network, played: its Service leads API servers to this machine.
        spec = {"spec": {"type": "ExternalName", "externalName": "localhost"}}
        self.cluster.kubectl(
            "patch", "service", "trimtab-webhook", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(spec)
        )
        try:
            self.cluster.eventually(self.stands, within=90, what="every pod of ours ready")
        except AssertionError as error:
            ready = {process: len(self.ready(process)) for process in PROCESSES}
            raise AssertionError(f"{error}\n{ready}\n{self.kubelet.troubles}\n{logs(self.kubelet.home)}") from None

    def values(self, **pool: Any) -> dict[str, Any]:
        return values(self.cluster.namespace, self.kubelet.balancer.port, **pool)

    def rolled(self, **pool: Any) -> dict[str, Any]:
        """With what makes new pods of the webhook."""
        result = self.values(**pool)
        result["webhook"] |= {"podAnnotations": {"rolled": "once"}, "timeoutSeconds": 5}
        return result

    def upgrade(self, given: dict[str, Any]) -> None:
        self.helm.run("upgrade", "trimtab", CHART, *self._login, "--wait", "--timeout", "100s", values=given)

    def uninstall(self) -> None:
        self.helm.run("uninstall", "trimtab", *self._login, "--wait", "--timeout", "100s")

    @property
    def log(self) -> Path:
        """The API server's audit log."""
        return self.cluster.plane.layout.audit_log

    @property
    def targets(self) -> dict[str, list[str]]:
        """Process → addresses that a PodMonitor would find."""
        port = {process: "https" if process == "webhook" else "http" for process in PROCESSES}
        ready = {process: self.ready(process) for process in PROCESSES}
        return {name: [f"{box.address}:{box.port(port[name])}" for box in result] for name, result in ready.items()}

    def stands(self) -> bool:
        """Two of each, ready."""
        return all(len(self.ready(process)) == 2 for process in PROCESSES)

    def ready(self, process: str) -> list[Box]:
        return [box for box in self.kubelet.of(process) if self.kubelet.ready.get(box.uid)]

    def command(self, *arguments: str, expect: int = 0) -> Any:
        """The command as a person runs it: its JSON."""
        command = [sys.executable, "-m", "trimtab", *arguments, "--kubeconfig", str(self.cluster.kubeconfig)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == expect, done.stderr + done.stdout
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout


def inventory(cluster: Cluster) -> Inventory:
    """Everything the API server has, but Events and what comes and goes by itself: (kind, namespace, name) → what could
    have been written on it by us.
    """
    groups = cluster.api.request("GET", "/apis")["groups"]
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    inventory: Inventory = {}
    for path in paths:
        for resource in _resources(cluster, path):
            for item in _items(cluster, f"{path}/{resource['name']}"):
                meta = item["metadata"]
                inventory[resource["kind"], meta.get("namespace", ""), meta["name"]] = _written(resource["kind"], item)
    return inventory


def _resources(cluster: Cluster, path: str) -> list[dict[str, Any]]:
    resources = cluster.api.request("GET", path)["resources"]
    return [one for one in resources if "list" in one["verbs"] and one["kind"] not in ("Event", "ComponentStatus")]


def _items(cluster: Cluster, path: str) -> list[dict[str, Any]]:
    try:
        return list(cluster.api.request("GET", path)["items"])
    except ApiError:
        return []  # a kind that is on its way out


def _written(kind: str, item: dict[str, Any]) -> str:
    if kind != "Node":
        return ""
    spec = {key: item["spec"].get(key) for key in ("taints", "unschedulable")}
    return json.dumps([spec, item["metadata"].get("annotations"), item["metadata"].get("labels")], sort_keys=True)


def logs(home: Path) -> str:
    """Of every process, for who looks at a failure."""
    return "\n".join(f"{path.parent.name}: {path.read_text()[-1500:]}" for path in sorted(home.glob("*/log")))
