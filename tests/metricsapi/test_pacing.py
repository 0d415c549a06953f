"""The pace of scrapes, as laws: what is allowed at once, and what after a while."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.metricsapi.pacing import PaceLimits, ScrapePace


def pace(least: float, most: float, debt: float, surplus: float) -> ScrapePace:
    limits = PaceLimits(min_per_second=least, max_per_second=most, max_debt=debt, max_surplus=surplus)
    return ScrapePace(limits, now=0.0)


def starts(of: ScrapePace, *, eager: bool) -> int:
    """How many scrapes may start now, one after the other."""
    count = 0
    while of.take_start(eager=eager) and count < 1000:
        count += 1
    return count


RATES = st.floats(0.1, 100)
BUDGETS = st.floats(1, 200)
STEPS = st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.integers(1, 50)), max_size=30)
"""(seconds until then, whether the targets are new, scrapes that are asked for)."""


@given(RATES, RATES, BUDGETS, BUDGETS, STEPS)
def test_no_more_start_than_the_budgets_and_the_time_give(
    least: float, most: float, debt: float, surplus: float, steps: list[tuple[float, bool, int]]
) -> None:
    """G15 to G18 for all figures: in any time at most the surplus and the maximum rate; known targets at most the debt
    and the minimum rate; after every refusal another one at the same time."""
    limited = pace(least, most, debt, surplus)
    now, all_starts, lazy_starts = 0.0, 0, 0
    for seconds, eager, count in steps:
        now += seconds
        limited.advance_to(now)
        allowed = [limited.take_start(eager=eager) for _ in range(count)]
        assert allowed == sorted(allowed, reverse=True)
        all_starts += sum(allowed)
        lazy_starts += 0 if eager else sum(allowed)
        assert all_starts <= surplus + most * now + 1e-6
        assert lazy_starts <= min(debt, least * now) + least * now + 1e-6


@given(RATES, BUDGETS, BUDGETS)
def test_at_time_zero_new_targets_start_and_known_ones_do_not(least: float, debt: float, surplus: float) -> None:
    limited = pace(least, 100, debt, surplus)
    assert not limited.take_start(eager=False)
    assert starts(limited, eager=True) == int(surplus + 1e-9)


@given(RATES, BUDGETS, st.floats(0, 1000))
def test_a_pause_is_made_up_for_to_the_debt_and_no_further(least: float, debt: float, seconds: float) -> None:
    limited = pace(least, 1000, debt, 1000)
    limited.advance_to(seconds)
    owed = min(debt, seconds * least)
    assert owed - 1 - 1e-6 <= starts(limited, eager=False) <= owed + 1e-6


def test_new_targets_start_at_once_up_to_the_surplus() -> None:
    assert starts(pace(2, 4, 20, 10), eager=True) == 10


def test_the_surplus_fills_at_the_maximum_rate() -> None:
    limited = pace(2, 4, 10, 25)
    assert starts(limited, eager=True) == 25
    limited.advance_to(5)
    assert starts(limited, eager=True) == 20


def test_what_is_owed_does_not_exceed_the_surplus() -> None:
    limited = pace(5, 10, 50, 10)
    limited.advance_to(60)
    assert starts(limited, eager=True) == 10
    assert starts(limited, eager=False) == 0


@pytest.mark.parametrize(("debt", "seconds", "expected"), [(100, 4, 6), (5, 40, 5), (100, 0, 0)])
def test_known_targets_start_at_the_minimum_rate_up_to_the_debt(debt: float, seconds: float, expected: int) -> None:
    limited = pace(1.5, 100, debt, 100)
    limited.advance_to(seconds)
    assert starts(limited, eager=False) == expected


@given(st.lists(st.floats(0, 1), max_size=60))
def test_new_targets_take_nothing_of_what_known_ones_are_owed(pauses: list[float]) -> None:
    """Between two looks, one new target starts; the known ones are owed what they are without it."""
    disturbed, alone = pace(1, 1000, 50, 1000), pace(1, 1000, 50, 1000)
    now = 0.0
    for pause in pauses:
        now += pause
        disturbed.advance_to(now)
        alone.advance_to(now)
        assert disturbed.take_start(eager=True)
    assert starts(disturbed, eager=False) == starts(alone, eager=False)
