"""What a pod may say about its own evictions, and what cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.disruption_terms import (
    COST_ANNOTATION,
    DELETION_COST_ANNOTATION,
    MAX_COST,
    MAX_WINDOWS,
    PER_DAY_ANNOTATION,
    WINDOW_EXAMPLE,
    WINDOWS_ANNOTATION,
    TermMistake,
    parse_windows,
    read_terms,
)
from trimtab.cluster.timestamps import WeeklyWindow

SATURDAY_NOON = 1767441600 - 86400 * 0  # 2026-01-03T12:00:00Z


def test_a_window_has_days_times_and_a_zone() -> None:
    assert parse_windows(WINDOW_EXAMPLE) == (
        WeeklyWindow(days=("mon", "tue", "wed", "thu", "fri"), start=1320, end=360, zone="Europe/Berlin"),
        WeeklyWindow(days=("sat", "sun"), start=0, end=0),
    )


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("00:00-24:00", True),
        ("sat 12:00-13:00", True),
        ("sat 12:00-13:00 Asia/Tokyo", False),
        ("sun-fri 00:00-24:00", False),
    ],
)
def test_windows_open_by_the_clock_of_their_zone(text: str, is_open: bool) -> None:
    assert read_terms({WINDOWS_ANNOTATION: text}).is_open(SATURDAY_NOON) is is_open


@pytest.mark.parametrize("text", ["fri-mon 22:00-23:00", "Fri-Mon 22:00-23:00", "mon,fri-sun 22:00-23:00"])
def test_days_are_put_in_the_order_of_the_week(text: str) -> None:
    [window] = parse_windows(text)  # type: ignore[misc]
    assert window.days == ("mon", "fri", "sat", "sun")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "always",
        "02:00-02:00",
        "02:00-02:14",
        "23:50-00:04",
        "24:00-25:00",
        "2:00-3:00",
        "02:00-03:60",
        "mondays 02:00-03:00",
        "mon-xyz 02:00-03:00",
        "02:00-03:00 Mars/Crater",
        "02:00-03:00 ../../etc/passwd",
        "02:00-03:00; never",
        "02:00-03:00;" * (MAX_WINDOWS + 1),
        "02:00-03:00" + " " * 300,
    ],
)
def test_windows_that_never_open_or_cannot_be_read_are_a_mistake_and_closed(text: str) -> None:
    terms = read_terms({WINDOWS_ANNOTATION: text})
    assert [mistake.annotation for mistake in terms.mistakes] == [WINDOWS_ANNOTATION]
    assert not terms.is_open(SATURDAY_NOON)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "cheap", "1e3", "1001", "9" * 5000, "١"])
def test_a_cost_that_cannot_be_read_counts_like_the_largest(text: str) -> None:
    terms = read_terms({COST_ANNOTATION: text})
    assert len(terms.mistakes) == 1
    assert terms.capped_cost(7) == 7


@pytest.mark.parametrize("text", ["0", "-3", "many", "10001"])
def test_a_daily_number_below_one_is_a_mistake(text: str) -> None:
    assert isinstance(read_terms({PER_DAY_ANNOTATION: text}).per_day, TermMistake)


@pytest.mark.parametrize(
    ("text", "cost"), [("0", 0), ("1", 1), ("100", 3), ("2147483647", 10), ("-100", 0), ("x", 0), ("9" * 99, 0)]
)
def test_of_a_deletion_cost_the_magnitude_counts(text: str, cost: int) -> None:
    assert read_terms({DELETION_COST_ANNOTATION: text}).cost == cost


def test_the_own_cost_comes_before_the_deletion_cost() -> None:
    assert read_terms({DELETION_COST_ANNOTATION: "100", COST_ANNOTATION: "0"}).cost == 0


@given(st.integers(0, 2**31 - 2))
def test_a_higher_deletion_cost_is_never_cheaper(cost: int) -> None:
    lower, higher = (read_terms({DELETION_COST_ANNOTATION: str(one)}).capped_cost(MAX_COST) for one in (cost, cost + 1))
    assert lower <= higher


@given(st.dictionaries(st.sampled_from([COST_ANNOTATION, WINDOWS_ANNOTATION, PER_DAY_ANNOTATION]), st.text()))
def test_any_text_is_read_or_is_a_mistake_that_quotes_little(annotations: dict[str, str]) -> None:
    terms = read_terms(annotations)
    assert 0 <= terms.capped_cost(20) <= 20
    assert all(len(mistake.actual) <= 60 for mistake in terms.mistakes)
