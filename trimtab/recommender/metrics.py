"""The metrics of the recommender. Every label value is defined in the code."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.recommender.publisher import ContainerRecommendations


class Metrics:
    """Gauges and counters that are set after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        self.registry = registry

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_recommender_{name}", help_text, labels, registry=registry)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"trimtab_recommender_{name}", help_text, labels, registry=registry)

        self.containers = gauge("containers", "Containers with recorded usage.")
        self.recommended = gauge("recommended_containers", "Containers with a recommendation in the latest round.")
        self.missing = gauge(
            "containers_without_recommendation",
            "Containers without a recommendation for a resource, by the reason's code.",
            "resource",
            "reason",
        )
        self.collected = gauge(
            "collected_timestamp_seconds", "When usage was last read completely; NaN: never by this replica."
        )
        self.collected.set(float("nan"))
        self.samples = counter("series", "Series of usage with new values.")
        self.dropped_samples = counter(
            "ignored_samples", "Samples that were dropped: not a number, below zero, or more than any machine has."
        )
        self.writes = counter("writes", "Shards (ConfigMaps) written: of usage or of recommendations.", "what")
        self.shards = gauge("shards", "Shards (ConfigMaps) that exist: of usage or of recommendations.", "what")
        self.stored_bytes = gauge(
            "stored_bytes", "Bytes of text in ConfigMaps: of usage or of recommendations.", "what"
        )
        self.max_stored_bytes = gauge(
            "max_stored_bytes",
            "Maximum bytes of stored usage (TRIMTAB_RECOMMENDER_MAX_STORED_MEGABYTES); beyond it the oldest days go.",
        )
        self.unsaved_seconds = gauge(
            "checkpoint_age_seconds",
            "Age of the shard of usage that was written longest ago: what an unexpected end would lose.",
        )
        self.missed_readings = counter(
            "missed_collections",
            "Readings of current usage that were missed: one took too long, or the loop did not use them in time.",
        )
        self.unreadable = gauge(
            "unreadable_shards", "Shards that were damaged when this replica began to lead.", "what"
        )
        self.faults = counter("errors", "Steps of rounds that failed: collect, import, publish, checkpoint.", "what")
        gauge("leading", "1 in the replica that leads, 0 in the others.").set_function(leading)

    def set_recommendations(self, recommendations: ContainerRecommendations) -> None:
        """Set the metrics of one computation of all recommendations."""
        self.recommended.set(sum(map(len, recommendations.workloads.values())))
        counts = Count(
            (resource, not_yet.reason.code.name)
            for by_resource in recommendations.missing.values()
            for resource, not_yet in by_resource.items()
        )
        self.missing.clear()
        for (resource, reason), count in counts.items():
            self.missing.labels(resource, reason).set(count)
