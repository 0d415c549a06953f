"""What must hold for every sketch, whatever is seen."""

from math import ceil, inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.daily_window import DailyHistograms, DamagedHistogram, add_to_windows
from trimtab.histogram.histogram import (
    MAX_BUCKETS,
    MAX_RELATIVE_ERROR,
    MIN_VALUE,
    UsageHistogram,
    bucket_of,
    merge_histograms,
)
from trimtab.histogram.time_buckets import DAY, HOUR

amounts = st.floats(0, 2.0**40, width=32)
alike = st.floats(0.5, 512, width=32)
"""Within what is told apart."""
shares = st.floats(0, 1)
moments = st.integers(20_000 * DAY, 20_020 * DAY)
seen = st.lists(st.tuples(moments, amounts), max_size=30)


def counts(values: list[float]) -> UsageHistogram:
    histogram = UsageHistogram()
    histogram.add_values(values)
    return histogram


def window(values: list[tuple[int, float]], days: int = 14) -> DailyHistograms:
    histograms = DailyHistograms(days)
    for at, value in values:
        histograms.add_value(at, value)
    return histograms


def exact(values: list[float], share: float) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, ceil(share * len(values) - 1e-9) - 1)]


# ── error ────────────────────────────────────────────────────────────────
@given(st.lists(alike, min_size=1, max_size=200), shares)
def test_a_percentile_is_within_the_error_of_the_exact_one(values: list[float], share: float) -> None:
    (percentile,) = counts(values).compute_percentiles([share])
    assert percentile == pytest.approx(exact(values, share), rel=MAX_RELATIVE_ERROR)


@given(st.lists(st.tuples(moments, alike), min_size=1, max_size=50), shares)
def test_a_percentile_over_days_is_within_the_error_of_the_exact_one(
    values: list[tuple[int, float]], share: float
) -> None:
    (percentile,) = window(values, days=30).compute_percentiles([share])
    assert percentile == pytest.approx(exact([value for _, value in values], share), rel=MAX_RELATIVE_ERROR)


@given(st.lists(amounts, min_size=1), st.lists(shares, min_size=2))
def test_percentiles_ascend_up_to_the_greatest_value(values: list[float], asked: list[float]) -> None:
    percentiles = counts(values).compute_percentiles([*sorted(asked), 1.0])
    assert list(percentiles) == sorted(percentiles)
    assert percentiles[-1] == max(values)


@given(st.lists(amounts))
def test_one_by_one_is_all_at_once(values: list[float]) -> None:
    single = UsageHistogram()
    for value in values:
        single.add_value(value)
    assert single == counts(values)


@pytest.mark.parametrize("value", [-1.0, nan, inf, -inf, 1e300])
def test_what_is_no_amount_is_left_out(value: float) -> None:
    histogram = counts([1.0, value, 2.0])
    histogram.add_value(value)
    assert (histogram.total_count, histogram.top) == (2, 2.0)


def test_nothing_is_counted_as_nothing() -> None:
    assert counts([0.0] * 9 + [1.0]).compute_percentiles([0.5, 1.0]) == (0.0, 1.0)
    assert bucket_of(MIN_VALUE / 2) == 0


def test_an_empty_sketch_answers_nothing() -> None:
    assert UsageHistogram().compute_percentiles([0.05, 0.95]) == (0.0, 0.0)


def test_a_bucket_holds_more_than_a_byte_and_more_than_two() -> None:
    histogram = counts([1.0])
    sizes = [histogram.counts.itemsize]
    for count in (300, 70_000):
        histogram.add_values([1.0] * count)
        sizes.append(histogram.counts.itemsize)
    assert (sizes, histogram.total_count) == ([1, 2, 4], 70_301)


