"""Hours of the week in which a workload does nothing."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.reason import NotYet
from trimtab.idle.quiet_hours import (
    HOUR,
    HOURS_PER_WEEK,
    HourlyUsage,
    QuietHours,
    describe_window,
    fill_absent_hours,
    find_quiet_hours,
    find_runs,
    hour_of_week,
)

MONDAY = 1_767_571_200 // HOUR
"""2026-01-05T00:00Z, in hours since 1970."""


def weeks(count: int, busy: range, cores: float = 1.0, idle: float = 0.0) -> dict[int, float]:
    """Usage on Monday to Friday in these hours of the day (UTC)."""
    return {MONDAY + n: cores if n % 24 in busy and (n // 24) % 7 < 5 else idle for n in range(count * HOURS_PER_WEEK)}


def known(hourly: dict[int, float], **more: object) -> QuietHours:
    quiet_hours = find_quiet_hours(hourly, **more)  # type: ignore[arg-type]
    assert isinstance(quiet_hours, QuietHours)
    return quiet_hours


def test_nights_and_the_weekend_are_quiet() -> None:
    quiet_hours = known(weeks(2, range(8, 18)), request_cores=2.0)
    assert [describe_window(*window) for window in quiet_hours.windows] == [
        "mon 18:00 – tue 08:00",
        "tue 18:00 – wed 08:00",
        "wed 18:00 – thu 08:00",
        "thu 18:00 – fri 08:00",
        "fri 18:00 – mon 08:00",
    ]
    assert len(quiet_hours.sleeping_hours) == HOURS_PER_WEEK - 50


def test_one_busy_hour_in_one_week_is_enough_to_stay_awake() -> None:
    hourly = weeks(3, range(8, 18))
    hourly[MONDAY + HOURS_PER_WEEK + 3] = 0.5
    assert 3 not in known(hourly, request_cores=2.0).quiet


@pytest.mark.parametrize(("idle", "quiet"), [(0.019, True), (0.021, False)])
def test_the_threshold_is_one_percent_of_the_request(idle: float, quiet: bool) -> None:
    assert (0 in known(weeks(2, range(8, 18), idle=idle), request_cores=2.0).quiet) is quiet


def test_without_a_request_the_own_busy_hours_count() -> None:
    quiet_hours = known(weeks(2, range(8, 18), cores=4.0, idle=0.3))
    assert quiet_hours.threshold_cores == pytest.approx(0.4)
    assert len(quiet_hours.sleeping_hours) == HOURS_PER_WEEK - 50


def test_less_than_two_weeks_is_not_yet_known() -> None:
    quiet_hours = find_quiet_hours(dict(list(weeks(2, range(8, 18)).items())[:-30]))
    assert isinstance(quiet_hours, NotYet)
    assert quiet_hours.reason.code.name == "quiet-hours-need-weeks"


def test_hours_are_those_of_the_zone() -> None:
    quiet_hours = known(weeks(2, range(8, 18)), zone="Asia/Tokyo", request_cores=1.0)
    assert describe_window(*quiet_hours.windows[0]) == "tue 03:00 – tue 17:00"


def test_the_spring_forward_hour_does_not_count_as_missing() -> None:
    start = 1_773_014_400 // HOUR  # 2026-03-09T00:00Z; Berlin sets its clocks forward on the 29th
    hourly = {start + n: 0.0 for n in range(21 * 24)}
    assert isinstance(find_quiet_hours(hourly, zone="Europe/Berlin", min_weeks=3), QuietHours)


def test_a_short_gap_is_no_time_to_sleep() -> None:
    assert known(weeks(2, range(2, 24)), request_cores=1.0).windows == ((5 * 24, 50),)


def test_pods_are_summed_by_their_means() -> None:
    usage = HourlyUsage()
    usage.add_values("a", [0, 60], [1.0, 3.0])
    usage.add_values("b", [0], [0.5])
    assert usage.mean_cores() == {0: 2.5}


def test_an_absent_pod_used_nothing() -> None:
    assert fill_absent_hours({2: 1.0, 5: 1.0}, range(10)) == {2: 1.0, 3: 0.0, 4: 0.0, 5: 1.0}


@given(st.sets(st.integers(0, HOURS_PER_WEEK - 1)))
def test_runs_cover_exactly_the_hours(hours: set[int]) -> None:
    runs = find_runs(hours)
    assert {(start + n) % HOURS_PER_WEEK for start, count in runs for n in range(count)} == hours
    assert sum(count for _, count in runs) == len(hours)


def test_the_week_begins_on_monday() -> None:
    assert hour_of_week(MONDAY * HOUR, ZoneInfo("UTC")) == 0
