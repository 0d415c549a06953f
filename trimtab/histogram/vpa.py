"""The histogram, the container state and the checkpoints of the Vertical Pod Autoscaler (VPA 1.6), reproduced exactly.

Buckets and weights are those of recommender/util: old samples fade because newer samples get larger weights. A
container's state is that of recommender/model: cpu values, memory as one peak a day, and an increase for every OOM
kill. The status of a VerticalPodAutoscalerCheckpoint (version v3) is decoded and encoded, and Trimtab's windows are
converted into the history that a VPA would have, in order to give it to a new VPA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor, log
from typing import Protocol

import msgspec

from trimtab.cluster.timestamps import format_timestamp, parse_timestamp
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.oom_kills import bytes_after_kill


@dataclass(frozen=True, slots=True)
class ExponentialBuckets:
    """Buckets with growing widths: each is `ratio` times as wide as the bucket before (exponentialHistogramOptions)."""

    max_value: float
    first: float
    ratio: float
    epsilon: float
    """A bucket with a smaller weight counts as empty."""

    @property
    def bucket_count(self) -> int:
        return ceil(log(self.max_value * (self.ratio - 1) / self.first + 1) / log(self.ratio)) + 1

    def bucket_start(self, bucket: int) -> float:
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1) if bucket else 0.0

    def find_bucket(self, value: float) -> int:
        if value < self.first:
            return 0
        return min(self.bucket_count - 1, floor(log(value * (self.ratio - 1) / self.first + 1) / log(self.ratio)))


@dataclass(frozen=True, slots=True)
class LinearBuckets:
    """Buckets of equal width (linearHistogramOptions)."""

    max_value: float
    width: float
    epsilon: float
    """A bucket with a smaller weight counts as empty."""

    @property
    def bucket_count(self) -> int:
        return ceil(self.max_value / self.width) + 1

    def bucket_start(self, bucket: int) -> float:
        return bucket * self.width

    def find_bucket(self, value: float) -> int:
        return max(0, min(self.bucket_count - 1, floor(value / self.width)))


Scale = ExponentialBuckets | LinearBuckets

CPU_SCALE = ExponentialBuckets(max_value=1000.0, first=0.01, ratio=1.05, epsilon=0.001 * 0.1)
MEMORY_SCALE = ExponentialBuckets(max_value=1e12, first=1e7, ratio=1.05, epsilon=0.001 * 0.1)


DAY = 86400.0
MAX_DECAY_EXPONENT = 100
"""If a sample is more than this many half-lives later than the reference time, the reference is moved to the sample and
all weights shrink accordingly (maxDecayExponent)."""
_YEAR_ONE = 62_135_596_800
"""The seconds from the year 1, where Go's times begin, to 1970."""
MAX_CHECKPOINT_WEIGHT = 10_000
"""The weight of the heaviest bucket in a checkpoint (MaxCheckpointWeight)."""


class CheckpointRejected(ValueError):
    """Raised for a checkpoint that the VPA would reject too."""


