"""Adds up what the pods of a pool request, and what the DaemonSets use of each node.

The workload is every pod that is bound to a node of the pool and has not finished, without DaemonSet and static pods,
which run on every node of any type. Cores are normalised by the speed of the pod's node, so that pools of different
types can be compared; with speed 1 for every type they are plain cores. A volume that several pods share counts once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.sizing.ranking.reasons import NO_WORKLOAD

GIB = 1 << 30
ARCH_LABEL = "kubernetes.io/arch"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonShare:
    """What DaemonSet and static pods request on each node, on average over the nodes."""

    cores: float = 0.0
    """The requested cores, normalised by the speed of the node."""
    gib: float = 0.0
    pods: float = 0.0
    volumes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWorkload:
    """The sums over a pool's workload. Cores are normalised by the speed of the node on which they are requested."""

    cores: float
    gib: float
    """The requested memory in GiB."""
    pods: float
    volumes: float = 0.0
    zones: int = 1
    """The number of zones in which the nodes are; nodes without a zone label count as one zone."""
    daemons: DaemonShare = field(default_factory=DaemonShare)
    used_cores: float | None = None
    """Normalised cores in use, or None if the usage is not known."""
    largest_pods: tuple[tuple[float, float], ...] = ()
    """(cores, GiB) of the largest pods: those for which no other pod is larger in both cores and memory."""
    architectures: frozenset[str] = frozenset()
    """The architectures of the nodes on which the pods run."""

    @property
    def cores_per_gib(self) -> float:
        return self.cores / self.gib

    @property
    def pods_per_gib(self) -> float:
        return self.pods / self.gib

    @property
    def volumes_per_gib(self) -> float:
        return self.volumes / self.gib

    @property
    def gib_per_core(self) -> float:
        """The GiB of memory per core."""
        return self.gib / self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFill:
    """How full the present nodes are, DaemonSet pods included."""

    nodes: int
    requested_share: Mapping[str, float]
    """cpu, memory, pods, volumes → requested share of allocatable. A resource without a known limit is not in the
    mapping."""
    binding: str
    """The resource with the largest share, which is the first to be used up."""


def measure_workload(
    inventory: Inventory, nodes: Iterable[NodeInfo], performance: Mapping[str, float] | None = None
) -> PoolWorkload | NotYet:
    """Returns the workload on these nodes; NotYet if it requests no cpu or no memory.

    `performance`: instance type → speed of a core, relative to the baseline; a type that is not in the mapping has
    speed 1.
    """
    on_node = {node.name: node for node in nodes}
    speed = {
        node.name: (performance or {}).get(node.labels.get(INSTANCE_TYPE_LABEL, ""), 1.0) for node in on_node.values()
    }
    bound = [pod for pod in inventory.pods if pod.node in on_node and not pod.is_finished]
    workload = [pod for pod in bound if not (pod.is_daemon or pod.is_static)]
    sizes = [(pod, *_pod_size(pod)) for pod in workload]
    cores = fsum(millicores / 1000 * speed[pod.node] for pod, millicores, _ in sizes)
    gib = sum(amount for _, _, amount in sizes) / GIB
    if cores <= 0 or gib <= 0:
        names = ", ".join(name for name, total in (("cpu", cores), ("memory", gib)) if total <= 0)
        count = format_count(len(workload), "pod")
        sentence = f"{count} on {format_count(len(on_node), 'node')} request no {names}"
        return NotYet(reason=NO_WORKLOAD(sentence), have=count, need=f"requests for {names}")
    return PoolWorkload(
        cores=cores,
        gib=gib,
        pods=len(workload),
        volumes=_count_volumes(inventory, workload),
        zones=len({node.zone for node in on_node.values()}),
        daemons=_share_daemons(inventory, bound, speed),
        largest_pods=_largest_sizes((millicores / 1000, amount / GIB) for _, millicores, amount in sizes),
        architectures=frozenset(node.labels.get(ARCH_LABEL, "amd64") for node in on_node.values()),
    )


def _pod_size(pod: PodInfo) -> tuple[int, int]:
    """Returns (millicores, bytes) that a pod requests; (0, 0) if its requests cannot be read, as in all sums over
    pools."""
    requests = pod.requirements.requests
    return (0, 0) if isinstance(requests, Unreadable) else (requests.get("cpu", 0), requests.get("memory", 0))


def _count_volumes(inventory: Inventory, pods: Iterable[PodInfo]) -> int:
    return sum(1 for claim in inventory.known_claims_of(pods) if claim.driver)


def _share_daemons(inventory: Inventory, bound: Iterable[PodInfo], speed: Mapping[str, float]) -> DaemonShare:
    daemons = [pod for pod in bound if pod.is_daemon or pod.is_static]
    sizes = [(pod, *_pod_size(pod)) for pod in daemons]
    count = len(speed)
    return DaemonShare(
        cores=fsum(millicores / 1000 * speed[pod.node] for pod, millicores, _ in sizes) / count,
        gib=sum(amount for _, _, amount in sizes) / GIB / count,
        pods=len(daemons) / count,
        volumes=sum(_count_volumes(inventory, [pod]) for pod in daemons) / count,
    )


def _largest_sizes(sizes: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Returns the sizes for which no other size is at least as large in both cores and memory. Those with the most
    cores come first."""
    largest: list[tuple[float, float]] = []
    for cores, gib in sorted(set(sizes), reverse=True):
        if not largest or gib > largest[-1][1]:
            largest.append((cores, gib))
    return tuple(largest)


def measure_fill(inventory: Inventory, nodes: Iterable[NodeInfo]) -> PoolFill:
    """Returns how full these nodes are now. Nodes that cannot be read are left out."""
    readable = {node.name: node for node in nodes if not isinstance(node.allocatable, Unreadable)}
    requested, allocatable = Counter[str](), Counter[str]()
    for node in readable.values():
        amounts = node.allocatable
        assert not isinstance(amounts, Unreadable)
        allocatable.update({name: amounts.get(name, 0) for name in ("cpu", "memory", "pods")})
        allocatable["volumes"] += min(node.attachable_volumes.values(), default=0)
    bound = [pod for pod in inventory.pods if pod.node in readable and not pod.is_finished]
    for pod in bound:
        millicores, amount = _pod_size(pod)
        requested.update({"cpu": millicores, "memory": amount, "pods": 1})
    requested["volumes"] = _count_volumes(inventory, bound)
    shares = {name: requested[name] / total for name, total in allocatable.items() if total > 0}
    return PoolFill(
        nodes=len(readable),
        requested_share=shares,
        binding=max(shares, key=lambda name: shares[name]) if shares else "",
    )
