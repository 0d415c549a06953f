"""Draws that follow from a seed alone, on every machine and with every version of Python."""

from dataclasses import dataclass
from math import log
from zlib import crc32

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
"""The increment of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""


@dataclass(slots=True)
class Dice:
    """Draws numbers by SplitMix64; `state` is the seed, and changes with each draw."""

    state: int

    @classmethod
    def for_purpose(cls, seed: int, purpose: str) -> "Dice":
        """Returns dice of which the draws do not depend on how often other dice of the seed were thrown."""
        return cls((seed << 32) ^ crc32(purpose.encode()))

    def draw_share(self) -> float:
        """Returns a number from 0 up to, and without, 1."""
        self.state = (self.state + _STEP) & _MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)

    def draw_between(self, low: int, high: int) -> int:
        """Returns a whole number from `low` to `high`, both included."""
        return low + int(self.draw_share() * (high - low + 1))

    def draw_waiting_time(self, mean: float) -> float:
        """Returns a time of an exponential distribution with this mean."""
        return -mean * log(1.0 - self.draw_share())

    def draw_index(self, count: int) -> int:
        """Returns a whole number from 0 up to, and without, `count`."""
        return int(self.draw_share() * count)
