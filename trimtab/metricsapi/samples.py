"""The samples of metrics, and the values computed from them: rates across counter resets, and no values that are out of
date.

Times are in seconds of a clock that never goes back (`trimtab.runtime.clock.elapsed_seconds`); they are converted to
wall-clock time only when they are served.

A rate is the increase between the two newest samples of a pod, per second, cut to thousandths. The increase is computed
series by series, as in Prometheus: a series that decreased or is new has begun at zero, and one that disappeared adds
nothing. (If only the sum were compared, the disappearance of one series would count the whole sum as an increase.) If
the pod exposes its start time and it has changed, all series have begun at zero, even if a counter is already above its
earlier value.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.reason import NotYet, Reason
from trimtab.metricsapi.exposition import SeriesValues
from trimtab.metricsapi.reasons import CLOSE_SAMPLE, FIRST_SAMPLE, STALE_SAMPLE, WIDE_GAP
from trimtab.metricsapi.rules import MetricKind, MetricRule

MIN_GAP_SECONDS = 10.0
MAX_GAP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one metric that a pod exposed at one time."""

    at: float
    values: SeriesValues
    started: float | None = None
    """The start time of the process by its own clock, or None if it is not known."""

    @property
    def total(self) -> float:
        """The sum over all series."""
        return math.fsum(self.values.values())


@dataclass(frozen=True, slots=True)
class SamplePair:
    """The newest sample of a pod's metric, and the one before it."""

    new: Sample
    old: Sample | None = None
    increase: float = 0.0
    """By how much a counter has increased from the older sample to the newer; 0 if there is no older one."""

    def followed_by(self, sample: Sample) -> "SamplePair":
        """Returns the pair after one more sample. Of the sample that becomes the older one, only the sum is kept."""
        old = Sample(self.new.at, {0: self.new.total}, self.new.started)
        return SamplePair(sample, old, counter_increase(self.new, sample))


def counter_increase(old: Sample, new: Sample) -> float:
    """Returns by how much a counter has increased between two samples; never less than 0 for a counter that only counts
    upwards."""
    if old.started is not None and new.started is not None and old.started != new.started:
        return new.total
    before = old.values
    return math.fsum(
        value - earlier if (earlier := before.get(key, 0.0)) <= value else value for key, value in new.values.items()
    )


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value that may be served, with the time of its sample."""

    milli: int
    """The value in thousandths, cut towards zero."""
    at: float
    window_seconds: int | None = None
    """The number of seconds that a rate covers, rounded, or None for a gauge."""


def value_of_pair(
    pair: SamplePair | None, rule: MetricRule, now: float, max_gap_seconds: float = MAX_GAP_SECONDS
) -> MetricValue | NotYet:
    """Returns the present value of a metric, or what is missing for it."""
    if pair is None:
        return NotYet(reason=FIRST_SAMPLE(f"{rule.name} has no sample"), have="none", need="at least one sample")
    age = now - pair.new.at
    if age > rule.max_age_seconds:
        reason = STALE_SAMPLE(f"the newest sample of {rule.name} is {age:.0f} s old")
        return NotYet(
            reason=reason,
            have=f"a sample that is {age:.0f} s old",
            need=f"a sample of at most {rule.max_age_seconds} s",
        )
    if rule.kind is MetricKind.GAUGE:
        return MetricValue(int(pair.new.total * 1000), pair.new.at)
    if pair.old is None:
        return NotYet(reason=FIRST_SAMPLE(f"{rule.name} has one sample"), have="one", need="two samples")
    gap = pair.new.at - pair.old.at
    if not 0 < gap <= max_gap_seconds:
        reason = WIDE_GAP(f"the two newest samples of {rule.name} are {gap:.0f} s apart")
        return NotYet(
            reason=reason, have=f"samples {gap:.0f} s apart", need=f"samples at most {max_gap_seconds:.0f} s apart"
        )
    return MetricValue(int(pair.increase / gap * 1000), pair.new.at, round(gap))


SampleKey = tuple[str, str]
"""(uid of a pod, name of a metric)."""


@dataclass(slots=True)
class SampleStore:
    """The samples of registered pods. Not thread-safe: the caller must hold a lock."""

    min_gap_seconds: float = MIN_GAP_SECONDS
    max_gap_seconds: float = MAX_GAP_SECONDS
    _pairs: dict[SampleKey, SamplePair] = field(default_factory=dict)
    _uids: set[str] = field(default_factory=set)

    def register_pods(self, uids: Iterable[str]) -> None:
        """Keeps samples of exactly these pods from now on. The samples of all other pods are dropped."""
        self._uids = set(uids)
        self._pairs = {key: pair for key, pair in self._pairs.items() if key[0] in self._uids}

    def add_sample(self, uid: str, rule: MetricRule, sample: Sample) -> Reason | None:
        """Adds a sample. Returns why it is not used, or None if it is. Samples of pods that are not registered are
        dropped."""
        if uid not in self._uids:
            return None
        pair = self._pairs.get((uid, rule.name))
        # A gauge has no gap: a newer value is always better.
        if pair is not None and rule.kind is MetricKind.RATE and sample.at - pair.new.at < self.min_gap_seconds:
            return CLOSE_SAMPLE(f"the sample is only {sample.at - pair.new.at:.1f} s newer than the previous sample")
        self._pairs[uid, rule.name] = SamplePair(sample) if pair is None else pair.followed_by(sample)
        return None

    def pair_of(self, uid: str, metric: str) -> SamplePair | None:
        """Returns the two newest samples, or None if there are none."""
        return self._pairs.get((uid, metric))

    def value_of(self, uid: str, rule: MetricRule, now: float) -> MetricValue | NotYet:
        """Returns the present value of a pod's metric, or what is missing for it."""
        return value_of_pair(self.pair_of(uid, rule.name), rule, now, self.max_gap_seconds)

    def count_values(self, rules: Mapping[str, MetricRule], now: float) -> dict[str, tuple[int, int]]:
        """Returns metric → (pods with a value, pods that have samples but no value)."""
        counts = dict.fromkeys(rules, (0, 0))
        for (uid, metric), _ in list(self._pairs.items()):
            if (rule := rules.get(metric)) is not None:
                served, withheld = counts[metric]
                has_value = isinstance(self.value_of(uid, rule, now), MetricValue)
                counts[metric] = (served + has_value, withheld + (not has_value))
        return counts


def is_power_of_two(count: int) -> bool:
    """Returns whether a failure is logged. In a series of failures, the first, second, fourth, eighth and so on are
    logged."""
    return count > 0 and count & (count - 1) == 0
