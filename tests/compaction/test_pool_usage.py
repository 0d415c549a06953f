"""What a pool holds, in sums that leave out what cannot be read."""

from dataclasses import replace
from typing import Any

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.pool_usage import PoolUsage, pool_usages

BIG = {"cpu": "4500m", "memory": "70Gi", "pods": "110"}


def machine(name: str, cpu: str = "4", pods: int = 110, capacity: dict[str, str] = BIG, **more: Any) -> Item:
    described_node = node(name, cpu, pods=pods, **more)
    described_node["status"]["capacity"] = capacity
    return described_node


def held(*items: Item) -> PoolUsage:
    return pool_usages(ClusterView(now=NOW, inventory=cluster(*items), pools=(ALL,)))["all"]


def test_sums_are_of_ready_nodes_and_of_pods_that_are_bound_and_not_finished() -> None:
    pool_usage = held(
        machine("n1"),
        machine("n2", ready=False),
        pod("a-1", "n1", "500m", "1Gi"),
        pod("a-2", "n2"),
        pod("a-3", ""),
        pod("a-4", "n1", phase="Succeeded"),
        pod("d-1", "n1", "100m", owner="DaemonSet"),
    )
    assert (list(pool_usage.nodes), pool_usage.capacity["cpu"], pool_usage.allocatable["cpu"]) == (
        ["n1", "n2"],
        4500,
        4000,
    )
    assert pool_usage.requested == {"cpu": 600, "memory": 1 << 30, "pods": 2}


def test_a_node_is_full_by_what_there_is_least_of() -> None:
    packed = [pod(f"p-{number}", "n2", "10m") for number in range(3)]
    pool_usage = held(
        machine("n1"),
        pod("a-1", "n1", "3960m"),
        machine("n2", pods=3),
        *packed,
        machine("n3"),
        pod("a-2", "n3", "3959m"),
    )
    assert pool_usage.full == {"cpu": 1, "pods": 1}


def test_a_node_without_a_price_is_counted_and_not_free() -> None:
    pool_usage = held(machine("n1", labels={"trimtab.dev/price": "250000"}), machine("n2"))
    assert (pool_usage.cost, pool_usage.unpriced) == (250_000, 1)


def test_what_makes_no_sense_is_in_no_sum_and_counted() -> None:
    pool_usage = held(machine("n1", capacity={}), machine("n2"), pod("a-1", "n2", "nonsense"), pod("a-2", "n1"))
    assert pool_usage.unread == {"nodes": 1, "pods": 1}
    assert (pool_usage.requested["cpu"], pool_usage.allocatable["cpu"]) == (0, 4000)


def test_a_ready_node_at_or_below_every_line_is_under_used() -> None:
    """4 cores and half of them is the line: at 2 cores it is under-used, with one millicore more it is not."""
    world = cluster(
        machine("n1"),
        pod("a-1", "n1", "2"),
        machine("n2"),
        pod("a-2", "n2", "2001m"),
        machine("n3", ready=False),
        machine("n4"),
        pod("a-3", "n4", "nonsense"),
        machine("n5"),
    )
    result = pool_usages(ClusterView(now=NOW, inventory=world, pools=(replace(ALL, under={"cpu": 50, "pods": 50}),)))[
        "all"
    ]
    assert result.under_used == 2


def test_a_pool_without_nodes_holds_nothing() -> None:
    assert held() == PoolUsage()
