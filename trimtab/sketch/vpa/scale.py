"""Where do the VPA's buckets begin?"""

from dataclasses import dataclass
from math import ceil, floor, log


@dataclass(frozen=True, slots=True)
class Exponential:
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
class Linear:
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


Scale = Exponential | Linear

CPU = Exponential(greatest=1000.0, first=0.01, ratio=1.05, epsilon=0.001 * 0.1)
MEMORY = Exponential(greatest=1e12, first=1e7, ratio=1.05, epsilon=0.001 * 0.1)
