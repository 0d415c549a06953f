"""Several sources of one container's usage: each time counts once."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.repeated_series import RepeatedSeries, covered_spans
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


def test_a_series_that_repeats_nothing_stays_as_it_is() -> None:
    between = [series(range(0, 600, 300)), series(range(86_400, 87_000, 300)), series(range(43_200, 43_800, 300))]
    assert [one.times for one in RepeatedSeries().without_repeats(between)] == [one.times for one in between]


def test_the_files_of_a_year_are_not_compared_with_each_other() -> None:
    class CountedSeconds(int):
        comparisons = 0

        def __lt__(self, other: int) -> bool:
            CountedSeconds.comparisons += 1
            return int(self) < int(other)

        def __le__(self, other: int) -> bool:
            CountedSeconds.comparisons += 1
            return int(self) <= int(other)

    days = [series([CountedSeconds(day * 86_400), CountedSeconds(day * 86_400 + 300)]) for day in range(365)]
    assert len(times_left(*days)) == 365
    assert CountedSeconds.comparisons < 365 * 100


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


@given(parts=st.lists(moments, max_size=6))
def test_a_time_stays_unless_an_earlier_series_covers_it(parts: list[list[int]]) -> None:
    spans: list[tuple[int, int]] = []
    expected = []
    for part in parts:
        expected.append([second for second in part if not any(first <= second <= last for first, last in spans)])
        spans += covered_spans(part)
    assert times_left(*map(series, parts)) == [times for times in expected if times]


@given(first=moments, second=moments)
def test_no_time_is_lost_and_repeating_a_source_changes_nothing(first: list[int], second: list[int]) -> None:
    once = times_left(series(first), series(second))
    assert {*once[0]} == {*first}
    assert times_left(series(first), series(second), series(first), series(second)) == once
