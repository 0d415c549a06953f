"""Several sources of one container's usage: each time counts once."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.repeated_series import RepeatedSeries
from trimtab.usage.series import Series


def series(times: Sequence[int], pod: str = "web-0", **more: object) -> Series:
    fields = {"namespace": "shop", "pod": pod, "container": "c", "resource": "cpu", **more}
    return Series(times=times, values=[1.0] * len(times), **fields)  # type: ignore[arg-type]


def times_left(*all_series: Series) -> list[list[int]]:
    return [list(one.times) for one in RepeatedSeries().without_repeats(all_series)]


DAY = range(0, 86_400, 300)


def test_the_series_of_a_second_scraper_adds_nothing() -> None:
    assert times_left(series(DAY), series(DAY)) == [list(DAY)]


def test_the_seconds_at_which_each_scrapes_do_not_matter() -> None:
    shifted = [second + 17 for second in DAY]
    assert times_left(series(DAY), series(shifted)) == [list(DAY), shifted[-1:]]


def test_a_file_of_the_following_day_counts_in_full() -> None:
    following = [second + 86_400 for second in DAY]
    assert times_left(series(DAY), series(following)) == [list(DAY), following]


def test_a_gap_of_the_first_source_is_filled_by_the_second() -> None:
    with_gap = [*range(0, 7200, 300), *range(36_000, 43_200, 300)]
    left = times_left(series(with_gap), series(range(0, 43_200, 300)))[1]
    assert (left[0], left[-1]) == (7200, 35_700)


def test_other_containers_resources_and_clusters_are_not_repeats() -> None:
    others = [{"pod": "web-1"}, {"container": "d"}, {"resource": "memory"}, {"origin": (("cluster", "b"),)}]
    assert len(times_left(series(DAY), *(series(DAY, **other) for other in others))) == 5  # type: ignore[arg-type]


def test_series_without_a_pod_stay() -> None:
    assert len(times_left(series(DAY, pod=""), series(DAY, pod=""))) == 2


def test_the_note_counts_the_series_that_were_repeated() -> None:
    repeated = RepeatedSeries()
    assert (list(repeated.without_repeats([series(DAY)])), repeated.notes()) == ([series(DAY)], [])
    assert list(repeated.without_repeats([series(DAY)])) == []
    assert repeated.notes()[0].startswith("1 series ")


moments = st.lists(st.integers(0, 200_000), min_size=1, max_size=30, unique=True).map(sorted)


@given(first=moments, second=moments)
def test_no_time_is_lost_and_repeating_a_source_changes_nothing(first: list[int], second: list[int]) -> None:
    once = times_left(series(first), series(second))
    assert {*once[0]} == {*first}
    assert times_left(series(first), series(second), series(first), series(second)) == once
