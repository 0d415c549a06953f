"""Objects that somebody who may `edit` a namespace writes around their own pods, in numbers or in one large object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.hostile.world import NAMESPACE

Json = dict[str, Any]
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def _object(api: str, kind: str, name: str, **rest: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **rest}


def _scaler(name: str, metrics: int) -> Json:
    metric = {"type": "Object", "object": {}}
    spec = {"scaleTargetRef": WEB, "maxReplicas": 3, "metrics": [metric] * metrics}
    return _object("autoscaling/v2", "HorizontalPodAutoscaler", name, spec=spec)


def _vpa(name: str, containers: int) -> Json:
    policies = [{"containerName": f"x{at}", "maxAllowed": {"cpu": "1"}} for at in range(containers)]
    texts = [{"containerName": f"x{at}", "target": {"cpu": "1"}} for at in range(containers)]
    spec = {"targetRef": WEB, "resourcePolicy": {"containerPolicies": policies}}
    status = {"recommendation": {"containerRecommendations": texts}}
    return _object("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", name, spec=spec, status=status)


def scalers(count: int) -> list[Json]:
    return [_scaler(f"h{at}", 3) for at in range(count)]


def one_scaler(count: int) -> list[Json]:
    return [_scaler("h", count + 1)]


def vpas(count: int) -> list[Json]:
    return [_vpa(f"x{at}", 1) for at in range(count)]


def one_vpa(count: int) -> list[Json]:
    return [_vpa("a", count)]


def daemon_sets(count: int) -> list[Json]:
    containers = [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1m"}}}]
    spec = {"template": {"spec": {"containers": containers}}}
    return [_object("apps/v1", "DaemonSet", f"d{at}", spec=spec) for at in range(count)]


def replica_sets(count: int) -> list[Json]:
    return [_object("apps/v1", "ReplicaSet", f"r{at}") for at in range(count)]


AROUND: tuple[Callable[[int], list[Json]], ...] = (scalers, one_scaler, vpas, one_vpa, daemon_sets, replica_sets)
