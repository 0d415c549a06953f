"""The adaptive rule's answer within what bounds it, and what makes it doubtful.

From below: the use of the last 24 hours, the pods that use most where they are a tenth of all, and what a container
needs that was killed for want of memory. From above: three times the largest use. Doubts lower the confidence, and
never the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trimtab.cluster.recommendation import CHANGED, GROWS, LEFT_OF_CONFIDENCE, PODS_DIFFER, RARE_PEAKS, RARE_TIMES
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.histogram import UsageHistogram, merged
from trimtab.histogram.oom_kills import LEAST_BYTES, OomRecord
from trimtab.histogram.pod_averages import PodUse
from trimtab.sizing.adaptive import PASSED_SHARE, answer, recent, values_above

DAY = 86400
MAX_TIMES = 3
LAST_DAY, LARGEST_POD, OOM_KILL, THREE_TIMES = "last-day", "largest-pod", "oom-kill", "three-times"
"""What set the request instead of the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveRequest:
    """A request in cores or bytes, not rounded, and all that leads to it."""

    amount: float
    share: float = 1.0
    """Of recent use, what is not above the rule's own answer; 1 where all use of the window is below."""
    passed: int = 0
    record: int = 0
    """See `adaptive.AdaptiveAnswer`."""
    bound: str = ""
    """What set it instead of the rule; empty where the rule did."""
    floor: float = 0.0
    """Bytes that a killed container needs; 0 where there was no kill."""
    kills: int = 0
    killed: Seconds | None = None
    """When the last kill was."""
    doubts: tuple[str, ...] = ()
    pod: str = ""
    """The pod that uses far more than the others and is not covered."""
    pod_use: float = 0.0

    @property
    def certainty(self) -> float:
        """What the doubts leave of the confidence, from 0 to 1."""
        left = 1.0
        for doubt in self.doubts:
            left *= LEFT_OF_CONFIDENCE[doubt]
        return left


def adaptive_request(
    resource: str,
    window: DailyHistograms,
    now: Seconds,
    *,
    running: Sequence[float] = (),
    oom: OomRecord | None = None,
    pods: Sequence[PodUse] = (),
) -> AdaptiveRequest:
    """What the container should ask for. The window or `running` (memory of an interval that is not over) holds at
    least one value; `pods`: what each pod of the last hours uses on average."""
    days = _with_running(window, running)
    use, newest = recent(days), max(days)
    found = answer(resource, use)
    largest = max(counts.top for counts in days.values())
    asked = AdaptiveRequest(amount=found.amount, share=found.share, passed=found.passed, record=found.record)
    asked = _at_least(asked, last_day(resource, window, days, len(pods)), LAST_DAY)
    asked = _with_pods(asked, resource, pods)
    asked = _with_kills(asked, oom, largest, now, window.days * DAY) if resource == "memory" else asked
    most = max_amount(resource, largest)
    if asked.amount > most:
        asked = replace(asked, amount=most, bound=THREE_TIMES)
    rare = resource == "memory" and largest > RARE_TIMES * asked.amount
    doubts = ((CHANGED, has_changed(days, newest)), (GROWS, is_growing(days)), (RARE_PEAKS, rare))
    return replace(asked, doubts=(*asked.doubts, *(doubt for doubt, holds in doubts if holds)))


def max_amount(resource: str, largest: float) -> float:
    """The most that usage leads to: three times the largest use, and what a single kill adds to a small container."""
    return max(MAX_TIMES * largest, largest + LEAST_BYTES if resource == "memory" else 0.0)


def _with_running(window: DailyHistograms, running: Sequence[float]) -> Mapping[int, UsageHistogram]:
    """Days that hold something, the peaks that run among today's. Nothing of the window is changed."""
    days = {day: counts for day, counts in window.by_day().items() if counts.total}
    if running:
        today = days[window.newest].copy() if window.newest in days else UsageHistogram()
        today.extend(running)
        days[window.newest] = today
    return days


def _at_least(asked: AdaptiveRequest, amount: float, bound: str) -> AdaptiveRequest:
    return replace(asked, amount=amount, bound=bound) if amount > asked.amount else asked


# ── the last 24 hours ────────────────────────────────────────────────────────────────────────────────────────────

WHOLE_HOURS, FEW_HOURS = 18, 3
"""Hours of today after which it speaks alone for the last 24 hours; before which it does not speak alone."""


