"""A window stays below 3 KB and within its error, however wide a day is spread and however much was seen of it."""

import random
import sys
import zlib
from collections.abc import Callable
from math import ceil

import pytest

from trimtab.histogram.daily_window import MAX_PAST_BYTES, DailyHistograms, pack_day, unpack_days
from trimtab.histogram.histogram import MAX_BUCKETS, MAX_SINGLE_BUCKETS, UsageHistogram
from trimtab.histogram.time_buckets import DAY

HEAD = 22
"""Bytes before the compressed ones."""
SHARES = (0.05, 0.5, 0.95)
Draw = Callable[[random.Random], float]


def size(window: DailyHistograms) -> int:
    """Bytes of a window and all that only it holds."""
    parts = (window, window.today, window.today.counts, window.packed_past)
    numbers = (window.first, window.last, window.newest, window.hours)
    return sum(map(sys.getsizeof, (*parts, *numbers)))


def filled(draw: Draw, a_day: int) -> tuple[DailyHistograms, list[float]]:
    drawn, histograms, every = random.Random(7), DailyHistograms(), list[float]()
    for day in range(20_000, 20_014):
        values = [draw(drawn) for _ in range(a_day)]
        histograms.add_values(day * DAY, (day + 1) * DAY - 1, values)
        every += values
    return histograms, sorted(every)


@pytest.mark.parametrize("a_day", [288, 1440, 7200])
@pytest.mark.parametrize(
    "draw",
    [
        lambda drawn: drawn.lognormvariate(-2, 0.35),
        lambda drawn: drawn.lognormvariate(-2, 1.5),
        lambda drawn: 10 ** drawn.uniform(-3.6, 0),
        lambda drawn: drawn.lognormvariate(-5, 0.5) if drawn.random() < 0.9 else drawn.lognormvariate(0, 0.5),
    ],
    ids=["usual", "bursts", "four powers of ten", "idle or busy"],
)
def test_two_weeks_stay_below_three_kilobytes_and_within_two_percent(draw: Draw, a_day: int) -> None:
    window, every = filled(draw, a_day)
    assert size(window) <= 3072
    exact = [every[ceil(share * len(every) - 1e-9) - 1] for share in SHARES]
    assert window.compute_percentiles(SHARES) == pytest.approx(exact, rel=0.02)
    second_result = DailyHistograms.load(window.dump())
    assert second_result == window
    assert len(second_result.packed_past) <= MAX_PAST_BYTES


def wide(a_day: int = 50_000) -> UsageHistogram:
    drawn, histogram = random.Random(7), UsageHistogram()
    histogram.add_values([10 ** drawn.uniform(-3, 0) for _ in range(a_day)])
    return histogram


@pytest.mark.parametrize("day", [20_000, 20_001])
def test_counting_in_units_moves_no_rank_by_more_than_half_a_unit(day: int) -> None:
    counts, most = wide(), 512
    ((result, units),) = unpack_days(pack_day(day, counts, over=True, max_units=most))
    assert (result, units.total_count, units.top) == (day, counts.total_count, counts.top)
    unit = 1 << ((counts.total_count - 1) // most).bit_length()
    below = after = 0
    for one, other in zip(counts.counts, units.counts, strict=True):
        below, after = below + one, after + other
        assert abs(below - after) <= unit // 2
    assert unpack_days(pack_day(day, units, over=True, max_units=most)) == [(day, units)]


def test_what_is_spread_over_seven_octaves_is_counted_in_pairs() -> None:
    narrow, spread = UsageHistogram(), UsageHistogram()
    narrow.add_values([1.0, 127.0])
    spread.add_values([1.0, 128.0])
    assert (narrow.is_paired, len(narrow.counts)) == (False, MAX_SINGLE_BUCKETS)
    assert (spread.is_paired, len(spread.counts)) == (True, MAX_SINGLE_BUCKETS // 2 + 1)
    assert spread.compute_percentiles([0.5]) == pytest.approx([1.0], rel=1 / 64)


def test_the_past_is_never_larger_than_its_budget_and_a_day_than_its_places() -> None:
    window, _ = filled(lambda drawn: 10 ** drawn.uniform(-4, 0), 1440)
    assert len(window.packed_past) <= MAX_PAST_BYTES
    assert len(window.today.counts) <= MAX_BUCKETS // 2


def before(window: DailyHistograms, version: int) -> bytes:
    """Its checkpoint as versions 1 and 2 wrote it: without its hours."""
    dumped = window.dump()
    body = zlib.decompress(dumped[HEAD:])[3 * window.days :]
    return bytes([version]) + dumped[1:HEAD] + zlib.compress(body)


@pytest.mark.parametrize("version", [1, 2])
def test_a_checkpoint_of_a_version_before_is_read(version: int) -> None:
    window, _ = filled(lambda drawn: drawn.lognormvariate(-2, 0.35), 60)
    assert DailyHistograms.load(before(window, version)) == window


def test_a_checkpoint_that_tells_no_hours_has_seen_the_days_that_hold_something() -> None:
    window, start = DailyHistograms(), 20_000 * DAY
    for at in (start + 12 * 3600, start + 10 * DAY + 1800):
        window.add_value(at, 1.0)
    assert window.observed_seconds == 2 * 3600
    result = DailyHistograms.load(before(window, 2))
    assert result.hours_by_day() == {20_000: 0xFFF000, 20_010: 1}
    assert DailyHistograms.load(result.dump()) == result