@dataclass(slots=True)
class Histogram:
    """A histogram with decaying weights. `half_life` is in seconds; None means that weights do not decay."""

    scale: Scale
    half_life: float | None = None
    weights: dict[int, float] = field(default_factory=dict)
    total: float = 0.0
    reference: float | None = None
    """The time at which a new sample gets its weight unchanged; later samples get larger weights. None before the first
    sample."""

    def add_sample(self, value: float, weight: float, timestamp: float = 0.0) -> None:
        self._add_weight(value, weight * self._decay_factor(timestamp))

    def subtract_sample(self, value: float, weight: float, timestamp: float = 0.0) -> None:
        """Subtracts a sample. A remaining weight below epsilon counts as zero."""
        self._add_weight(value, -weight * self._decay_factor(timestamp))

    def _add_weight(self, value: float, weight: float) -> None:
        bucket = self.scale.find_bucket(value)
        self._set_weight(bucket, self.weights.get(bucket, 0.0) + weight)
        self.total = self._zero_below_epsilon(self.total + weight)

    def _set_weight(self, bucket: int, weight: float) -> None:
        self.weights[bucket] = self._zero_below_epsilon(weight) if weight < self.scale.epsilon else weight

    def _zero_below_epsilon(self, weight: float) -> float:
        return 0.0 if weight < self.scale.epsilon else weight

    @property
    def is_empty(self) -> bool:
        return not self._used_buckets()

    def _used_buckets(self) -> list[int]:
        """Returns the buckets that are not empty, from the lowest."""
        return sorted(bucket for bucket, weight in self.weights.items() if weight >= self.scale.epsilon)

    def percentile(self, share: float) -> float:
        """Returns the upper end of the first bucket at which the buckets so far have at least this share of the weight;
        0 if the histogram is empty."""
        buckets = self._used_buckets()
        if not buckets:
            return 0.0
        threshold, weight_so_far, bucket = share * self.total, 0.0, buckets[-1]
        for bucket in buckets:
            weight_so_far += self.weights[bucket]
            if weight_so_far >= threshold:
                break
        return self.scale.bucket_start(bucket + 1 if bucket < self.scale.bucket_count - 1 else bucket)

    def merge(self, other: Histogram) -> None:
        """Adds the weights of another histogram. Before that, the older of the two reference times is moved to the
        newer one."""
        # Weights are relative to a reference: both histograms need the same one before they are added.
        factor = self._align(other)
        for bucket, weight in other.weights.items():
            self._set_weight(bucket, self.weights.get(bucket, 0.0) + weight * factor)
        self.total += other.total * factor

    def _align(self, other: Histogram) -> float:
        """Makes the reference times of the two histograms equal, and returns the factor for the other's weights."""
        if self.half_life is None or other.reference is None:
            return 1.0
        if self.reference is None or self.reference < other.reference:
            self._move_reference(other.reference)
            return 1.0
        return float(2.0 ** ((other.reference - self.reference) / self.half_life))

    def _decay_factor(self, timestamp: float) -> float:
        if self.half_life is None:
            return 1.0
        if self.reference is None or timestamp > self.reference + self.half_life * MAX_DECAY_EXPONENT:
            # The nearest multiple of `unit`, counted from the year 1; a half is rounded up (Go's Time.Round).
            since = timestamp + _YEAR_ONE
            self._move_reference(
                since
                - since % self.half_life
                + (self.half_life if since % self.half_life * 2 >= self.half_life else 0.0)
                - _YEAR_ONE
            )
        assert self.reference is not None
        return float(2.0 ** ((timestamp - self.reference) / self.half_life))

    def _move_reference(self, reference: float) -> None:
        if self.reference is not None and self.half_life is not None:
            factor = 2.0 ** ((self.reference - reference) / self.half_life)
            self.weights = {bucket: weight * factor for bucket, weight in self.weights.items()}
            self.total *= factor
        self.reference = reference

    def to_checkpoint(self) -> tuple[float, dict[int, int]]:
        """Returns the total weight, and the buckets' weights scaled so that the heaviest is 10000; buckets whose weight
        rounds to 0 are left out."""
        buckets = self._used_buckets()
        if not buckets:
            return 0.0, {}
        ratio = MAX_CHECKPOINT_WEIGHT / max(self.weights[bucket] for bucket in buckets)
        scaled = {bucket: int(self.weights[bucket] * ratio + 0.5) for bucket in buckets}
        return self.total, {bucket: weight for bucket, weight in scaled.items() if weight}

    def load_checkpoint(self, total: float, buckets: Mapping[int, int], reference: float | None = None) -> None:
        """Replaces the content by that of a checkpoint. If it is not valid, raises CheckpointRejected and changes
        nothing."""
        unknown_buckets = [bucket for bucket in buckets if not 0 <= bucket < self.scale.bucket_count]
        if unknown_buckets:
            raise CheckpointRejected(f"bucket {unknown_buckets[0]} is not one of the {self.scale.bucket_count} buckets")
        if total < 0:
            raise CheckpointRejected(f"the total weight {total} is negative")
        stored_weight = sum(buckets.values())
        factor = total / stored_weight if stored_weight else 0.0
        self.weights = {bucket: weight * factor for bucket, weight in buckets.items()}
        self.total = total if stored_weight else 0.0
        self.reference = reference


CPU_WEIGHT = 0.1
MEMORY_WEIGHT = 1.0
MEMORY_INTERVAL_COUNT = 8
"""The number of memory intervals in a history. A container without a sample for that long expires
(MemoryAggregationIntervalCount)."""


class TooOld(ValueError):
    """Raised for an OOM kill from before the last interval."""


class Samples(Protocol):
    """An object to which samples can be added."""

    def add_sample(self, value: float, weight: float, timestamp: float = 0.0) -> None: ...

    def subtract_sample(self, value: float, weight: float, timestamp: float = 0.0) -> None: ...


@dataclass(slots=True)
class AggregateContainerState:
    """The VPA's state of one container. Times are seconds, cpu is in cores, memory in bytes."""

    cpu: Samples = field(default_factory=lambda: Histogram(CPU_SCALE, DAY))
    memory: Samples = field(default_factory=lambda: Histogram(MEMORY_SCALE, DAY))
    interval: float = DAY
    last_cpu: float | None = None
    last_memory: float | None = None
    window_end: float | None = None
    peak: float = 0.0
    oom_peak: float = 0.0

    def add_cpu_sample(self, timestamp: float, cores: float) -> bool:
        """Adds a cpu sample. Returns False if it is not newer than the last one, or is negative."""
        if cores < 0 or (self.last_cpu is not None and timestamp <= self.last_cpu):
            return False
        self.last_cpu = timestamp
        self.cpu.add_sample(cores, CPU_WEIGHT, timestamp)
        return True

    def add_memory_sample(self, timestamp: float, used_bytes: float) -> bool:
        """Adds a memory sample. Returns False if it is older than the last one, or is negative."""
        if used_bytes < 0 or (self.last_memory is not None and timestamp < self.last_memory):
            return False
        self._add_memory(timestamp, used_bytes, oom=False)
        return True

    def record_oom(self, timestamp: float, request: float) -> None:
        """Adds an OOM kill, as an increased memory sample. The increase starts from the request or the measured peak,
        never from the increase for an earlier kill. Raises TooOld."""
        if self.last_memory is not None and timestamp < self.last_memory - self.interval:
            raise TooOld(f"the OOM kill is {self.last_memory - timestamp:.0f} s before the last sample")
        self._add_memory(timestamp, bytes_after_kill(max(self.peak, request)), oom=True)

    def _add_memory(self, timestamp: float, used_bytes: float, *, oom: bool) -> None:
        self.last_memory = timestamp if self.last_memory is None else max(self.last_memory, timestamp)
        if self.window_end is None:
            self.window_end = timestamp
        if timestamp < self.window_end:
            before = max(self.peak, self.oom_peak)
            # An interval whose peak is still 0 stays at 0: the VPA replaces only a peak that is not (same function).
            if used_bytes <= before or not before:
                return
            # The interval's sample is replaced by a larger one (VPA: recommender/model/container.go, addMemorySample).
            self.memory.subtract_sample(before, MEMORY_WEIGHT, self.window_end)
        else:
            self.window_end += (timestamp - self.window_end) // self.interval * self.interval + self.interval
            self.peak = self.oom_peak = 0.0
        self.memory.add_sample(used_bytes, MEMORY_WEIGHT, self.window_end)
        if oom:
            self.oom_peak = used_bytes
        else:
            self.peak = used_bytes


