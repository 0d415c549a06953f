"""Reads what pods without a cpu or memory request use now, so that a plan does not treat them as small.

Nothing is read while every pod that may be moved requests cpu and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.measured_use import is_use_needed, use_by_owner
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.resources import Amounts
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.usage.metrics_api import READ_INTERVAL_SECONDS, read_pod_use

RETRY_SECONDS = 300.0
"""The number of seconds until the next attempt after the metrics API did not respond; usually the cluster has no
metrics server then."""
MAX_AGE_SECONDS = 900.0
"""After this many seconds, an earlier result is no longer used, even if there is no newer one."""


@dataclass(slots=True)
class UseReader:
    """Reads the metrics API, and keeps the last result. Only the leader uses it."""

    client: Client
    elapsed: Callable[[], float]
    _use_by_pod: Mapping[str, Amounts] | None = None
    _answered_at: float = 0.0
    _next_at: float = 0.0

    def read_use(self, pods: Iterable[PodInfo]) -> Mapping[OwnerKey, Amounts]:
        """Returns owner → the largest usage by one of its pods, for pods that request no cpu or no memory; empty
        without a metrics server."""
        pods_without_requests = [pod for pod in pods if is_use_needed(pod)]
        if not pods_without_requests:
            return {}
        now = self.elapsed()
        if now >= self._next_at:
            self._read(now)
        if self._use_by_pod is None or now - self._answered_at > MAX_AGE_SECONDS:
            return {}
        return use_by_owner(pods_without_requests, self._use_by_pod)

    def _read(self, now: float) -> None:
        try:
            self._use_by_pod = read_pod_use(self.client)
        except KubeFault:
            # No metrics server, or no permission: the assumed amounts count. `trimtab doctor` reports what is missing.
            self._next_at = now + RETRY_SECONDS
            return
        self._answered_at, self._next_at = now, now + READ_INTERVAL_SECONDS
