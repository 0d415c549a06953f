"""The only module that reads the clock; all other code gets `now` as a parameter."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""A function that returns the current time, with the time zone UTC. Tests pass one that returns a fixed time."""


# Linux' clock that continues while the machine is suspended; None on a kernel without it.
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def utc_now() -> datetime:
    """Returns the wall-clock time, with the time zone UTC, for comparison with times that other machines have
    written."""
    return datetime.now(UTC)


def elapsed_seconds() -> float:
    """Returns the seconds since some fixed moment, for durations and deadlines. The value never decreases.

    The time for which a machine was suspended is included, if its kernel counts it (Linux): a leader that resumes after
    an hour must not believe that it renewed its Lease a second ago.
    """
    # CLOCK_MONOTONIC stops during a suspension on Linux, CLOCK_BOOTTIME does not (clock_gettime(2)).
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)
