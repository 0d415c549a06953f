"""Which clusters to merge, and which not."""

import msgspec

from trimtab.fleet.cluster_digest import ClusterDigest, FreeNode, PodSize
from trimtab.fleet.cluster_merge import CONTROL_PLANE_COST, find_merges, place_sizes

DOLLAR = 1_000_000


def cluster(name: str, cost: int, free: int = 0, pods: int = 4, **more: object) -> ClusterDigest:
    """A cluster whose pods request a core and a GiB each, on nodes of eight cores."""
    digest = ClusterDigest(
        cluster=name,
        nodes=2,
        pods=pods,
        cost=cost * DOLLAR,
        saved_by_plan=0,
        nodes_to_remove=0,
        evictions=0,
        pools=[],
        regions=["eu-west-1"],
        architectures=["amd64"],
        karpenter_nodes=0,
        workload=None,
        pod_sizes=[PodSize(1000, 1024, pods)],
        free_nodes=[FreeNode(free * 1000, free * 4096, 100)],
        typical_node=FreeNode(8000, 32768, 110),
        typical_cost=100 * DOLLAR,
    )
    return msgspec.structs.replace(digest, **more)


def test_a_small_cluster_moves_into_the_room_of_a_large_one() -> None:
    (merge,) = find_merges([cluster("small", 200), cluster("large", 900, free=10)])
    assert (merge.source, merge.target, merge.nodes_added) == ("small", "large", 0)
    assert merge.saved == 200 * DOLLAR + CONTROL_PLANE_COST


def test_new_nodes_of_the_target_are_paid_for() -> None:
    (merge,) = find_merges([cluster("small", 200), cluster("large", 900)])
    assert (merge.nodes_added, merge.saved) == (1, 100 * DOLLAR + CONTROL_PLANE_COST)


def test_a_merge_that_costs_more_is_none() -> None:
    assert find_merges([cluster("small", 20, pods=40), cluster("large", 900)]) == []


def test_regions_architectures_and_labels_keep_clusters_apart() -> None:
    large = cluster("large", 900, free=10, node_labels=["disk=ssd"])
    for more in (
        {"regions": ["us-east-1"]},
        {"regions": []},
        {"architectures": ["arm64"]},
        {"node_selectors": ["gpu=a100"]},
        {"pod_sizes": [PodSize(9500, 1, 1)]},
    ):
        assert find_merges([cluster("small", 200, **more), large]) == []
    assert len(find_merges([cluster("small", 200, node_selectors=["disk=ssd"]), large])) == 1


def test_the_room_of_a_target_is_spent_once_and_no_source_is_a_target() -> None:
    merges = find_merges([cluster("a", 100), cluster("b", 150), cluster("large", 900, free=5)])
    assert [(one.source, one.target) for one in merges] == [("b", "large"), ("a", "large")] or {
        (one.source, one.target) for one in merges
    } == {("a", "large"), ("b", "large")}
    assert sum(one.nodes_added for one in merges) == 1


def test_large_pods_come_first_and_slots_count() -> None:
    nodes = [FreeNode(4000, 8192, 2), FreeNode(2000, 8192, 1)]
    assert place_sizes([PodSize(1000, 10, 2), PodSize(3000, 10, 1)], nodes, None) == (
        [FreeNode(0, 8172, 0), FreeNode(1000, 8182, 0)],
        0,
    )
    assert place_sizes([PodSize(1000, 10, 4)], nodes, None) is None
