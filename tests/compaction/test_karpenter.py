"""What could go of Karpenter's nodes, and which pods block its own consolidation."""

import pytest

from tests.cluster_of import NOW, Item, budget, cluster, node, pod
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.karpenter import karpenter_outlook
from trimtab.scheduling.cluster_model import build_cluster_model

HIS = {"labels": {"karpenter.sh/nodepool": "default"}}
DO_NOT = "karpenter.sh/do-not-disrupt"


def looked(*more: Item, at: int | None = None) -> dict[str, list[str]]:
    """Code → pods of every reason that blocks Karpenter on nodes a and b."""
    actual_karpenter_outlook = karpenter_outlook(
        build_cluster_model(cluster(node("a", **HIS), node("b", **HIS), *more)), PlanningContext(now=at)
    )
    assert actual_karpenter_outlook is not None
    return {one.code.name: [*one.pods] for one in actual_karpenter_outlook.keepers}


def test_without_karpenter_there_is_no_outlook() -> None:
    assert karpenter_outlook(build_cluster_model(cluster(node("a"))), PlanningContext()) is None


def test_what_could_go_is_counted_though_nothing_is_done() -> None:
    actual_karpenter_outlook = karpenter_outlook(
        build_cluster_model(cluster(node("a", **HIS), node("b", **HIS), pod("web-0", "a"), pod("web-1", "b"))),
        PlanningContext(),
    )
    assert actual_karpenter_outlook is not None
    assert (
        actual_karpenter_outlook.nodes,
        actual_karpenter_outlook.pools,
        actual_karpenter_outlook.could.nodes,
        actual_karpenter_outlook.keepers,
    ) == (2, ("default",), 1, ())


@pytest.mark.parametrize(
    ("what", "blocks"),
    [
        ([pod("web-0", "a", annotations={DO_NOT: "true"})], {"not-safe-to-evict": ["default/web-0"]}),
        ([pod("web-0", "a", annotations={DO_NOT: "48h"})], {"not-safe-to-evict": ["default/web-0"]}),
        ([pod("web-0", "a", annotations={DO_NOT: "1h"})], {}),
        ([pod("web-0", "a", annotations={DO_NOT: "yes"})], {}),
        ([pod("web-0", "a", owner="")], {}),
        ([pod("web-0", "a", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})], {}),
        ([pod("web-0", "a"), budget("web", 0)], {"budget-never-allows": ["default/web-0"]}),
        ([pod("web-0", "a"), budget("web", 1), budget("web", 1, name="two")], {"two-budgets": ["default/web-0"]}),
    ],
)
def test_a_pod_blocks_as_karpenter_takes_it(what: list[Item], blocks: dict[str, list[str]]) -> None:
    assert looked(*what, at=NOW) == blocks
