"""Defines the metrics of the recommender. Every label value is defined in the code."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.reason import NotYet
from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.recommender.expander_demotion import DemotionMetrics
from trimtab.recommender.publisher import ContainerRecommendations
from trimtab.recommender.vpa_status_writer import VpaStatusMetrics
from trimtab.reservations.measure import PoolUse, ReservationChange, ResourceUse
from trimtab.reservations.overhead_fit import OverheadFit
from trimtab.runtime.metrics import Bounded
from trimtab.sizing.cost import HOURS_PER_MONTH
from trimtab.sizing.pool_reservations import PoolReservation
from trimtab.workers.worker_metrics import WorkerMetrics


class Metrics(WorkerMetrics):
    """Gauges and counters that are set after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        super().__init__(registry, "trimtab_recommender_", leading)
        self.containers = self.gauge("containers", "The number of containers with recorded usage.")
        self.recommended = self.gauge(
            "recommended_containers", "The number of containers with a recommendation in the latest round."
        )
        self.missing = self.gauge(
            "containers_without_recommendation",
            "The number of containers without a recommendation for a resource, by reason code.",
            "resource",
            "reason",
        )
        self.collected = self.gauge(
            "collected_timestamp_seconds",
            "The time at which usage was last read completely, in seconds since 1970; NaN if this replica "
            "has never read it.",
        )
        self.collected.set(float("nan"))
        self.samples = self.counter("series", "The number of usage series that had new values in the last reading.")
        self.dropped_samples = self.counter(
            "ignored_samples",
            "The number of samples that were dropped, because they are not a number, below zero, or more than "
            "any machine has.",
        )
        self.writes = self.counter(
            "writes",
            "The number of objects that were written: shards of usage or of recommendations, parameters of a "
            "namespace, or statuses of VPAs.",
            "what",
        )
        self.shards = self.gauge(
            "shards", "The number of existing shards (ConfigMaps) of usage or of recommendations.", "what"
        )
        self.stored_bytes = self.gauge(
            "stored_bytes", "The number of bytes of text in ConfigMaps of usage or of recommendations.", "what"
        )
        self.max_stored_bytes = self.gauge(
            "max_stored_bytes",
            "The limit of stored usage in bytes (TRIMTAB_RECOMMENDER_MAX_STORED_MEGABYTES); above it the oldest "
            "days are deleted.",
        )
        self.unsaved_seconds = self.gauge(
            "checkpoint_age_seconds",
            "The age in seconds of the oldest stored shard of usage, which is the usage that an unexpected end "
            "of the process would lose.",
        )
        self.missed_readings = self.counter(
            "missed_collections",
            "The number of readings of present usage that were missed, because one took too long or was not "
            "processed in time.",
        )
        self.unreadable = self.gauge(
            "unreadable_shards",
            "The number of stored texts that were damaged or too large when this replica began to lead: of usage, "
            "recommendations, overhead (of kubelets) or reservations.",
            "what",
        )
        self.faults = self.counter(
            "errors",
            "The number of steps of rounds that failed: collect, import, publish, parameters, vpa-status, checkpoint, "
            "demotions, daily-history.",
            "what",
        )
        self.add_leadership()
        self.reservations = ReservationMetrics(registry, self.unreadable)
        self.demotions = DemotionMetrics(registry)
        self.vpa_status = VpaStatusMetrics(registry)

    def set_recommendations(self, recommendations: ContainerRecommendations) -> None:
        """Sets the metrics for one computation of all recommendations."""
        names = (name for containers in recommendations.workloads.values() for name in containers)
        self.recommended.set(sum(not is_whole_pod(name) for name in names))
        counts = Count(
            (resource, not_yet.reason.code.name)
            for by_resource in recommendations.missing.values()
            for resource, not_yet in by_resource.items()
        )
        self.missing.clear()
        for (resource, reason), count in counts.items():
            self.missing.labels(resource, reason).set(count)


