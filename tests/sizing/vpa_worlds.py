"""A VPA that names us, its target and what the target uses, in a line."""

from typing import Any

import msgspec

from tests.build import owner_key
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import without_nulls
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomKill
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.vpa.status import LeftAlone, WantedStatus, build_status, status_document
from trimtab.sizing.vpa.target_usage import TargetPods, group_by_owner

NOW = 20_000 * DAY + DAY // 2
"""Noon: a day has begun."""
MI = 1 << 20
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
WEB = owner_key("Deployment/web", "shop")
Object = dict[str, Any]


def vpa(*policies: Object, status: Object | None = None, annotations: Object | None = None, **spec: Any) -> Any:
    document = {
        "metadata": {"name": "web", "namespace": "shop", "generation": 3, "annotations": annotations or {}},
        "spec": {
            "targetRef": TARGET,
            "recommenders": [{"name": "trimtab"}],
            **({"resourcePolicy": {"containerPolicies": list(policies)}} if policies else {}),
            **spec,
        },
        "status": status or {},
    }
    return msgspec.convert(document, VerticalPodAutoscaler)


def use(days: float = 14, cpu: float = 0.4, memory: int = 800, name: str = "app", step: int = 600) -> LiveHistory:
    """The container has used as much, steadily, until now. Half of the cpu samples are a fourth of it."""
    history = LiveHistory()
    add_use(history, days, cpu, memory, name, step)
    return history


def add_use(
    history: LiveHistory, days: float, cpu: float, memory: int, name: str = "app", step: int = 600, end: int = NOW
) -> None:
    key = ContainerKey("shop", WEB.kind, "web", name)
    for number, second in enumerate(range(end - int(days * DAY), end, step)):
        history.add_sample(key, "web-1", "cpu", second, cpu if number % 2 else cpu / 4)
        history.add_sample(key, "web-1", "memory", second, memory * MI)


def kill(history: LiveHistory, used: int, name: str = "app") -> None:
    """It was killed an hour ago, when it had as many MiB."""
    key = ContainerKey("shop", WEB.kind, "web", name)
    history.add_oom_kill(key, "web-1", OomKill(at=NOW - 3600, used=used * MI, limit=used * MI))


def wanted(
    autoscaler: Any, history: LiveHistory | None = None, pods: TargetPods | None = None, now: int = NOW
) -> WantedStatus | LeftAlone:
    history = history if history is not None else use()
    pods = pods or TargetPods(topmost=WEB, count=2, containers=frozenset({"app"}))
    usage = group_by_owner(history, [pods.topmost]).get(pods.topmost)
    return build_status(autoscaler, pods, usage, max_days=history.days, now=now)


def written(autoscaler: Any, history: LiveHistory | None = None, pods: TargetPods | None = None) -> Object:
    """The status as it is written."""
    result = wanted(autoscaler, history, pods)
    assert isinstance(result, WantedStatus), result
    return status_document(autoscaler, result, NOW)


def entry(status: Object, container: str = "app") -> Object:
    entries = (status.get("recommendation") or {}).get("containerRecommendations", [])
    return next((one for one in entries if one["containerName"] == container), {})


def conditions(status: Object) -> dict[str, str]:
    """Type → status."""
    return {one["type"]: one["status"] for one in status["conditions"]}


def after(autoscaler: Any, status: Object) -> Any:
    """The VPA with the status that was written."""
    shape = msgspec.convert({"status": without_nulls(status)}, VerticalPodAutoscaler)
    return msgspec.structs.replace(autoscaler, status=shape.status)


def present(cpu: str = "", memory: str = "", container: str = "app") -> Object:
    """A status that another recommender wrote."""
    target = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {})}
    texts = {"target": target, "lowerBound": target, "upperBound": target, "uncappedTarget": target}
    return {"recommendation": {"containerRecommendations": [{"containerName": container, **texts}]}}
