"""The recommender in numbers. Every label is a word of ours."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.recommender.publisher import ContainerRecommendations


class Metrics:
    """Set after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        self.registry = registry

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_recommender_{name}", says, labels, registry=registry)

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"trimtab_recommender_{name}", says, labels, registry=registry)

        self.containers = gauge("containers", "Containers whose usage is remembered.")
        self.known = gauge("recommended_containers", "Containers with a recommendation, by the last look.")
        self.missing = gauge(
            "missing", "Containers without a recommendation for a resource, by the reason's code.", "resource", "reason"
        )
        self.collected = gauge(
            "collected_timestamp_seconds", "When usage was read to the end last; NaN: never by this replica."
        )
        self.collected.set(float("nan"))
        self.samples = counter("series", "Series of usage that brought something new.")
        self.left_out = counter(
            "left_out_samples", "Samples that count for nothing: no number, below zero, or more than any machine has."
        )
        self.writes = counter("writes", "Shards (ConfigMaps) written: of usage or of recommendations.", "what")
        self.shards = gauge("shards", "Shards (ConfigMaps) that stand: of usage or of recommendations.", "what")
        self.stored_bytes = gauge(
            "stored_bytes", "Bytes of text that stand in ConfigMaps: of usage or of recommendations.", "what"
        )
        self.max_stored_bytes = gauge(
            "max_stored_bytes",
            "Bytes of usage at the most (TRIMTAB_RECOMMENDER_MAX_STORED_MEGABYTES); then the oldest days go.",
        )
        self.unsaved = gauge(
            "unsaved_seconds", "Age of the shard of usage written longest ago: what an unexpected end would cost."
        )
        self.missed = counter(
            "missed_looks",
            "Looks at what pods use now that were left out: one took too long, or nobody took them up.",
        )
        self.unreadable = gauge("unreadable_shards", "Shards found damaged when this replica began to lead.", "what")
        self.faults = counter("faults", "Steps of rounds that failed: collect, import, publish, checkpoint.", "what")
        gauge("leading", "1 in the replica that leads, 0 in the others.").set_function(leading)

    def told(self, found: ContainerRecommendations) -> None:
        """One look at the whole diary."""
        self.known.set(sum(map(len, found.known.values())))
        counts = Count(
            (resource, one.reason.code.name) for lacking in found.missing.values() for resource, one in lacking.items()
        )
        self.missing.clear()
        for (resource, reason), count in counts.items():
            self.missing.labels(resource, reason).set(count)
