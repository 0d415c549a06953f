"""Which budgets allow no eviction of the pods that a drain still has to evict."""

from typing import Any

import pytest

from tests.cluster_of import AT, Item, budget, cluster, pod
from trimtab.cluster.pdb import PdbIndex
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.budget_wait import describe_budget_wait

MOVES = tuple(PodToEvict(f"default/web-{number}", f"uid-web-{number}") for number in (1, 2))
SPENT = "budget default/web allows 0 disruptions"


def waits(*items: Item) -> str:
    inventory = cluster(*items)
    pods = {pod.uid: pod for pod in inventory.pods}
    return describe_budget_wait(MOVES, pods, PdbIndex.from_pdbs(inventory.pdbs))


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (budget("web", 0), SPENT),
        (budget("web", 1), ""),
        (budget("api", 0), ""),
        (budget("web", 1, observed=1), "the status of budget default/web is out of date"),
        (
            budget("web", 1, selector={"matchExpressions": [{"key": "app", "operator": "Like"}]}),
            "budget default/web has a selector that is not valid",
        ),
    ],
)
def test_a_budget_that_allows_no_eviction_is_named(item: Item, text: str) -> None:
    assert waits(pod("web-1", "n1"), pod("web-2", "n1"), item) == text


@pytest.mark.parametrize(
    ("state", "text"), [({}, SPENT), ({"deleted": AT}, ""), ({"phase": "Succeeded"}, ""), ({"ready": False}, "")]
)
def test_only_pods_that_need_an_eviction_wait_for_a_budget(state: dict[str, Any], text: str) -> None:
    """An unready pod of a budget whose other pods are healthy is evicted without counting it."""
    assert waits(pod("web-1", "n1", **state), budget("web", 0)) == text


def test_pods_that_are_gone_wait_for_nothing() -> None:
    assert waits(pod("web-3", "n2"), budget("web", 0)) == ""
