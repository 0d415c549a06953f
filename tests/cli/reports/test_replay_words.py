"""The figures of a replay as text."""

import pytest

from tests.reasons import has_facts
from trimtab.cli.reports.replay_words import describe_evictions, describe_saving, format_money, format_signed


def test_an_amount_that_is_shown_as_zero_has_no_sign() -> None:
    assert [format_money(amount) for amount in (-0.0, -0.004, -0.006)] == ["$0.00", "$0.00", "−$0.01"]
    assert [format_signed(hours) for hours in (-0.0, -0.04, -0.06, 0.04)] == ["0.0", "0.0", "−0.1", "0.0"]


@pytest.mark.parametrize(
    ("core_hours", "dollars", "facts"),
    [
        (12.5, 1.2, ("12.5 core hours ($1.20)", "saved")),
        (12.5, None, ("12.5 core hours", "saved")),
        (-12.5, -1.2, ("12.5 core hours ($1.20)", "more")),
        (12.5, -1.2, ("12.5 core hours", "saved", "$1.20", "more")),
        (-12.5, 1.2, ("12.5 core hours", "more", "$1.20", "saved")),
        (0.0, 1.2, ("$1.20", "saved")),
        (-0.01, -0.0, ("nothing saved",)),
        (0.0, None, ("nothing saved",)),
        (None, None, ("–",)),
    ],
)
def test_hours_and_money_have_each_their_own_sign(
    core_hours: float | None, dollars: float | None, facts: tuple[str, ...]
) -> None:
    words = describe_saving(core_hours, dollars)
    assert has_facts(words, *facts)
    assert words.count("saved") + words.count("more") == len(set(facts) & {"saved", "more", "nothing saved"})


def test_a_share_is_that_of_what_would_have_run_without_trimtab() -> None:
    assert has_facts(describe_saving(12.5, 1.2, without=250.0), "12.5 core hours", "5.0 %", "$1.20", "saved")
    assert has_facts(describe_saving(-12.5, None, without=250.0), "12.5 core hours", "5.0 %", "more")
    assert describe_saving(0.0, 0.0, without=0.0) == "nothing saved"


def test_evictions_are_compared_with_those_of_the_autoscaler_alone() -> None:
    assert has_facts(describe_evictions(1, 8), "1 eviction", "8")
    assert describe_evictions(1_200, None) == "1,200 evictions"
