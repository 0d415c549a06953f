"""The pace of scrapes, as laws: what is allowed at once, what after a while, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.metricsapi.pacing import PaceLimits, ScrapePace, ScrapeQueue


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


def settled(*targets: str) -> tuple[ScrapeQueue[str], ScrapePace]:
    """A queue whose targets are no longer new, with much debt."""
    queue, limited = ScrapeQueue[str](), pace(10, 100, 100, 100)
    queue.replace_targets(targets, 0.0)
    assert [queue.take_next(limited) for _ in targets] == list(targets)
    limited.advance_to(10)
    return queue, limited


def test_targets_are_scraped_in_a_circle() -> None:
    queue, limited = settled("a", "b", "c")
    assert [queue.take_next(limited) for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_a_target_that_is_gone_is_skipped() -> None:
    queue, limited = settled("a", "b", "c")
    queue.replace_targets(["a", "c"], 10.0)
    assert [queue.take_next(limited) for _ in range(3)] == ["a", "c", "a"]


def test_a_new_target_comes_first_and_once_more_for_its_rate() -> None:
    queue, limited = settled("a", "b")
    queue.replace_targets(["a", "b", "new"], 10.0, second_after_seconds=10.0)
    assert queue.take_next(limited) == "new"
    assert queue.take_next(limited) == "a"
    limited.advance_to(20)
    assert queue.take_next(limited) == "new"


def test_a_target_that_is_gone_before_its_turn_is_not_scraped() -> None:
    queue, limited = settled("a")
    queue.replace_targets(["a", "new"], 10.0)
    queue.replace_targets(["a"], 10.0)
    assert [queue.take_next(limited) for _ in range(2)] == ["a", "a"]


@given(st.lists(st.one_of(st.frozensets(st.integers(0, 8)), st.integers(1, 6)), max_size=20))
def test_only_present_targets_are_scraped_new_ones_first_and_all_others_in_turn(
    steps: list[frozenset[int] | int],
) -> None:
    """G19 for all orders: sets of targets that come and go, and so many scrapes between them."""
    queue, limited = ScrapeQueue[int](), pace(1000, 1000, 1000, 1000)
    present: frozenset[int] = frozenset()
    awaiting: set[int] = set()
    counts: dict[int, int] = {}
    now = 0.0
    for step in steps:
        now += 1
        limited.advance_to(now)
        if isinstance(step, frozenset):
            queue.replace_targets(sorted(step), now)
            awaiting = (awaiting & step) | (step - present)
            # Whoever is new joins the circle at its end: as if it had been scraped as often as everybody else.
            counts = dict.fromkeys(step, 0)
            present = step
            continue
        for _ in range(step):
            target = queue.take_next(limited)
            if not present:
                assert target is None
                continue
            assert target in present
            if awaiting:
                assert target in awaiting
                awaiting.discard(target)
                continue
            counts[target] += 1
            assert max(counts.values()) - min(counts.values()) <= 1


def test_nobody_is_scraped_while_nothing_is_owed() -> None:
    queue, limited = ScrapeQueue[str](), pace(1, 100, 10, 10)
    queue.replace_targets(["a"], 0.0)
    assert [queue.take_next(limited), queue.take_next(limited)] == ["a", None]


@given(st.integers(1, 50), st.integers(1, 120))
def test_every_target_is_scraped_once_per_interval(count: int, interval: int) -> None:
    queue, limited = ScrapeQueue[int](), pace(count / interval, 1000, 10, 1000)
    queue.replace_targets(range(count), 0.0)
    while queue.take_next(limited) is not None:
        pass
    scraped = []
    for tick in range(1, 10 * interval + 1):
        limited.advance_to(tick / 10)
        while (target := queue.take_next(limited)) is not None:
            scraped.append(target)
        limited.debt = min(limited.debt, 1.0)
    # Never more than once a round, and the round takes one interval. Fractions may leave the last one for later.
    assert len(scraped) <= count
    assert len(set(scraped)) == len(scraped)