CHECKPOINT_VERSION = "v3"


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
class CheckpointHistory:
    """The history of one container in a checkpoint. Memory has one peak a day, so neither P5 nor P95 of memory can be
    computed."""

    cpu: Histogram
    memory: Histogram
    first: int
    last: int
    samples: int


def decode_checkpoint(status: CheckpointStatus, half_life: float = DAY) -> CheckpointHistory:
    """Returns the history in a checkpoint's status. Raises CheckpointRejected if the VPA would reject it."""
    if status.version != CHECKPOINT_VERSION:
        raise CheckpointRejected(
            f"the checkpoint has the version {status.version or 'none'}, but Trimtab supports only {CHECKPOINT_VERSION}"
        )
    return CheckpointHistory(
        cpu=_decode_histogram(status.cpu_histogram, CPU_SCALE, half_life),
        memory=_decode_histogram(status.memory_histogram, MEMORY_SCALE, half_life),
        first=parse_timestamp(status.first_sample_start) or 0,
        last=parse_timestamp(status.last_sample_start) or 0,
        samples=status.total_samples_count,
    )


def _decode_histogram(status: HistogramStatus, scale: Scale, half_life: float) -> Histogram:
    histogram = Histogram(scale, half_life)
    try:
        buckets = {int(bucket): weight for bucket, weight in status.bucket_weights.items()}
    except ValueError as error:
        raise CheckpointRejected(f"the number of a bucket in the histogram is not a number: {error}") from None
    histogram.load_checkpoint(status.total_weight, buckets, parse_timestamp(status.reference_timestamp))
    return histogram


def encode_checkpoint(history: CheckpointHistory) -> CheckpointStatus:
    """Returns the status of a checkpoint that a VPA can load, for a history."""
    return CheckpointStatus(
        version=CHECKPOINT_VERSION,
        cpu_histogram=_encode_histogram(history.cpu),
        memory_histogram=_encode_histogram(history.memory),
        first_sample_start=format_timestamp(history.first),
        last_sample_start=format_timestamp(history.last),
        total_samples_count=history.samples,
    )


def _encode_histogram(histogram: Histogram) -> HistogramStatus:
    total, buckets = histogram.to_checkpoint()
    reference = None if histogram.reference is None else format_timestamp(int(histogram.reference))
    weights = {str(bucket): weight for bucket, weight in buckets.items()}
    return HistogramStatus(reference_timestamp=reference, bucket_weights=weights, total_weight=total)


def history_of_windows(cpu: DailyHistograms, memory: DailyHistograms, half_life: float = DAY) -> CheckpointHistory:
    """Returns the history that a VPA would have, if it had observed the usage in two windows.

    The history has all cpu values, with weights that decay with the age of their day, and the largest memory peak of
    each of the last eight days."""
    histogram = Histogram(MEMORY_SCALE, half_life)
    for day, counts in sorted(memory.histograms_by_day().items())[-MEMORY_INTERVAL_COUNT:]:
        histogram.add_sample(counts.top, MEMORY_WEIGHT, (day + 1) * DAY)
    return CheckpointHistory(
        cpu=_cpu_histogram(cpu, half_life),
        memory=histogram,
        first=min(filter(None, (cpu.first, memory.first))),
        last=max(cpu.last, memory.last),
        samples=cpu.merge_days().total_count,
    )


def _cpu_histogram(histograms: DailyHistograms, half_life: float) -> Histogram:
    histogram = Histogram(CPU_SCALE, half_life)
    for day, counts in sorted(histograms.histograms_by_day().items()):
        # The middle of the day stands for all of its values, limited to the observed time.
        middle = min(histograms.last, max(histograms.first, int((day + 0.5) * DAY)))
        for value, count in counts.iter_buckets():
            histogram.add_sample(value, CPU_WEIGHT * count, middle)
    return histogram
