"""Kills for want of memory, as the status of a pod and Prometheus (by kube-state-metrics) tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.cluster.api.pod import ContainerStatus, Pod
from trimtab.cluster.quantity import NotAQuantity, whole
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.histogram.oom_kills import OomKill
from trimtab.usage.prometheus import Prometheus, quoted
from trimtab.usage.series import Series


def of_pod(pod: Pod) -> Iterator[tuple[str, OomKill]]:
    """(container, its last kill) of each container that was killed. Sidecars are among the init containers."""
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        at = _killed_at(status)
        if at is not None:
            limit, request = _allowed(pod, status.name)
            yield status.name, OomKill(at=at, limit=limit, request=request)


_BY = "max by (namespace, pod, container)"
_REASON = f"{_BY} (max_over_time(kube_pod_container_status_last_terminated_reason{{%s}}[1h])) == 1"
_RESTARTS = f"{_BY} (changes(kube_pod_container_status_restarts_total{{%s}}[1h])) > 0"
_ALLOWED = f"{_BY} (max_over_time(kube_pod_container_resource_%s{{%s}}[1h]))"
_STEP = 3600


def of_prometheus(prometheus: Prometheus, start: int, end: int) -> list[tuple[Series, OomKill]]:
    """(a series that names the container, a kill) for every hour in which a container restarted after a kill for want
    of memory; empty where there is no kube-state-metrics."""
    first = start - start % _STEP
    is_killed, restarts = prometheus.matching('reason="OOMKilled"'), prometheus.matching()
    query = f"({_REASON % is_killed}) and ({_RESTARTS % restarts})"
    killed = {_key(series): series for series in prometheus.over_time(query, first, end, _STEP, "kills")}
    if not killed:
        return []
    some, names = "|".join(sorted({quoted(pod) for _, pod, _ in killed})), prometheus.pieces.names
    pods, used = f'pod=~"{some}"', f'{names.label("pod")}=~"{some}"'
    memory = prometheus.matching('resource="memory"', pods)
    amounts: dict[str, dict[tuple[str, str, str], Mapping[int, float]]] = {}
    for name, asked in (
        ("used", names.query("memory", prometheus.matching(used), "1h")), ("limits", _ALLOWED % ("limits", memory)),
        ("requests", _ALLOWED % ("requests", memory)),
    ):  # fmt: skip
        found = prometheus.over_time(asked, first, end, _STEP, f"the memory {name} of what was killed")
        amounts[name] = {_key(series): dict(zip(series.times, series.values, strict=True)) for series in found}
    return [
        (series, OomKill(at=int(at), **{
            field: amounts[name].get(key, {}).get(at, 0.0)
            for field, name in (("used", "used"), ("limit", "limits"), ("request", "requests"))}))
        for key, series in killed.items() for at in series.times
    ]  # fmt: skip


def _key(series: Series) -> tuple[str, str, str]:
    return series.namespace, series.pod, series.container


def _killed_at(status: ContainerStatus) -> Seconds | None:
    """The state it is in counts, and the one before: a restarted container has the latter."""
    for state in (status.state, status.last_state):
        ended: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(ended, Mapping) and ended.get("reason") == "OOMKilled":
            return seconds(ended.get("finishedAt"))
    return None


def _allowed(pod: Pod, name: str) -> tuple[float, float]:
    """Bytes of the memory limit and request of a container; 0 where there is none, or it cannot be read."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            limit, request = (of(container.resources).get("memory") for of in (limits_of, requests_of))
            return _bytes(limit), _bytes(request)
    return 0.0, 0.0


def _bytes(written: Any) -> float:
    try:
        return float(whole(written)) if written else 0.0
    except NotAQuantity:
        return 0.0
