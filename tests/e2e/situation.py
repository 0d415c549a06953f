"""One small world by the dice: its names, and what every pod in it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Object = dict[str, Any]

NAMESPACES: dict[str, dict[str, str]] = {
    "fit-red": {"team": "a", "stage": "prod"},
    "fit-blue": {"team": "b", "stage": "prod"},
    "fit-grey": {},
}
OVERHEADS = {"fit-light": {"cpu": "100m", "memory": "64Mi"}, "fit-heavy": {"cpu": "750m", "memory": "1Gi"}}
"""RuntimeClass → its overhead."""
GPU, HUGE = "example.com/gpu", "hugepages-2Mi"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINGER, DONE = "testbed.trimtab.dev/stops-after", "testbed.trimtab.dev/done"
RESIZED = "testbed.trimtab.dev/really-has"
ZONE = "topology.kubernetes.io/zone"
PROBE = "testbed.trimtab.dev/asks"
"""The label of pods that ask."""
NUMBERS = ("1", "3", "5", "05", "1_0", "x", "5x", "0", "99999999999999999999")
"""Label values for Gt and Lt, not all of them numbers."""
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    kind: str
    pod: Object

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


@dataclass(slots=True)
class World:
    name: str
    dice: Random
    nodes: list[Object] = field(default_factory=list)
    bound: list[Object] = field(default_factory=list)
    """Pods that are on their node already."""
    probes: list[Probe] = field(default_factory=list)
    things: list[Object] = field(default_factory=list)
    """What pods speak of: volumes and their claims, attach limits, resource claims."""

    def key(self, level: str) -> str:
        return f"{self.name}.test/{level}"

    def of_zone(self, name: str) -> str:
        """The value of Kubernetes' own zone label: no two worlds share one."""
        return f"{self.name}-{name}"

    @property
    def keys(self) -> list[str]:
        return [self.key(level) for level in ("zone", "rack", "host")]


def pod(name: str, namespace: str, labels: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "containers": [container("main", {"cpu": "50m", "memory": "64Mi"})],
            "terminationGracePeriodSeconds": 0,
        },
    }


def container(name: str, requests: Object, limits: Object | None = None) -> Object:
    """Extended resources and huge pages have a limit that equals the request."""
    capped = {k: v for k, v in requests.items() if k in (GPU, HUGE)} | (limits or {})
    resources = {"requests": requests, **({"limits": capped} if capped else {})}
    return {"name": name, "image": "pause", "resources": resources}
