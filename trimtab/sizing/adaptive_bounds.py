"""The adaptive rule's answer within its bounds, and the doubts about it.

Lower bounds are the use of the last 24 hours, the pods with the largest use where they are a tenth of all, and the
floor after OOM kills. The upper bound is three times the largest use. Doubts lower the confidence, and never the
request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trimtab.cluster.recommendation import CHANGED, CONFIDENCE_FACTORS, GROWS, MAX_PEAK_FACTOR, PODS_DIFFER, RARE_PEAKS
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.histogram import UsageHistogram, merge_histograms
from trimtab.histogram.oom_kills import MIN_BUMP_UP_BYTES, OomRecord
from trimtab.histogram.pod_averages import PodUse
from trimtab.sizing.adaptive import PASSED_SHARE, find_cheapest_request, values_above, weigh_recent_use

DAY = 86400
MAX_REQUEST_RATIO = 3
LAST_DAY, LARGEST_POD, OOM_KILL, THREE_TIMES = "last-day", "largest-pod", "oom-kill", "three-times"
"""The names of the bounds, which say what set the request instead of the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveRequest:
    """A request in cores or bytes, not rounded, and how it was computed."""

    amount: float
    share: float = 1.0
    """The share of recent use that does not exceed the rule's own answer; 1 if no use of the window does."""
    days_exceeded: int = 0
    days_compared: int = 0
    """`days_exceeded` and `days_compared` are those of `adaptive.AdaptiveAnswer`."""
    bound: str = ""
    """The bound that set the request; empty if the rule set it."""
    floor: float = 0.0
    """The bytes that a container with OOM kills needs; 0 without kills."""
    kills: int = 0
    last_kill: Seconds | None = None
    """The second of the last OOM kill."""
    doubts: tuple[str, ...] = ()
    pod: str = ""
    """The pod that uses far more than the others and is not covered."""
    pod_use: float = 0.0

    @property
    def remaining_confidence(self) -> float:
        """The share of the confidence that remains after all doubts, from 0 to 1."""
        certainty = 1.0
        for doubt in self.doubts:
            certainty *= CONFIDENCE_FACTORS[doubt]
        return certainty


def adaptive_request(
    resource: str,
    window: DailyHistograms,
    now: Seconds,
    *,
    running: Sequence[float] = (),
    oom: OomRecord | None = None,
    pods: Sequence[PodUse] = (),
) -> AdaptiveRequest:
    """Returns the adaptive rule's request within its bounds. The window or `running` (open memory peaks) has at least
    one value; `pods` is the average use of each pod of the last hours."""
    days = _days_with_running(window, running)
    use, newest = weigh_recent_use(days), max(days)
    from_rule = find_cheapest_request(resource, use)
    largest = max(counts.top for counts in days.values())
    request = AdaptiveRequest(
        amount=from_rule.amount,
        share=from_rule.share,
        days_exceeded=from_rule.days_exceeded,
        days_compared=from_rule.days_compared,
    )
    # Lower bounds are applied in this order, so that the reason names the one that decided.
    request = _at_least(request, last_day_use(resource, window, days, len(pods)), LAST_DAY)
    request = _with_pods(request, resource, pods)
    request = _with_kills(request, oom, largest, now, window.days * DAY) if resource == "memory" else request
    upper_bound = max_amount(resource, largest)
    if request.amount > upper_bound:
        request = replace(request, amount=upper_bound, bound=THREE_TIMES)
    rare = resource == "memory" and largest > MAX_PEAK_FACTOR * request.amount
    doubts = ((CHANGED, has_changed(days, newest)), (GROWS, is_growing(days)), (RARE_PEAKS, rare))
    return replace(request, doubts=(*request.doubts, *(doubt for doubt, holds in doubts if holds)))


def max_amount(resource: str, largest: float) -> float:
    """Returns the largest request that usage leads to: three times the largest use, or what a single kill adds to a
    small container."""
    return max(MAX_REQUEST_RATIO * largest, largest + MIN_BUMP_UP_BYTES if resource == "memory" else 0.0)


def _days_with_running(window: DailyHistograms, running: Sequence[float]) -> Mapping[int, UsageHistogram]:
    """Returns the days with values, open peaks added to the newest. The window is not changed."""
    days = {day: counts for day, counts in window.histograms_by_day().items() if counts.total_count}
    if running:
        today = days[window.newest].copy() if window.newest in days else UsageHistogram()
        today.add_values(running)
        days[window.newest] = today
    return days


def _at_least(request: AdaptiveRequest, amount: float, bound: str) -> AdaptiveRequest:
    return replace(request, amount=amount, bound=bound) if amount > request.amount else request


# ── the last 24 hours ────────────────────────────────────────────────────────────────────────────────────────────

FULL_DAY_HOURS, MIN_DAY_HOURS = 18, 3
"""Today is judged alone from so many observed hours on; below `MIN_DAY_HOURS` it is not judged alone."""


