"""Do the real pods fit on as many nodes as the ratios say?"""

from tests.cluster_of import apart, cluster, node, pod, spread
from trimtab.cluster.cluster_state import Inventory
from trimtab.sizing.ranking.capacity import Candidate, CapacityRules, NodeReservation, measure_capacity
from trimtab.sizing.ranking.packing import NodeStock, PackingCheck, check_by_packing
from trimtab.sizing.ranking.workload import PoolWorkload, measure_workload


def of_size(name: str, cores: float, gib: float, **more: int) -> Candidate:
    return Candidate(
        name=name,
        family=name,
        architecture="amd64",
        cores=cores,
        gib=gib,
        visible_gib=gib,
        price=1_000_000,
        reservation=NodeReservation(),
        **more,
    )


def packed(inventory: Inventory, *stock: tuple[Candidate, int], max_scale: float | None = None) -> PackingCheck | None:
    workload = measure_workload(inventory, inventory.nodes)
    assert isinstance(workload, PoolWorkload), workload
    rules = CapacityRules(buffer_pods=0)
    stocks = [NodeStock(candidate=c, capacity=measure_capacity(workload, c, rules), count=n) for c, n in stock]
    return check_by_packing(inventory, inventory.nodes, workload, stocks, max_scale)


def checked(inventory: Inventory, *stock: tuple[Candidate, int]) -> PackingCheck:
    check = packed(inventory, *stock)
    assert check is not None
    return check


def test_pods_that_divide_a_node_evenly_need_what_the_sums_say() -> None:
    inventory = cluster(node("a", "64"), *(pod(f"w-{n}", "a", "2", "4Gi") for n in range(16)))
    assert checked(inventory, (of_size("t", 8, 16), 4)).packed == (4,)


def test_pods_that_leave_a_rest_need_more_nodes_than_the_sums_say() -> None:
    inventory = cluster(node("a", "64"), *(pod(f"w-{n}", "a", "3", "1Gi") for n in range(8)))
    # 24 cores are three nodes of eight; two pods of three cores fit on each.
    assert checked(inventory, (of_size("t", 8, 16), 3)).packed == (4,)


def test_anti_affinity_needs_a_node_for_each_pod() -> None:
    pods = (pod(f"w-{n}", "a", "1", "1Gi", spec=apart("w")) for n in range(5))
    assert checked(cluster(node("a", "64"), *pods), (of_size("t", 8, 16), 2)).packed == (5,)


def test_a_pod_that_fits_on_no_node_is_named_with_the_reason() -> None:
    inventory = cluster(node("a", "64"), pod("small-1", "a", "1", "1Gi"), pod("large-1", "a", "9", "1Gi"))
    check = checked(inventory, (of_size("t", 8, 16), 2))
    assert [one.pod for one in check.unplaced] == ["default/large-1"]
    assert "cpu" in check.unplaced[0].reason.sentence


def test_pods_keep_the_zones_that_their_spread_needs() -> None:
    zones = {"topology.kubernetes.io/zone": "z1"}, {"topology.kubernetes.io/zone": "z2"}
    pods = (pod(f"w-{n}", "ab"[n % 2], "4", "1Gi", spec=spread("w", "topology.kubernetes.io/zone")) for n in range(4))
    inventory = cluster(node("a", "64", labels=zones[0]), node("b", "64", labels=zones[1]), *pods)
    assert checked(inventory, (of_size("t", 8, 16), 2)).packed == (2,)


def test_two_types_share_pods_by_their_ratio() -> None:
    lean = (pod(f"lean-{n}", "a", "2", "2Gi") for n in range(8))
    rich = (pod(f"rich-{n}", "a", "1", "8Gi") for n in range(8))
    inventory = cluster(node("a", "64", "512Gi"), *lean, *rich)
    check = checked(inventory, (of_size("lean", 8, 8), 2), (of_size("rich", 4, 32), 2))
    assert check.packed == (2, 2)


def test_a_set_that_cannot_be_cheap_enough_is_given_up() -> None:
    inventory = cluster(node("a", "64"), *(pod(f"w-{n}", "a", "3", "1Gi") for n in range(8)))
    assert packed(inventory, (of_size("t", 8, 16), 3), max_scale=1.0) is None
