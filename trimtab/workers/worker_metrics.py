"""The metrics of a process of which one replica works."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from trimtab.runtime.metrics import ProcessMetrics


class WorkerMetrics(ProcessMetrics):
    """The metrics of one replica, whose names begin with `prefix`."""

    def __init__(self, registry: CollectorRegistry, prefix: str, is_leading: Callable[[], bool]) -> None:
        super().__init__(registry, prefix)
        self.is_leading = is_leading

    def add_leadership(self, name: str = "leading") -> None:
        """Adds the metric that says which replica leads."""
        self.gauge(name, "1 in the replica that leads, 0 in the others.").set_function(self.is_leading)
