"""What did one container of one pod use, moment by moment?

Sources repeat themselves (two scrapers, one pod), go backwards (a clock was set), count from zero again (a restart)
and say nothing for a while. What leaves this file ascends in time, once per moment, and has no invented values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

MOST_GAP = 900
"""Seconds between two readings of a counter beyond which its rate says nothing of any moment."""
SKEW = 300
"""Seconds a sample may be ahead of us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Cores or bytes at seconds since 1970, ascending."""

    namespace: str
    pod: str
    container: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]
    asked: int | None = None
    """From when on the source was asked; None where that is not known."""
    left_out: int = 0
    """Values that are no number, which the source told as well."""
    workload: str = ""
    """Kind/name where the source tells it itself."""


def clean(samples: Iterable[tuple[int, float]], now: int | None = None) -> tuple[list[int], list[float]]:
    """In order of time; of several at one moment the greatest (two scrapers see one pod); none from the future, none
    that is no amount."""
    found: dict[int, float] = {}
    for at, value in samples:
        if isfinite(value) and value >= 0 and (now is None or at <= now + SKEW):
            found[at] = max(value, found.get(at, 0.0))
    times = sorted(found)
    return times, [found[at] for at in times]


def rate(times: Sequence[int], counted: Sequence[float]) -> tuple[list[int], list[float]]:
    """Per second between readings of a counter, at the later one. A counter that went down began at 0 again; over a
    gap nothing is said."""
    at, values = [], []
    for n in range(1, len(times)):
        apart = times[n] - times[n - 1]
        if 0 < apart <= MOST_GAP:
            more = counted[n] - counted[n - 1] if counted[n] >= counted[n - 1] else counted[n]
            at.append(times[n])
            values.append(more / apart)
    return at, values
