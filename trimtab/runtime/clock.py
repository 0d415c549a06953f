"""The one place where the time is looked up; everybody else is given `now`."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Something that tells the time, aware and in UTC. Tests pass one that stands still."""


def utc() -> datetime:
    """The wall clock, aware, in UTC: for what is compared with times other machines wrote."""
    return datetime.now(UTC)


def elapsed() -> float:
    """Seconds from some fixed moment, never backwards: for durations and deadlines."""
    return time.monotonic()
