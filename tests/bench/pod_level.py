"""Requests of whole pods beside those of their containers, on generated pods of several containers.

Each container asks for what its own usage leads to, and a pod for what the usage of the sum leads to. Both are scored
on the week after. A requester is at risk while it uses more than it asked for: a container by itself, and a pod by the
sum. The pods' requests are scaled by one factor until they are at risk as often as the containers are; then the sums of
what is reserved are compared. At a correlation of 1 the containers rise and fall together, so that the sum peaks as
high as the peaks together; at 0 one container's peak falls into the quiet of another.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.results import choose_size
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.request import ADAPTIVE, compute_amount
from trimtab.sizing.statistics import UsageStatistics, summarize_usage

PODS, CONTAINERS = choose_size(60, 12), (2, 3, 4)
FIT_DAYS, SCORED_DAYS, STEP = 14, 7, 900
START = 20_000 * DAY
CORRELATIONS = (0.0, 0.5, 1.0)
SPREAD = 0.5
"""Of the logarithm of what a container uses."""
MEMORY = 1e9
"""Bytes for one unit of usage."""
MAX_AT_ZERO, MAX_OFF_AT_ONE = 0.90, 0.01
Values = Sequence[float]


@dataclass(frozen=True, slots=True)
class Sized:
    """One requester: what it asked for, and what it used in the week after."""

    request: float
    used: Values

    def share_above(self, factor: float = 1.0) -> float:
        return sum(value > self.request * factor for value in self.used) / len(self.used)


def run() -> dict[str, float]:
    """Figure → value: the reserved amount of whole pods as a share of that of their containers, at equal risk."""
    figures: dict[str, float] = {}
    print("requests of whole pods, as a share of the sum of their containers, at equal risk:")
    for resource in ("cpu", "memory"):
        for correlation in CORRELATIONS:
            ratio, factor = compare(resource, correlation)
            print(f"  {resource} at correlation {correlation:g}: {ratio:.3f} (scaled by {factor:.3f})")
            figures[f"{resource}_{correlation:g}"] = ratio
    return figures


def broken(figures: dict[str, float]) -> list[str]:
    """The bounds that the figures do not keep."""
    return [
        *(f"{name} above {MAX_AT_ZERO}" for name in ("cpu_0", "memory_0") if figures[name] > MAX_AT_ZERO),
        *(f"{name} not 1" for name in ("cpu_1", "memory_1") if abs(figures[name] - 1) > MAX_OFF_AT_ONE),
    ]


def compare(resource: str, correlation: float) -> tuple[float, float]:
    """What pods reserve as a share of what containers do, at equal risk; and the factor that makes it equal."""
    drawn = random.Random(11)
    containers: list[list[Sized]] = []
    pods: list[Sized] = []
    for number in range(PODS):
        series = list(draw_pod(drawn, CONTAINERS[number % len(CONTAINERS)], correlation))
        fit = FIT_DAYS * DAY // STEP
        containers.append([Sized(ask(resource, values[:fit]), values[fit:]) for values in series])
        total = [sum(values) for values in zip(*series, strict=True)]
        count = len(series)
        pods.append(Sized(count * ask(resource, [value / count for value in total[:fit]]), total[fit:]))
    # Each pod counts once, however many containers it has.
    risk = sum(sum(one.share_above() for one in of_pod) / len(of_pod) for of_pod in containers) / len(containers)
    factor = scale_to_risk(pods, risk)
    reserved = sum(one.request for of_pod in containers for one in of_pod)
    return factor * sum(one.request for one in pods) / reserved, factor


def draw_pod(drawn: random.Random, count: int, correlation: float) -> Iterator[Values]:
    """The series of each container: of one daily rhythm and noise that they share by `correlation`."""
    points = (FIT_DAYS + SCORED_DAYS) * DAY // STEP
    common = _noise(drawn, points)
    for _ in range(count):
        base, own = 0.1 * drawn.lognormvariate(0, 0.5), _noise(drawn, points)
        weights = math.sqrt(correlation), math.sqrt(1 - correlation)
        yield [
            base * math.exp(SPREAD * (weights[0] * shared + weights[1] * single))
            for shared, single in zip(common, own, strict=True)
        ]


def _noise(drawn: random.Random, points: int, keep: float = 0.7) -> Values:
    """Normal values of which each resembles the one before."""
    value, values = 0.0, []
    for _ in range(points):
        value = keep * value + math.sqrt(1 - keep * keep) * drawn.gauss(0, 1)
        values.append(value)
    return values


def ask(resource: str, values: Values) -> float:
    """What the adaptive rule asks for after these values, in units of usage."""
    history, unit = BatchHistory(FIT_DAYS + 1), MEMORY if resource == "memory" else 1.0
    key = ContainerKey("bench", "Deployment", "web", "app")
    times = range(START, START + len(values) * STEP, STEP)
    history.add_series(key, resource, times, [value * unit for value in values])
    statistics = summarize_usage(resource, history.compressed_window(key, resource), times[-1])
    assert isinstance(statistics, UsageStatistics)
    return compute_amount(ADAPTIVE, statistics) / unit


def scale_to_risk(sized: Sequence[Sized], risk: float) -> float:
    """The factor with which these requests are exceeded as often as `risk`, on average."""
    low, high = 0.2, 5.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        is_above = sum(one.share_above(middle) for one in sized) / len(sized) > risk
        low, high = (middle, high) if is_above else (low, middle)
    return high
