"""Rates, resets, stale values: nothing that is not known becomes a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.reason import NotYet
from trimtab.metricsapi.reasons import CLOSE_SAMPLE, FIRST_SAMPLE, STALE_SAMPLE, WIDE_GAP
from trimtab.metricsapi.rules import MetricKind, MetricRule, SampleSource
from trimtab.metricsapi.samples import MetricValue, Sample, SampleStore, is_power_of_two

RULE = MetricRule(name="requests", source=SampleSource.SCRAPE, kind=MetricKind.RATE, max_age_seconds=90, series="r")
GAUGE = MetricRule(name="depth", source=SampleSource.QUERY, kind=MetricKind.GAUGE, max_age_seconds=90)
HOUR = 3600.0


def stored(*samples: tuple[float, float], rule: MetricRule = RULE, started: tuple[float, ...] = ()) -> SampleStore:
    """A store with one pod and these (time, value)."""
    store = SampleStore()
    store.register_pods(["uid"])
    for number, (at, value) in enumerate(samples):
        store.add_sample("uid", rule, Sample(at, {1: value}, started[number] if started else None))
    return store


def shown(store: SampleStore, now: float, rule: MetricRule = RULE) -> int | str:
    """Thousandths, or the code of what is missing."""
    value = store.value_of("uid", rule, now)
    return value.reason.code.name if isinstance(value, NotYet) else value.milli


def test_a_rate_is_the_increase_per_second_cut_to_thousandths() -> None:
    value = stored((HOUR, 10), (HOUR + 60, 20)).value_of("uid", RULE, HOUR + 70)
    assert value == MetricValue(166, HOUR + 60, 60)


@pytest.mark.parametrize(("newest", "expected"), [(HOUR + 60, STALE_SAMPLE.name), (HOUR + 61, 0)])
def test_a_sample_older_than_its_rule_allows_is_withheld(newest: float, expected: int | str) -> None:
    assert shown(stored((HOUR, 5), (newest, 5)), HOUR + 151) == expected


@pytest.mark.parametrize(("gap", "expected"), [(600, 1000), (601, WIDE_GAP.name)])
def test_samples_too_far_apart_make_no_rate(gap: float, expected: int | str) -> None:
    assert shown(stored((0, 0), (gap, gap)), gap) == expected


def test_without_samples_there_is_nothing_and_no_error() -> None:
    assert shown(stored(), HOUR) == FIRST_SAMPLE.name
    assert shown(stored((0, 41)), 1) == FIRST_SAMPLE.name


def test_a_store_keeps_the_two_newest_samples() -> None:
    store, pairs = stored(), []
    for at, value in ((60, 41), (120, 42), (180, 43)):
        store.add_sample("uid", RULE, Sample(at, {1: value}))
        pair = store.pair_of("uid", "requests")
        assert pair is not None
        pairs.append((pair.old and (pair.old.at, pair.old.total), (pair.new.at, pair.new.total)))
    assert pairs == [(None, (60, 41)), ((60, 41), (120, 42)), ((120, 42), (180, 43))]


def test_a_pod_that_is_not_registered_gets_no_samples() -> None:
    store = stored()
    store.add_sample("other", RULE, Sample(60, {1: 1}))
    assert store.pair_of("other", "requests") is None


def test_a_sample_too_soon_after_another_does_not_count() -> None:
    store = stored((0, 42))
    reason = store.add_sample("uid", RULE, Sample(1, {1: 43}))
    assert reason is not None
    assert reason.code is CLOSE_SAMPLE


def test_a_gauge_is_the_newest_value_itself() -> None:
    assert shown(stored((0, 3), (1, 2.5), rule=GAUGE), 2, GAUGE) == 2500


def test_a_restarted_container_has_its_rate_with_the_next_scrape() -> None:
    store = stored((0, 1000), (60, 5))
    assert shown(store, 60) == 83
    store.add_sample("uid", RULE, Sample(120, {1: 65}))
    assert shown(store, 120) == 1000


def test_a_restart_is_seen_by_its_start_time_where_the_counter_has_passed_its_earlier_value() -> None:
    assert shown(stored((0, 10), (60, 30), started=(1, 2)), 60) == 500
    assert shown(stored((0, 10), (60, 30), started=(1, 1)), 60) == 333


def test_a_series_that_vanishes_is_no_reset_of_the_others() -> None:
    store = stored()
    store.add_sample("uid", RULE, Sample(0, {1: 1_000_000, 2: 50}))
    store.add_sample("uid", RULE, Sample(60, {1: 1_000_006}))
    assert shown(store, 60) == 100


def test_a_series_that_is_new_began_at_zero() -> None:
    store = stored()
    store.add_sample("uid", RULE, Sample(0, {1: 100}))
    store.add_sample("uid", RULE, Sample(60, {1: 100, 2: 6}))
    assert shown(store, 60) == 100


def test_samples_of_a_pod_that_is_gone_are_forgotten() -> None:
    store = stored((0, 1), (60, 2))
    store.register_pods([])
    store.register_pods(["uid"])
    assert shown(store, 60) == FIRST_SAMPLE.name


def test_served_and_withheld_pods_are_counted() -> None:
    assert stored((0, 1), (60, 2)).count_values({"requests": RULE}, 61) == {"requests": (1, 0)}
    assert stored((0, 1), (60, 2)).count_values({"requests": RULE}, 999) == {"requests": (0, 1)}


def test_failures_are_logged_at_powers_of_two() -> None:
    assert [count for count in range(20) if is_power_of_two(count)] == [1, 2, 4, 8, 16]


@given(st.lists(st.tuples(st.integers(10, 600), st.floats(0, 1e6), st.booleans()), min_size=1, max_size=20))
def test_a_rate_never_exceeds_what_was_really_counted(steps: list[tuple[int, float, bool]]) -> None:
    """However a process restarts, a served rate is at most the real rate of its interval, and never negative."""
    store, at, counter = stored((0, 0)), 0.0, 0.0
    for seconds, events, restarts in steps:
        at, counter = at + seconds, events if restarts else counter + events
        store.add_sample("uid", RULE, Sample(at, {1: counter}))
        value = store.value_of("uid", RULE, at)
        assert isinstance(value, MetricValue)
        # A restarted counter that has passed its earlier value shows less than really happened, never more.
        assert 0 <= value.milli <= events / seconds * 1000 + 1
