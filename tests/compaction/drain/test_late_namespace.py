"""For whose pods a drain waits that takes too long."""

import pytest

from tests.cluster_of import NOW, Item, cluster, node, pod
from trimtab.cluster.kinds import GroupKind
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.late_namespace import find_late_namespace


def move(key: str, turn: int, *, wanted: int = 1) -> PodToEvict:
    name = key.partition("/")[2]
    return PodToEvict(
        pod=key, uid=f"uid-{name}", kind=GroupKind("ReplicaSet"), owner=name.partition("-")[0], turn=turn, wanted=wanted
    )


def scale(app: str, namespace: str) -> Item:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"replicas": 1},
        "status": {"replicas": 1, "readyReplicas": 1},
    }


DELETED = "2026-01-02T23:00:00Z"
A1, B1 = pod("a-1", "n1", namespace="a"), pod("b-1", "n1", namespace="b")
ENDING_A1 = pod("a-1", "n1", namespace="a", deleted=DELETED)
ENDING_B1 = pod("b-1", "n1", namespace="b", deleted=DELETED)


@pytest.mark.parametrize(
    ("left", "turns", "late"),
    [
        ([A1, B1], (0, 1), "a"),
        ([A1, B1], (1, 0), "b"),
        ([A1, B1], (0, 0), ""),
        ([ENDING_A1, B1], (0, 0), "a"),
        ([ENDING_A1, ENDING_B1], (0, 0), ""),
        ([B1], (0, 1), "a"),
        ([B1, pod("a-2", "n2", namespace="a")], (0, 1), "b"),
        ([B1, pod("a-2", "", namespace="a", ready=False)], (0, 1), "a"),
    ],
    ids=[
        "the first turn waits",
        "the first turn is of the other",
        "both wait",
        "one terminates",
        "both terminate",
        "no successor exists",
        "the successor is ready",
        "the successor is not ready",
    ],
)
def test_the_drain_waits_for(left: list[Item], turns: tuple[int, int], late: str) -> None:
    view = ClusterView(
        now=NOW, inventory=cluster(node("n1"), node("n2"), scale("a", "a"), scale("b", "b"), *left), pools=()
    )
    note = DrainAnnotation(
        drain="d", pool="all", since=NOW - 60, home="x", moves=(move("a/a-1", turns[0]), move("b/b-1", turns[1]))
    )
    on_node = {pod.uid: pod for pod in view.inventory.pods if pod.node == "n1"}
    assert find_late_namespace(note, on_node, Workloads(view)) == late
