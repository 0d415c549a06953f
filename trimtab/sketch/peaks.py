"""What is the most that was held, interval by interval?

Memory does not come back when it is asked to: what counts is the peak. Of every pod the greatest value of each six
hours goes into the sketch, so four values a day, and every percentile of memory is one of *peaks*. A container killed
for want of memory wanted more than it was seen to hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from trimtab.sketch.cuts import cut

INTERVAL = 6 * 3600
OOM_SHARE = 1.2
OOM_LEAST = 100 << 20
"""A killed container is given a fifth more than it had, at least 100 MiB (as the VPA does, so that numbers agree)."""

Peak = tuple[int, float]
"""(second at which its interval ends, bytes)."""


def wanted(held: float, limit: float) -> float:
    """What a killed container would have needed: of what it held or was allowed, the larger, and a fifth more."""
    had = max(held, limit)
    return max(had * OOM_SHARE, had + OOM_LEAST)


def of_series(times: Sequence[int], values: Sequence[float], interval: int = INTERVAL) -> dict[int, float]:
    """Interval number → its peak, of one pod's series; times ascend."""
    return {number: max(values[start:end]) for number, start, end in cut(times, interval)}


@dataclass(slots=True)
class Peaks:
    """Running intervals of many pods."""

    interval: int = INTERVAL
    running: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pod → (interval number, its peak so far)."""

    def see(self, pod: str, at: int, value: float) -> Peak | None:
        """A value; the peak of the pod's interval before when this one begins another. What comes late is not lost:
        it counts for the running interval."""
        number = at // self.interval
        known = self.running.get(pod)
        if known is not None and number <= known[0]:
            self.running[pod] = (known[0], max(known[1], value))
            return None
        self.running[pod] = (number, value)
        return self._closed(known) if known is not None else None

    def kill(self, pod: str, at: int, limit: float, most: float = inf) -> Peak | None:
        """It was killed for want of memory at this limit (or request, where there is none). A limit above `most` tells
        nothing, and it did not want more than that."""
        known = self.running.get(pod)
        held = known[1] if known is not None and known[0] == at // self.interval else 0.0
        return self.see(pod, at, min(most, wanted(held, limit if limit <= most else 0.0)))

    def gone(self, living: Iterable[str]) -> Iterator[Peak]:
        """The last peaks of pods that live no more; they are forgotten."""
        for pod in self.running.keys() - set(living):
            yield self._closed(self.running.pop(pod))

    def _closed(self, known: tuple[int, float]) -> Peak:
        return known[0] * self.interval, known[1]
