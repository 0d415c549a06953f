"""Writes days that are over to a history in a folder or an object store, for histories of several clusters or of more
than two weeks.

The ConfigMaps hold what the recommender itself needs after a restart. This history is written in addition and is not
read by the recommender, so an object store that does not respond stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.histogram.daily_rows import rows_of_live
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.checkpointer import DAY_SETTLES_SECONDS
from trimtab.runtime.log import Logger
from trimtab.usage.daily_store import DailyStore

RETRY_SECONDS = 600.0


@dataclass(slots=True)
class DailyHistoryWriter:
    """Writes each day of a live history once. Not thread-safe."""

    store: DailyStore
    cluster: str
    log: Logger
    elapsed: Callable[[], float]
    _written: set[int] | None = None
    """The days that the store has, or None until it was listed."""
    _retry_at: float = field(default=float("-inf"))

    def write_due(self, history: LiveHistory, now: int) -> int:
        """Writes the days that are over and not in the store yet. Returns how many. Raises UsageFault; the rest is then
        written after a pause."""
        if self.elapsed() < self._retry_at:
            return 0
        over = (now - DAY_SETTLES_SECONDS) // DAY - 1
        present = {day for window in history.windows.values() for day in range(window.first // DAY, over + 1)}
        if not present:
            return 0
        self._retry_at = self.elapsed() + RETRY_SECONDS
        if self._written is None:
            self._written = {one.day for one in self.store.list_days() if one.cluster == self.cluster}
        count = 0
        for day in sorted(present - self._written):
            rows = list(rows_of_live(history, day))
            if rows:
                self.store.write_day(self.cluster, day, rows)
                self.log.info("daily-history.written", day=day, rows=len(rows))
                count += 1
            self._written.add(day)
        self._retry_at = float("-inf")
        return count
