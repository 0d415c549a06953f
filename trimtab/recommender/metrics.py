"""The recommender in numbers. Every label is a word of ours."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.recommender.publishing import Verdicts


class Metrics:
    """Set after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        self.registry = registry

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_recommender_{name}", says, labels, registry=registry)

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"trimtab_recommender_{name}", says, labels, registry=registry)

        self.containers = gauge("containers", "Containers in the diary.")
        self.known = gauge("recommended_containers", "Containers with a recommendation.")
        self.missing = gauge("missing", "Containers without one, by resource and reason.", "resource", "reason")
        self.collected = gauge("collected_timestamp_seconds", "When usage was read to the end last; NaN: never.")
        self.collected.set(float("nan"))
        self.samples = counter("series", "Series that brought something new.")
        self.writes = counter("writes", "ConfigMaps written.", "what")
        self.shards = gauge("shards", "ConfigMaps that stand.", "what")
        self.unreadable = gauge("unreadable_shards", "Shards found damaged when this replica began to lead.", "what")
        self.faults = counter("faults", "Rounds that did not come to their end, by what failed.", "what")
        gauge("leading", "1 in the replica that leads.").set_function(leading)

    def told(self, found: Verdicts) -> None:
        """One look at the whole diary."""
        self.known.set(sum(map(len, found.known.values())))
        counts = Count(
            (resource, one.reason.code.name) for lacking in found.missing.values() for resource, one in lacking.items()
        )
        self.missing.clear()
        for (resource, reason), count in counts.items():
            self.missing.labels(resource, reason).set(count)
