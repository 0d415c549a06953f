"""Metrics whose labels cannot grow without end, in a registry that is passed in."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

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
