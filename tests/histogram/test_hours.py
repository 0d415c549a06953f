"""Hours in which something was seen."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.time_buckets import (
    DAY,
    HOUR,
    add_hours,
    decode_hours,
    encode_hours,
    hours_between,
    hours_of_times,
    hours_within_day,
)

START = 20_000 * DAY
moments = st.lists(st.integers(START, START + 9 * DAY), max_size=40).map(sorted)


def told(times: list[int]) -> set[int]:
    return {at // HOUR for at in times}


def listed(hours: object) -> set[int]:
    assert isinstance(hours, dict)
    return {day * 24 + n for day, bits in hours.items() for n in range(24) if bits >> n & 1}


@given(moments)
def test_each_hour_with_a_moment_in_it_is_told(times: list[int]) -> None:
    assert listed(hours_of_times(times)) == told(times)


@given(st.integers(0, 3 * DAY), st.integers(1, 2 * HOUR), st.integers(1, 200))
def test_a_range_is_its_moments(first: int, step: int, count: int) -> None:
    times = range(START + first, START + first + step * count, step)
    assert hours_of_times(times) == hours_of_times(list(times))


@given(st.integers(0, 3 * DAY), st.integers(0, 3 * DAY))
def test_all_hours_between_two_seconds(first: int, more: int) -> None:
    first, last = START + first, START + first + more
    assert listed(hours_between(first, last)) == set(range(first // HOUR, last // HOUR + 1))


@given(moments, moments)
def test_joined_hours_are_those_of_all_moments(one: list[int], two: list[int]) -> None:
    hours = dict(hours_of_times(one))
    add_hours(hours, hours_of_times(two))
    assert hours == hours_of_times(sorted(one + two))


@given(moments)
def test_a_ring_keeps_the_last_days(times: list[int]) -> None:
    newest = START // DAY + 9
    actual_bits = {day: bits for day, bits in hours_of_times(times).items() if day > newest - 4}
    assert decode_hours(encode_hours(hours_of_times(times), newest, 4), newest) == actual_bits


def test_a_moment_is_an_hour_of_its_day() -> None:
    assert hours_within_day(START, START) == 1
    assert hours_within_day(START + HOUR - 1, START + HOUR) == 0b11
    assert hours_within_day(START, START + DAY - 1) == 0xFFFFFF
