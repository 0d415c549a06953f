"""Finds the hours of the week in which a workload could sleep, from its usage by weekday and hour.

An hour of the week is quiet if the workload's mean usage in it stayed below a share of its request in every observed
week. An hour without any sample is not quiet, because nothing is known about it, unless other workloads were observed
in that hour and the workload had no pod then (see `HourlyUsage`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil, fsum
from zoneinfo import ZoneInfo

from trimtab.cluster.reason import Code, NotYet
from trimtab.cluster.timestamps import DAYS

HOUR = 3600
HOURS_PER_WEEK = 168
MIN_WEEKS = 2
"""The number of weeks in which every hour of the week must have been observed."""
MIN_WINDOW_HOURS = 3
"""The minimum length of a quiet time, in hours, that is worth a sleep: pods stop, nodes are removed, pods start
again."""
QUIET_SHARE = 0.01
"""A workload whose usage is below this share of its request counts as idle."""
QUIET_SHARE_OF_PEAK = 0.1
"""If the request is not known, a workload counts as idle below this share of its usage in busy hours (P95)."""

TOO_FEW_WEEKS = Code(
    "quiet-hours-need-weeks",
    "Each hour of the week must be observed twice to know the quiet ones.",
    "Provide usage of at least 14 days.",
)


@dataclass(slots=True)
class HourlyUsage:
    """The mean usage of one workload in every hour, in cores, summed over its pods and containers."""

    sums: dict[int, dict[str, tuple[float, int]]] = field(default_factory=dict)
    """Hour since 1970 → container of a pod → (sum of values, number of values)."""

    def add_values(self, part: str, times: Sequence[int], values: Sequence[float]) -> None:
        """Adds a series of values in cores. `part` distinguishes the containers of the workload's pods."""
        for time, value in zip(times, values, strict=True):
            cell = self.sums.setdefault(time // HOUR, {})
            total, count = cell.get(part, (0.0, 0))
            cell[part] = (total + value, count + 1)

    def mean_cores(self) -> dict[int, float]:
        """Returns hour since 1970 → mean cores. Hours without a sample are not in it."""
        return {hour: fsum(total / count for total, count in parts.values()) for hour, parts in self.sums.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """The quiet hours of one workload in one time zone. Hours of the week are counted from Monday at 0:00."""

    zone: str
    threshold_cores: float
    highest: tuple[float, ...]
    """For every hour of the week, the highest mean usage of all weeks, in cores."""
    quiet: frozenset[int]
    """All quiet hours of the week."""
    weeks: int
    """The number of weeks in which each hour was observed, for the hour with the fewest."""

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """The runs of quiet hours that are long enough to sleep, as (first hour of the week, number of hours), sorted
        by start. A run may continue past the end of the week."""
        return tuple((start, count) for start, count in find_runs(self.quiet) if count >= MIN_WINDOW_HOURS)

    @property
    def sleeping_hours(self) -> frozenset[int]:
        """All hours of the week in the windows."""
        return frozenset((start + n) % HOURS_PER_WEEK for start, count in self.windows for n in range(count))

    @property
    def quiet_share(self) -> float:
        """The share of the week in which the workload could sleep, from 0 to 1."""
        return len(self.sleeping_hours) / HOURS_PER_WEEK


def find_quiet_hours(
    hourly: Mapping[int, float],
    *,
    zone: str = "UTC",
    request_cores: float | None = None,
    share: float | None = None,
    min_weeks: int = MIN_WEEKS,
) -> QuietHours | NotYet:
    """Returns the quiet hours of a workload, or NotYet if an hour of the week was observed in fewer than `min_weeks`
    weeks.

    `hourly`: hour since 1970 → mean cores. `request_cores`: the sum of the requests of the workload's pods; if it is
    None, the usage in the workload's own busy hours is used instead. `share`: an hour is quiet if its usage is below
    this share of the request or of the busy hours.
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
    """Returns the hour of the week, from 0 (Monday 0:00) to 167, for a time in seconds since 1970, by the local time of
    the zone."""
    local = datetime.fromtimestamp(second, UTC).astimezone(zone)
    return local.weekday() * 24 + local.hour


def find_runs(hours: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Returns runs of consecutive hours of the week as (start, number of hours), sorted by start. The week is a circle;
    if all hours are in it, the result is the run (0, 168)."""
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
    """Returns the usage with 0 added for the hours without samples in which the workload had no pods.

    These are the hours in `observed` between the workload's first and last sample. `observed` are the hours in which
    the source has samples of any workload."""
    if not hourly:
        return {}
    first, last = min(hourly), max(hourly)
    return {hour: hourly.get(hour, 0.0) for hour in {*observed, *hourly} if first <= hour <= last}


def describe_window(start: int, count: int) -> str:
    """Returns a window as text: "fri 20:00 – mon 06:00", or "always"."""
    if count >= HOURS_PER_WEEK:
        return "always"
    return f"{describe_hour(start)} – {describe_hour(start + count)}"


def describe_hour(hour: int) -> str:
    """Returns an hour of the week as text: "mon 06:00"."""
    day, hour_of_day = divmod(hour % HOURS_PER_WEEK, 24)
    return f"{DAYS[day]} {hour_of_day:02d}:00"
