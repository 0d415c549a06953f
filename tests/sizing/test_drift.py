"""Workloads that change: the bench's cases, but for the one with thirty pods."""

import pytest

from tests.bench.drift import CASES, GI, MI, Case, outcomes

FEW = [case for case in CASES if case.pods == 1]


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_no_request_is_below_what_is_used_now_nor_far_above_the_vpas(case: Case) -> None:
    for one in outcomes(case).values():
        assert not one.below_use
        assert not one.over


def test_use_that_dropped_is_below_the_vpas_after_three_days() -> None:
    (drop,) = [case for case in CASES if case.name == "drop"]
    assert all(one.ours < one.vpa for one in outcomes(drop).values())


def test_a_weekly_peak_is_covered_or_the_confidence_is_below_a_half() -> None:
    (weekly,) = [case for case in CASES if case.name == "weekly"]
    memory = outcomes(weekly)["memory"]
    assert memory.ours >= 6 * GI or memory.confidence < 0.5


def test_a_crash_loop_ends_a_fifth_above_what_was_allowed() -> None:
    (loop,) = [case for case in CASES if case.name == "crash loop"]
    memory = outcomes(loop)["memory"]
    assert 612 * MI <= memory.ours <= memory.vpa * 1.07
