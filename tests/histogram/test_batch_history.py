"""Series of pods in, windows of containers out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.batch_history import MAX_AMOUNT, BatchHistory, ContainerKey, count_start_samples
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.histogram import bucket_of
from trimtab.histogram.time_buckets import DAY, PEAK_INTERVAL_SECONDS

APP = ContainerKey("shop", "Deployment", "web", "app")
START = 20_000 * DAY


@given(st.lists(st.floats(0.5, 512, width=32), min_size=1, max_size=60), st.integers(600, DAY // 2))
def test_a_book_holds_what_a_window_would_that_saw_it_live(values: list[float], step: int) -> None:
    times = [START + n * step for n in range(len(values))]
    book, live = BatchHistory(60), DailyHistograms(60)
    book.add_series(APP, "cpu", times, values)
    for at, value in zip(times, values, strict=True):
        live.add_value(at, value)
    histograms = book.compressed_window(APP, "cpu")
    assert (histograms.merge_days().total_count, histograms.merge_days().top) == (
        live.merge_days().total_count,
        live.merge_days().top,
    )
    assert histograms.compute_percentiles((0.05, 0.95)) == pytest.approx(
        live.compute_percentiles((0.05, 0.95)), rel=1 / 32
    )


def test_memory_is_kept_as_the_peaks_of_intervals_of_each_pod() -> None:
    book, times = BatchHistory(), [START, START + 60, START + PEAK_INTERVAL_SECONDS]
    for values in ([5.0, 9.0, 3.0], [6.0, 2.0, 8.0]):
        book.add_series(APP, "memory", times, values)
    whole = book.compressed_window(APP, "memory").merge_days()
    assert (whole.total_count, whole.top, whole.compute_percentiles((0.25,))[0]) == (
        4,
        9.0,
        pytest.approx(3, rel=1 / 64),
    )


def test_what_was_never_seen_is_an_empty_window() -> None:
    assert BatchHistory().compressed_window(APP, "cpu").last == 0


def test_an_empty_series_is_no_container() -> None:
    book = BatchHistory()
    book.add_series(APP, "cpu", [], [])
    assert book.list_containers() == []


def test_days_before_the_window_are_left_out() -> None:
    book = BatchHistory(2)
    book.add_series(APP, "cpu", [START + n * DAY for n in range(5)], [9.0, 9.0, 9.0, 1.0, 2.0])
    histograms = book.compressed_window(APP, "cpu")
    assert (histograms.merge_days().total_count, histograms.merge_days().top, histograms.first) == (
        2,
        2.0,
        START + 3 * DAY,
    )


@pytest.mark.parametrize(("samples", "seconds"), [(100, 2 * 3600), (3 * 1440, 3 * DAY), (50_000, 3 * DAY)])
def test_values_that_are_counted_already_count_for_their_last_day(samples: int, seconds: int) -> None:
    book, bucket = BatchHistory(), bucket_of(0.25)
    assert bucket is not None
    book.add_bucket_counts(APP, "cpu", {bucket: samples}, START, START + 3 * DAY)
    histograms = book.compressed_window(APP, "cpu")
    assert (histograms.merge_days().total_count, histograms.observed_seconds) == (
        samples,
        pytest.approx(seconds, abs=3600),
    )
    assert histograms.compute_percentiles((0.5,))[0] == pytest.approx(0.25, rel=1 / 64)


@given(st.lists(st.floats(0, 9000), min_size=1, max_size=400), st.sampled_from(["cpu", "memory"]))
def test_what_no_machine_has_is_left_out_wherever_it_stands(values: list[float], resource: str) -> None:
    most = MAX_AMOUNT[resource]
    values = [value * most / 4096 for value in values]
    book, clean, times = BatchHistory(), BatchHistory(), range(START, START + 300 * len(values), 300)
    rows = [(at, value) for at, value in zip(times, values, strict=True) if value <= most]
    book.add_series(APP, resource, times, values)
    clean.add_series(APP, resource, [at for at, _ in rows], [value for _, value in rows])
    assert book.list_containers() == clean.list_containers()
    assert book.compressed_window(APP, resource) == clean.compressed_window(APP, resource)


def test_what_is_left_out_is_counted() -> None:
    book = BatchHistory()
    book.add_series(APP, "cpu", [START, START + 60, START + 120], [0.1, -1.0, 5000.0])
    book.add_series(APP, "memory", [START, START + 60], [1.0, 2.0**50])
    assert (book.dropped_values, book.compressed_window(APP, "cpu").merge_days().total_count) == (3, 1)


# ── starts ───────────────────────────────────────────────────────────────
def test_a_start_is_kept_apart_where_it_was_seen() -> None:
    book, times = BatchHistory(start_seconds=120), [START + 7200 + n * 60 for n in range(5)]
    book.add_series(APP, "cpu", times, [3.0, 2.0, 0.1, 0.1, 0.1], queried_from=START)
    assert (book.compressed_window(APP, "cpu").merge_days().total_count, book.max_start_cpu[APP]) == (3, 3.0)


@pytest.mark.parametrize(("asked", "of_it"), [(START, 0), (START - 7200, 2), (START - 600, 0)])
def test_a_series_that_is_there_from_the_first_moment_began_before(asked: int, of_it: int) -> None:
    assert count_start_samples([START, START + 60, START + 120], asked, 120) == of_it


def test_memory_taken_at_the_start_stays_taken() -> None:
    book = BatchHistory(start_seconds=120)
    book.add_series(APP, "memory", [START + 7200, START + 9000], [9.0, 1.0], queried_from=START)
    assert book.compressed_window(APP, "memory").merge_days().top == 9.0