def test_the_lowest_buckets_become_one_when_there_are_too_many() -> None:
    histogram = counts([0.001 * 1.01**n for n in range(2000)])
    assert (histogram.is_paired, len(histogram.counts)) == (True, MAX_BUCKETS // 2)
    assert histogram.total_count == 2000


# ── merging ──────────────────────────────────────────────────────────────
@given(st.lists(amounts), st.lists(amounts))
def test_merging_is_adding_all_values(one: list[float], two: list[float]) -> None:
    assert merge_histograms([counts(one), counts(two)]) == counts(one + two)


@given(st.lists(amounts), st.lists(amounts), st.lists(amounts))
def test_merging_is_associative_and_commutes(one: list[float], two: list[float], three: list[float]) -> None:
    a, b, c = counts(one), counts(two), counts(three)
    assert (
        merge_histograms([merge_histograms([a, b]), c])
        == merge_histograms([a, merge_histograms([b, c])])
        == merge_histograms([c, b, a])
    )


@given(seen, seen, seen)
def test_windows_merge_associatively(
    one: list[tuple[int, float]], two: list[tuple[int, float]], three: list[tuple[int, float]]
) -> None:
    left, right, inner = window(one), window(one), window(two)
    left.merge(window(two))
    left.merge(window(three))
    inner.merge(window(three))
    right.merge(inner)
    assert left == right


# ── hours ────────────────────────────────────────────────────────────────
def touched(values: list[tuple[int, float]], of: DailyHistograms) -> set[int]:
    """Hours that hold something and are young enough."""
    return {at // HOUR for at, _ in values if at // DAY > of.newest - of.days}


@given(seen)
def test_a_window_is_as_old_as_the_hours_in_which_something_was_seen(values: list[tuple[int, float]]) -> None:
    histograms, rest = window(values), touched(values, window(values))
    assert {
        day * 24 + hour for day, hours in histograms.hours_by_day().items() for hour in range(24) if hours >> hour & 1
    } == rest
    assert histograms.observed_seconds == min(HOUR * len(rest), histograms.last - histograms.first)
    assert histograms.observed_days == len({hour // 24 for hour in rest})


@given(seen, seen)
def test_more_that_was_seen_makes_no_history_younger(
    one: list[tuple[int, float]], two: list[tuple[int, float]]
) -> None:
    alone, both = window(one, days=30), window(one, days=30)
    both.merge(window(two, days=30))
    assert both.observed_seconds >= alone.observed_seconds
    assert both.observed_days >= alone.observed_days
    both.merge(window(one, days=30))
    assert both.hours_by_day() == window(one + two, days=30).hours_by_day()  # what is seen twice is seen once


# ── checkpoints ──────────────────────────────────────────────────────────
@given(seen)
def test_a_window_survives_its_checkpoint(values: list[tuple[int, float]]) -> None:
    histograms = window(values)
    assert DailyHistograms.load(histograms.dump()) == histograms


@given(seen, st.data())
def test_a_checkpoint_cut_short_is_refused_whole(values: list[tuple[int, float]], data: st.DataObject) -> None:
    dumped = window(values).dump()
    cut = data.draw(st.integers(0, len(dumped) - 1))
    with pytest.raises(DamagedHistogram):
        DailyHistograms.load(dumped[:cut])


def test_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(DamagedHistogram, match="version 9"):
        DailyHistograms.load(b"\x09" + DailyHistograms().dump()[1:])


# ── days ─────────────────────────────────────────────────────────────────
def test_a_day_leaves_the_window_when_it_is_too_old() -> None:
    histograms = window([(20_000 * DAY, 9.0), (20_001 * DAY, 1.0)])
    histograms.add_value(20_014 * DAY, 2.0)
    assert (sorted(histograms.histograms_by_day()), histograms.merge_days().top) == ([20_001, 20_014], 2.0)
    assert histograms.first >= 20_001 * DAY


def test_a_value_from_before_the_window_is_left_out() -> None:
    histograms = window([(20_020 * DAY, 1.0)])
    assert not histograms.add_value(20_000 * DAY, 5.0)
    assert histograms.merge_days().total_count == 1


def test_a_late_value_counts_for_its_day() -> None:
    histograms = window([(20_020 * DAY, 1.0), (20_018 * DAY + 5, 3.0)])
    assert histograms.histograms_by_day()[20_018].top == 3.0


@given(st.lists(st.lists(alike, min_size=3, max_size=3), min_size=1, max_size=9))
def test_a_poll_of_many_is_adding_to_each(polls: list[list[float]]) -> None:
    many, single = [DailyHistograms() for _ in range(3)], [DailyHistograms() for _ in range(3)]
    for number_, values in enumerate(polls):
        at = 20_000 * DAY + number_ * DAY // 72
        add_to_windows(many, at, values)
        for result, value in zip(single, values, strict=True):
            result.add_value(at, value)
    assert many == single
