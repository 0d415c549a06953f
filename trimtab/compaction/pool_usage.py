"""The size, usage and cost of each pool. These figures are only reported; no decision depends on them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.machines.machine_types import machine_types
from trimtab.machines.prices import price_of

RESOURCES = ("cpu", "memory", "pods")
FULL_PERCENT = 99
"""A node counts as full if at least this percentage of its allocatable amount is requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """The figures that are reported for one node."""

    zone: str
    """The zone of the node; empty if it is unknown."""
    instance_type: str
    """The instance type of the node; empty if it is unknown."""
    cost: int | None
    """The price in micro-dollars an hour, or None if it is not known."""
    performance: float | None
    """The speed of one core, relative to a core of m5.large, or None if it was never measured for this instance
    type."""


@dataclass(slots=True)
class PoolUsage:
    """The figures of one pool. Amounts are sums over its ready nodes. Nodes and pods whose amounts cannot be read are
    counted, but are not in the sums."""

    nodes: dict[str, NodeFigures] = field(default_factory=dict)
    """Node → its figures, for every node of the pool, ready or not, because all of them cost money."""
    capacity: Counter[str] = field(default_factory=Counter)
    allocatable: Counter[str] = field(default_factory=Counter)
    requested: Counter[str] = field(default_factory=Counter)
    """Resource → what the pods that are bound and not finished request, including those of DaemonSets."""
    full: Counter[str] = field(default_factory=Counter)
    """Resource → the number of nodes that are at least `FULL_PERCENT` percent full. A node is counted under its fullest
    resource."""
    under_used: int = 0
    """The number of nodes that are at or below every threshold of the pool's `underUsed` now, for however short a time;
    all nodes if the pool has no threshold."""
    cost: int = 0
    """The price of all nodes whose price is known, in micro-dollars an hour."""
    unpriced: int = 0
    """The number of nodes whose price is not known."""
    unread: Counter[str] = field(default_factory=Counter)
    """The number of ready nodes whose amounts cannot be read, under `nodes`; the number of pods on ready nodes whose
    amounts cannot be read, under `pods`."""


def pool_usages(view: ClusterView) -> dict[str, PoolUsage]:
    """Returns pool → its usage, for every pool, even one without nodes."""
    usages = {pool.name: PoolUsage() for pool in view.pools}
    pods: dict[str, list[PodInfo]] = {}
    for pod in view.inventory.pods:
        if pod.node and not pod.is_finished:
            pods.setdefault(pod.node, []).append(pod)
    index = PoolIndex(view.pools)
    for node in view.inventory.nodes:
        pool = index.first_pool_of(node)
        if pool is not None:
            _add_node(usages[pool.name], node, pool, pods.get(node.name, []), view)
    return usages


def _add_node(usage: PoolUsage, node: NodeInfo, pool: Pool, pods: list[PodInfo], view: ClusterView) -> None:
    cost = price_of(node, pool.prices)
    name = node.labels.get(INSTANCE_TYPE_LABEL, "")
    kind = machine_types().get(name)
    usage.nodes[node.name] = NodeFigures(
        zone=node.zone,
        instance_type=name,
        cost=None if isinstance(cost, NotYet) else cost,
        performance=None if kind is None else kind.performance,
    )
    if isinstance(cost, NotYet):
        usage.unpriced += 1
    else:
        usage.cost += cost
    if not node.is_ready:
        return
    if isinstance(node.allocatable, Unreadable) or isinstance(node.capacity, Unreadable):
        usage.unread["nodes"] += 1
        return
    requested = _sum_requests(usage, pods, {"cpu", "memory", *pool.under})
    for total, amounts in (
        (usage.capacity, node.capacity),
        (usage.allocatable, node.allocatable),
        (usage.requested, requested),
    ):
        total.update({resource: amounts.get(resource, 0) for resource in RESOURCES})
    if (fullest := _fullest_resource(node, node.allocatable, requested, _attached_volumes(pods, view))) is not None:
        usage.full[fullest] += 1
    is_read = not any(isinstance(pod.requirements.requests, Unreadable) for pod in pods)
    usage.under_used += is_read and all(
        requested[resource] * 100 <= percent * node.allocatable.get(resource, 0)
        for resource, percent in pool.under.items()
    )


def _sum_requests(usage: PoolUsage, pods: list[PodInfo], resources: Iterable[str]) -> Counter[str]:
    total: Counter[str] = Counter(pods=len(pods))
    for pod in pods:
        if isinstance(pod.requirements.requests, Unreadable):
            usage.unread["pods"] += 1
        else:
            for resource in resources:
                total[resource] += pod.requirements.requests.get(resource, 0)
    return total


def _attached_volumes(pods: list[PodInfo], view: ClusterView) -> Counter[str]:
    """Returns CSI driver → number of attached volumes. A volume that several pods share is counted once."""
    return Counter(claim.driver for claim in view.inventory.known_claims_of(pods) if claim.driver)


def _fullest_resource(
    node: NodeInfo, allocatable: Amounts, requested: Mapping[str, int], attached: Counter[str]
) -> str | None:
    """Returns the resource that is used up on the node, or None if the node is not full."""
    shares = [(requested[name] / allocatable[name], name) for name in RESOURCES if allocatable.get(name, 0) > 0]
    shares += [(attached[driver] / most, "volumes") for driver, most in node.attachable_volumes.items() if most > 0]
    share, name = max(shares)
    return name if share * 100 >= FULL_PERCENT else None
