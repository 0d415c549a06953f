"""The metrics that the process exports about itself for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector as RegistryCollector

from trimtab.runtime.metrics import LabelledHistogram, ProcessMetrics, nan_on_error

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics(ProcessMetrics):
    """The metrics of one replica."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry, "trimtab_metrics_api_")
        self.rules = self.gauge("rules", "The number of rules of metrics that are in force.")
        self.targets = self.gauge("targets", "The number of metrics pages of pods that the process scrapes.")
        self.invalid_rules = self.gauge(
            "invalid_rules",
            "1 if the ConfigMap of rules is invalid or cannot be read, while the last valid rules stay in force.",
        )
        self.samples = self.counter("samples", "The number of scrapes and queries that gave samples.", "source")
        self.failures = self.counter("failures", "The number of scrapes and queries that failed, by reason.", "reason")
        self.requests = self.counter("requests", "The number of requests to the API, by HTTP status.", "status")
        self.answers = self.counter(
            "answers",
            "The number of responses to requests for a metric: `values`, `empty` (no pod has a value now), "
            "`unknown` (no rule).",
            "answer",
        )
        self.seconds = LabelledHistogram(
            "trimtab_metrics_api_request_duration_seconds",
            "The duration of a response in seconds, including the authorization.",
            _BOUNDS,
            registry,
        )

    def count_inputs(self, rules: int, targets: int) -> None:
        """Sets the number of rules and targets."""
        self.rules.set(rules)
        self.targets.set(targets)

    def add_values(self, count: Callable[[], Mapping[str, tuple[int, int]]]) -> None:
        """Adds metrics for the number of pods with and without a value; `count` is called at each scrape."""
        self.registry.register(_PodValues(count))

    def add_scrape_queue(self, slots_in_use: Callable[[], float], overdue: Callable[[], Mapping[str, float]]) -> None:
        """Adds metrics for how busy the scrapes are; both functions are called at each scrape of this process."""
        self.gauge(
            "scrape_slots_in_use",
            "The number of scrapes and queries that are under way. They share a fixed number of slots.",
        ).set_function(slots_in_use)
        gauge = self.gauge(
            "overdue_seconds",
            "For how long in seconds the most overdue metrics page of a pod has waited beyond its interval: `regular`, "
            "or `slow` (its last scrape took long and gave no value).",
            "targets",
        )
        gauge.labels("regular").set_function(lambda: overdue()["regular"])
        gauge.labels("slow").set_function(lambda: overdue()["slow"])

    def add_certificate_expiry(self, read: Callable[[], float]) -> None:
        """Adds a metric with the time at which the serving certificate expires."""
        self.gauge(
            "certificate_expiry_timestamp_seconds",
            "The time at which the serving certificate expires, in seconds since 1970.",
        ).set_function(nan_on_error(read))


class _PodValues(RegistryCollector):
    def __init__(self, count: Callable[[], Mapping[str, tuple[int, int]]]) -> None:
        self._count = count

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yields the metric without samples, so that the registry knows its name."""
        yield self._family()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the present number of pods for each metric."""
        family = self._family()
        for metric, (served, withheld) in self._count().items():
            family.add_metric([metric, "served"], served)
            family.add_metric([metric, "withheld"], withheld)
        yield family

    def _family(self) -> GaugeMetricFamily:
        says = "The number of pods with a value of a metric (`served`), or with samples but no value now (`withheld`)."
        return GaugeMetricFamily("trimtab_metrics_api_pods", says, labels=["metric", "state"])
