"""Where do the VPA's buckets begin?

The VPA's histogram: weights that fade by growing what comes later.

What the VPA records of one container: cpu as it comes, memory by the peak of a day, a bump for every OOM kill.

A VerticalPodAutoscalerCheckpoint's status as a container's histograms, and back (version v3).

What we saw, as a VPA would remember it: a history for one that is fresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor, log
from typing import Protocol

import msgspec

from trimtab.cluster.timestamps import seconds, written
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.oom_kills import needed


@dataclass(frozen=True, slots=True)
class ExponentialBuckets:
    """Each bucket `ratio` times as wide as the one before."""

    greatest: float
    first: float
    ratio: float
    epsilon: float
    """A bucket that weighs less is empty."""

    @property
    def count(self) -> int:
        return ceil(log(self.greatest * (self.ratio - 1) / self.first + 1) / log(self.ratio)) + 1

    def start(self, bucket: int) -> float:
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1) if bucket else 0.0

    def find(self, value: float) -> int:
        if value < self.first:
            return 0
        return min(self.count - 1, floor(log(value * (self.ratio - 1) / self.first + 1) / log(self.ratio)))


@dataclass(frozen=True, slots=True)
class LinearBuckets:
    """Buckets all as wide."""

    greatest: float
    width: float
    epsilon: float

    @property
    def count(self) -> int:
        return ceil(self.greatest / self.width) + 1

    def start(self, bucket: int) -> float:
        return bucket * self.width

    def find(self, value: float) -> int:
        return max(0, min(self.count - 1, floor(value / self.width)))


Scale = ExponentialBuckets | LinearBuckets

CPU = ExponentialBuckets(greatest=1000.0, first=0.01, ratio=1.05, epsilon=0.001 * 0.1)
MEMORY = ExponentialBuckets(greatest=1e12, first=1e7, ratio=1.05, epsilon=0.001 * 0.1)


DAY = 86400.0
MOST_HALF_LIVES = 100
"""Beyond that the reference moves, and all weights shrink by as much."""
_YEAR_ONE = 62_135_596_800
"""Seconds from the year 1, where Go's times begin, to 1970."""
FULL = 10_000
"""What the heaviest bucket weighs in a checkpoint."""


class CheckpointRejected(ValueError):
    """A checkpoint that the VPA would not load either."""


