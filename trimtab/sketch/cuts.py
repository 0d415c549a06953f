"""Where does a series pass from one day to the next, or from one hour, one interval of peaks?"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
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
