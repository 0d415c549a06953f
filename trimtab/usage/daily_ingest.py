"""Reads the daily rows of a cluster from Prometheus, Thanos, Mimir or VictoriaMetrics, one whole day at a time.

A day is read with the same queries as `trimtab recommend --prometheus` uses. So a history of such days gives the same
percentiles as a single query for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.daily_rows import DailyRow, rows_of_batch
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.usage.oom_kills import kills_of_prometheus
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.series import add_all_series, container_key

SETTLED_SECONDS = HOUR
"""How many seconds after midnight a day counts as complete: remote writers are late, and Thanos uploads blocks of two
hours."""


@dataclass(frozen=True, slots=True)
class ReadDay:
    """The usage of one day of one cluster."""

    rows: tuple[DailyRow, ...]
    dropped_values: int
    """The number of values that were dropped, because they are not numbers or more than any machine has."""


def last_complete_day(now: int) -> int:
    """Returns the last complete day, in days since 1970: one that ended at least `SETTLED_SECONDS` ago."""
    return (now - SETTLED_SECONDS) // DAY - 1


@dataclass(slots=True)
class DayReader:
    """Reads the usage of single days of one cluster."""

    prometheus: Prometheus
    owners: Mapping[tuple[str, str], OwnerKey] = field(default_factory=dict)
    """(namespace, pod) → owner, for pods whose owner is known from another source."""

    def read_day(self, day: int) -> ReadDay:
        """Returns the rows of a day (in days since 1970), sorted. Raises UsageFault."""
        start, end = day * DAY, day * DAY + DAY - 1
        owners = OwnerIndex(self.owners, reported=self.prometheus.read_owners(start, end))
        history = BatchHistory(days=1)
        parts = self.prometheus.plan_queries(start, end)
        add_all_series(history, self.prometheus.read_series(parts), owners)
        for series, kill in kills_of_prometheus(self.prometheus, start, end):
            history.add_oom_kill(container_key(series, owners), kill)
        return ReadDay(tuple(rows_of_batch(history, day)), history.dropped_values)
