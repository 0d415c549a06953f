"""For how long did what runs at times run?"""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.inputs.usage_sources import RunningTime, covered_seconds
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series

DAY = 86400
DUMP = ContainerKey("shop", "CronJob", "dump", "app")


def run(day: int, minutes: int, resource: str = "cpu", pod: str = "") -> Series:
    times = [day * DAY + n * 60 for n in range(minutes)]
    return Series(
        namespace="shop",
        pod=pod or f"dump-{29_500_000 + day}-x2x4k",
        container="app",
        resource=resource,
        times=times,
        values=[1.0] * minutes,
    )


def watched(*series: Series) -> RunningTime:
    runs = RunningTime()
    assert list(runs.observe_series(series, OwnerIndex())) == list(series)
    return runs


def test_a_value_stands_for_the_time_to_the_next_one() -> None:
    assert covered_seconds(range(0, 3600, 300), 60) == 3600
    assert covered_seconds([0, 60, 120], 60) == 180
    assert covered_seconds([0], 60) == 60


def test_a_gap_counts_for_no_more_than_twice_the_usual_time() -> None:
    assert covered_seconds([0, 60, 120, 7200], 60) == 60 + 60 + 120 + 60


@given(st.lists(st.integers(1, 10_000), min_size=1))
def test_no_series_goes_on_for_longer_than_from_its_first_value_to_its_last_and_one_more(gaps: list[int]) -> None:
    times = [sum(gaps[:n]) for n in range(len(gaps) + 1)]
    assert 0 < covered_seconds(times, 60) <= times[-1] + min(gaps)


def test_an_hour_a_day_is_a_twenty_fourth_of_the_month() -> None:
    runs = watched(*(run(day, 60) for day in range(20_000, 20_010)))
    assert runs.hours_per_month(DUMP, BatchHistory(), 1) == round(730 / 24, 2)


def test_cpu_and_memory_of_one_pod_are_one_run_and_two_pods_are_two() -> None:
    alone = watched(run(20_000, 60), run(20_000, 60, "memory"))
    both = watched(run(20_000, 60), run(20_000, 60, pod="dump-29500001-bbbbb"))
    assert alone.hours_per_month(DUMP, BatchHistory(), 1) == round(730 / 24, 2)
    assert both.hours_per_month(DUMP, BatchHistory(), 1) == round(730 / 12, 2)


def test_where_only_hours_were_kept_each_counts_whole() -> None:
    book = BatchHistory()
    for day in range(20_000, 20_010):
        result = run(day, 12)
        book.add_series(DUMP, "cpu", result.times, result.values)
    assert RunningTime().hours_per_month(DUMP, book, 1) == round(730 / 24, 2)


def test_what_runs_all_the_time_has_no_hours() -> None:
    runs = watched(run(20_000, 60))
    assert runs.hours_per_month(ContainerKey("shop", "Deployment", "web", "app"), BatchHistory(), 1) is None
    assert RunningTime().hours_per_month(DUMP, BatchHistory(), 1) is None


def test_pods_that_are_gone_are_counted_once() -> None:
    runs = watched(run(20_000, 60), run(20_000, 60, "memory"), run(20_001, 60))
    assert runs.former_pods(DUMP, {("shop", "dump-29520001-x2x4k")}) == 1
