"""What do the pods of a pool request together?"""

import pytest

from tests.cluster_of import cluster, node, pod
from trimtab.cluster.reason import NotYet
from trimtab.sizing.ranking.workload import PoolWorkload, measure_fill, measure_workload

GI = 1 << 30


def measured(*items: dict[str, object], **speeds: float) -> PoolWorkload:
    inventory = cluster(*items)
    workload = measure_workload(inventory, inventory.nodes, speeds)
    assert isinstance(workload, PoolWorkload), workload
    return workload


def test_daemons_and_finished_pods_are_no_workload() -> None:
    workload = measured(
        node("a"),
        node("b"),
        pod("w-1", "a", "1", "4Gi"),
        pod("w-2", "b", "3", "4Gi"),
        pod("pending-1", "", "9", "9Gi"),
        pod("agent-a", "a", "100m", "1Gi", owner="DaemonSet"),
        pod("done-1", "a", "9", "9Gi", phase="Succeeded"),
    )
    assert (workload.cores, workload.gib, workload.pods) == (4, 8, 2)
    assert (workload.daemons.cores, workload.daemons.gib, workload.daemons.pods) == (0.05, 0.5, 0.5)
    assert workload.gib_per_core == 2


def test_the_largest_pods_are_those_that_no_other_covers() -> None:
    workload = measured(
        node("a"), pod("a-1", "a", "4", "1Gi"), pod("b-1", "a", "1", "8Gi"), pod("c-1", "a", "1", "1Gi")
    )
    assert workload.largest_pods == ((4, 1), (1, 8))


def test_cores_count_by_the_speed_of_their_node() -> None:
    fast = node("a", labels={"node.kubernetes.io/instance-type": "fast"})
    assert measured(fast, pod("w-1", "a", "2", "1Gi"), fast=1.5).cores == 3


def test_zones_and_architectures_are_those_of_the_nodes() -> None:
    zone, arch = "topology.kubernetes.io/zone", "kubernetes.io/arch"
    workload = measured(
        node("a", labels={zone: "z1", arch: "arm64"}), node("b", labels={zone: "z2"}), pod("w-1", "a", "1", "1Gi")
    )
    assert workload.zones == 2
    assert workload.architectures == {"arm64", "amd64"}


@pytest.mark.parametrize(("cpu", "memory", "missing"), [("", "1Gi", "cpu"), ("1", "", "memory")])
def test_without_requests_there_is_no_ratio(cpu: str, memory: str, missing: str) -> None:
    inventory = cluster(node("a"), pod("w-1", "a", cpu, memory))
    workload = measure_workload(inventory, inventory.nodes)
    assert isinstance(workload, NotYet)
    assert workload.reason.code.name == "no-workload"
    assert missing in workload.need


def test_the_fullest_resource_binds() -> None:
    inventory = cluster(node("a", "4", "64Gi"), pod("w-1", "a", "3", "8Gi"))
    fill = measure_fill(inventory, inventory.nodes)
    assert fill.binding == "cpu"
    assert fill.requested_share["cpu"] == 0.75
