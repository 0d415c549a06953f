"""Metrics whose labels cannot grow without end, in a registry that is passed in."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The format `render` writes."""

OTHER = "other"


class Bounded:
    """Lets the first `limit` different values of a label through; every later one becomes `other`.

    A label that comes from users (a policy's name, a namespace) would otherwise let one of them fill
    the memory of every scraper.
    """

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        """The value itself, or `other`."""
        if value in self._seen:
            return value
        if len(self._seen) >= self._limit:
            return OTHER
        self._seen.add(value)
        return value


def render(registry: CollectorRegistry) -> bytes:
    """What a scraper gets from this registry, as `CONTENT_TYPE`."""
    return generate_latest(registry)


def safe(read: Callable[[], float]) -> Callable[[], float]:
    """`read` for a gauge that must not break a scrape: NaN, Prometheus' word for unknown, when it raises."""

    def reading() -> float:
        try:
            return read()
        except Exception:  # noqa: BLE001  one gauge must not take the others with it
            return float("nan")

    return reading


class LabelledHistogram(Collector):
    """A histogram for the hot path, of one label at most: counting costs a third of the library's own."""

    def __init__(
        self, name: str, says: str, bounds: Sequence[float], registry: CollectorRegistry, label: str = ""
    ) -> None:
        self._name, self._says, self._bounds = name, says, tuple(bounds)
        self._labels = [label] if label else []
        self._counts: dict[str, list[int]] = {} if label else {"": self._empty()}
        self._sums: dict[str, float] = {} if label else {"": 0.0}
        registry.register(self)

    def observe(self, value: float, label: str = "", times: int = 1) -> None:
        """`times` samples of this value. For one thread; a scrape beside it may be a sample behind."""
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = self._empty()
            self._sums[label] = 0.0
        counts[bisect_left(self._bounds, value)] += times
        self._sums[label] += value * times

    def describe(self) -> Iterator[HistogramMetricFamily]:
        yield HistogramMetricFamily(self._name, self._says, labels=self._labels)

    def _empty(self) -> list[int]:
        return [0] * (len(self._bounds) + 1)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        found = HistogramMetricFamily(self._name, self._says, labels=self._labels)
        names = [*map(str, map(float, self._bounds)), "+Inf"]
        for label, counts in list(self._counts.items()):
            buckets = list(zip(names, map(float, accumulate(counts)), strict=True))
            found.add_metric([label] if self._labels else [], buckets, self._sums[label])
        yield found
