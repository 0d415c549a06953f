"""Is there history to speak from, and how sure are we?

How far is a request from what it should be?

A request that is too small is judged by its share, since it is one container that is killed, evicted or slowed down.
One that is too large is judged by what all pods of the workload reserve and do not use.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from trimtab.cluster.reason import NotYet
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.pod_averages import PodUse
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.sizing.adaptive_bounds import AdaptiveRequest, adaptive_request
from trimtab.sizing.reasons import INSUFFICIENT

LEAST_SECONDS = DAY
SLACK = 3600 // 6
"""The last sample of a day comes a little before its end."""
LEAST_DAYS = 7
"""What runs at times, such as a nightly job, is known by its runs: seen on so many days, for however long."""
LEAST_SAMPLES = {"cpu": 100, "memory": 4}
"""Memory is told by its peaks, four a day."""
LEAST_OF_RUNS = {"cpu": 20, "memory": 4}
"""Of a CronJob, whose runs may be short. Of fewer than twenty values P95 is the greatest."""
RUNS = "CronJob"
SURE_SECONDS, SURE_SAMPLES = 7 * DAY, {"cpu": 2016, "memory": 28}
"""A week has its weekend: more history adds little."""
YOUNG_SECONDS = HOUR
YOUNG_SAMPLES = {"cpu": 10, "memory": 1}
"""From so much on there is an answer that fills a missing request or raises one."""
FRESH = DAY
"""Usage that ended longer ago is worth half for each further day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStatistics:
    """What was seen of one resource: cores, or bytes of peaks."""

    resource: str
    p5: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    samples: int
    seconds: int
    """For how long it was seen; gaps are none of it."""
    confidence: float
    """0 to 1: of a week and a sample every five minutes, the scarcer; less where the last sample is old, or where the
    adaptive rule has doubts."""
    days_seen: int = 1
    """On how many days, for however long."""
    young: bool = False
    """Less than a day is known: what follows may fill a missing request or raise one, and lowers none."""
    adaptive: AdaptiveRequest | None = None
    """What the adaptive rule asks for; None where only percentiles are known."""
    others: Mapping[Decimal, float] = field(default_factory=dict)
    """Percentiles that were asked for beside those above."""

    def at(self, percentile: Decimal) -> float:
        """The amount at one of the percentiles above or of `others`; 100 is the largest. Raises KeyError elsewhere."""
        named = {5: self.p5, 50: self.p50, 90: self.p90, 95: self.p95, 99: self.p99, 100: self.max}
        found = {Decimal(number): value for number, value in named.items()}
        return found[percentile] if percentile in found else self.others[percentile]

    @property
    def days(self) -> float:
        return round(self.seconds / DAY, 1)

    @property
    def span(self) -> str:
        """For people: of what runs at times, the hours as well as the days."""
        if self.seconds + SLACK >= DAY:
            return f"{self.days:g} days"
        hours, days = round(self.seconds / HOUR), self.days_seen
        return f"{hours} hour{'' if hours == 1 else 's'} on {days} day{'' if days == 1 else 's'}"


def seen(
    resource: str,
    window: DailyHistograms,
    now: Seconds | None = None,
    running: Sequence[float] = (),
    *,
    kind: str = "",
    running_seconds: int = 0,
    oom: OomRecord | None = None,
    pods: Sequence[PodUse] = (),
    percentiles: Collection[Decimal] = (),
) -> UsageStatistics | NotYet:
    """The window's percentiles and the adaptive request; NotYet below an hour of history. `now`: None asks for no age.
    `running`: values of an interval that is not over, and not in the window, and for how many seconds they were looked
    for. `kind`: of the workload. `oom`: its kills for want of memory. `pods`: what each of its pods uses.
    `percentiles`: what is asked for beside those that are always told."""
    whole = window.whole()
    whole.extend(running)
    samples, seconds = whole.total, max(window.seconds, running_seconds if running else 0)
    least = (LEAST_OF_RUNS if kind == RUNS else LEAST_SAMPLES)[resource]
    young = samples < least or not _long(window)
    if young and (samples < YOUNG_SAMPLES[resource] or seconds + SLACK < YOUNG_SECONDS):
        return _not_yet(resource, window, samples)
    shares = (0.05, 0.5, 0.9, 0.95, 0.99)
    p5, p50, p90, p95, p99 = whole.percentiles(shares)
    others = dict(zip(percentiles, whole.percentiles(float(one) / 100 for one in percentiles), strict=True))
    moment = window.last if now is None else now
    adaptive = adaptive_request(resource, window, moment, running=running, oom=oom, pods=pods)
    sure = confidence(resource, seconds, samples, _age(window, now))
    return UsageStatistics(
        resource=resource, p5=p5, p50=p50, p90=p90, p95=p95, p99=p99, max=whole.top, samples=samples,
        seconds=seconds, confidence=round(sure * adaptive.certainty, 2), days_seen=window.days_seen,
        young=young, adaptive=adaptive, others=others,
    )  # fmt: skip


