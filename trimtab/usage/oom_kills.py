"""Reads OOM kills from the status of pods, and from Prometheus (where kube-state-metrics reports them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trimtab.cluster.api.pod import ContainerStatus, Pod
from trimtab.cluster.quantity import NotAQuantity, to_whole_units
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.histogram.oom_kills import OomKill
from trimtab.usage.prometheus_queries import SUBJECTS
from trimtab.usage.series import Series

if TYPE_CHECKING:
    from trimtab.usage.prometheus import Prometheus


def kills_of_pod(pod: Pod) -> Iterator[tuple[str, OomKill]]:
    """Yields (container, its last OOM kill) for each container of the pod that was OOM-killed, including sidecars."""
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        killed_at = _killed_at(status)
        if killed_at is not None:
            limit, request = _memory_limit_and_request(pod, status.name)
            yield status.name, OomKill(at=killed_at, limit=limit, request=request)


_BY_CONTAINER = f"max by ({SUBJECTS})"
_KILLED_QUERY = f"{_BY_CONTAINER} (max_over_time(kube_pod_container_status_last_terminated_reason{{%s}}[1h])) == 1"
_RESTARTED_QUERY = f"{_BY_CONTAINER} (changes(kube_pod_container_status_restarts_total{{%s}}[1h])) > 0"
_ALLOWED_QUERY = f"{_BY_CONTAINER} (max_over_time(kube_pod_container_resource_%s{{%s}}[1h]))"
_STEP_SECONDS = 3600


def kills_of_prometheus(prometheus: Prometheus, start: int, end: int) -> list[tuple[Series, OomKill]]:
    """Returns (a series that names the container, a kill) for every hour in which a container restarted after an OOM
    kill; an empty list if the server has no data of kube-state-metrics."""
    from trimtab.usage.prometheus import quote_pod  # the statuses of pods need no HTTP client

    first = start - start % _STEP_SECONDS
    is_killed, restarts = prometheus.join_matchers('reason="OOMKilled"'), prometheus.join_matchers()
    # The last reason stays for as long as the container exists: only a restart in the same hour makes it a kill of that
    # hour.
    query = f"({_KILLED_QUERY % is_killed}) and ({_RESTARTED_QUERY % restarts})"
    killed = {
        _container_of(series): series for series in prometheus.query_range(query, first, end, _STEP_SECONDS, "kills")
    }
    if not killed:
        return []
    pod_names, names = "|".join(sorted({quote_pod(pod) for _, pod, _ in killed})), prometheus.query_plan.names
    pods, used = f'pod=~"{pod_names}"', f'{names.server_label("pod")}=~"{pod_names}"'
    memory = prometheus.join_matchers('resource="memory"', pods)
    amounts: dict[str, dict[tuple[str, str, str], Mapping[int, float]]] = {}
    for name, amount_query in (
        ("used", names.usage_query("memory", prometheus.join_matchers(used), "1h")),
        ("limits", _ALLOWED_QUERY % ("limits", memory)),
        ("requests", _ALLOWED_QUERY % ("requests", memory)),
    ):
        amount_series = prometheus.query_range(
            amount_query, first, end, _STEP_SECONDS, f"read the memory {name} of killed containers"
        )
        amounts[name] = {
            _container_of(series): dict(zip(series.times, series.values, strict=True)) for series in amount_series
        }
    return [
        (
            series,
            OomKill(
                at=int(at),
                **{
                    field: amounts[name].get(key, {}).get(at, 0.0)
                    for field, name in (("used", "used"), ("limit", "limits"), ("request", "requests"))
                },
            ),
        )
        for key, series in killed.items()
        for at in series.times
    ]


def _container_of(series: Series) -> tuple[str, str, str]:
    return series.namespace, series.pod, series.container


def _killed_at(status: ContainerStatus) -> Seconds | None:
    """Returns the time of the last OOM kill, from the current state of the container or from the previous one: once the
    container has restarted, the kill is in `lastState`."""
    for state in (status.state, status.last_state):
        terminated: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(terminated, Mapping) and terminated.get("reason") == "OOMKilled":
            return parse_timestamp(terminated.get("finishedAt"))
    return None


def _memory_limit_and_request(pod: Pod, name: str) -> tuple[float, float]:
    """Returns the memory limit and the memory request of a container in bytes; 0 for one that is missing or is not a
    quantity."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            limit, request = (amounts_of(container.resources).get("memory") for amounts_of in (limits_of, requests_of))
            return _to_bytes(limit), _to_bytes(request)
    return 0.0, 0.0


def _to_bytes(amount: Any) -> float:
    try:
        return float(to_whole_units(amount)) if amount else 0.0
    except NotAQuantity:
        return 0.0
