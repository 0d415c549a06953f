"""Divides series by day, hour or interval, and keeps observed hours and memory peaks.

The length of a history cannot be computed from its first and last moment, because there may have been no poll, or
nothing to measure, for days in between. So observed hours are counted: an hour with any value counts in full, and an
hour without one does not count. The hours of several histories can be merged in any order.

Memory that was allocated is seldom returned, so the peaks of memory usage count. The largest value of each pod in each
six hours is added to the histogram, four values a day, so every percentile of memory is one of *peaks*. The floor after
OOM kills is kept apart (see `oom_kills`), because a kill is not a peak.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

TimeSlice = tuple[int, int, int]
"""(number of the day, hour or interval; index in the series where it begins; index where the next one begins)."""


def slice_by_length(times: Sequence[int], length: int) -> Sequence[TimeSlice]:
    """Returns a slice for each period of `length` seconds that has a value; times must ascend. If `times` is a range,
    the slices are cached, because most series of a response have the same range of times."""
    return _slices_of_range(times, length) if isinstance(times, range) else tuple(_iter_slices(times, length))


@lru_cache(maxsize=256)
def _slices_of_range(times: range, length: int) -> Sequence[TimeSlice]:
    return tuple(_iter_slices(times, length))


def _iter_slices(times: Sequence[int], length: int) -> Iterator[TimeSlice]:
    start = 0
    while start < len(times):
        number = int(times[start]) // length
        end = bisect_left(times, (number + 1) * length, start)
        yield number, start, end
        start = end


HOUR = 3600
HOURS_PER_DAY = 24
DAY = HOURS_PER_DAY * HOUR
ALL_HOURS = (1 << HOURS_PER_DAY) - 1
"""All bits for the hours of a day."""

Hours = Mapping[int, int]
"""Day since 1970 → one bit for each of its hours with a value; the lowest bit is the first hour."""


def hours_within_day(first: int, last: int) -> int:
    """Returns the hours of one day between two times, one bit each."""
    return (2 << last % DAY // HOUR) - (1 << first % DAY // HOUR)


def hours_between(first: int, last: int) -> Hours:
    """Returns all hours between two times."""
    days = range(first // DAY, last // DAY + 1)
    return {day: hours_within_day(max(first, day * DAY), min(last, day * DAY + DAY - 1)) for day in days}


def hours_of_times(times: Sequence[int]) -> Hours:
    """Returns the hours in which the ascending `times` are. If `times` is a range, the hours are cached, because most
    series of a response have the same range of times."""
    return _hours_of_range(times) if isinstance(times, range) else _hours_of_times(times)


@lru_cache(maxsize=64)
def _hours_of_range(times: range) -> Hours:
    return _hours_of_times(times)


def _hours_of_times(times: Sequence[int]) -> Hours:
    hours_by_day: dict[int, int] = {}
    for number, _, _ in slice_by_length(times, HOUR):
        day, hour = divmod(number, HOURS_PER_DAY)
        hours_by_day[day] = hours_by_day.get(day, 0) | 1 << hour
    return hours_by_day


def add_hours(target: dict[int, int], more: Hours) -> None:
    """Adds hours to `target`."""
    for day, hours in more.items():
        target[day] = target.get(day, 0) | hours


def encode_hours(hours: Hours, newest: int, days: int) -> int:
    """Returns the hours of the last days as one number, in which the lowest bits are the newest day's hours."""
    return sum(hours[day] << HOURS_PER_DAY * (newest - day) for day in hours if 0 <= newest - day < days)


def decode_hours(number: int, newest: int) -> Hours:
    """Returns the hours from the number that `encode_hours` returned."""
    parts = _split_days(number)
    return {newest - ago: part for ago, part in enumerate(parts) if part}


def _split_days(number: int) -> Iterable[int]:
    while number:
        yield number & ALL_HOURS
        number >>= HOURS_PER_DAY


PEAK_INTERVAL_SECONDS = 6 * 3600

Peak = tuple[int, float]
"""(time at which the interval begins, peak in bytes)."""


def peaks_of_series(
    times: Sequence[int], values: Sequence[float], interval: int = PEAK_INTERVAL_SECONDS
) -> dict[int, float]:
    """Returns interval number → the peak of one pod's series in it; times must ascend."""
    return {number: max(values[start:end]) for number, start, end in slice_by_length(times, interval)}


@dataclass(slots=True)
class MemoryPeaks:
    """The memory interval that is still open for each of many pods, with the peak so far."""

    interval: int = PEAK_INTERVAL_SECONDS
    running: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pod → (interval number, its peak so far)."""

    def add_value(self, pod: str, second: int, value: float) -> Peak | None:
        """Adds a value. If it begins a new interval, returns the peak of the pod's previous interval, otherwise None. A
        late value counts for the open interval."""
        number = second // self.interval
        current = self.running.get(pod)
        if current is not None and number <= current[0]:
            self.running[pod] = (current[0], max(current[1], value))
            return None
        self.running[pod] = (number, value)
        return (current[0] * self.interval, current[1]) if current is not None else None
