"""Does the speed of a core count where it is known, and nowhere else?"""

from dataclasses import replace
from math import sqrt

import pytest

from tests.sizing.ranking.golden import WORKLOAD, candidate_of
from trimtab.machines.machine_types import MachineType
from trimtab.sizing.ranking.break_even import compare_families
from trimtab.sizing.ranking.candidates import CoreSpeeds, Performance, read_core_speeds
from trimtab.sizing.ranking.rank_types import RankingRules, rank_types


def of_speed(name: str, coremark: int | None, *, is_estimated: bool = False) -> MachineType:
    return MachineType(
        name=name,
        cloud="aws",
        arch="amd64",
        cores=8,
        memory_mib=32768,
        visible_mib=None,
        max_pods=None,
        max_volumes=None,
        coremark=coremark,
        is_coremark_estimated=is_estimated,
    )


TABLE = {
    kind.name: kind
    for kind in (of_speed("slow", 14235), of_speed("fast", 28470), of_speed("middle", 17082), of_speed("new", None))
}


def test_a_speed_is_limited_because_a_benchmark_overstates_it() -> None:
    speeds = read_core_speeds(TABLE, {"slow"}, Performance.CLAMPED)
    assert (speeds.factor_of("slow"), speeds.factor_of("fast"), speeds.factor_of("middle")) == (1.0, 1.5, 1.2)


def test_the_root_of_a_speed_is_not_limited() -> None:
    assert read_core_speeds(TABLE, {"slow"}, Performance.ROOT).factor_of("fast") == pytest.approx(sqrt(2))


def test_a_type_of_unknown_speed_is_as_fast_as_the_slowest_present_node() -> None:
    assert read_core_speeds(TABLE, {"fast", "middle"}, Performance.CLAMPED).factor_of("new") == 1.2


@pytest.mark.parametrize("present", ["new", "", "not-in-the-table"])
def test_no_speed_counts_where_that_of_a_present_node_is_not_known(present: str) -> None:
    speeds = read_core_speeds(TABLE, {"slow", present}, Performance.CLAMPED)
    assert (speeds.factor_of("fast"), speeds.unknown) == (1.0, (present,))


def test_every_core_counts_as_one_if_speeds_are_off() -> None:
    assert read_core_speeds(TABLE, {"slow"}, Performance.OFF) == CoreSpeeds()


GUESSED = {
    kind.name: kind
    for kind in (
        of_speed("slow", 14235, is_estimated=True),
        of_speed("fast", 28470, is_estimated=True),
        of_speed("slower", 12812, is_estimated=True),
    )
}


@pytest.mark.parametrize("performance", [Performance.CLAMPED, Performance.ROOT])
def test_an_estimate_makes_a_type_worse_than_the_present_ones_but_none_better(performance: Performance) -> None:
    speeds = read_core_speeds(GUESSED, {"slow"}, performance)
    assert (speeds.factor_of("slow"), speeds.factor_of("fast"), speeds.is_limited) == (1.0, 1.0, True)
    assert speeds.factor_of("slower") < 1.0


def test_of_present_types_whose_speed_is_an_estimate_none_is_better_than_another() -> None:
    speeds = read_core_speeds(GUESSED, {"slow", "fast"}, Performance.CLAMPED)
    assert (speeds.factor_of("slow"), speeds.factor_of("fast")) == (1.0, 1.0)


def test_estimates_count_as_they_are_if_asked_for() -> None:
    speeds = read_core_speeds(GUESSED, {"slow"}, Performance.ESTIMATED)
    assert (speeds.factor_of("fast"), speeds.is_limited) == (1.5, False)


def test_a_family_breaks_even_at_the_price_at_which_it_is_as_good_as_the_best_type() -> None:
    ranking = rank_types(WORKLOAD, [candidate_of("E8s_v5"), candidate_of("D8s_v5")], RankingRules())
    best, other = compare_families(ranking)
    assert (best.score.candidate.name, best.break_even) == ("E8s_v5", 1.0)
    cheaper = candidate_of("D8s_v5").price * other.break_even
    again = rank_types(
        WORKLOAD, [candidate_of("E8s_v5"), replace(candidate_of("D8s_v5"), price=round(cheaper))], RankingRules()
    )
    values = [score.gib_per_dollar for score in again.scores]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert other.core_price * other.score.capacity.free_cores == pytest.approx(0.46)
