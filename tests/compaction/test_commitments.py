"""Nodes that are paid for whether they run or not save nothing: as many of a type stay."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, node, pod
from tests.compaction.plans import goes, keeper, planned
from trimtab.cluster.pool import Goal

TYPE = {"labels": {"node.kubernetes.io/instance-type": "m5.large"}}
NODES = [node(name, **TYPE) for name in "abcd"]
PODS = [pod(f"web-{number}", "abcd"[min(number, 3)], "200m") for number in range(5)]
"""One pod each, two on d."""


@pytest.mark.parametrize(
    ("commitments", "gone"),
    [({}, 3), ({"m5.large": 1}, 3), ({"m5.large": 2}, 2), ({"m5.large": 9}, 0), ({"m5.xlarge": 9}, 3)],
)
def test_as_many_nodes_of_a_type_stay_as_are_paid_for(commitments: dict[str, int], gone: int) -> None:
    assert len(goes(*NODES, *PODS, pool=replace(ALL, commitments=commitments))) == gone


def test_a_node_that_stays_anyway_uses_a_commitment_first() -> None:
    pool = replace(ALL, commitments={"m5.large": 1})
    assert goes(*NODES, *PODS, keeper("k", "a", "1"), pool=pool) == ["b", "c", "d"]


def test_a_covered_node_says_so_and_takes_pods() -> None:
    result = planned(*NODES, *PODS, pool=replace(ALL, commitments={"m5.large": 2}))
    paid = [node for node, reason in result.refusals.items() if reason.code.name == "node-covered-by-commitment"]
    assert len(paid) == 2
    assert {move.target for move in result.all_moves} <= set(paid)


def test_who_wants_fewer_nodes_whatever_they_cost_gets_them() -> None:
    assert len(goes(*NODES, *PODS, pool=replace(ALL, commitments={"m5.large": 9}, goal=Goal.NODES))) == 3