def last_day(resource: str, window: DailyHistograms, days: Mapping[int, UsageHistogram], pods: int = 1) -> float:
    """The use of the last 24 hours that a request should cover: P95 of cpu, the greatest peak of memory; of many pods
    P90 of their peaks, since fewer than a tenth of them speak for themselves alone. Usage is kept by days, so early in
    a day the day before counts as well."""
    today, before = days.get(window.newest), days.get(window.newest - 1)
    hours = window.hours_of(window.newest).bit_count()
    parts: list[Iterable[UsageHistogram]] = []
    if today is not None and (hours >= FEW_HOURS or before is None):
        parts.append((today,))
    if hours < WHOLE_HOURS and before is not None:
        parts.append((before, today) if today is not None else (before,))
    found = [merged(part) for part in parts]
    many = pods * LARGE_SHARE > 1
    share = PASSED_SHARE if resource == "cpu" else 1 - LARGE_SHARE if many else 1.0
    return max((counts.percentiles((share,))[0] for counts in found), default=0.0)


# ── pods that differ ─────────────────────────────────────────────────────────────────────────────────────────────

REACHED = 0.8
"""A pod that uses so much of what the largest uses is as large."""
LARGE_SHARE = 0.1
"""Of the pods, so many must be as large as the largest before it is a bound for all."""
FAR_MORE = 2.0
"""Times what the pod in the middle uses."""


def _with_pods(asked: AdaptiveRequest, resource: str, pods: Sequence[PodUse]) -> AdaptiveRequest:
    if len(pods) < 2:
        return asked
    ordered = sorted(pods, key=lambda pod: (pod.mean, pod.name))
    largest, middle = ordered[-1], ordered[(len(ordered) - 1) // 2].mean
    if largest.mean <= asked.amount or largest.mean < FAR_MORE * middle:
        return asked
    large = sum(pod.mean >= REACHED * largest.mean for pod in ordered)
    if large >= LARGE_SHARE * len(ordered):
        return replace(asked, amount=largest.mean, bound=LARGEST_POD, pod=largest.name, pod_use=largest.mean)
    return replace(asked, doubts=(PODS_DIFFER,), pod=largest.name, pod_use=largest.mean)


# ── kills for want of memory ─────────────────────────────────────────────────────────────────────────────────────


def oom_floor(oom: OomRecord | None, largest: float, now: Seconds, window_seconds: int) -> float:
    """The bytes that a request should not be below after kills; 0 without any, or after the window."""
    return 0.0 if oom is None else min(oom.floor(now, window_seconds), max_amount("memory", largest))


def _with_kills(
    asked: AdaptiveRequest, oom: OomRecord | None, largest: float, now: Seconds, window_seconds: int
) -> AdaptiveRequest:
    floor = oom_floor(oom, largest, now, window_seconds)
    if oom is None or floor <= 0:
        return asked
    known = replace(asked, floor=floor, kills=oom.count, killed=oom.last)
    return _at_least(known, floor, OOM_KILL)


# ── doubts ───────────────────────────────────────────────────────────────────────────────────────────────────────

STEP, STEP_SHARE = 1.25, 0.2
"""More than a fifth of the last day beyond nearly all of the days before, by a quarter."""
DROPPED = 0.5
"""Nearly all of the last day below half of what was usual on the days before."""
GROWTH, GROWING_DAYS = 1.2, 6
"""By so much over a week, and on so many of its days more than on the day before."""
WEEK_DAYS = 7


def has_changed(days: Mapping[int, UsageHistogram], newest: int) -> bool:
    """Whether the last day is unlike the week before it, up or down."""
    last = days.get(newest)
    before = merged(counts for day, counts in days.items() if newest - WEEK_DAYS <= day < newest)
    if last is None or not last.total or not before.total:
        return False
    usual, most = before.percentiles((0.5, PASSED_SHARE))
    if values_above(last, most * STEP) > STEP_SHARE * last.total:
        return True
    return last.percentiles((PASSED_SHARE,))[0] < DROPPED * usual


def is_growing(days: Mapping[int, UsageHistogram]) -> bool:
    """Whether the median of each day of the last week is above that of the day before, nearly always."""
    medians = [counts.percentiles((0.5,))[0] for _, counts in sorted(days.items())[-WEEK_DAYS - 1 :]]
    if len(medians) <= GROWING_DAYS or medians[0] <= 0:
        return False
    more = sum(after > before for before, after in pairwise(medians))
    return more >= GROWING_DAYS and medians[-1] >= GROWTH * medians[0]