@dataclass(slots=True)
class Histogram:
    """`half_life` in seconds; None keeps every weight as it was."""

    scale: Scale
    half_life: float | None = None
    weights: dict[int, float] = field(default_factory=dict)
    total: float = 0.0
    reference: float | None = None
    """Second at which a sample weighs what it weighs."""

    def add(self, value: float, weight: float, at: float = 0.0) -> None:
        self._change(value, weight * self._factor(at))

    def subtract(self, value: float, weight: float, at: float = 0.0) -> None:
        """What would be left below epsilon is nothing."""
        self._change(value, -weight * self._factor(at))

    def _change(self, value: float, weight: float) -> None:
        bucket = self.scale.find(value)
        self._set(bucket, self.weights.get(bucket, 0.0) + weight)
        self.total = self._kept(self.total + weight)

    def _set(self, bucket: int, weight: float) -> None:
        self.weights[bucket] = self._kept(weight) if weight < self.scale.epsilon else weight

    def _kept(self, weight: float) -> float:
        return 0.0 if weight < self.scale.epsilon else weight

    @property
    def empty(self) -> bool:
        return not self._held()

    def _held(self) -> list[int]:
        """Buckets that hold something, from the lowest."""
        return sorted(bucket for bucket, weight in self.weights.items() if weight >= self.scale.epsilon)

    def percentile(self, share: float) -> float:
        """The end of the first bucket with so much of the weight at or below it; 0 when empty."""
        held = self._held()
        if not held:
            return 0.0
        threshold, seen, bucket = share * self.total, 0.0, held[-1]
        for bucket in held:
            seen += self.weights[bucket]
            if seen >= threshold:
                break
        return self.scale.start(bucket + 1 if bucket < self.scale.count - 1 else bucket)

    def merge(self, other: Histogram) -> None:
        """The older reference is moved to the younger first."""
        factor = self._align(other)
        for bucket, weight in other.weights.items():
            self._set(bucket, self.weights.get(bucket, 0.0) + weight * factor)
        self.total += other.total * factor

    def _align(self, other: Histogram) -> float:
        """What the other's weights are worth here."""
        if self.half_life is None or other.reference is None:
            return 1.0
        if self.reference is None or self.reference < other.reference:
            self._move(other.reference)
            return 1.0
        return float(2.0 ** ((other.reference - self.reference) / self.half_life))

    def _factor(self, at: float) -> float:
        if self.half_life is None:
            return 1.0
        if self.reference is None or at > self.reference + self.half_life * MOST_HALF_LIVES:
            self._move(_rounded(at, self.half_life))
        assert self.reference is not None
        return float(2.0 ** ((at - self.reference) / self.half_life))

    def _move(self, reference: float) -> None:
        if self.reference is not None and self.half_life is not None:
            factor = 2.0 ** ((self.reference - reference) / self.half_life)
            self.weights = {bucket: weight * factor for bucket, weight in self.weights.items()}
            self.total *= factor
        self.reference = reference

    def checkpoint(self) -> tuple[float, dict[int, int]]:
        """Total weight, and the buckets scaled so that the heaviest is 10000; those that round to 0 are left out."""
        held = self._held()
        if not held:
            return 0.0, {}
        ratio = FULL / max(self.weights[bucket] for bucket in held)
        found = {bucket: int(self.weights[bucket] * ratio + 0.5) for bucket in held}
        return self.total, {bucket: weight for bucket, weight in found.items() if weight}

    def load(self, total: float, buckets: Mapping[int, int], reference: float | None = None) -> None:
        """What a checkpoint holds, in place of what is here. Raises Refused and changes nothing then."""
        wrong = [bucket for bucket in buckets if not 0 <= bucket < self.scale.count]
        if wrong:
            raise CheckpointRejected(f"bucket {wrong[0]} is not one of {self.scale.count}")
        if total < 0:
            raise CheckpointRejected(f"a negative total weight: {total}")
        stored = sum(buckets.values())
        factor = total / stored if stored else 0.0
        self.weights = {bucket: weight * factor for bucket, weight in buckets.items()}
        self.total = total if stored else 0.0
        self.reference = reference


def _rounded(at: float, to: float) -> float:
    """The nearest multiple, counted from the year 1; a half rounds up (Go's Time.Round)."""
    since = at + _YEAR_ONE
    return since - since % to + (to if since % to * 2 >= to else 0.0) - _YEAR_ONE


CPU_WEIGHT = 0.1
MEMORY_WEIGHT = 1.0
INTERVALS = 8
"""Intervals of memory that are kept; a container not seen for as long is forgotten."""


class TooOld(ValueError):
    """An OOM kill from before the last interval."""


class Samples(Protocol):
    """Where samples go."""

    def add(self, value: float, weight: float, at: float = 0.0) -> None: ...

    def subtract(self, value: float, weight: float, at: float = 0.0) -> None: ...


@dataclass(slots=True)
class AggregateContainerState:
    """Times in seconds, cpu in cores, memory in bytes."""

    cpu: Samples = field(default_factory=lambda: Histogram(CPU, DAY))
    memory: Samples = field(default_factory=lambda: Histogram(MEMORY, DAY))
    interval: float = DAY
    last_cpu: float | None = None
    last_memory: float | None = None
    window_end: float | None = None
    peak: float = 0.0
    oom_peak: float = 0.0

    def use_cpu(self, at: float, cores: float) -> bool:
        """False where the sample is not newer than the last, or negative."""
        if cores < 0 or (self.last_cpu is not None and at <= self.last_cpu):
            return False
        self.last_cpu = at
        self.cpu.add(cores, CPU_WEIGHT, at)
        return True

    def use_memory(self, at: float, held: float) -> bool:
        """False where the sample is older than the last, or negative."""
        if held < 0 or (self.last_memory is not None and at < self.last_memory):
            return False
        self._take(at, held, oom=False)
        return True

    def kill(self, at: float, request: float) -> None:
        """Killed for want of memory. The bump of an earlier kill does not count for this one. Raises TooOld."""
        if self.last_memory is not None and at < self.last_memory - self.interval:
            raise TooOld(f"an OOM kill {self.last_memory - at:.0f} s before the last sample")
        self._take(at, needed(max(self.peak, request)), oom=True)

    def _take(self, at: float, held: float, *, oom: bool) -> None:
        self.last_memory = at if self.last_memory is None else max(self.last_memory, at)
        if self.window_end is None:
            self.window_end = at
        if at < self.window_end:
            before = max(self.peak, self.oom_peak)
            if held <= before:
                return
            self.memory.subtract(before, MEMORY_WEIGHT, self.window_end)
        else:
            self.window_end += (at - self.window_end) // self.interval * self.interval + self.interval
            self.peak = self.oom_peak = 0.0
        self.memory.add(held, MEMORY_WEIGHT, self.window_end)
        if oom:
            self.oom_peak = held
        else:
            self.peak = held

    def forgotten(self, now: float) -> bool:
        """No sample for eight intervals."""
        return self.last_cpu is not None and now - self.last_cpu >= INTERVALS * self.interval


