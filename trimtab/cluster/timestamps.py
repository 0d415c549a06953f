"""Timestamps of Kubernetes as whole seconds, weekly windows in a time zone, and durations in Go's format."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

Seconds = int
"""Seconds since 1970-01-01T00:00:00Z."""
_YEAR_10000 = 253_402_300_800


# Many objects share a timestamp, and it is parsed again at every event of a watch.
@lru_cache(maxsize=65536)
def parse_timestamp(text: str | None) -> Seconds | None:
    """Returns the whole seconds of an RFC 3339 timestamp; fractions are cut. None if the text is absent or not
    valid."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    # A timestamp without a zone is UTC, as in every timestamp of the API server.
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


def format_timestamp(timestamp: Seconds) -> str:
    """Returns the timestamp as the API server writes it, or, if no calendar has that time, a text with the number of
    seconds."""
    if not 0 <= timestamp < _YEAR_10000:
        return f"{timestamp} s since 1970"
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_age(seconds: int) -> str:
    """Returns a duration as text in its largest whole unit, such as "45 s", "12 min", "3 h" and "9 d"."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyWindow:
    """A weekly window: it is open from `start` to `end`, in minutes of the day, on each of `days`. If `end` is not
    after `start`, the window ends on the next day."""

    days: tuple[str, ...] = DAYS
    start: int
    end: int
    zone: str = "UTC"
    """The IANA name of the time zone whose local time, with daylight saving time, opens and closes the window."""

    def is_open(self, now: Seconds) -> bool:
        """Returns whether the window is open at this time."""
        local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return DAYS[local.weekday()] in self.days and self.start <= minute < self.end
        # The window crosses midnight: after it, the day on which the window began counts.
        yesterday = DAYS[(local - timedelta(days=1)).weekday()]
        return (DAYS[local.weekday()] in self.days and minute >= self.start) or (
            yesterday in self.days and minute < self.end
        )


def is_any_open(windows: Iterable[WeeklyWindow], now: Seconds) -> bool:
    """Returns whether any of the windows is open now. If there are no windows, returns True."""
    windows = tuple(windows)
    return not windows or any(window.is_open(now) for window in windows)


_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|us|µs|ns|m|s))+")
_SECONDS_PER_UNIT = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}


def parse_duration(text: str) -> int | None:
    """Returns a Go duration in whole seconds, rounded up, or None if the text is not a duration or is negative."""
    if text == "0":
        return 0
    if not _DURATION.fullmatch(text.strip()):
        return None
    # Fractions are exact: 0.1s is no float.
    total = sum(
        (Fraction(number) * _SECONDS_PER_UNIT[unit] for number, unit in _DURATION_PART.findall(text)), Fraction(0)
    )
    return -(-total.numerator // total.denominator)
