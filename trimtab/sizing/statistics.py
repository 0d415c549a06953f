"""Usage statistics of a container, whether there is enough history for them, and how severe a wrong request is.

A request that is too small is judged by its ratio to the recommendation, because a single container is killed, evicted
or slowed down. A request that is too large is judged by what all pods of the workload reserve and do not use.
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

MIN_HISTORY_SECONDS = DAY
SLACK_SECONDS = 3600 // 6
"""How many seconds may be missing in a history, because the last sample of a day comes a little before its end."""
MIN_RUN_DAYS = 7
"""The number of days on which a workload that runs only at times, such as a nightly job, must have run, however
short."""
MIN_SAMPLES = {"cpu": 100, "memory": 4}
"""Resource → minimum number of samples. Memory needs fewer, because it is recorded as one peak in six hours."""
MIN_RUN_SAMPLES = {"cpu": 20, "memory": 4}
"""Resource → minimum number of samples for a CronJob, whose runs may be short. Of fewer than twenty values, P95 is the
largest."""
RUN_KIND = "CronJob"
FULL_CONFIDENCE_SECONDS, FULL_CONFIDENCE_SAMPLES = 7 * DAY, {"cpu": 2016, "memory": 28}
"""The history for full confidence: a week, because it includes a weekend, and more history adds little."""
MIN_YOUNG_SECONDS = HOUR
MIN_YOUNG_SAMPLES = {"cpu": 10, "memory": 1}
"""Resource → the number of samples from which on a recommendation is made that only adds a missing request or raises
one."""
FRESH_SECONDS = DAY
"""If the last sample is older than this, the confidence is halved for each further day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStatistics:
    """Statistics of one resource of one container: of cores used, or of memory peaks in bytes."""

    resource: str
    p5: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    samples: int
    observed_seconds: int
    """The observed time in seconds, without gaps."""
    confidence: float
    """The confidence, from 0 to 1.

    It is the smaller of two shares: the length of the history, compared with a week, and the number of samples,
    compared with those of a week (one every five minutes; for memory, one every six hours). It is lower if the last
    sample is old, or if the adaptive rule has doubts."""
    days_with_usage: int = 1
    """The number of days with usage, however short."""
    is_young: bool = False
    """Whether there is less than a day of history: a recommendation may then add a missing request or raise one, but
    lowers none."""
    adaptive: AdaptiveRequest | None = None
    """The adaptive rule's request, or None if only percentiles are known."""
    extra_percentiles: Mapping[Decimal, float] = field(default_factory=dict)
    """Further percentiles that were requested."""

    def percentile_at(self, percentile: Decimal) -> float:
        """Returns the amount at one of the fields' percentiles or at one of `extra_percentiles`; 100 is the largest
        amount. Raises KeyError for any other percentile."""
        named = {5: self.p5, 50: self.p50, 90: self.p90, 95: self.p95, 99: self.p99, 100: self.max}
        values = {Decimal(number): value for number, value in named.items()}
        return values[percentile] if percentile in values else self.extra_percentiles[percentile]

    @property
    def observed_days(self) -> float:
        """The observed time in days."""
        return round(self.observed_seconds / DAY, 1)

    @property
    def span_text(self) -> str:
        """The observed time as messages show it, such as "9 days". For a workload that runs only at times, it has the
        hours as well as the days."""
        if self.observed_seconds + SLACK_SECONDS >= DAY:
            return f"{self.observed_days:g} days"
        hours, days = round(self.observed_seconds / HOUR), self.days_with_usage
        return f"{hours} hour{'' if hours == 1 else 's'} on {days} day{'' if days == 1 else 's'}"


