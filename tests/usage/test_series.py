"""What sources do to a series, and what becomes of it."""

from math import inf, nan

from trimtab.usage.series import MAX_GAP_SECONDS, clean_samples, counter_rate


# ── cleaning ─────────────────────────────────────────────────────────────
def test_samples_are_put_in_order_and_of_two_scrapers_the_greater_counts() -> None:
    assert clean_samples([(120, 2.0), (60, 1.0), (120, 3.0), (120, 2.5)]) == ([60, 120], [1.0, 3.0])


def test_what_is_no_amount_or_from_the_future_is_left_out() -> None:
    assert clean_samples([(60, nan), (120, -1.0), (180, inf), (240, 1.0), (9999, 5.0)], now=300) == ([240], [1.0])


# ── counters ─────────────────────────────────────────────────────────────
def test_a_counter_becomes_a_rate() -> None:
    assert counter_rate([0, 60, 120], [100.0, 130.0, 190.0]) == ([60, 120], [0.5, 1.0])


def test_a_counter_that_went_down_began_at_nothing_again() -> None:
    assert counter_rate([0, 60, 120], [100.0, 6.0, 12.0]) == ([60, 120], [0.1, 0.1])


def test_over_a_gap_nothing_is_said() -> None:
    assert counter_rate([0, 60, 60 + MAX_GAP_SECONDS + 1], [0.0, 6.0, 999.0]) == ([60], [0.1])
