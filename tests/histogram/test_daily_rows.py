"""Daily rows: what they lose, and whether a merge depends on its order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.daily_rows import (
    DailyRow,
    check_row,
    decode_pods,
    encode_pods,
    merge_kills,
    merge_rows,
    pack_canonical_day,
    rows_of_batch,
    rows_of_live,
)
from trimtab.histogram.daily_window import DamagedHistogram
from trimtab.histogram.histogram import UsageHistogram, merge_histograms
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.time_buckets import DAY

APP = ContainerKey("shop", "Deployment", "web", "app")
FIRST_DAY = 20_454
amounts = st.one_of(st.just(0.0), st.floats(2.0**-13, 4096.0), st.floats(1e5, 6e13))
parts_of_values = st.lists(st.lists(amounts, max_size=12), min_size=1, max_size=6)


def histogram_of(values: list[float]) -> UsageHistogram:
    histogram = UsageHistogram()
    for value in values:
        histogram.add_value(value)
    return histogram


@given(parts_of_values, st.randoms(use_true_random=False))
def test_any_order_and_grouping_of_parts_gives_the_same_bytes(parts: list[list[float]], drawn: random.Random) -> None:
    inorder = merge_histograms(histogram_of(part) for part in parts)
    shuffled = drawn.sample(parts, len(parts))
    middle = drawn.randint(0, len(shuffled))
    halves = [merge_histograms(map(histogram_of, half)) for half in (shuffled[:middle], shuffled[middle:])]
    assert pack_canonical_day(7, merge_histograms(halves)) == pack_canonical_day(7, inorder)


def history_of_days(days: int, seed: int = 1) -> BatchHistory:
    drawn, history = random.Random(seed), BatchHistory()
    for day in range(FIRST_DAY, FIRST_DAY + days):
        times = range(day * DAY, (day + 1) * DAY, 1800)
        for pod in ("web-a", "web-b"):
            history.add_series(APP, "cpu", times, [drawn.uniform(0.1, 2.0) for _ in times], pod=pod)
            history.add_series(APP, "memory", times, [drawn.uniform(1e8, 2e9) for _ in times], pod=pod)
    return history


def test_rows_of_days_add_up_to_the_window_that_they_came_from() -> None:
    history = history_of_days(14)
    rows = [row for day in range(FIRST_DAY, FIRST_DAY + 14) for row in rows_of_batch(history, day)]
    merged = merge_rows(reversed(rows), 14)
    for resource in ("cpu", "memory"):
        assert merged.windows[resource] == history.compressed_window(APP, resource)
        assert merged.windows[resource].dump() == history.compressed_window(APP, resource).dump()


def test_a_live_history_gives_the_same_rows_of_days_that_are_over() -> None:
    live = LiveHistory()
    batch = history_of_days(3)
    live.add_batch(batch)
    (cpu, memory) = rows_of_live(live, FIRST_DAY + 2)
    (expected_cpu, expected_memory) = rows_of_batch(batch, FIRST_DAY + 2)
    assert (cpu.histogram, cpu.hours) == (expected_cpu.histogram, expected_cpu.hours)
    assert (memory.histogram, memory.first, memory.last) == (
        expected_memory.histogram,
        expected_memory.first,
        expected_memory.last,
    )


def test_two_rows_of_one_day_add_up() -> None:
    rows = list(rows_of_batch(history_of_days(2), FIRST_DAY))
    assert {check_row(row) for row in rows} == {FIRST_DAY}
    assert merge_rows([*rows, *rows], 14).windows["cpu"].merge_days().total_count == 2 * 2 * 48


@given(
    st.permutations(
        [
            OomRecord(at=at, used=used, count=count, last=last)
            for at, used, count, last in (
                (100, 1e9, 1, 100),
                (90, 3e9, 2, 95),
                (100, 1e9, 4, 100),
                (1_000_000, 5e8, 1, 1_000_000),
            )
        ]
    )
)
def test_the_record_of_kills_does_not_depend_on_their_order(kills: list[OomRecord]) -> None:
    assert merge_kills(kills, 14 * DAY) == merge_kills(sorted(kills, key=lambda one: one.count), 14 * DAY)


def test_averages_of_pods_survive_and_a_single_pod_has_none() -> None:
    pods = {"b": (200, 10, 0.5), "a": (100, 20, 1.5)}
    assert decode_pods(encode_pods(pods)) == pods
    assert encode_pods({"a": (1, 1, 1.0)}) == b""


def damaged(**changes: object) -> DailyRow:
    row = next(rows_of_batch(history_of_days(1), FIRST_DAY))
    fields = {name: getattr(row, name) for name in DailyRow.__slots__}
    return DailyRow(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "row",
    [
        damaged(first=5),
        damaged(last=(FIRST_DAY + 1) * DAY),
        damaged(hours=1 << 24),
        damaged(histogram=b""),
        damaged(histogram=b"\0" * 9),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(row: DailyRow) -> None:
    with pytest.raises(DamagedHistogram):
        check_row(row)


def test_a_row_of_another_resource_is_refused() -> None:
    with pytest.raises(DamagedHistogram, match="rows of cpu and memory"):
        merge_rows([damaged(resource="disk")], 14)
