"""What does a pool hold, how full is it, and what does it cost? Figures to look at; no decision rests on them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.machines.prices import price

RESOURCES = ("cpu", "memory", "pods")
FULL = 99
"""Percent of allocatable, from which on nothing of use fits any more."""


@dataclass(slots=True)
class PoolUsage:
    """One pool. Amounts are sums over its ready nodes; what cannot be read is in none of them, and counted."""

    nodes: list[str] = field(default_factory=list)
    """Every node, ready or not: all of them are paid for."""
    capacity: Counter[str] = field(default_factory=Counter)
    allocatable: Counter[str] = field(default_factory=Counter)
    requested: Counter[str] = field(default_factory=Counter)
    """By pods that are bound and not finished, DaemonSets' included."""
    full: Counter[str] = field(default_factory=Counter)
    """Resource → nodes that are at least `FULL` percent full, of it more than of any other."""
    under_used: int = 0
    """Nodes at or below every line of the pool's `underUsed` now, however short; every one where it has no line."""
    cost: int = 0
    """Micro-dollars an hour, of the nodes whose price is known."""
    unpriced: int = 0
    """Nodes whose price is not known."""
    unread: Counter[str] = field(default_factory=Counter)
    """`nodes` that are ready, and `pods` on ready nodes, whose amounts cannot be read."""


def holdings(view: ClusterView) -> dict[str, PoolUsage]:
    """Pool → what it holds; every pool, also one without nodes."""
    found = {pool.name: PoolUsage() for pool in view.pools}
    pods: dict[str, list[PodInfo]] = {}
    for pod in view.inventory.pods:
        if pod.node and not pod.finished:
            pods.setdefault(pod.node, []).append(pod)
    index = PoolIndex(view.pools)
    for node in view.inventory.nodes:
        pool = index.first(node)
        if pool is not None:
            _add(found[pool.name], node, pool, pods.get(node.name, []), view)
    return found


def _add(holding: PoolUsage, node: NodeInfo, pool: Pool, pods: list[PodInfo], view: ClusterView) -> None:
    holding.nodes.append(node.name)
    cost = price(node, pool.prices)
    if isinstance(cost, NotYet):
        holding.unpriced += 1
    else:
        holding.cost += cost
    if not node.ready:
        return
    if isinstance(node.allocatable, Unreadable) or isinstance(node.capacity, Unreadable):
        holding.unread["nodes"] += 1
        return
    requested = _requested(holding, pods, {"cpu", "memory", *pool.under})
    for total, amounts in (
        (holding.capacity, node.capacity), (holding.allocatable, node.allocatable), (holding.requested, requested)
    ):  # fmt: skip
        total.update({resource: amounts.get(resource, 0) for resource in RESOURCES})
    if (fullest := _fullest(node, node.allocatable, requested, _attached(pods, view))) is not None:
        holding.full[fullest] += 1
    is_read = not any(isinstance(pod.ask.requests, Unreadable) for pod in pods)
    holding.under_used += is_read and all(
        requested[resource] * 100 <= percent * node.allocatable.get(resource, 0)
        for resource, percent in pool.under.items()
    )


def _requested(holding: PoolUsage, pods: list[PodInfo], resources: Iterable[str]) -> Counter[str]:
    total: Counter[str] = Counter(pods=len(pods))
    for pod in pods:
        if isinstance(pod.ask.requests, Unreadable):
            holding.unread["pods"] += 1
        else:
            for resource in resources:
                total[resource] += pod.ask.requests.get(resource, 0)
    return total


def _attached(pods: list[PodInfo], view: ClusterView) -> Counter[str]:
    """CSI driver → volumes attached, one that several pods share counted once."""
    names = {(pod.namespace, claim) for pod in pods for claim in pod.claims}
    claims = [view.inventory.claims[name] for name in names if name in view.inventory.claims]
    return Counter(claim.driver for claim in claims if claim.driver)


def _fullest(node: NodeInfo, allocatable: Amounts, requested: Mapping[str, int], attached: Counter[str]) -> str | None:
    """What fills the node; None while it is not full."""
    shares = [(requested[name] / allocatable[name], name) for name in RESOURCES if allocatable.get(name, 0) > 0]
    shares += [(attached[driver] / most, "volumes") for driver, most in node.attachable.items() if most > 0]
    share, name = max(shares)
    return name if share * 100 >= FULL else None
