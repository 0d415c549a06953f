"""Prometheus metrics with a bounded number of label values, in a registry that is passed in."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from platform import python_version

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of Prometheus' text format."""

OTHER_VALUE = "other"


class Bounded:
    """Keeps the first `limit` different values of a label; every further value becomes `other`.

    Label values that users choose (a policy's name, a namespace) could otherwise fill the memory of every scraper.
    """

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._values: set[str] = set()

    def __call__(self, value: str) -> str:
        """Returns the value itself, or `other` if there are too many values already."""
        if value in self._values:
            return value
        # First come, first served: values that are already counted keep their series.
        if len(self._values) >= self._limit:
            return OTHER_VALUE
        self._values.add(value)
        return value


def add_build_info(registry: CollectorRegistry) -> None:
    """Adds the version that runs, as a metric whose value is always 1: dashboards join with it or list it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        own_version = version("trimtab")
    except PackageNotFoundError:
        own_version = "unknown"  # the sources are on the path, and nothing was installed
    info = Gauge(
        "trimtab_build_info",
        "Always 1, with the versions of Trimtab and of Python as labels.",
        ["version", "python"],
        registry=registry,
    )
    info.labels(own_version, python_version()).set(1)


class ProcessMetrics:
    """The metrics of one process, whose names begin with `prefix`, and the version that runs."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        self.registry, self._prefix = registry, prefix
        add_build_info(registry)

    def gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        """Adds a gauge, and returns it."""
        return Gauge(f"{self._prefix}{name}", help_text, labels, registry=self.registry)

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        """Adds a counter, and returns it."""
        return Counter(f"{self._prefix}{name}", help_text, labels, registry=self.registry)


def render_metrics(registry: CollectorRegistry) -> bytes:
    """Returns the metrics of this registry in the format of `CONTENT_TYPE`."""
    return generate_latest(registry)


def value_or_nan(value: float | None) -> float:
    """Returns the value for a gauge: NaN, Prometheus' unknown value, for None."""
    return float("nan") if value is None else value


def nan_on_error(read: Callable[[], float]) -> Callable[[], float]:
    """Returns a function for a gauge that calls `read`, and returns NaN, Prometheus' unknown value, if that raises an
    error. So an error does not break a scrape."""

    def read_or_nan() -> float:
        try:
            return read()
        except Exception:  # noqa: BLE001  the failure of one gauge must not hide the others
            return float("nan")

    return read_or_nan


class LabelledHistogram(Collector):
    """A fast histogram with at most one label: counting takes a third of the time of the Prometheus library's own."""

    def __init__(
        self, name: str, says: str, bounds: Sequence[float], registry: CollectorRegistry, label: str = ""
    ) -> None:
        self._name, self._says, self._bounds = name, says, tuple(bounds)
        self._labels = [label] if label else []
        self._counts: dict[str, list[int]] = {} if label else {"": self._empty()}
        self._sums: dict[str, float] = {} if label else {"": 0.0}
        registry.register(self)

    def observe(self, value: float, label: str = "", times: int = 1) -> None:
        """Counts `times` samples of this value. Only one thread may call it; a scrape at the same time may miss the
        newest sample."""
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = self._empty()
            self._sums[label] = 0.0
        # Each sample is counted in one bucket; `collect` accumulates them. The library's histogram takes a lock for
        # each sample.
        counts[bisect_left(self._bounds, value)] += times
        self._sums[label] += value * times

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """Yields the metric without samples, so that the registry knows its name."""
        yield HistogramMetricFamily(self._name, self._says, labels=self._labels)

    def _empty(self) -> list[int]:
        return [0] * (len(self._bounds) + 1)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yields the metric with cumulative buckets, as Prometheus expects them."""
        family = HistogramMetricFamily(self._name, self._says, labels=self._labels)
        names = [*map(str, map(float, self._bounds)), "+Inf"]
        # A copy: the scrape's thread iterates while the event loop may add a label.
        for label, counts in list(self._counts.items()):
            buckets = list(zip(names, map(float, accumulate(counts)), strict=True))
            family.add_metric([label] if self._labels else [], buckets, self._sums[label])
        yield family