def summarize_usage(
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
    """Returns the window's percentiles and the adaptive request; NotYet if there is less than an hour of history.

    If `now` is None, the age of the last sample does not count. `running` are peaks of intervals that have not ended
    and are not in the window, and `running_seconds` is the time that they cover. `kind` is the workload's kind, `oom`
    its OOM kills, and `pods` the average usage of each of its pods. `percentiles` are computed in addition to the fixed
    ones.
    """
    whole = window.merge_days()
    whole.add_values(running)
    samples, seconds = whole.total_count, max(window.observed_seconds, running_seconds if running else 0)
    min_samples = (MIN_RUN_SAMPLES if kind == RUN_KIND else MIN_SAMPLES)[resource]
    # Whether the history covers a day, or has runs on seven days.
    young = samples < min_samples or not (
        window.observed_seconds + SLACK_SECONDS >= MIN_HISTORY_SECONDS or window.observed_days >= MIN_RUN_DAYS
    )
    if young and (samples < MIN_YOUNG_SAMPLES[resource] or seconds + SLACK_SECONDS < MIN_YOUNG_SECONDS):
        unit = "peaks" if resource == "memory" else "samples"
        return NotYet(
            reason=INSUFFICIENT(f"too little {resource} usage of the container is known"),
            have=f"{window.observed_seconds / HOUR:.1f} hours, {samples} {unit}",
            need=required_history(resource),
        )
    shares = (0.05, 0.5, 0.9, 0.95, 0.99)
    p5, p50, p90, p95, p99 = whole.compute_percentiles(shares)
    others = dict(
        zip(percentiles, whole.compute_percentiles(float(percentile) / 100 for percentile in percentiles), strict=True)
    )
    # Without a clock the OOM floor is that at the end of the window.
    end = window.last if now is None else now
    adaptive = adaptive_request(resource, window, end, running=running, oom=oom, pods=pods)
    base_confidence = compute_confidence(
        resource, seconds, samples, 0 if now is None or not window.last else max(0, now - window.last)
    )
    return UsageStatistics(
        resource=resource,
        p5=p5,
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=whole.top,
        samples=samples,
        observed_seconds=seconds,
        confidence=round(base_confidence * adaptive.remaining_confidence, 2),
        days_with_usage=window.observed_days,
        is_young=young,
        adaptive=adaptive,
        extra_percentiles=others,
    )


def compute_confidence(resource: str, seconds: int, samples: int, age: int = 0) -> float:
    """Returns the confidence from 0 to 1: the length of the history and the number of samples, relative to those for
    full confidence, halved for each day of age after the first."""
    amount = min(1.0, seconds / FULL_CONFIDENCE_SECONDS, samples / FULL_CONFIDENCE_SAMPLES[resource])
    faded: float = 2.0 ** -max(0.0, (age - FRESH_SECONDS) / DAY)
    return round(amount * faded, 2)


def required_history(resource: str) -> str:
    """Returns the history that a recommendation needs, as messages show it."""
    return f"an hour, {MIN_YOUNG_SAMPLES[resource]} {'peak' if resource == 'memory' else 'samples'}"


GIB = 1 << 30


class SizingSeverity(StrEnum):
    """How severe a wrong request is, from the least severe on; `unknown` if the request or the usage is unknown."""

    UNKNOWN = "unknown"
    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """A number that is larger for a more severe value."""
        return list(SizingSeverity).index(self)


SMALL_SHORTAGE = {"cpu": 50, "memory": 64 << 20}
"""Resource → a shortage (millicores, bytes) up to which a request that is too small has a low severity."""
SHORTAGE_STEPS = {
    "cpu": ((1.5, SizingSeverity.MEDIUM),),
    "memory": ((1.5, SizingSeverity.HIGH), (1.2, SizingSeverity.MEDIUM)),
}
"""Resource → the ratios of recommendation to request from which on each severity applies. A shortage of cpu slows a
container down; one of memory kills it."""
WASTE_STEPS = {
    "cpu": ((4000, SizingSeverity.HIGH), (500, SizingSeverity.MEDIUM)),
    "memory": ((16 * GIB, SizingSeverity.HIGH), (2 * GIB, SizingSeverity.MEDIUM)),
}
"""Resource → the amounts (millicores or bytes) that all pods reserve beyond the recommendation, from which on each
severity applies."""


def rate_severity(
    resource: str, request: int | None, proposed: int, pods: float, *, killed: bool = False
) -> SizingSeverity:
    """Returns how severe the difference between the present and the proposed request of one pod is. `request` is None
    if there is no request; `killed` says whether the container was OOM-killed."""
    if killed and proposed > (request or 0):
        return SizingSeverity.HIGH
    if not request:
        return SizingSeverity.MEDIUM
    if proposed > request:
        levels = SHORTAGE_STEPS[resource] if proposed - request > SMALL_SHORTAGE[resource] else ()
        amount = proposed / request
    else:
        levels, amount = WASTE_STEPS[resource], (request - proposed) * pods
    return next((level for threshold, level in levels if amount >= threshold), SizingSeverity.LOW)


def most_severe(*severities: SizingSeverity) -> SizingSeverity:
    """Returns the most severe of all."""
    return max(severities, key=lambda one: one.rank)
