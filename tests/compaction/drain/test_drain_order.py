"""Which of several drains takes its next step first."""

import pytest

from tests.cluster_of import NOW, cluster, node, pod
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.drain_order import order_drains

SMALL, LARGE, WIDE = ("1", "1Gi"), ("4", "1Gi"), ("4", "8Gi")


def order(
    pods: dict[str, tuple[str, str]], since: dict[str, int], broken: tuple[str, ...] = (), gone: tuple[str, ...] = ()
) -> list[str]:
    """The nodes in order; each has one pod of this size, and its drain began so many seconds ago. `broken`: nodes
    whose annotation cannot be read. `gone`: nodes whose pod has left already."""
    items = [node(name, "8") for name in since]
    items += [pod(f"p-{name}", name, cpu, memory=memory) for name, (cpu, memory) in pods.items() if name not in gone]
    notes = {
        name: DrainAnnotation(
            drain=name, pool="all", since=NOW - ago, moves=(PodToEvict(pod=f"default/p-{name}", uid=f"uid-p-{name}"),)
        )
        for name, ago in since.items()
    }
    ours = {**notes, **{name: Unreadable(where="the annotation", problem="it is not JSON") for name in broken}}
    view = ClusterView(now=NOW, inventory=cluster(*items), annotations=DrainAnnotations(ours))
    return [result.name for result, _ in order_drains(view)]


@pytest.mark.parametrize(
    ("pods", "since", "expected"),
    [
        ({"a": SMALL, "b": LARGE}, {"a": 60, "b": 60}, ["b", "a"]),
        ({"a": LARGE, "b": WIDE}, {"a": 60, "b": 60}, ["b", "a"]),
        ({"a": SMALL, "b": LARGE}, {"a": 61, "b": 60}, ["a", "b"]),
        ({"a": SMALL, "b": SMALL}, {"b": 60, "a": 60}, ["a", "b"]),
    ],
    ids=["most-cpu", "then-most-memory", "what-began-first-is-first-all-the-same", "equal-ones-by-name"],
)
def test_of_drains_that_began_together_the_one_with_the_largest_pod_is_first(
    pods: dict[str, tuple[str, str]], since: dict[str, int], expected: list[str]
) -> None:
    assert order(pods, since) == expected


def test_only_pods_that_are_still_to_be_evicted_count() -> None:
    assert order({"a": SMALL, "b": LARGE}, {"a": 60, "b": 60}, gone=("b",)) == ["a", "b"]


def test_a_node_whose_annotation_cannot_be_read_is_first() -> None:
    assert order({"a": LARGE, "b": SMALL}, {"a": 60, "b": 60}, broken=("b",)) == ["b", "a"]