def _long(window: DailyHistograms) -> bool:
    return window.seconds + SLACK >= LEAST_SECONDS or window.days_seen >= LEAST_DAYS


def _age(window: DailyHistograms, now: Seconds | None) -> int:
    return 0 if now is None or not window.last else max(0, now - window.last)


def confidence(resource: str, seconds: int, samples: int, age: int = 0) -> float:
    """How much of what would make us sure is there."""
    amount = min(1.0, seconds / SURE_SECONDS, samples / SURE_SAMPLES[resource])
    faded: float = 2.0 ** -max(0.0, (age - FRESH) / DAY)
    return round(amount * faded, 2)


def _not_yet(resource: str, window: DailyHistograms, samples: int) -> NotYet:
    unit = "peaks" if resource == "memory" else "samples"
    return NotYet(
        reason=INSUFFICIENT(f"too little is known of its {resource}"),
        have=f"{window.seconds / HOUR:.1f} hours, {samples} {unit}",
        need=needed(resource),
    )


def needed(resource: str) -> str:
    """From how much on there is an answer, for people."""
    return f"an hour, {YOUNG_SAMPLES[resource]} {'peak' if resource == 'memory' else 'samples'}"


GIB = 1 << 30


class SizingSeverity(StrEnum):
    """From the least severe on; `unknown` where the request or the usage is not known."""

    UNKNOWN = "unknown"
    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Larger is more severe."""
        return list(SizingSeverity).index(self)


SMALL = {"cpu": 50, "memory": 64 << 20}
"""A request that is too small by no more than this (millicores, bytes) is a low severity."""
SHORT = {"cpu": ((1.5, SizingSeverity.MEDIUM),), "memory": ((1.5, SizingSeverity.HIGH), (1.2, SizingSeverity.MEDIUM))}
"""Times the request, from which on a recommendation is so severe: want of cpu slows down, want of memory kills."""
WASTE = {
    "cpu": ((4000, SizingSeverity.HIGH), (500, SizingSeverity.MEDIUM)),
    "memory": ((16 * GIB, SizingSeverity.HIGH), (2 * GIB, SizingSeverity.MEDIUM)),
}
"""Millicores or bytes that all pods together reserve beyond the recommendation, from which on it is so severe."""


def severity(resource: str, request: int | None, proposed: int, pods: float, *, killed: bool = False) -> SizingSeverity:
    """Of a request that differs from the one proposed, both of one pod; `killed`: for want of memory. None: there is no
    request."""
    if killed and proposed > (request or 0):
        return SizingSeverity.HIGH
    if not request:
        return SizingSeverity.MEDIUM
    if proposed > request:
        steps = SHORT[resource] if proposed - request > SMALL[resource] else ()
        amount = proposed / request
    else:
        steps, amount = WASTE[resource], (request - proposed) * pods
    return next((found for least, found in steps if amount >= least), SizingSeverity.LOW)


def most_severe(*found: SizingSeverity) -> SizingSeverity:
    """Of both resources of a container, or of several containers."""
    return max(found, key=lambda one: one.rank)
