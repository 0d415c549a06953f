"""When was that? Kubernetes' times as whole seconds.

Is it time? Windows of the week in somebody's time zone.

How long is "1h30m"?
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

Seconds = int
"""Since 1970-01-01T00:00:00Z."""
_YEAR_10000 = 253_402_300_800


@lru_cache(maxsize=65536)
def seconds(written: str | None) -> Seconds | None:
    """RFC 3339 as whole seconds, fractions cut; None where nothing, or nothing readable, is written."""
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def written(moment: Seconds) -> str:
    """The other way, as the API server writes it; the bare seconds where no calendar has that moment."""
    if not 0 <= moment < _YEAR_10000:
        return f"{moment} s since 1970"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyWindow:
    """From `start` to `end` (minutes of the day) on these days; `end` not after `start` means the next day."""

    days: tuple[str, ...] = DAYS
    start: int
    end: int
    zone: str = "UTC"
    """IANA name; the clock on the wall there counts, summer time included."""

    def open(self, now: Seconds) -> bool:
        local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return DAYS[local.weekday()] in self.days and self.start <= minute < self.end
        yesterday = DAYS[(local - timedelta(days=1)).weekday()]
        return (DAYS[local.weekday()] in self.days and minute >= self.start) or (
            yesterday in self.days and minute < self.end
        )


def open_now(windows: Iterable[WeeklyWindow], now: Seconds) -> bool:
    """Any of them; no windows at all is always."""
    windows = tuple(windows)
    return not windows or any(window.open(now) for window in windows)


_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_ALL = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|us|µs|ns|m|s))+")
_SECONDS = {
    "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip


def seconds_of(text: str) -> int | None:
    """A Go duration in whole seconds, rounded up; None when it is none (or negative)."""
    if text == "0":
        return 0
    if not _ALL.fullmatch(text.strip()):
        return None
    total = sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return -(-total.numerator // total.denominator)
