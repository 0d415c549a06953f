"""The adaptive rule: the request that would cost least if recent usage repeated, increased by as much as the usage has
been growing from day to day.

A request costs twice: for what it reserves, and for the risk that it is too small. The risk is computed from the usage
of recent days, in which a day of three days ago counts half as much as today. Each value is assumed to repeat,
multiplied by some factor. The probability of a factor is estimated from the container's own past days: by how much the
largest usage of each day exceeded that of the three days before. If the days are alike, the request is little above
their largest usage. If they differ, the request is higher, as their differences require. If only a few days are known,
an assumption of large differences takes their place, and counts less with every further day.

So no percentile is fixed. The result is described as a percentile, such as "P98 of recent days". The constants were
chosen with half of the series of `make bench-sizing`, and hold for the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, log, sqrt

from trimtab.histogram.histogram import ZERO_BUCKET, UsageHistogram, bucket_end, bucket_start

HALF_LIFE_DAYS = 3.0
"""The difference in age, in days, at which a value counts half."""
DAYS_BEFORE = 3
"""The number of days before a day with whose largest value the day is compared."""
ASSUMED_DAYS, ASSUMED_GROWTH = 5.0, 0.3
"""The assumption for a container with few days of history: five days, each of which exceeded the days before by 0.06
(0.3 in total), as a natural logarithm."""
MAX_JUMP = 0.3
"""The largest excess of a day over the days before it that counts, as a natural logarithm. A larger jump is already in
the usage itself, which the rule weighs."""
MAX_TAIL = 60.0
"""The largest exponent `tail` that the past days can give. Usage that is `f` times as large has the probability `f **
-tail`."""
REFERENCE = {"cpu": 0.1, "memory": float(1 << 30)}
RISK = {"cpu": 8.0, "memory": 35.0}
"""Resource → the cost of being short of it all the time, for a container whose average usage is one reference amount.
The unit is the price of that amount.

