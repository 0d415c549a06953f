"""In which hours was something seen?

How old a history is does not follow from its first moment and its last: nobody may have looked for days in between,
or there was nothing to see. So hours are counted: one in which anything was seen counts as an hour, however often it
was seen, and one in which nothing was seen counts as none. Those of several histories are joined, in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from trimtab.sketch.cuts import cut

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
    return _of_range(times) if isinstance(times, range) else _of(times)


@lru_cache(maxsize=64)
def _of_range(times: range) -> Hours:
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
