"""The adaptive rule: what it asks for, what bounds it, and what it doubts."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasons import has_facts
from trimtab.cluster.recommendation import CHANGED, GROWS, PODS_DIFFER, RARE_PEAKS, Percentiles
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.histogram import UsageHistogram
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.pod_averages import PodUse
from trimtab.histogram.time_buckets import DAY
from trimtab.policy.recorded_usage import describe_origin, find_doubts
from trimtab.sizing.adaptive import estimate_tail, find_cheapest_request, weigh_recent_use
from trimtab.sizing.adaptive_bounds import (
    LARGEST_POD,
    LAST_DAY,
    OOM_KILL,
    AdaptiveRequest,
    adaptive_request,
    max_amount,
)

START = 20_000 * DAY
MI, GI = float(1 << 20), float(1 << 30)
Shape = Callable[[int, int], float]
"""(day, place in the day) → amount."""


def window(shape: Shape, days: int = 14, a_day: int = 288) -> DailyHistograms:
    histograms = DailyHistograms()
    step = DAY // a_day
    for day in range(days):
        for place in range(a_day):
            histograms.add_value(START + day * DAY + place * step, shape(day, place))
    return histograms


def asked(resource: str, shape: Shape, days: int = 14, **more: object) -> AdaptiveRequest:
    histograms = window(shape, days, 288 if resource == "cpu" else 4)
    return adaptive_request(resource, histograms, histograms.last, **more)  # type: ignore[arg-type]


# ── the rule ─────────────────────────────────────────────────────────────
def test_what_is_steady_asks_for_little_more_than_it_uses() -> None:
    assert 0.4 <= asked("cpu", lambda day, place: 0.4).amount <= 0.46
    assert 500 * MI <= asked("memory", lambda day, place: 500 * MI).amount <= 600 * MI


def test_every_day_that_is_like_the_others_makes_the_request_smaller() -> None:
    amounts = [asked("memory", lambda day, place: GI, days=days).amount for days in (1, 3, 7, 14)]
    assert amounts == sorted(amounts, reverse=True)
    assert amounts[0] <= 1.8 * GI


def test_a_busy_week_that_is_over_fades() -> None:
    busy = asked("cpu", lambda day, place: 2.0 if day < 4 else 0.2)
    assert busy.amount < 0.5  # P95 of the window is 2 cores


def test_no_container_is_short_of_cpu_for_more_than_a_tenth_of_its_recent_time() -> None:
    bursts = asked("cpu", lambda day, place: 16.0 if place < 35 else 0.1)
    assert bursts.share >= 0.9


AMOUNTS = st.lists(st.floats(0.001, 100.0), min_size=4, max_size=40)


@given(AMOUNTS)
def test_a_request_is_at_least_what_the_last_day_used_and_at_most_three_times_the_largest(values: list[float]) -> None:
    histograms = DailyHistograms()
    for number, value in enumerate(values):
        histograms.add_value(START + number * 3600, value)
    request = adaptive_request("cpu", histograms, histograms.last)
    last = [value for number, value in enumerate(values) if number * 3600 >= (len(values) - 1) * 3600 // DAY * DAY]
    median = sorted(last)[(len(last) - 1) // 2]
    assert median * (1 - 1 / 32) <= request.amount or len(last) <= 3
    assert request.amount <= max_amount("cpu", max(values)) * 1.0001
    assert 0 <= request.share <= 1


@given(AMOUNTS, st.floats(0.1, 10))
def test_the_tail_does_not_depend_on_the_unit_of_what_is_used(values: Sequence[float], factor: float) -> None:
    days, scaled = dict[int, UsageHistogram](), dict[int, UsageHistogram]()
    for number, value in enumerate(values):
        days.setdefault(number // 4, UsageHistogram()).add_value(max(1.0, value))
        scaled.setdefault(number // 4, UsageHistogram()).add_value(max(1.0, value) * factor)
    assert estimate_tail("cpu", days) == pytest.approx(estimate_tail("cpu", scaled))


@given(AMOUNTS)
def test_all_usage_is_within_an_amount_that_no_usage_exceeds(values: Sequence[float]) -> None:
    """The weights of all values need not add up to one in floating point, and do so differently from Python 3.12 on."""
    days = dict[int, UsageHistogram]()
    for number, value in enumerate(values):
        days.setdefault(number // 4, UsageHistogram()).add_value(value)
    assert weigh_recent_use(days).share_of(max(values)) == 1.0


def test_nothing_but_zeros_asks_for_nothing() -> None:
    counts = UsageHistogram()
    counts.add_values([0.0] * 10)
    assert find_cheapest_request("cpu", weigh_recent_use({1: counts})).amount == 0.0


# ── bounds ───────────────────────────────────────────────────────────────
def test_a_step_of_the_last_hours_is_covered_and_doubted() -> None:
    request = asked("cpu", lambda day, place: 2.0 if day == 13 and place >= 144 else 0.2)
    assert (request.amount >= 2.0 * (1 - 1 / 64), request.doubts) == (True, (CHANGED,))
    assert request.remaining_confidence < 0.5


def test_use_that_grows_every_day_says_so_and_is_covered() -> None:
    request = asked("memory", lambda day, place: GI * 1.1**day)
    assert request.amount >= GI * 1.1**13
    assert GROWS in request.doubts


def test_a_peak_that_is_not_covered_leaves_less_than_half_of_the_confidence() -> None:
    request = asked("memory", lambda day, place: 30 * GI if day == 1 and place == 0 else GI)
    assert request.amount < 30 * GI
    assert (RARE_PEAKS in request.doubts, request.remaining_confidence < 0.5) == (True, True)


def pods(count: int, large: int) -> list[PodUse]:
    return [PodUse(f"web-{n}", 3.0 if n < large else 0.2) for n in range(count)]


def test_one_pod_of_thirty_is_named_and_is_no_bound_for_all() -> None:
    request = asked("cpu", lambda day, place: 0.2, pods=pods(30, 1))
    assert (request.pod, request.pod_use, request.doubts) == ("web-0", 3.0, (PODS_DIFFER,))
    assert request.amount < 0.3


def test_a_tenth_of_the_pods_is_a_bound_for_all() -> None:
    request = asked("cpu", lambda day, place: 3.0 if place % 30 == 0 else 0.2, pods=pods(30, 3))
    assert (request.amount, request.bound, request.doubts) == (3.0, LARGEST_POD, ())


def test_a_kill_is_a_floor_but_no_more_than_three_times_the_largest_use() -> None:
    record = OomRecord(at=START + 13 * DAY, used=512 * MI, last=START + 13 * DAY)
    request = asked("memory", lambda day, place: 400 * MI, oom=record)
    assert (request.amount, request.bound, request.kills) == (1.2 * 512 * MI, OOM_KILL, 1)
    huge = OomRecord(at=START + 13 * DAY, used=500 * GI, last=START + 13 * DAY)
    assert asked("memory", lambda day, place: 400 * MI, oom=huge).amount == 1200 * MI


def test_early_in_a_day_the_day_before_counts_as_the_last_24_hours() -> None:
    histograms = window(lambda day, place: 1.5 if day == 13 else 0.2)
    histograms.add_value(START + 14 * DAY + 60, 0.2)
    assert adaptive_request("cpu", histograms, histograms.last).amount >= 1.5 * (1 - 1 / 64)


# ── what it says ─────────────────────────────────────────────────────────
def test_the_sentence_names_the_percentile_and_the_record() -> None:
    def told(**more: object) -> str:
        return describe_origin("cpu", Percentiles(p5="1m", p95="2m", max="100m", record=9, **more))  # type: ignore[arg-type]

    assert has_facts(told(share=0.98, passed=3), "P98", "P95", "exceeded", "3 of 9 days")
    assert told(share=0.92, passed=3) == "P92 of recent days"
    assert has_facts(told(share=1.0, request="112m"), "largest usage", "9 days", "12%")
    assert has_facts(told(bound=LAST_DAY), "last 24 hours")


def test_doubts_have_reasons_and_unknown_ones_are_left_out() -> None:
    usage = Percentiles(p5="1m", p95="2m", signs=(PODS_DIFFER, "of-tomorrow"), pod="web-0", pod_use="3")
    (reason,) = find_doubts("cpu", usage, 1)
    assert (reason.code.name, has_facts(reason.sentence, "web-0", "3 of cpu")) == ("pods-differ", True)
