"""Which metrics does each process export? Asked of the very registries that are scraped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from trimtab.compactor.metrics import Metrics as Compactor
from trimtab.metricsapi.metrics import Metrics as MetricsApi
from trimtab.policy.recommendation_age import RecommendationAges
from trimtab.recommender.metrics import Metrics as Recommender
from trimtab.watchdog.metrics import Metrics as Watchdog
from webhook.metrics import WebhookMetrics

_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
_UNITS = (
    ("_timestamp_seconds", "seconds since 1970"),
    ("_seconds", "seconds"),
    ("_bytes", "bytes"),
    ("_dollars_per_hour", "dollars an hour"),
    ("_pods", "pods"),
    ("_nodes", "nodes"),
    ("_containers", "containers"),
    ("_capacity", "cores, bytes, pods"),
    ("_allocatable", "cores, bytes, pods"),
    ("_requested", "cores, bytes, pods"),
    ("_reviews", "reviews"),
    ("_outcomes", "reviews"),
    ("_decisions", "actions"),
    ("_decision_lookups", "pods"),
    ("_policies", "policies"),
    ("_invalid_objects", "objects"),
    ("_evictions", "evictions"),
    ("_drains", "nodes"),
    ("_drain_orders", "DrainOrders"),
    ("_plan_savings", "micro-dollars an hour, millicores or nodes: the label `unit`"),
    ("_resize_freed", "cores or bytes: the label `resource`"),
    ("_forecast_sufficient_ratio", "0 to 1"),
    ("_forecast_room", "cores or bytes: the label `resource`"),
    ("_uncovered_resizes", "pods"),
    ("_resizes", "resizes"),
    ("_resize_backoffs", "workloads"),
    ("_compactor_savings", "micro-dollars an hour, millicores or nodes: the label `unit`"),
    ("_unreadable_objects", "nodes, pods"),
    ("_unreadable_states", "ConfigMaps"),
    ("_without_recommendation", "containers"),
    ("_series", "series"),
    ("_samples", "samples"),
    ("_writes", "objects"),
    ("_vpas", "VPAs"),
    ("_shards", "ConfigMaps"),
    ("_errors", "times"),
    ("_lost_events", "events"),
    ("_collections", "collections"),
    ("_pod_groups", "groups"),
    ("_node_groups", "groups"),
    ("_harm_brakes", "times"),
    ("_api_rules", "rules"),
    ("_api_targets", "pages"),
    ("_api_failures", "scrapes, queries"),
    ("_api_requests", "requests"),
    ("_api_answers", "answers"),
    ("_slots_in_use", "slots"),
    ("_node_overhead", "cores, bytes"),
    ("_overhead_base", "cores, bytes"),
    ("_per_pod", "cores, bytes"),
    ("_node_reserved", "cores, bytes"),
    ("_reserved_recommended", "cores, bytes"),
    ("_coverage_ratio", "0 to 1"),
    ("_performance_ratio", "1: a core of m5.large"),
    ("_cpu_cores", "cores"),
    ("_node_types", "types of nodes"),
)
"""How a name ends → what its number counts, the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    process: str
    name: str
    """As it is asked for, `_total` included; a histogram without its suffixes."""
    kind: str
    labels: tuple[str, ...]
    says: str
    unit: str
    """Empty where nobody said."""
    series: tuple[str, ...]
    """Every name that a query may use."""


def everything() -> list[Metric]:
    """Of all processes, by process and name."""
    return [metric for process, registry in _registries().items() for metric in sorted(registry, key=_name)]


def _name(metric: Metric) -> str:
    return metric.name


def _registries() -> dict[str, list[Metric]]:
    webhook, compactor, watchdog, recommender, metrics_api = (_Listening() for _ in range(5))
    meters = WebhookMetrics(webhook)
    for add_gauge in (
        meters.add_certificate_expiry,
        meters.add_facts_age,
        meters.add_policies,
        meters.add_avoidable_policies,
        meters.add_problems,
        meters.add_paused,
    ):
        add_gauge(float)
    meters.add_recommendations(RecommendationAges)
    Compactor(compactor, bool, float)
    Watchdog(watchdog, bool, float)
    Recommender(recommender, bool)
    served = MetricsApi(metrics_api)
    served.add_values(dict)
    served.add_scrape_queue(lambda: 0.0, dict)
    served.add_certificate_expiry(float)
    found = {
        "webhook": webhook,
        "metrics-api": metrics_api,
        "compactor": compactor,
        "watchdog": watchdog,
        "recommender": recommender,
    }
    return {process: list(registry.metrics(process)) for process, registry in found.items()}


class _Listening(CollectorRegistry):
    """Remembers who was registered."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Collector] = []

    def register(self, collector: Collector) -> None:
        super().register(collector)
        self.heard.append(collector)

    def metrics(self, process: str) -> Iterator[Metric]:
        for collector in self.heard:
            describe = getattr(collector, "describe", collector.collect)
            for family in describe():
                labels = getattr(collector, "_labelnames", None) or getattr(family, "_labelnames", ())
                yield _metric(process, family, tuple(labels))


def _metric(process: str, family: Family, labels: tuple[str, ...]) -> Metric:
    series = tuple(family.name + suffix for suffix in _SUFFIXES[family.type])
    return Metric(
        process=process,
        name=series[0] if family.type == "counter" else family.name,
        kind=family.type,
        labels=labels,
        says=family.documentation,
        unit=_unit(family),
        series=series,
    )


def _unit(family: Family) -> str:
    if family.documentation.startswith(("1 ", "Always 1")):
        return "0 or 1"
    return next((unit for ending, unit in _UNITS if family.name.endswith(ending)), "")
