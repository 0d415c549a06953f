"""Where does a series pass from one day to the next, or from one hour, one interval of peaks?

In which hours was something seen?

How old a history is does not follow from its first moment and its last: nobody may have looked for days in between,
or there was nothing to see. So hours are counted: one in which anything was seen counts as an hour, however often it
was seen, and one in which nothing was seen counts as none. Those of several histories are joined, in any order.

What is the most that was held, interval by interval?

Memory does not come back when it is asked to: what counts is the peak. Of every pod the greatest value of each six
hours goes into the sketch, so four values a day, and every percentile of memory is one of *peaks*. What a container
needs that was killed for want of memory stands apart (see `oom_kills`): a kill is no peak.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

Piece = tuple[int, int, int]
"""The number of the day (hour, interval), where in the series it begins, and where the next does."""


def cut(times: Sequence[int], length: int) -> Sequence[Piece]:
    """Each `length` seconds with a moment in them; times ascend. Most series of an answer have the same moments, as a
    range."""
    return _of_range(times, length) if isinstance(times, range) else tuple(_pieces(times, length))


@lru_cache(maxsize=256)
def _of_range(times: range, length: int) -> Sequence[Piece]:
    return tuple(_pieces(times, length))


def _pieces(times: Sequence[int], length: int) -> Iterator[Piece]:
    start = 0
    while start < len(times):
        number = int(times[start]) // length
        end = bisect_left(times, (number + 1) * length, start)
        yield number, start, end
        start = end


HOUR = 3600
A_DAY = 24
DAY = A_DAY * HOUR
WHOLE = (1 << A_DAY) - 1
"""Every hour of a day."""

Hours = Mapping[int, int]
"""Day since 1970 → a bit for each of its hours in which something was seen, the lowest for the first."""


def within(first: int, last: int) -> int:
    """The hours of one day from this second to that."""
    return (2 << last % DAY // HOUR) - (1 << first % DAY // HOUR)


def during(first: int, last: int) -> Hours:
    """All from this second to that."""
    days = range(first // DAY, last // DAY + 1)
    return {day: within(max(first, day * DAY), min(last, day * DAY + DAY - 1)) for day in days}


def of(times: Sequence[int]) -> Hours:
    """Of moments that ascend. Most series of an answer have the same, as a range."""
    return _hours_of_range(times) if isinstance(times, range) else _of(times)


@lru_cache(maxsize=64)
def _hours_of_range(times: range) -> Hours:
    return _of(times)


def _of(times: Sequence[int]) -> Hours:
    found: dict[int, int] = {}
    for number, _, _ in cut(times, HOUR):
        day, hour = divmod(number, A_DAY)
        found[day] = found.get(day, 0) | 1 << hour
    return found


def join(found: dict[int, int], more: Hours) -> None:
    """These as well."""
    for day, hours in more.items():
        found[day] = found.get(day, 0) | hours


def ring(hours: Hours, newest: int, days: int) -> int:
    """Of the last days one number: the newest day's hours are its lowest bits."""
    return sum(hours[day] << A_DAY * (newest - day) for day in hours if 0 <= newest - day < days)


def unring(number: int, newest: int) -> Hours:
    """The other way."""
    parts = _parts(number)
    return {newest - ago: part for ago, part in enumerate(parts) if part}


def _parts(number: int) -> Iterable[int]:
    while number:
        yield number & WHOLE
        number >>= A_DAY


INTERVAL = 6 * 3600

Peak = tuple[int, float]
"""(second at which its interval ends, bytes)."""


def of_series(times: Sequence[int], values: Sequence[float], interval: int = INTERVAL) -> dict[int, float]:
    """Interval number → its peak, of one pod's series; times ascend."""
    return {number: max(values[start:end]) for number, start, end in cut(times, interval)}


@dataclass(slots=True)
class MemoryPeaks:
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

    def gone(self, living: Iterable[str]) -> Iterator[Peak]:
        """The last peaks of pods that live no more; they are forgotten."""
        for pod in self.running.keys() - set(living):
            yield self._closed(self.running.pop(pod))

    def _closed(self, known: tuple[int, float]) -> Peak:
        return known[0] * self.interval, known[1]
