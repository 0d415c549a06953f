"""A summary of a cluster's snapshot for questions about several clusters: some kilobytes, whatever the size of the
cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum

import msgspec

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, REGION_LABEL, NodeInfo
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.sizing.ranking.workload import ARCH_LABEL, DaemonShare, PoolWorkload, measure_workload

MEBIBYTE = 1 << 20


class PoolSums(msgspec.Struct, array_like=True, frozen=True):
    """The summary of one pool of a cluster."""

    cluster: str
    pool: str
    """The name of the pool; empty for nodes that are in no pool."""
    nodes: int
    nodes_to_remove: int
    """The number of nodes that a plan drains."""
    cost: int
    """The price of all its nodes in micro-dollars a month; 0 if no price is known."""
    saved: int
    """The price of the nodes that a plan drains, in micro-dollars a month."""


class PodSize(msgspec.Struct, array_like=True, frozen=True, order=True):
    """The requests of a number of equal pods."""

    millicores: int
    mebibytes: int
    count: int = 1


class FreeNode(msgspec.Struct, array_like=True, frozen=True):
    """What a node has left for further pods."""

    millicores: int
    mebibytes: int
    pods: int


class ClusterDigest(msgspec.Struct, kw_only=True, frozen=True):
    """The summary of one cluster."""

    cluster: str
    nodes: int
    pods: int
    cost: int
    """The price of all nodes in micro-dollars a month; 0 if no price is known at all."""
    saved_by_plan: int
    nodes_to_remove: int
    evictions: int
    pools: list[PoolSums]
    regions: list[str]
    architectures: list[str]
    karpenter_nodes: int
    """The number of nodes that Karpenter owns. Plans do not drain them."""
    workload: PoolWorkload | None
    """The sums of what the pods request, or None if they request no cpu or no memory."""
    missing_workload: str = ""
    """Why there is no workload; empty if there is one."""
    machine_types: dict[str, int] = {}
    pod_sizes: list[PodSize] = []
    """All pods that would move in a merge: those that are neither finished, nor of DaemonSets, nor static."""
    node_selectors: list[str] = []
    """`key=value` of every label that a pod's node selector requires; names of single nodes and zones are left out."""
    node_labels: list[str] = []
    """`key=value` of every label of the nodes."""
    free_nodes: list[FreeNode] = []
    typical_node: FreeNode | None = None
    """A new node of the most frequent machine type, with nothing on it but DaemonSet pods; None if no node can be
    read."""
    typical_cost: int = 0
    """The price of the typical node in micro-dollars a month."""
    volumes: int = 0
    """The number of PersistentVolumeClaims whose volume a CSI driver provides. Their data does not move to another
    cluster by itself."""
    namespaces: list[str] = []
    notes: list[str] = []


_OWN_LABELS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def list_free_nodes(inventory: Inventory) -> list[FreeNode]:
    """Returns, sorted, what each node that accepts pods has left."""
    used = _sum_by_node(inventory.pods)
    free = []
    for node in inventory.machines:
        amounts = node.allocatable
        if isinstance(amounts, Unreadable) or node.is_cordoned or not node.is_ready or node.removal_taint is not None:
            continue
        if any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.taints):
            continue
        cpu, memory, pods = used.get(node.name, (0, 0, 0))
        free.append(
            FreeNode(
                max(0, amounts.get("cpu", 0) - cpu),
                max(0, amounts.get("memory", 0) - memory) // MEBIBYTE,
                max(0, amounts.get("pods", 110) - pods),
            )
        )
    return sorted(free, key=lambda one: (-one.millicores, -one.mebibytes, -one.pods))


def _sum_by_node(pods: Iterable[PodInfo]) -> dict[str, tuple[int, int, int]]:
    sums: dict[str, tuple[int, int, int]] = {}
    for pod in pods:
        if pod.node and not pod.is_finished:
            cpu, memory = _requests(pod)
            before = sums.get(pod.node, (0, 0, 0))
            sums[pod.node] = (before[0] + cpu, before[1] + memory, before[2] + 1)
    return sums


def _requests(pod: PodInfo) -> tuple[int, int]:
    requests = pod.requirements.requests
    return (0, 0) if isinstance(requests, Unreadable) else (requests.get("cpu", 0), requests.get("memory", 0))


