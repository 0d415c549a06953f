"""A stand-in for the cluster autoscaler: it reports, takes what is empty, and adds what is missing.

Its status has the format of 1.30 and later. A node of a group that holds nothing but DaemonSet pods for `unneeded`
seconds is tainted and deleted; a pod that the scheduler calls unschedulable gets a node of the first group it would
be allowed on. It empties no node by itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType

from tests.controlplane.api import Api, ApiError, Object, Unreachable
from tests.controlplane.cluster import Cluster

UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
TAINT = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
ADDING = 5.0
"""Seconds for which it tells of an addition."""


def status(
    groups: Mapping[str, int], *, health: str = "Healthy", scale_up: str = "NoActivity", ago: int = 0, least: int = 1
) -> Object:
    """Its status ConfigMap; group → nodes it has."""
    when = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%d %H:%M:%S.%f123 +0000 UTC")
    told = (
        f"time: {when}\nautoscalerStatus: Running\nclusterWide:\n  health: {{status: {health}}}\n"
        f"  scaleUp: {{status: {scale_up}}}\nnodeGroups:\n"
    )
    for group, size in groups.items():
        told += (
            f"- name: gke-{group}-grp\n  health: {{status: {health}, cloudProviderTarget: {size}, minSize: {least}, "
            f"maxSize: 1000}}\n  scaleUp: {{status: {scale_up}}}\n"
        )
    meta = {"name": "cluster-autoscaler-status", "namespace": "kube-system", "annotations": {UPDATED: when}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"status": told}}


@dataclass
class Autoscaler:
    cluster: Cluster
    group_of: Callable[[Object], str]
    """A node's group; empty where it is nobody's."""
    add: Callable[[Object], str] = lambda pod: ""
    """Makes a node for this pod; its group, empty where none would do."""
    unneeded: float = 5.0
    every: float = 1.0
    least: int = 1
    reports: bool = True
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    """Group of every node that was added."""
    _empty: dict[str, float] = field(default_factory=dict)
    _last: float = -ADDING
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Autoscaler:
        self._api = Api(self.cluster.kubeconfig)
        self._look()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        if self.reports:
            self.cluster.delete("ConfigMap", "cluster-autoscaler-status", "kube-system")

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            with contextlib.suppress(ApiError, Unreachable):
                self._look()

    def _look(self) -> None:
        pods = list(self._api.items(self._api.kind("Pod"), None))
        nodes = {node["metadata"]["name"]: node for node in self._api.items(self._api.kind("Node"), None)}
        groups = {name: group for name, node in nodes.items() if (group := self.group_of(node))}
        sizes: dict[str, int] = {}
        for group in groups.values():
            sizes[group] = sizes.get(group, 0) + 1
        self._add_for(pods)
        self._take(groups, sizes, {pod["spec"].get("nodeName", "") for pod in pods if not _daemon(pod)})
        if self.reports:
            busy = time.monotonic() - self._last < ADDING
            self.cluster.apply(status(sizes, scale_up="InProgress" if busy else "NoActivity", least=self.least))

    def _add_for(self, pods: list[Object]) -> None:
        """One node for the first that waits; the others have their turn when it is there."""
        if time.monotonic() - self._last < ADDING:
            return
        for pod in pods:
            conditions = pod["status"].get("conditions", ())
            waits = any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)
            if waits and not pod["spec"].get("nodeName") and (group := self.add(pod)):
                self.added.append(group)
                self._last = time.monotonic()
                return

    def _take(self, groups: Mapping[str, str], sizes: dict[str, int], busy: set[str]) -> None:
        now = time.monotonic()
        self._empty = {name: self._empty.get(name, now) for name in groups if name not in busy}
        for name, since in self._empty.items():
            if now - since >= self.unneeded and sizes[groups[name]] > self.least:
                self.cluster.patch("Node", name, {"spec": {"taints": [TAINT], "unschedulable": True}})
                self.cluster.delete("Node", name)
                self.removed.append(name)
                sizes[groups[name]] -= 1


def _daemon(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences", ())
    return any(owner["kind"] == "DaemonSet" for owner in owners) or pod["status"].get("phase") in (
        "Succeeded",
        "Failed",
    )
