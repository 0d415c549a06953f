"""Brings the adaptive rule's request within its bounds, and finds doubts about it.

The lower bounds are the usage of the last 24 hours, the usage of the largest pods if they are at least a tenth of all
pods, and the smallest request that is allowed after OOM kills. The upper bound is three times the largest usage. Doubts
lower the confidence, but never the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trimtab.cluster.recommendation import CHANGED, CONFIDENCE_FACTORS, GROWS, MAX_PEAK_FACTOR, PODS_DIFFER, RARE_PEAKS
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.histogram import UsageHistogram, merge_histograms
from trimtab.histogram.oom_kills import DEFAULT_BUMP_UP, MIN_BUMP_UP_BYTES, BumpUp, OomRecord
from trimtab.histogram.pod_averages import PodUse
from trimtab.sizing.adaptive import PASSED_SHARE, find_cheapest_request, values_above, weigh_recent_use

DAY = 86400
MAX_REQUEST_RATIO = 3
LAST_DAY, LARGEST_POD, OOM_KILL, THREE_TIMES = "last-day", "largest-pod", "oom-kill", "three-times"
"""The names of the bounds. If a bound determined the request in place of the rule, its name is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveRequest:
    """The request of one resource in cores or bytes, not rounded, and how it was computed."""

    amount: float
    share: float = 1.0
    """The share of recent usage that does not exceed the rule's own request, before bounds; 1 if no usage of the window
    does."""
    days_exceeded: int = 0
    days_compared: int = 0
    """This field and `days_exceeded` have the same meaning as in `adaptive.AdaptiveAnswer`."""
    bound: str = ""
    """The name of the bound that determined the request; empty if the rule did."""
    floor: float = 0.0
    """The memory in bytes that the container needs at least after its OOM kills; 0 if there were none."""
    kills: int = 0
    last_kill: Seconds | None = None
    """The time of the last OOM kill, or None if there was none."""
    doubts: tuple[str, ...] = ()
    pod: str = ""
    """The pod that uses far more than the others and that the request does not cover; empty if there is none."""
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
    """Returns the adaptive rule's request within its bounds. `window` or `running` (peaks of intervals that have not
    ended) must have at least one value; `pods` is the average usage of each pod in the last hours."""
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
    """Returns the largest request that usage can lead to: three times the largest usage. For a small container it is
    the largest usage plus what a single OOM kill adds, if that is more."""
    return max(MAX_REQUEST_RATIO * largest, largest + MIN_BUMP_UP_BYTES if resource == "memory" else 0.0)


def _days_with_running(window: DailyHistograms, running: Sequence[float]) -> Mapping[int, UsageHistogram]:
    """Returns the days that have values, with the peaks that have not ended added to the newest day. The window is not
    changed."""
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
"""Hours of today that were observed. From `FULL_DAY_HOURS` on, today is judged alone; below `MIN_DAY_HOURS`, only
together with the day before. In between, both are done, and the larger usage counts."""


def last_day_use(resource: str, window: DailyHistograms, days: Mapping[int, UsageHistogram], pods: int = 1) -> float:
    """Returns the usage of the last 24 hours that a request should cover.

    For cpu, it is P95. For memory, it is the largest peak, or the P90 of the peaks if there are more than ten pods,
    because fewer than a tenth of the pods count as outliers. Usage is recorded by day, so early in a day the day before
    counts too."""
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
"""A pod counts as equally large if it uses at least this share of what the largest pod uses."""
LARGE_SHARE = 0.1
"""The share of the pods that must be as large as the largest pod. Only then is the largest pod a lower bound for the
requests of all pods."""
OUTLIER_RATIO = 2.0
"""A pod counts as an outlier if it uses at least this many times as much as the median pod."""


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


def oom_floor(
    oom: OomRecord | None, largest: float, now: Seconds, window_seconds: int, bump_up: BumpUp = DEFAULT_BUMP_UP
) -> float:
    """Returns the memory in bytes that a request should not be below after OOM kills; 0 if there were none, or none in
    the window."""
    return 0.0 if oom is None else min(oom.floor_at(now, window_seconds, bump_up), max_amount("memory", largest))


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
"""The usage has risen if more than `CHANGE_SHARE` (a fifth) of the last day exceeds nearly all of the days before by
the factor `CHANGE_RATIO`."""
DROP_RATIO = 0.5
"""The usage has dropped if nearly all of the last day is below this share of the median of the days before."""
GROWTH_RATIO, GROWING_DAYS = 1.2, 6
"""The usage is growing if it grew by the factor `GROWTH_RATIO` over a week, and was higher than on the day before on at
least `GROWING_DAYS` days of the week."""
WEEK_DAYS = 7


def has_changed(days: Mapping[int, UsageHistogram], newest: int) -> bool:
    """Returns whether the usage of the last day differs from that of the week before, upwards or downwards."""
    last = days.get(newest)
    before = merge_histograms(counts for day, counts in days.items() if newest - WEEK_DAYS <= day < newest)
    if last is None or not last.total_count or not before.total_count:
        return False
    usual, most = before.compute_percentiles((0.5, PASSED_SHARE))
    if values_above(last, most * CHANGE_RATIO) > CHANGE_SHARE * last.total_count:
        return True
    return last.compute_percentiles((PASSED_SHARE,))[0] < DROP_RATIO * usual


def is_growing(days: Mapping[int, UsageHistogram]) -> bool:
    """Returns whether, on nearly each day of the last week, the median usage was above that of the day before."""
    medians = [counts.compute_percentiles((0.5,))[0] for _, counts in sorted(days.items())[-WEEK_DAYS - 1 :]]
    if len(medians) <= GROWING_DAYS or medians[0] <= 0:
        return False
    more = sum(after > before for before, after in pairwise(medians))
    return more >= GROWING_DAYS and medians[-1] >= GROWTH_RATIO * medians[0]
