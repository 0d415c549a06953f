"""Fits a line to what was measured: what a node's kubelet and container runtime use without pods, and what each pod
adds.

The line is a weighted Theil-Sen estimate: the weighted median of the slopes of all pairs of points. A quarter of the
points may be wrong (a restarted kubelet, an image being pulled, a failed scrape) without affecting it, while least
squares would follow each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet
from trimtab.reservations.reasons import TOO_FLAT

MIN_POINTS = 4
MIN_POD_SPAN = 10
"""The smallest difference in pods between the emptiest and the fullest point. With a smaller difference, noise is
larger than the slope."""


@dataclass(frozen=True, slots=True)
class OverheadPoint:
    """The usage of nodes with about the same number of pods."""

    pods: float
    amount: float
    """The amount in millicores or bytes."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadFit:
    """The fitted line: what a node uses without pods, and what each pod adds."""

    base: float
    """The usage without pods in millicores or bytes; 0 if the line begins below 0."""
    per_pod: float
    """The usage that each pod adds; never below 0."""
    min_pods: float
    max_pods: float
    """The largest number of pods among the points; with `min_pods`, the range for which the line was fitted."""

    def predict_use(self, pods: float) -> float:
        """Returns the use of a node with this many pods."""
        return self.base + self.per_pod * pods


def fit_overhead(points: Sequence[OverheadPoint]) -> OverheadFit | NotYet:
    """Returns the line through the points; NotYet if the points have too similar numbers of pods."""
    pods = [point.pods for point in points]
    span = max(pods) - min(pods) if pods else 0.0
    if len(points) < MIN_POINTS or span < MIN_POD_SPAN:
        return NotYet(
            reason=TOO_FLAT(f"the numbers of pods on the measured nodes differ only by {span:.0f}"),
            have=f"{format_count(len(points), 'group')} of nodes, {span:.0f} pods apart",
            need=f"{MIN_POINTS} groups of nodes, {MIN_POD_SPAN} pods apart",
        )
    slope = max(0.0, weighted_median(_pair_slopes(points)))
    base = weighted_median((point.amount - slope * point.pods, point.weight) for point in points)
    if base < 0:
        # Nothing uses less than nothing: the line through the origin is then the nearest one.
        slope = max(0.0, weighted_median((point.amount / point.pods, point.weight) for point in points if point.pods))
    return OverheadFit(base=max(0.0, base), per_pod=slope, min_pods=min(pods), max_pods=max(pods))


def _pair_slopes(points: Sequence[OverheadPoint]) -> Iterable[tuple[float, float]]:
    """Yields (slope, weight) for every pair of points. The weight grows with the difference in their numbers of pods,
    because noise then matters less."""
    for first, second in combinations(points, 2):
        distance = second.pods - first.pods
        if distance:
            yield (second.amount - first.amount) / distance, first.weight * second.weight * abs(distance)


def weighted_median(pairs: Iterable[tuple[float, float]]) -> float:
    """Returns the value at which half of the weight is reached; 0 if there are no values."""
    return weighted_percentile(pairs, 0.5)


def weighted_percentile(pairs: Iterable[tuple[float, float]], share: float) -> float:
    """Returns the smallest value at which this share of the weight is reached; 0 if there are no values."""
    ordered = sorted(pairs)
    least_weight = share * fsum(weight for _, weight in ordered)
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= least_weight:
            return value
    return ordered[-1][0] if ordered else 0.0