def last_day_use(resource: str, window: DailyHistograms, days: Mapping[int, UsageHistogram], pods: int = 1) -> float:
    """Returns the use of the last 24 hours that a request should cover: P95 of cpu, the largest memory peak; of many
    pods P90 of their peaks, since fewer than a tenth of them are outliers. Usage is recorded by day, so early in a day
    the day before counts as well."""
    today, before = days.get(window.newest), days.get(window.newest - 1)
    hours = window.hours_of(window.newest).bit_count()
    day_groups: list[Iterable[UsageHistogram]] = []
    if today is not None and (hours >= MIN_DAY_HOURS or before is None):
        day_groups.append((today,))
    if hours < FULL_DAY_HOURS and before is not None:
        day_groups.append((before, today) if today is not None else (before,))
    histograms = [merge_histograms(part) for part in day_groups]
    many = pods * LARGE_SHARE > 1
    share = PASSED_SHARE if resource == "cpu" else 1 - LARGE_SHARE if many else 1.0
    return max((counts.compute_percentiles((share,))[0] for counts in histograms), default=0.0)


# ── pods that differ ─────────────────────────────────────────────────────────────────────────────────────────────

SAME_SIZE_RATIO = 0.8
"""A pod that uses this share of the largest pod's use counts as equally large."""
LARGE_SHARE = 0.1
"""The share of the pods that must be as large as the largest before it is a bound for all."""
OUTLIER_RATIO = 2.0
"""A pod that uses so many times the median pod's use uses far more."""


def _with_pods(request: AdaptiveRequest, resource: str, pods: Sequence[PodUse]) -> AdaptiveRequest:
    if len(pods) < 2:
        return request
    ordered = sorted(pods, key=lambda pod: (pod.mean, pod.name))
    largest, middle = ordered[-1], ordered[(len(ordered) - 1) // 2].mean
    if largest.mean <= request.amount or largest.mean < OUTLIER_RATIO * middle:
        return request
    large = sum(pod.mean >= SAME_SIZE_RATIO * largest.mean for pod in ordered)
    if large >= LARGE_SHARE * len(ordered):
        return replace(request, amount=largest.mean, bound=LARGEST_POD, pod=largest.name, pod_use=largest.mean)
    return replace(request, doubts=(PODS_DIFFER,), pod=largest.name, pod_use=largest.mean)


# ── OOM kills ────────────────────────────────────────────────────────────────────────────────────────────────────


def oom_floor(oom: OomRecord | None, largest: float, now: Seconds, window_seconds: int) -> float:
    """Returns the bytes that a request should not be below after OOM kills; 0 without kills, or after the window."""
    return 0.0 if oom is None else min(oom.floor_at(now, window_seconds), max_amount("memory", largest))


def _with_kills(
    request: AdaptiveRequest, oom: OomRecord | None, largest: float, now: Seconds, window_seconds: int
) -> AdaptiveRequest:
    floor = oom_floor(oom, largest, now, window_seconds)
    if oom is None or floor <= 0:
        return request
    request_with_kills = replace(request, floor=floor, kills=oom.count, last_kill=oom.last)
    return _at_least(request_with_kills, floor, OOM_KILL)


# ── doubts ───────────────────────────────────────────────────────────────────────────────────────────────────────

CHANGE_RATIO, CHANGE_SHARE = 1.25, 0.2
"""The last day differs upwards: more than a fifth of it exceeds nearly all of the days before by a quarter."""
DROP_RATIO = 0.5
"""The last day differs downwards: nearly all of it is below half of the median of the days before."""
GROWTH_RATIO, GROWING_DAYS = 1.2, 6
"""Use grows: so much over a week, and on so many of its days more than on the day before."""
WEEK_DAYS = 7


def has_changed(days: Mapping[int, UsageHistogram], newest: int) -> bool:
    """Returns whether the last day differs from the week before it, upwards or downwards."""
    last = days.get(newest)
    before = merge_histograms(counts for day, counts in days.items() if newest - WEEK_DAYS <= day < newest)
    if last is None or not last.total_count or not before.total_count:
        return False
    usual, most = before.compute_percentiles((0.5, PASSED_SHARE))
    if values_above(last, most * CHANGE_RATIO) > CHANGE_SHARE * last.total_count:
        return True
    return last.compute_percentiles((PASSED_SHARE,))[0] < DROP_RATIO * usual


def is_growing(days: Mapping[int, UsageHistogram]) -> bool:
    """Returns whether the median of nearly each day of the last week is above that of the day before."""
    medians = [counts.compute_percentiles((0.5,))[0] for _, counts in sorted(days.items())[-WEEK_DAYS - 1 :]]
    if len(medians) <= GROWING_DAYS or medians[0] <= 0:
        return False
    more = sum(after > before for before, after in pairwise(medians))
    return more >= GROWING_DAYS and medians[-1] >= GROWTH_RATIO * medians[0]