def list_pod_sizes(inventory: Inventory) -> list[PodSize]:
    """Returns the pods that would move in a merge, the largest first."""
    sizes = Counter(
        (cpu, -(-memory // MEBIBYTE))
        for pod in inventory.pods
        if not (pod.is_finished or pod.is_daemon or pod.is_static)
        for cpu, memory in (_requests(pod),)
    )
    return sorted((PodSize(*size, count) for size, count in sizes.items()), reverse=True)


def list_node_selectors(inventory: Inventory) -> list[str]:
    """Returns the labels that pods require of their nodes with `nodeSelector`."""
    wanted = {
        f"{key}={value}"
        for pod in inventory.pods
        if not (pod.is_finished or pod.is_daemon or pod.is_static)
        for key, value in pod.requirements.node_selector.items()
        if key not in _OWN_LABELS
    }
    return sorted(wanted)


def list_node_labels(inventory: Inventory) -> list[str]:
    """Returns the labels of all nodes."""
    labels = (label for node in inventory.machines for label in node.labels.items())
    return sorted({f"{key}={value}" for key, value in labels if key not in _OWN_LABELS})


def empty_typical_node(inventory: Inventory) -> tuple[NodeInfo, FreeNode] | None:
    """Returns a node of the most frequent machine type, and what a new one has left after DaemonSets; None if no node
    can be read."""
    readable = [node for node in inventory.machines if not isinstance(node.allocatable, Unreadable)]
    if not readable:
        return None
    types = Counter(node.labels.get(INSTANCE_TYPE_LABEL, "") for node in readable)
    common = max(sorted(types), key=lambda name: types[name])
    node = min((one for one in readable if one.labels.get(INSTANCE_TYPE_LABEL, "") == common), key=lambda n: n.name)
    daemons = [pod for pod in inventory.pods if pod.node == node.name and (pod.is_daemon or pod.is_static)]
    cpu, memory = (sum(amounts) for amounts in zip((0, 0), *map(_requests, daemons), strict=True))
    amounts = node.allocatable
    assert not isinstance(amounts, Unreadable)
    free = FreeNode(
        max(0, amounts.get("cpu", 0) - cpu),
        max(0, amounts.get("memory", 0) - memory) // MEBIBYTE,
        max(0, amounts.get("pods", 110) - len(daemons)),
    )
    return node, free


def list_regions(inventory: Inventory) -> list[str]:
    """Returns the regions of the nodes; empty if no node has a region label."""
    return sorted({node.labels[REGION_LABEL] for node in inventory.machines if REGION_LABEL in node.labels})


def list_architectures(inventory: Inventory) -> list[str]:
    """Returns the architectures of the nodes."""
    return sorted({node.labels.get(ARCH_LABEL, "amd64") for node in inventory.machines})


def count_machine_types(inventory: Inventory) -> dict[str, int]:
    """Returns machine type → number of nodes, the most frequent first."""
    counts = Counter(node.labels.get(INSTANCE_TYPE_LABEL, "unknown") for node in inventory.machines)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def measure_cluster(inventory: Inventory) -> tuple[PoolWorkload | None, str]:
    """Returns the workload of all nodes and an empty text; or None and the reason why there is no workload."""
    workload = measure_workload(inventory, inventory.machines)
    return (None, str(workload)) if isinstance(workload, NotYet) else (workload, "")


def count_karpenter_nodes(inventory: Inventory) -> int:
    """Returns the number of nodes that Karpenter owns."""
    return sum(node.nature.sign_of(NodeKind.KARPENTER) is not None for node in inventory.machines)


def count_volumes(inventory: Inventory) -> int:
    """Returns the number of claims of pods whose volume has a driver."""
    present = (pod for pod in inventory.pods if not pod.is_finished)
    return sum(1 for claim in inventory.known_claims_of(present) if claim.driver)


def add_workloads(parts: Iterable[tuple[PoolWorkload, int]]) -> PoolWorkload:
    """Returns the workload of several clusters, each given with its number of nodes: the sums, and DaemonSets averaged
    over all nodes."""
    all_parts = list(parts)
    nodes = sum(count for _, count in all_parts) or 1
    largest: list[tuple[float, float]] = []
    for cores, gib in sorted({size for part, _ in all_parts for size in part.largest_pods}, reverse=True):
        if not largest or gib > largest[-1][1]:
            largest.append((cores, gib))

    def average(name: str) -> float:
        return fsum(float(getattr(part.daemons, name)) * count for part, count in all_parts) / nodes

    return PoolWorkload(
        cores=fsum(part.cores for part, _ in all_parts),
        gib=fsum(part.gib for part, _ in all_parts),
        pods=fsum(part.pods for part, _ in all_parts),
        volumes=fsum(part.volumes for part, _ in all_parts),
        # Each cluster has nodes in zones of its own, whatever the zones are called.
        zones=sum(part.zones for part, _ in all_parts),
        daemons=DaemonShare(
            cores=average("cores"), gib=average("gib"), pods=average("pods"), volumes=average("volumes")
        ),
        largest_pods=tuple(largest),
        architectures=frozenset(name for part, _ in all_parts for name in part.architectures),
    )
