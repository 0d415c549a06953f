"""Which request would cost least if recent use came again, as much larger as it has been from day to day before?

A request has a price twice: what it reserves, and what it risks. The risk counts the use of recent days, a day of three
days ago half as much as today's, and takes each value to come again some factor larger. How likely a factor is follows
from the container's own record: how far the greatest use of each day went beyond that of the three days before. Where
days are alike, the request is little above their greatest use; where they are not, it is as high as the record
warrants; where there is little record, an assumption of large differences stands in for it, and fades with every day.

So no percentile is fixed. What comes out is told as one: "P98 of recent days". The constants were chosen on half of the
series of `make bench-sizing`, and hold on the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, sqrt

from trimtab.histogram.histogram import NOTHING, UsageHistogram, high, low

HALF_LIFE_DAYS = 3.0
"""How many days older a value is that counts half."""
DAYS_BEFORE = 3
"""A day is compared with the greatest of so many days before it."""
ASSUMED_DAYS, ASSUMED_GROWTH = 5.0, 0.3
"""What stands in for a record: five days that went beyond the days before by 0.06 each, as a natural logarithm."""
MAX_JUMP = 0.3
"""What a day counts at most, as a natural logarithm: a larger jump is in the record itself, which the rule weighs."""
MAX_TAIL = 60.0
"""The most that the record may say: a use `f` times as large comes with a probability of `f ** -tail`."""
REFERENCE = {"cpu": 0.1, "memory": float(1 << 30)}
RISK = {"cpu": 8.0, "memory": 35.0}
"""What a container that uses as much as the reference on average may pay for never being short, in references: a peak
of memory above the request may kill, cpu above it only waits. A container that uses four times as much pays twice as
much: a core costs the same whoever reserves it, so headroom is dearer where use is large."""
LEAST = {"cpu": 0.01, "memory": float(16 << 20)}
"""Differences below are none."""
LEAST_SHARE = {"cpu": 0.9, "memory": 0.0}
"""No container is short of cpu for more than a tenth of its recent time, whatever that costs."""
PASSED_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAnswer:
    """A request in cores or bytes, not rounded, and where it is from."""

    amount: float
    share: float
    """The share of recent use that is not above it; 1 where it is above all use of the window."""
    passed: int
    """The days of `record` that speak for more than P95: on which more than a twentieth was above the P95 of recent
    days; where the request is above all use, on which the greatest use was above that of the days before."""
    record: int
    """How many days were looked at."""


@dataclass(frozen=True, slots=True)
class Recent:
    """What was used, newer days weighing more: values ascend, weights add up to one."""

    values: Sequence[float]
    weights: Sequence[float]
    days: Mapping[int, UsageHistogram]

    @property
    def mean(self) -> float:
        return sum(value * weight for value, weight in zip(self.values, self.weights, strict=True))

    def at(self, share: float) -> float:
        """The value that so much of recent use is not above."""
        for value, upto in zip(self.values, accumulate(self.weights), strict=True):
            if upto >= share - 1e-9:
                return value
        return self.values[-1] if self.values else 0.0

    def share_of(self, amount: float) -> float:
        """How much of recent use is not above an amount; 1 where it is above all."""
        return min(1.0, sum(w for value, w in zip(self.values, self.weights, strict=True) if value <= amount))


def recent(days: Mapping[int, UsageHistogram]) -> Recent:
    """The use of the newest days first, each day older by `HALF_LIFE_DAYS` weighing half."""
    held: dict[tuple[int, int], float] = {}
    newest = max(days, default=0)
    for day, counts in days.items():
        weight, wide = 2.0 ** ((day - newest) / HALF_LIFE_DAYS), counts.shift - 1
        if counts.nothing:
            held[NOTHING, 0] = held.get((NOTHING, 0), 0.0) + weight * counts.nothing
        for place, count in enumerate(counts.counts, start=counts.base):
            if count:
                key = (place << wide, wide)
                held[key] = held.get(key, 0.0) + weight * count
    top, total = max((counts.top for counts in days.values()), default=0.0), sum(held.values())
    found = sorted((min(top, _middle(*key)), weight / total) for key, weight in held.items())
    if found:  # the greatest value is known exactly
        found[-1] = (top, found[-1][1])
    return Recent([value for value, _ in found], [weight for _, weight in found], days)


def _middle(bucket: int, wide: int) -> float:
    return 0.0 if bucket == NOTHING and not wide else (low(bucket) + high(bucket | wide)) / 2


def answer(resource: str, use: Recent) -> AdaptiveAnswer:
    """The request that costs least. `use` holds at least one value."""
    tail = tail_of(resource, use.days)
    amount = _cheapest(resource, use, tail)
    share = use.share_of(amount)
    return AdaptiveAnswer(amount=amount, share=share, passed=_passed(resource, use, share), record=len(use.days))


def tail_of(resource: str, days: Mapping[int, UsageHistogram]) -> float:
    """How fast larger use becomes unlikely: Hill's estimate over the days, with the assumption beside it."""
    tops = [max(LEAST[resource], counts.top) for _, counts in sorted(days.items())]
    beyond = sum(min(MAX_JUMP, max(0.0, log(top / _before(tops, n)))) for n, top in enumerate(tops) if n)
    return min(MAX_TAIL, (max(0, len(tops) - 1) + ASSUMED_DAYS) / (beyond + ASSUMED_GROWTH))


def _before(tops: Sequence[float], number: int) -> float:
    return max(tops[max(0, number - DAYS_BEFORE) : number])


def _cheapest(resource: str, use: Recent, tail: float) -> float:
    """Between two values that were used, price and risk are `c + s * S / c ** tail`, whose least is where its slope is
    zero; the least of all of these is the answer."""
    top = use.values[-1]
    if top <= 0:
        return 0.0
    reference = REFERENCE[resource]
    risk = RISK[resource] * reference * sqrt(max(use.mean, LEAST[resource]) / reference) / top
    least, below, beyond = use.at(LEAST_SHARE[resource]) / top if LEAST_SHARE[resource] else 0.0, 0.0, 0.0
    cheapest, found = float("inf"), 1.0
    ends = [*(value / top for value in use.values[1:]), 3.0]
    for value, weight, end in zip(use.values, use.weights, ends, strict=True):
        part = value / top
        below += weight
        beyond += weight * part**tail
        if end < least:
            continue
        at = min(max((tail * risk * beyond) ** (1 / (tail + 1)), part, least), end)
        price = at + risk * (1 - below + (beyond / at**tail if at else 0.0))
        if price < cheapest:
            cheapest, found = price, at
    return found * top


def _passed(resource: str, use: Recent, share: float) -> int:
    tops = [max(LEAST[resource], counts.top) for _, counts in sorted(use.days.items())]
    if share >= 1:
        return sum(top > _before(tops, n) for n, top in enumerate(tops) if n)
    line = use.at(PASSED_SHARE)
    return sum(values_above(counts, line) > (1 - PASSED_SHARE) * counts.total for counts in use.days.values())


def values_above(counts: UsageHistogram, line: float) -> int:
    """How many values are in buckets wholly above."""
    wide = counts.shift - 1
    return sum(
        count for place, count in enumerate(counts.counts, start=counts.base) if count and low(place << wide) > line
    )
