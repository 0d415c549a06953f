"""Pods that somebody else moved are recognised by what can be seen: their node goes, they go, others of their owner
come."""

from collections.abc import Iterable

import pytest

from tests.cluster_of import NOW, Item, cluster, node, pod
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.moves_by_others import MovesByOthers

REST = 3600
AUTOSCALER = [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": str(NOW)}]
KARPENTER = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]


def view(at: int, *items: Item, ours: Iterable[str] = ()) -> ClusterView:
    notes = {name: DrainAnnotation(drain="d", pool="all", since=NOW, moves=()) for name in ours}
    return ClusterView(now=NOW + at, inventory=cluster(*items), annotations=DrainAnnotations(notes))


def replica(name: str, on: str, created: int, *, stops: bool = False) -> Item:
    more = {"deleted": format_timestamp(NOW)} if stops else {}
    return pod(name, on, app="web", created=format_timestamp(NOW + created), **more)


def moved(*views: ClusterView) -> list[str]:
    moves = MovesByOthers()
    for each in views:
        moves = moves.observe(each, REST)
    return sorted(moves.moved)


BEFORE = (node("a"), node("b"), replica("web-0", "a", -9000), replica("web-1", "b", -9000))


@pytest.mark.parametrize("mark", [AUTOSCALER, KARPENTER], ids=["cluster-autoscaler", "karpenter"])
def test_a_pod_that_an_autoscaler_moved_is_recognised(mark: list[Item]) -> None:
    marked = view(2, node("a", taints=mark), *BEFORE[1:])
    after = view(4, node("a", taints=mark), *BEFORE[1:2], BEFORE[3], replica("web-2", "b", 3))
    assert moved(view(0, *BEFORE), marked, after) == ["default/web-2"]


def test_so_is_one_whose_node_went_between_two_looks() -> None:
    assert moved(view(0, *BEFORE), view(60, BEFORE[1], BEFORE[3], replica("web-2", "b", 30))) == ["default/web-2"]


def test_and_one_that_somebody_drained_with_kubectl() -> None:
    stopping = view(2, node("a", cordoned=True), node("b"), replica("web-0", "a", -9000, stops=True), BEFORE[3])
    after = view(4, node("a", cordoned=True), node("b"), BEFORE[3], replica("web-2", "b", 3))
    assert moved(view(0, *BEFORE), stopping, after) == ["default/web-2"]


def test_no_more_pods_than_left_are_recognised_the_oldest_first() -> None:
    new = [replica(f"web-{number}", "b", number) for number in (9, 8, 7)]
    assert moved(view(0, *BEFORE), view(60, BEFORE[1], BEFORE[3], *new)) == ["default/web-7"]


def test_a_cordon_alone_moves_nothing_nor_do_drains_of_ours() -> None:
    scaled = replica("web-2", "b", 3)
    assert moved(view(0, *BEFORE), view(4, node("a", cordoned=True), *BEFORE[1:], scaled)) == []
    ours = view(4, node("a", cordoned=True), BEFORE[1], BEFORE[3], scaled, ours=("a",))
    assert moved(view(0, *BEFORE), ours) == []


def test_pods_that_were_there_before_and_pods_of_others_are_not_recognised() -> None:
    other = pod("api-0", "b", app="api", created=format_timestamp(NOW + 30))
    assert moved(view(0, *BEFORE), view(60, BEFORE[1], BEFORE[3], other)) == []


def test_a_move_is_forgotten_after_the_rest() -> None:
    first = (view(0, *BEFORE), view(60, BEFORE[1], BEFORE[3], replica("web-2", "b", 30)))
    later = view(60 + REST, BEFORE[1], BEFORE[3], replica("web-2", "b", 30))
    assert moved(*first, later) == []
