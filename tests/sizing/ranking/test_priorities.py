"""Which node group is bought first?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizing.ranking.golden import WORKLOAD, candidate_of
from trimtab.machines.expander_map import ExpanderMap, parse_expander_map
from trimtab.sizing.ranking.priorities import rate_groups
from trimtab.sizing.ranking.rank_types import RankingRules, rank_types

NAMES = ("E16ps_v6", "E8ps_v6", "E16s_v6", "D16s_v5")
RANKING = rank_types(WORKLOAD, map(candidate_of, NAMES), RankingRules())
TYPES = {"arm-16": "E16ps_v6", "arm-8": "E8ps_v6", "x86-16": "E16s_v6", "small": "D16s_v5"}


def test_the_best_type_comes_first_then_the_best_of_another_family() -> None:
    rated = rate_groups(RANKING, TYPES, TYPES)
    assert rated.priorities == {"arm-16": 100, "x86-16": 90, "arm-8": 80, "small": 70}
    assert rated.problems == ()


def test_legacy_groups_come_last() -> None:
    rated = rate_groups(RANKING, TYPES, TYPES, legacy=["arm-8"])
    assert rated.priorities == {"arm-16": 100, "x86-16": 90, "small": 80, "arm-8": 1}


def test_groups_of_spot_machines_come_before_all_others_in_the_same_order() -> None:
    types = {**TYPES, "spot-16": "E16ps_v6", "spot-x86": "D16s_v5"}
    rated = rate_groups(RANKING, types, types, spot={"spot-16", "spot-x86"})
    order = sorted(types, key=lambda name: -rated.priorities[name])
    assert (order[:3], rated.problems) == (["spot-16", "spot-x86", "arm-16"], ())


@pytest.mark.parametrize(
    ("spot_price", "first"),
    [(None, "spot"), (200_000, "spot"), (880_000, "spot"), (890_000, "arm-16")],
)
def test_a_group_of_spot_machines_counts_with_its_own_price(spot_price: int | None, first: str) -> None:
    types = {"arm-16": "E16ps_v6", "spot": "E16ps_v6"}
    prices = {} if spot_price is None else {"E16ps_v6": spot_price}
    rated = rate_groups(RANKING, types, types, spot={"spot"}, spot_prices=prices)
    assert (min(types, key=lambda name: -rated.priorities[name]), rated.problems) == (first, ())


def test_a_poor_type_on_spot_comes_after_a_good_one_on_demand() -> None:
    types = {"good": "E16ps_v6", "poor": "D16s_v5"}
    rated = rate_groups(RANKING, types, types, spot={"poor"}, spot_prices={"D16s_v5": 700_000})
    assert rated.priorities == {"good": 100, "poor": 90}


def test_a_legacy_group_of_spot_machines_stays_last() -> None:
    rated = rate_groups(RANKING, TYPES, TYPES, legacy=["arm-8"], spot={"arm-8"})
    assert rated.priorities["arm-8"] == 1


def test_a_group_of_an_unknown_type_is_left_to_the_catch_all() -> None:
    rated = rate_groups(RANKING, TYPES, [*TYPES, "somebody"])
    assert rated.unnamed == ("somebody",)
    assert rated.priorities["somebody"] == 0


def test_groups_whose_names_begin_alike_are_told_apart() -> None:
    types = {"a-z1": "E16ps_v6", "a-z10": "D16s_v5"}
    assert rate_groups(RANKING, types, types).priorities == {"a-z1": 100, "a-z10": 90}


@given(st.dictionaries(st.text("az01-.[]()+/", min_size=1, max_size=8), st.sampled_from(NAMES), min_size=1, max_size=8))
def test_every_map_does_what_it_says(types: dict[str, str]) -> None:
    rated = rate_groups(RANKING, types, types)
    assert rated.problems == ()
    parsed = parse_expander_map(rated.text)
    assert isinstance(parsed, ExpanderMap)
    best = parsed.best_groups(sorted(types))
    assert {rated.priorities[name] for name in best} == {max(rated.priorities.values())}
