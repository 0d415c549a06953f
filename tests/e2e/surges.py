"""What a surge is judged by: a watch over EndpointSlices, an HPA with a played load, and a world of two nodes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.controlplane import objects
from tests.controlplane.api import Api, ApiError, Unreachable
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.resource_metrics import ResourceMetrics

Object = dict[str, Any]
MARK = "trimtab.dev/min-replicas-before"
SLOW = {"testbed.trimtab.dev/ready-after": "1s"}
CPU = 300
"""Millicores that a pod of `only` requests."""


@dataclass
class EndpointWatch:
    """Watches the EndpointSlices of a namespace, event by event: how long a Service had no endpoint that is ready, and
    how few it had. It knows nothing of pods, budgets, or who moves what."""

    cluster: Cluster
    dark: Counter[str] = field(default_factory=Counter)
    """Service → seconds without a ready endpoint."""
    fewest: dict[str, int] = field(default_factory=dict)
    """Service → the least number of ready endpoints."""
    events: int = 0
    _slices: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Name → (Service, its ready endpoints)."""
    _dark_since: dict[str, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _listed: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> EndpointWatch:
        self._api = Api(self.cluster.kubeconfig)
        threading.Thread(target=self._run, daemon=True).start()
        assert self._listed.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for service in list(self._dark_since):
            self.dark[service] += time.monotonic() - self._dark_since.pop(service)

    def _run(self) -> None:
        kind = self._api.kind("EndpointSlice")
        while not self._stop.is_set():
            try:
                answer = self._api.request("GET", self._api.path(kind, self.cluster.namespace), timeout=30)
                for item in answer["items"]:
                    self.look(item, is_there=True)
                self._listed.set()
                for event in self._api.watch(kind, answer["metadata"]["resourceVersion"]):
                    if self._stop.is_set() or event["type"] == "ERROR":
                        break
                    self.events += 1
                    if event["object"]["metadata"]["namespace"] == self.cluster.namespace:
                        self.look(event["object"], is_there=event["type"] != "DELETED")
            except (ApiError, Unreachable):
                self._stop.wait(0.1)

    def look(self, item: Object, *, is_there: bool) -> None:
        if self._stop.is_set():
            return
        name, service = item["metadata"]["name"], item["metadata"]["labels"]["kubernetes.io/service-name"]
        self._slices[name] = (service, count_ready(item) if is_there else 0)
        count = sum(number for of, number in self._slices.values() if of == service)
        self.fewest[service] = min(self.fewest.get(service, count), count)
        now = time.monotonic()
        if not count:
            self._dark_since.setdefault(service, now)
        elif service in self._dark_since:
            self.dark[service] += now - self._dark_since.pop(service)


def count_ready(endpoint_slice: Object) -> int:
    """The endpoints of an EndpointSlice that are ready."""
    conditions = [one.get("conditions", {}) for one in endpoint_slice.get("endpoints") or ()]
    return sum(bool(one.get("ready")) and one.get("serving") is not False for one in conditions)


def ready_endpoints(cluster: Cluster, app: str = "only") -> int:
    """The endpoints of the Service that are ready: a pod that is ready becomes one a moment later."""
    return sum(map(count_ready, cluster.list("EndpointSlice", selector=f"kubernetes.io/service-name={app}")))


def service(app: str = "only") -> Object:
    spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": spec}


def hpa(least: int, most: int = 9, app: str = "only", **metadata: Any) -> Object:
    target = {"type": "Utilization", "averageUtilization": 80}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app, **metadata},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
            "minReplicas": least,
            "maxReplicas": most,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def budget_of(least: int | str, app: str = "only", selector: Object | None = None) -> Object:
    spec = {"minAvailable": least, "selector": selector or {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}


class PlayedLoad:
    """The usage of all pods of `only` in a namespace: what so many pods at their target use together."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[Cluster, int]] = {}
        """Namespace → the number of pods for which the load is right; namespaces without one have no usage."""

    def set(self, cluster: Cluster, pods: int) -> None:
        """From now on the load of the namespace is right for so many pods."""
        self.pods[cluster.namespace] = (cluster, pods)

    def usage(self, namespace: str) -> dict[str, int] | None:
        if namespace not in self.pods:
            return {}
        cluster, pods = self.pods[namespace]
        running = [pod["metadata"]["name"] for pod in cluster.running("app=only")]
        each = pods * CPU * 8 // 10 // max(1, len(running))
        return dict.fromkeys(running, each)


@contextmanager
def autoscaled_plane(built: Binaries) -> Iterator[tuple[Cluster, PlayedLoad]]:
    """A control plane whose HPA controller looks every two seconds, with a metrics API that plays the load."""
    flags = {"kube-controller-manager": ["--horizontal-pod-autoscaler-sync-period=2s"]}
    with ControlPlane.start(built, extra_flags=flags) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        load = PlayedLoad()
        with ResourceMetrics(plane, load.usage) as metrics:
            metrics.register(cluster.in_namespace("metrics"))
            yield cluster, load


def two_nodes(cluster: Cluster, name: str, replicas: int = 1, spec: Object | None = None) -> None:
    """A node with the pods of `only`, beside one whose own pods are too many to move. `only` has a Service."""
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    spec = {"nodeSelector": {"pool": name}, "terminationGracePeriodSeconds": 1, **(spec or {})}
    cluster.deployment("only", replicas=replicas, cpu=f"{CPU}m", annotations=SLOW, spec=spec)
    cluster.apply(service())
    cluster.eventually(lambda: ready_endpoints(cluster) == replicas)
    cluster.create(objects.node(f"{name}-b", cpu="8", memory="32Gi", pods=110, labels={"pool": name}, taints=()))
    cluster.deployment("many", replicas=6, cpu="900m", spec={"nodeName": f"{name}-b"})
    cluster.eventually(lambda: len(cluster.running("app=many")) == 6)


def is_steady(cluster: Cluster, count: int) -> bool:
    """Whether the HPA has counted so many pods, and wants them."""
    status = cluster.get("HorizontalPodAutoscaler", "only").get("status", {})
    return (status.get("currentReplicas"), status.get("desiredReplicas")) == (count, count)


def floor(cluster: Cluster) -> tuple[int, str | None]:
    """`minReplicas` of the HPA, and our annotation."""
    item = cluster.get("HorizontalPodAutoscaler", "only")
    return item["spec"]["minReplicas"], item["metadata"].get("annotations", {}).get(MARK)


def is_closed(cluster: Cluster, app: str = "only") -> bool:
    """Whether the budget's status says that it allows no eviction."""
    status = cluster.get("PodDisruptionBudget", app).get("status", {})
    return status.get("expectedPods", 0) > 0 and status.get("disruptionsAllowed") == 0


@contextmanager
def call_repeatedly(look: Callable[[], object]) -> Iterator[None]:
    """Calls `look` again and again, as a controller, or as a tool that keeps objects as they stand in Git."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.3):
            try:
                look()
            except (ApiError, Unreachable):
                continue

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