VERSION = "v3"


class HistogramStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    reference_timestamp: str | None = None
    bucket_weights: dict[str, int] = {}
    total_weight: float = 0.0


class CheckpointStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    version: str = ""
    cpu_histogram: HistogramStatus = HistogramStatus()
    memory_histogram: HistogramStatus = HistogramStatus()
    first_sample_start: str | None = None
    last_sample_start: str | None = None
    total_samples_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownContainers:
    """What a checkpoint tells of one container. Memory: one peak a day, so no P5 or P95 of memory comes from here."""

    cpu: Histogram
    memory: Histogram
    first: int
    last: int
    samples: int


def read(status: CheckpointStatus, half_life: float = DAY) -> KnownContainers:
    """Raises Refused where the VPA would refuse it."""
    if status.version != VERSION:
        raise CheckpointRejected(f"version {status.version or 'none'}; {VERSION} is read")
    return KnownContainers(
        cpu=_histogram(status.cpu_histogram, CPU, half_life),
        memory=_histogram(status.memory_histogram, MEMORY, half_life),
        first=seconds(status.first_sample_start) or 0,
        last=seconds(status.last_sample_start) or 0,
        samples=status.total_samples_count,
    )


def _histogram(status: HistogramStatus, scale: Scale, half_life: float) -> Histogram:
    found = Histogram(scale, half_life)
    try:
        buckets = {int(bucket): weight for bucket, weight in status.bucket_weights.items()}
    except ValueError as error:
        raise CheckpointRejected(f"a bucket that is no number: {error}") from None
    found.load(status.total_weight, buckets, seconds(status.reference_timestamp))
    return found


def write(known: KnownContainers) -> CheckpointStatus:
    """What a VPA loads."""
    return CheckpointStatus(
        version=VERSION, cpu_histogram=_status(known.cpu), memory_histogram=_status(known.memory),
        first_sample_start=written(known.first), last_sample_start=written(known.last),
        total_samples_count=known.samples,
    )  # fmt: skip


def _status(histogram: Histogram) -> HistogramStatus:
    total, buckets = histogram.checkpoint()
    reference = None if histogram.reference is None else written(int(histogram.reference))
    weights = {str(bucket): weight for bucket, weight in buckets.items()}
    return HistogramStatus(reference_timestamp=reference, bucket_weights=weights, total_weight=total)


def known(cpu: DailyHistograms, memory: DailyHistograms, half_life: float = DAY) -> KnownContainers:
    """Of cpu every day's values, faded by their age; of memory the greatest of each of the last eight days."""
    return KnownContainers(
        cpu=_cpu(cpu, half_life), memory=_memory(memory, half_life), first=min(filter(None, (cpu.first, memory.first))),
        last=max(cpu.last, memory.last), samples=cpu.whole().total,
    )  # fmt: skip


def _cpu(window: DailyHistograms, half_life: float) -> Histogram:
    found = Histogram(CPU, half_life)
    for day, counts in sorted(window.by_day().items()):
        middle = min(window.last, max(window.first, int((day + 0.5) * DAY)))
        for value, count in counts.values():
            found.add(value, CPU_WEIGHT * count, middle)
    return found


def _memory(window: DailyHistograms, half_life: float) -> Histogram:
    found = Histogram(MEMORY, half_life)
    for day, counts in sorted(window.by_day().items())[-INTERVALS:]:
        found.add(counts.top, MEMORY_WEIGHT, (day + 1) * DAY)
    return found
