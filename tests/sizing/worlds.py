"""Usage and containers in a line."""

from typing import Any

from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.time_buckets import DAY
from trimtab.policy.autoscalers import VpaConstraints
from trimtab.sizing.request import CurrentResources
from trimtab.sizing.statistics import UsageStatistics, summarize_usage

START = 20_000 * DAY
MI = 1 << 20


def window(values: list[float], step: int = 300, start: int = START) -> DailyHistograms:
    """One value every `step` seconds."""
    histograms = DailyHistograms()
    for number, value in enumerate(values):
        histograms.add_value(start + number * step, value)
    return histograms


def used(resource: str = "cpu", **percentiles: float) -> UsageStatistics:
    """Known well: two weeks. What is not named is as much as P95, or as P5 below it."""
    p95 = percentiles.get("p95", 1.0)
    low = percentiles.get("p5", p95)
    values: dict[str, Any] = {"p5": low, "p50": low, "p90": p95, "p95": p95, "p99": p95, "max": p95, **percentiles}
    return UsageStatistics(resource=resource, samples=4032, observed_seconds=14 * DAY, confidence=1.0, **values)


def measured(resource: str, values: list[float], step: int = 300) -> UsageStatistics:
    statistics = summarize_usage(resource, window(values, step))
    assert isinstance(statistics, UsageStatistics), statistics
    return statistics


def asks(resource: str = "cpu", request: int | None = 1000, limit: int | None = None, **more: Any) -> CurrentResources:
    return CurrentResources(resource=resource, request=request, limit=limit, **more)


def vpa(**more: Any) -> VpaConstraints:
    values: dict[str, Any] = {
        "name": "web",
        "target": None,
        "uncorrected": "",
        "keeps_ratio": False,
        "floor": 0,
        "ceiling": None,
    }
    return VpaConstraints(**{**values, **more})