The cost is higher for memory, because a peak above the request may kill the container, while a container that needs
more cpu only waits. If a container uses four times as much, the cost is twice as high: a core costs the same for every
workload, so headroom costs more if the usage is large."""
MIN_AMOUNT = {"cpu": 0.01, "memory": float(16 << 20)}
"""Resource → the smallest amount that is distinguished (cores, bytes). Smaller amounts count as this amount."""
MIN_SHARE = {"cpu": 0.9, "memory": 0.0}
"""Resource → the share of recent time in which the request must be enough, whatever it costs. A container may be short
of cpu for at most a tenth of the time."""
PASSED_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveAnswer:
    """The request in cores or bytes, not rounded, and how it was computed."""

    amount: float
    share: float
    """The share of recent usage that does not exceed the request; 1 if no usage of the window does."""
    days_exceeded: int
    """The number of days, out of `days_compared`, on which P95 would not have been enough.

    These are the days with more than a twentieth of their usage above the P95 of recent days. If the request is above
    all usage, they are the days whose maximum is above that of the days before."""
    days_compared: int
    """The number of days that were compared with the days before them."""


@dataclass(frozen=True, slots=True)
class RecentUse:
    """Recent usage, in which newer days have more weight. The values ascend, and the weights add up to one."""

    values: Sequence[float]
    weights: Sequence[float]
    days: Mapping[int, UsageHistogram]

    @property
    def weighted_mean(self) -> float:
        """The weighted mean of the usage."""
        return fsum(value * weight for value, weight in zip(self.values, self.weights, strict=True))

    def value_at_share(self, share: float) -> float:
        """Returns the value that this share of recent usage does not exceed."""
        for value, weight_so_far in zip(self.values, accumulate(self.weights), strict=True):
            if weight_so_far >= share - 1e-9:
                return value
        return self.values[-1] if self.values else 0.0

    def share_of(self, amount: float) -> float:
        """Returns the share of recent usage that does not exceed an amount; 1 if no usage exceeds it."""
        # The weights above it, because those of all values add up to a little less or more than one.
        above = fsum(weight for value, weight in zip(self.values, self.weights, strict=True) if value > amount)
        return max(0.0, 1.0 - above)


def weigh_recent_use(days: Mapping[int, UsageHistogram]) -> RecentUse:
    """Returns the weighted usage of all days: a day that is `HALF_LIFE_DAYS` older has half the weight."""
    weights: dict[tuple[int, int], float] = {}
    newest = max(days, default=0)
    for day, counts in days.items():
        weight, pair_shift = 2.0 ** ((day - newest) / HALF_LIFE_DAYS), counts.shift - 1
        if counts.zeros:
            weights[ZERO_BUCKET, 0] = weights.get((ZERO_BUCKET, 0), 0.0) + weight * counts.zeros
        for bucket, count in enumerate(counts.counts, start=counts.base):
            if count:
                key = (bucket << pair_shift, pair_shift)
                weights[key] = weights.get(key, 0.0) + weight * count
    top, total = max((counts.top for counts in days.values()), default=0.0), fsum(weights.values())
    values = sorted((min(top, _bucket_middle(*key)), weight / total) for key, weight in weights.items())
    if values:  # the largest value is known exactly, not only by its bucket
        values[-1] = (top, values[-1][1])
    return RecentUse([value for value, _ in values], [weight for _, weight in values], days)


def _bucket_middle(bucket: int, pair_shift: int) -> float:
    return (
        0.0
        if bucket == ZERO_BUCKET and not pair_shift
        else (bucket_start(bucket) + bucket_end(bucket | pair_shift)) / 2
    )


def find_cheapest_request(resource: str, use: RecentUse) -> AdaptiveAnswer:
    """Returns the request that costs least. `use` must have at least one value."""
    tail = estimate_tail(resource, use.days)
    amount = _cheapest(resource, use, tail)
    share = use.share_of(amount)
    return AdaptiveAnswer(
        amount=amount, share=share, days_exceeded=_days_passed(resource, use, share), days_compared=len(use.days)
    )


def estimate_tail(resource: str, days: Mapping[int, UsageHistogram]) -> float:
    """Returns the exponent `tail`, which says how fast larger usage becomes unlikely (see `MAX_TAIL`). It is Hill's
    estimate over the days, combined with the assumption for few days of history."""
    tops = [max(MIN_AMOUNT[resource], counts.top) for _, counts in sorted(days.items())]
    excess = fsum(
        min(MAX_JUMP, max(0.0, log(top / _max_of_days_before(tops, day)))) for day, top in enumerate(tops) if day
    )
    return min(MAX_TAIL, (max(0, len(tops) - 1) + ASSUMED_DAYS) / (excess + ASSUMED_GROWTH))


def _max_of_days_before(tops: Sequence[float], day: int) -> float:
    """Returns the largest value of the `DAYS_BEFORE` days before this day."""
    return max(tops[max(0, day - DAYS_BEFORE) : day])


def _cheapest(resource: str, use: RecentUse, tail: float) -> float:
    """Returns the amount for which the sum of price and risk is lowest.

    Between two values of the usage, the sum for an amount `c` is `c + s * S / c ** tail` plus a constant, where `s` is
    the cost of being short and `S` the sum of weight × value ** `tail` over the smaller values. It is lowest where its
    slope is zero, and the result is the lowest of all these minima."""
    top = use.values[-1]
    if top <= 0:
        return 0.0
    reference = REFERENCE[resource]
    risk = RISK[resource] * reference * sqrt(max(use.weighted_mean, MIN_AMOUNT[resource]) / reference) / top
    min_candidate, weight_below, tail_weight = (
        use.value_at_share(MIN_SHARE[resource]) / top if MIN_SHARE[resource] else 0.0,
        0.0,
        0.0,
    )
    cheapest, best = float("inf"), 1.0
    # All amounts are shares of the largest value; three times that value bounds the request
    # (`adaptive_bounds.MAX_REQUEST_RATIO`).
    ends = [*(value / top for value in use.values[1:]), 3.0]
    for value, weight, end in zip(use.values, use.weights, ends, strict=True):
        value_share = value / top
        weight_below += weight
        tail_weight += weight * value_share**tail
        # The section is completely below the smallest allowed request.
        if end < min_candidate:
            continue
        # The zero of the slope, limited to the section between this value and the next one.
        candidate = min(max((tail * risk * tail_weight) ** (1 / (tail + 1)), value_share, min_candidate), end)
        price = candidate + risk * (1 - weight_below + (tail_weight / candidate**tail if candidate else 0.0))
        if price < cheapest:
            cheapest, best = price, candidate
    return best * top


def _days_passed(resource: str, use: RecentUse, share: float) -> int:
    tops = [max(MIN_AMOUNT[resource], counts.top) for _, counts in sorted(use.days.items())]
    if share >= 1:
        return sum(top > _max_of_days_before(tops, day) for day, top in enumerate(tops) if day)
    line = use.value_at_share(PASSED_SHARE)
    return sum(values_above(counts, line) > (1 - PASSED_SHARE) * counts.total_count for counts in use.days.values())


def values_above(histogram: UsageHistogram, line: float) -> int:
    """Returns the number of values in the buckets that are completely above the value `line`."""
    pair_shift = histogram.shift - 1
    return sum(
        count
        for bucket, count in enumerate(histogram.counts, start=histogram.base)
        if count and bucket_start(bucket << pair_shift) > line
    )
