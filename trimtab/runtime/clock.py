"""The one place where the time is looked up; everybody else is given `now`."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Something that tells the time, aware and in UTC. Tests pass one that stands still."""


_COUNTS_SUSPENSION: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""The clock of Linux that goes on while the machine is suspended; None on a kernel without it."""


def utc() -> datetime:
    """The wall clock, aware, in UTC: for what is compared with times other machines wrote."""
    return datetime.now(UTC)


def elapsed() -> float:
    """Seconds from some fixed moment, never backwards: for durations and deadlines.

    The time in which a machine was suspended counts, where its kernel counts it (Linux): a leader that wakes up after
    an hour must not believe that its Lease was renewed a second ago.
    """
    return time.monotonic() if _COUNTS_SUSPENSION is None else time.clock_gettime(_COUNTS_SUSPENSION)
