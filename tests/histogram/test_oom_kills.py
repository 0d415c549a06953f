"""A kill for want of memory is a floor, once, and it fades."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.oom_kills import MAX_BYTES, OomKill, OomRecord, add_kill, bytes_after_kill, merge_oom_records
from trimtab.histogram.time_buckets import DAY

MI = 1 << 20
NOW = 20_000 * DAY
WINDOW = 14 * DAY


def record(*kills: OomKill) -> OomRecord:
    kill_record: OomRecord | None = None
    for kill in kills:
        kill_record = add_kill(kill_record, kill, WINDOW)
    assert kill_record is not None
    return kill_record


def kill(at: int = NOW, used: float = 500.0 * MI, limit: float = 0.0, request: float = 512.0 * MI) -> OomKill:
    return OomKill(at=at, used=used, limit=limit, request=request)


def test_one_kill_is_a_floor_of_a_fifth_above_what_was_used_or_allowed() -> None:
    assert record(kill()).floor_at(NOW, WINDOW) == 1.2 * 512 * MI
    assert record(kill(used=900.0 * MI)).floor_at(NOW, WINDOW) == 1.2 * 900 * MI
    assert record(kill(limit=1000.0 * MI)).floor_at(NOW, WINDOW) == 1200 * MI


def test_a_small_container_gets_a_hundred_mebibytes_more() -> None:
    assert bytes_after_kill(50.0 * MI) == 150 * MI


def test_a_crash_loop_does_not_compound() -> None:
    kill_record = record(*(kill(NOW + 300 * n) for n in range(288)))
    assert (kill_record.floor_at(NOW + DAY, WINDOW), kill_record.count) == (1.2 * 512 * MI, 288)


def test_a_request_that_was_raised_to_the_floor_does_not_raise_the_floor() -> None:
    """Each time the pod is made anew, its request is the floor of the kill before."""
    kill_record, request = record(kill()), 512.0 * MI
    for n in range(1, 50):
        request = kill_record.floor_at(NOW + 3600 * (n - 1), WINDOW) + MI
        kill_record = add_kill(kill_record, kill(NOW + 3600 * n, request=request), WINDOW)
    assert kill_record.floor_at(NOW + 49 * 3600, WINDOW) == 1.2 * 512 * MI


def test_a_second_kill_above_the_floor_raises_it_once_more_from_what_was_used_then() -> None:
    kill_record = record(kill(), kill(NOW + 60, used=700.0 * MI))
    assert kill_record.floor_at(NOW + 60, WINDOW) == 1.2 * 700 * MI
    at_a_limit = record(kill(), kill(NOW + 60, limit=615.0 * MI))
    assert at_a_limit.floor_at(NOW + 60, WINDOW) == 1.2 * 615 * MI
    by_hand = record(kill(), kill(NOW + 60, request=2048.0 * MI))
    assert by_hand.floor_at(NOW + 60, WINDOW) == 1.2 * 2048 * MI


def test_the_floor_is_whole_for_half_the_window_and_fades_until_its_end() -> None:
    kill_record = record(kill())
    shares = [
        kill_record.floor_at(NOW + days * DAY, WINDOW) / kill_record.floor_at(NOW, WINDOW)
        for days in (0, 7, 10.5, 14, 20)
    ]
    assert shares == [1, 1, 0.5, 0, 0]


def test_a_smaller_kill_keeps_the_higher_floor_and_its_age() -> None:
    kill_record = record(kill(used=4000.0 * MI), kill(NOW + DAY))
    assert (kill_record.at, kill_record.last, kill_record.count) == (NOW, NOW + DAY, 2)
    later = add_kill(kill_record, kill(NOW + 13 * DAY), WINDOW)
    assert later.floor_at(NOW + 13 * DAY, WINDOW) == pytest.approx(4800 * MI * 2 / 14)  # what is left of it
    assert add_kill(kill_record, kill(NOW + 14 * DAY), WINDOW).floor_at(NOW + 14 * DAY, WINDOW) == 1.2 * 512 * MI


def test_a_limit_that_no_machine_has_says_nothing_of_the_container() -> None:
    assert record(kill(limit=2.0**60)).floor_at(NOW, WINDOW) == 1.2 * 512 * MI
    assert record(kill(limit=0.9 * MAX_BYTES)).floor_at(NOW, WINDOW) == MAX_BYTES


KILLS = st.lists(
    st.builds(
        kill,
        at=st.integers(NOW, NOW + WINDOW),
        used=st.floats(0, 2.0**33),
        limit=st.just(0.0) | st.floats(1, 2.0**33),
        request=st.just(0.0) | st.floats(1, 2.0**33),
    ),
    min_size=1,
    max_size=12,
)


@given(KILLS)
def test_no_order_of_kills_gives_more_than_a_bump_over_the_most_that_was_used_or_allowed(kills: list[OomKill]) -> None:
    most = max(max(k.used, k.limit, k.request) for k in kills)
    assert record(*kills).floor_at(max(k.at for k in kills), WINDOW) <= bytes_after_kill(most)


@given(KILLS, KILLS)
def test_joining_records_is_the_same_either_way(one: list[OomKill], other: list[OomKill]) -> None:
    first, second = record(*one), record(*other)
    now = max(first.last, second.last)
    assert merge_oom_records(first, second, WINDOW).floor_at(now, WINDOW) == merge_oom_records(
        second, first, WINDOW
    ).floor_at(now, WINDOW)
