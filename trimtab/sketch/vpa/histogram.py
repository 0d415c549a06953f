"""The VPA's histogram: weights that fade by growing what comes later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.sketch.vpa.scale import Scale

DAY = 86400.0
MOST_HALF_LIVES = 100
"""Beyond that the reference moves, and all weights shrink by as much."""
_YEAR_ONE = 62_135_596_800
"""Seconds from the year 1, where Go's times begin, to 1970."""
FULL = 10_000
"""What the heaviest bucket weighs in a checkpoint."""


class Refused(ValueError):
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
            raise Refused(f"bucket {wrong[0]} is not one of {self.scale.count}")
        if total < 0:
            raise Refused(f"a negative total weight: {total}")
        stored = sum(buckets.values())
        factor = total / stored if stored else 0.0
        self.weights = {bucket: weight * factor for bucket, weight in buckets.items()}
        self.total = total if stored else 0.0
        self.reference = reference


def _rounded(at: float, to: float) -> float:
    """The nearest multiple, counted from the year 1; a half rounds up (Go's Time.Round)."""
    since = at + _YEAR_ONE
    return since - since % to + (to if since % to * 2 >= to else 0.0) - _YEAR_ONE
