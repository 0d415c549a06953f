"""The only place that reads the clock; everything else gets `now` as a parameter."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the current time, aware and in UTC. Tests pass a fixed time."""


# Linux' clock that continues while the machine is suspended; None on a kernel without it.
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def utc_now() -> datetime:
    """Returns the wall-clock time, aware, in UTC: for comparison with times that other machines wrote."""
    return datetime.now(UTC)


def elapsed_seconds() -> float:
    """Returns seconds since a fixed moment, never decreasing: for durations and deadlines.

    The time for which a machine was suspended counts, if its kernel counts it (Linux): a leader that resumes after an
    hour must not believe that it renewed its Lease a second ago.
    """
    # CLOCK_MONOTONIC stops during a suspension on Linux, CLOCK_BOOTTIME does not (clock_gettime(2)).
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)
