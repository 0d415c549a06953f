"""The bounds that plans are measured against hold in a cluster in which nothing can move."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

lp = pytest.importorskip("tests.bench.lp", reason="scipy is of the extra `bench`")


def small_problem(pods_to_move: dict[int, list[int]]) -> SimpleNamespace:
    """Returns a problem in which a node saves one core, and a pod asks for one core and one byte."""
    requests = {pod: SimpleNamespace(major=1, minor=1) for pods in pods_to_move.values() for pod in pods}
    savings = dict.fromkeys(pods_to_move, 1)
    return SimpleNamespace(candidates=[*pods_to_move], pods_to_move=pods_to_move, requests=requests, savings=savings)


def small_world(*free: int) -> SimpleNamespace:
    """Returns a world of nodes with so much room of both resources."""
    return SimpleNamespace(nodes=[*free], major=[*free], minor=[*free], closed_nodes=[False] * len(free))


def test_without_candidates_nothing_is_saved() -> None:
    assert lp.volume(small_problem({}), small_world(1, 1), 0) == 0


def test_without_evictions_only_empty_nodes_are_saved() -> None:
    assert lp.volume(small_problem({0: [0], 1: []}), small_world(1, 2, 3), 0) == pytest.approx(1)


def test_a_cluster_without_room_saves_nothing() -> None:
    assert lp.volume(small_problem({0: [0], 1: [1]}), small_world(0, 0), 2) == pytest.approx(0)


def test_room_for_one_node_saves_one() -> None:
    assert lp.volume(small_problem({0: [0], 1: [1]}), small_world(1, 1), 2) == pytest.approx(1)
