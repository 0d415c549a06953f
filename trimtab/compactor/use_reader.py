"""Reads the present use of pods that do not request cpu or memory, so that a plan does not take them for small ones.

Nothing is read while every pod that may move requests cpu and memory.
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
"""The seconds until the next read where there was no answer: most often no metrics server is installed."""
MAX_AGE_SECONDS = 900.0
"""The age from which an earlier answer is not used any more, while there is no newer one."""


@dataclass(slots=True)
class UseReader:
    """Reads the metrics API for the leader, and keeps the last answer."""

    client: Client
    elapsed: Callable[[], float]
    _use_by_pod: Mapping[str, Amounts] | None = None
    _answered_at: float = 0.0
    _next_at: float = 0.0

    def read_use(self, pods: Iterable[PodInfo]) -> Mapping[OwnerKey, Amounts]:
        """Returns owner → the largest use by one of its pods, of the pods that request no cpu or no memory; empty
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
