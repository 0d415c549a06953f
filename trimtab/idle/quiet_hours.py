"""Usage by weekday and hour, and the hours of the week in which a workload could sleep.

An hour of the week is quiet if the workload's mean usage in it stayed under a share of its request in every week that
was observed. An hour without any sample is not quiet: nothing is known about it, unless other hours of the same week
were observed and the workload had no pod then (see `HourlyUsage`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from zoneinfo import ZoneInfo

from trimtab.cluster.reason import Code, NotYet
from trimtab.cluster.timestamps import DAYS

HOUR = 3600
HOURS_PER_WEEK = 168
MIN_WEEKS = 2
"""Weeks in which every hour of the week must have been observed."""
MIN_WINDOW_HOURS = 3
"""A shorter quiet time is no time to sleep: pods stop, nodes leave, pods start."""
QUIET_SHARE = 0.01
"""The share of the request below which a workload does nothing."""
QUIET_SHARE_OF_PEAK = 0.1
"""The share of its own busy hours (P95) that is used where the request is not known."""

TOO_FEW_WEEKS = Code(
    "quiet-hours-need-weeks",
    "The quiet hours of a week are known only after every hour of it was observed at least twice.",
    "Provide usage of at least 14 days.",
)


@dataclass(slots=True)
class HourlyUsage:
    """The mean cores of one workload in every hour, summed over its pods and containers."""

    sums: dict[int, dict[str, tuple[float, int]]] = field(default_factory=dict)
    """The hour since 1970 → container of a pod → (sum of values, number of values)."""

    def add_values(self, part: str, times: Sequence[int], values: Sequence[float]) -> None:
        """Add a series of cores; `part` tells the containers of its pods apart."""
        for time, value in zip(times, values, strict=True):
            cell = self.sums.setdefault(time // HOUR, {})
            total, count = cell.get(part, (0.0, 0))
            cell[part] = (total + value, count + 1)

    def mean_cores(self) -> dict[int, float]:
        """Hour since 1970 → cores. Hours without a sample are missing."""
        return {hour: sum(total / count for total, count in parts.values()) for hour, parts in self.sums.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """The week of one workload in one time zone. Hours of the week begin on Monday at 0:00."""

    zone: str
    threshold_cores: float
    highest: tuple[float, ...]
    """For every hour of the week the highest mean of all weeks, in cores."""
    quiet: frozenset[int]
    """All quiet hours of the week."""
    weeks: int
    """The smallest number of weeks in which an hour was observed."""

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """Runs of quiet hours as (first hour of the week, number of hours), long enough to sleep, by start; a run may
        go over the end of the week."""
        return tuple((start, count) for start, count in find_runs(self.quiet) if count >= MIN_WINDOW_HOURS)

    @property
    def sleeping_hours(self) -> frozenset[int]:
        """The hours of all windows."""
        return frozenset((start + n) % HOURS_PER_WEEK for start, count in self.windows for n in range(count))

    @property
    def quiet_share(self) -> float:
        """The part of the week in which the workload could sleep, 0 to 1."""
        return len(self.sleeping_hours) / HOURS_PER_WEEK


def find_quiet_hours(
    hourly: Mapping[int, float], *, zone: str = "UTC", request_cores: float | None = None, share: float | None = None,
    min_weeks: int = MIN_WEEKS,
) -> QuietHours | NotYet:  # fmt: skip
    """Returns the quiet hours of a workload, from the mean cores of every hour (hour since 1970 → cores).

    `request_cores` is the sum over its pods. None: it is unknown, and its own busy hours count instead.
    `share` of it is the threshold. NotYet while an hour of the week was observed in fewer than `min_weeks` weeks.
    """
    cells: list[list[float]] = [[] for _ in range(HOURS_PER_WEEK)]
    zone_info = ZoneInfo(zone)
    for hour, cores in hourly.items():
        cells[hour_of_week(hour * HOUR, zone_info)].append(cores)
    weeks = min(map(len, cells))
    # Clocks that are set forward leave out one hour of one week: the neighbours tell that the week was observed.
    lacking = [n for n, values in enumerate(cells) if len(values) < min_weeks]
    if len(lacking) > 1 or (lacking and len(cells[lacking[0]]) < min_weeks - 1):
        have = f"{HOURS_PER_WEEK - len(lacking)} of {HOURS_PER_WEEK} hours of the week, each in {min_weeks} weeks"
        sentence = f"{len(lacking)} hours of the week were observed in fewer than {min_weeks} weeks"
        return NotYet(reason=TOO_FEW_WEEKS(sentence), have=have, need=f"{min_weeks} weeks of usage")
    if request_cores:
        threshold = request_cores * (QUIET_SHARE if share is None else share)
    else:
        ordered = sorted(hourly.values())
        busy = ordered[max(0, ceil(0.95 * len(ordered)) - 1)]
        threshold = busy * (QUIET_SHARE_OF_PEAK if share is None else share)
    highest = tuple(max(values, default=0.0) for values in cells)
    quiet = frozenset(n for n, values in enumerate(cells) if values and highest[n] <= threshold)
    return QuietHours(zone=zone, threshold_cores=threshold, highest=highest, quiet=quiet, weeks=weeks)


def hour_of_week(second: int, zone: ZoneInfo) -> int:
    """Returns the hour of the week, 0 (Monday 0:00) to 167, of a second since 1970 by the clocks of the zone."""
    local = datetime.fromtimestamp(second, UTC).astimezone(zone)
    return local.weekday() * 24 + local.hour


def find_runs(hours: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Runs of consecutive hours of the week as (start, count), by start. The week is a circle; all hours are the run
    (0, 168)."""
    members = set(hours)
    if len(members) == HOURS_PER_WEEK:
        return ((0, HOURS_PER_WEEK),)
    runs = []
    for start in sorted(hour for hour in members if (hour - 1) % HOURS_PER_WEEK not in members):
        count = 1
        while (start + count) % HOURS_PER_WEEK in members:
            count += 1
        runs.append((start, count))
    return tuple(runs)


def fill_absent_hours(hourly: Mapping[int, float], observed: Iterable[int]) -> dict[int, float]:
    """Returns the usage with 0 for every observed hour in which the workload has no sample between its first and last
    one: its pods did not exist. `observed`: hours in which the source has samples of anything."""
    if not hourly:
        return {}
    first, last = min(hourly), max(hourly)
    return {hour: hourly.get(hour, 0.0) for hour in {*observed, *hourly} if first <= hour <= last}


def describe_window(start: int, count: int) -> str:
    """Returns a window as people write it: "fri 20:00 – mon 06:00", "always"."""
    if count >= HOURS_PER_WEEK:
        return "always"
    return f"{describe_hour(start)} – {describe_hour(start + count)}"


def describe_hour(hour: int) -> str:
    """Returns an hour of the week: "mon 06:00"."""
    day, hour_of_day = divmod(hour % HOURS_PER_WEEK, 24)
    return f"{DAYS[day]} {hour_of_day:02d}:00"
