"""A VerticalPodAutoscalerCheckpoint's status as a container's histograms, and back (version v3)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from trimtab.cluster.moment import seconds, written
from trimtab.sketch.vpa.histogram import DAY, Histogram, Refused
from trimtab.sketch.vpa.scale import CPU, MEMORY, Scale

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
class Known:
    """What a checkpoint tells of one container. Memory: one peak a day, so no P5 or P95 of memory comes from here."""

    cpu: Histogram
    memory: Histogram
    first: int
    last: int
    samples: int


def read(status: CheckpointStatus, half_life: float = DAY) -> Known:
    """Raises Refused where the VPA would refuse it."""
    if status.version != VERSION:
        raise Refused(f"version {status.version or 'none'}; {VERSION} is read")
    return Known(
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
        raise Refused(f"a bucket that is no number: {error}") from None
    found.load(status.total_weight, buckets, seconds(status.reference_timestamp))
    return found


def write(known: Known) -> CheckpointStatus:
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
