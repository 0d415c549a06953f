"""What do nodes that are paid for hold, and for what are nodes still to be bought?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizing.ranking.golden import WORKLOAD, candidate_of
from trimtab.sizing.ranking.capacity import CapacityRules, measure_capacity
from trimtab.sizing.ranking.commitments import cover_by_commitments

CANDIDATES = [candidate_of(name) for name in ("E16ps_v6", "D16s_v5", "E8s_v5")]
RULES = CapacityRules()


def test_without_commitments_all_is_left() -> None:
    assert cover_by_commitments(WORKLOAD, CANDIDATES, {}, RULES).rest == WORKLOAD


def test_committed_nodes_hold_what_such_nodes_hold_and_the_rest_keeps_its_ratios() -> None:
    cover = cover_by_commitments(WORKLOAD, CANDIDATES, {"D16s_v5": 10}, RULES)
    usable = measure_capacity(WORKLOAD, CANDIDATES[1], RULES).usable_gib
    assert cover.share == pytest.approx(10 * usable / WORKLOAD.gib)
    assert cover.rest is not None
    assert cover.rest.gib == pytest.approx(WORKLOAD.gib - 10 * usable)
    assert cover.rest.cores_per_gib == pytest.approx(WORKLOAD.cores_per_gib)


def test_more_than_the_workload_needs_stays_unused_and_nothing_is_to_be_bought() -> None:
    cover = cover_by_commitments(WORKLOAD, CANDIDATES, {"D16s_v5": 500}, RULES)
    [nodes] = cover.nodes
    assert cover.rest is None
    assert nodes.count + nodes.unused == 500
    assert cover.share == pytest.approx(1.0)


def test_a_commitment_to_a_type_that_is_no_candidate_holds_nothing() -> None:
    assert cover_by_commitments(WORKLOAD, CANDIDATES, {"other": 5}, RULES).rest == WORKLOAD


@given(st.dictionaries(st.sampled_from(["E16ps_v6", "D16s_v5", "E8s_v5"]), st.integers(0, 60)))
def test_shares_and_what_is_left_make_the_whole(commitments: dict[str, int]) -> None:
    cover = cover_by_commitments(WORKLOAD, CANDIDATES, commitments, RULES)
    left = 0.0 if cover.rest is None else cover.rest.gib / WORKLOAD.gib
    assert cover.share + left == pytest.approx(1.0)
    assert all(one.count + one.unused == commitments[one.candidate.name] for one in cover.nodes)