_UNITS = {"cpu": 1000.0, "memory": 1.0}
"""Resource → the number of millicores or bytes in one unit of the resource's metric."""


class ReservationMetrics:
    """Gauges for what kubelets and container runtimes use, and what is reserved for them."""

    def __init__(self, registry: CollectorRegistry, unreadable: Gauge) -> None:
        self.unreadable = unreadable
        self._pool = Bounded()

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_recommender_{name}", help_text, ("pool", "runtime", *labels), registry=registry)

        self.overhead = gauge(
            "node_overhead",
            "The usage of the kubelet and container runtime of one node by resource, in cores or bytes, as p50, "
            "p95 and max.",
            "resource",
            "statistic",
        )
        self.base = gauge(
            "node_overhead_base",
            "The fitted usage of the kubelet and runtime on a node without pods by resource, in cores or bytes.",
            "resource",
        )
        self.per_pod = gauge(
            "node_overhead_per_pod",
            "The usage of the kubelet and runtime that each pod adds, by resource, in cores or bytes.",
            "resource",
        )
        self.reserved = gauge(
            "node_reserved",
            "The present reservation (kube and system) of most nodes in the pool by resource, in cores or bytes.",
            "resource",
        )
        self.recommended = gauge(
            "node_reserved_recommended",
            "The recommended reservation of a node by resource, in cores or bytes.",
            "resource",
        )
        self.coverage = gauge(
            "overhead_coverage_ratio", "The share of the pool's nodes whose kubelet usage is known, from 0 to 1."
        )
        self.change = gauge(
            "reservation_change",
            "Always 1, for the current advice on the pool's reservation: keep, raise, lower, wait or unknown.",
            "change",
        )
        self.dollars = gauge(
            "reserved_dollars_per_hour",
            "The dollars an hour for reserved resources that are not used (unused), or for usage beyond the "
            "reservation (overdraft).",
            "kind",
        )

    def set_pools(self, pools: list[PoolReservation]) -> None:
        """Sets the metrics of all pools. Those of pools that no longer exist are removed."""
        for family in (
            self.overhead,
            self.base,
            self.per_pod,
            self.reserved,
            self.recommended,
            self.coverage,
            self.change,
            self.dollars,
        ):
            family.clear()
        for pool in pools:
            self._set_pool((self._pool(pool.key.pool), pool.key.runtime), pool)

    def _set_pool(self, labels: tuple[str, str], pool: PoolReservation) -> None:
        change = pool.change.kind.value if isinstance(pool.change, ReservationChange) else "unknown"
        self.change.labels(*labels, change).set(1)
        for family, reserved in ((self.reserved, pool.nodes.reserved), (self.recommended, pool.recommended)):
            if reserved is not None and not isinstance(reserved, NotYet):
                family.labels(*labels, "cpu").set(reserved.millicores / 1000)
                family.labels(*labels, "memory").set(reserved.memory_bytes)
        if pool.money is not None:
            self.dollars.labels(*labels, "unused").set(pool.money.unused / HOURS_PER_MONTH)
            self.dollars.labels(*labels, "overdraft").set(pool.money.overdraft / HOURS_PER_MONTH)
        if isinstance(pool.use, PoolUse):
            self.coverage.labels(*labels).set(pool.use.node_coverage)
            self._set_use((*labels, "cpu"), pool.use.cpu)
            self._set_use((*labels, "memory"), pool.use.memory)
        else:
            self.coverage.labels(*labels).set(0)

    def _set_use(self, labels: tuple[str, str, str], use: ResourceUse) -> None:
        unit = _UNITS[labels[2]]
        for statistic, amount in (("p50", use.p50), ("p95", use.p95), ("max", use.maximum)):
            self.overhead.labels(*labels, statistic).set(amount / unit)
        if isinstance(use.fit, OverheadFit):
            self.base.labels(*labels).set(use.fit.base / unit)
            self.per_pod.labels(*labels).set(use.fit.per_pod / unit)
