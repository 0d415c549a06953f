"""Is it time? Windows of the week in somebody's time zone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from trimtab.cluster.moment import Seconds

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
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


def open_now(windows: Iterable[Window], now: Seconds) -> bool:
    """Any of them; no windows at all is always."""
    windows = tuple(windows)
    return not windows or any(window.open(now) for window in windows)
