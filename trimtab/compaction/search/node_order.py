"""What the removal of each node saves, and the orders in which nodes are tried."""

from collections.abc import Mapping, Sequence

from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.reason import NotYet
from trimtab.machines.prices import amount_of, price_key, quote_price, with_estimates
from trimtab.scheduling.cluster_model import ClusterModel

SHARE_UNIT = 1_000_000
"""The savings of an average node of its pool, as a number. It is the unit of savings if the pools measure savings in
different units."""


def node_order(model: ClusterModel, pools: Mapping[int, Pool]) -> tuple[dict[int, int], str]:
    """Returns (node → what its removal saves, the unit).

    A node without a known price gets the price per core of the other nodes. If no price is known at all, cores are the
    unit.
    """
    goals = {pool.goal for pool in pools.values()}
    if goals == {Goal.NODES}:
        return dict.fromkeys(pools, 1), "nodes"
    cores = {node: model.allocatable_amount(node, "cpu") for node in pools}
    # Nodes with equal keys have one price, known or not: a cluster has few types of machines.
    amounts: dict[object, int | NotYet] = {}
    quoted: dict[int, int | NotYet] = {}
    for node, pool in pools.items():
        key = (id(pool), price_key(model.nodes[node]))
        if key not in amounts:
            amounts[key] = amount_of(quote_price(model.nodes[node], pool.prices))
        quoted[node] = amounts[key]
    prices = with_estimates(quoted, cores)
    unit = "micro-dollars an hour" if prices else "millicores"
    prices = prices or cores
    if goals <= {Goal.COST}:
        return prices, unit
    return _pool_shares(pools, prices), "millionths of an average node of the pool"


def _pool_shares(pools: Mapping[int, Pool], prices: Mapping[int, int]) -> dict[int, int]:
    totals: dict[str, list[int]] = {}
    for node, pool in pools.items():
        total = totals.setdefault(pool.name, [0, 0])
        total[0] += prices[node]
        total[1] += 1

    def share(node: int, pool: Pool) -> int:
        total, count = totals[pool.name]
        return SHARE_UNIT if pool.goal is Goal.NODES else prices[node] * SHARE_UNIT * count // max(1, total)

    return {node: share(node, pool) for node, pool in pools.items()}


def by_evictions(nodes: Sequence[int], loads: Sequence[Sequence[int]], saves: Mapping[int, int]) -> list[int]:
    """Returns the nodes sorted by evictions per saved price, the fewest first; then by the smaller saving, then by
    number."""
    return sorted(nodes, key=lambda n: ((len(loads[n]) << 40) // max(1, saves[n]), saves[n], n))


def by_evictions_and_capacity(
    nodes: Sequence[int],
    loads: Sequence[Sequence[int]],
    saves: Mapping[int, int],
    capacity_removed: Mapping[int, int],
    weight: int,
) -> list[int]:
    """Returns the nodes sorted as by `by_evictions`, but also by the capacity that a drain removes, which matters if
    capacity is scarce.

    `weight` is the weight of capacity relative to evictions. Both are compared as shares of their sums over all nodes.
    """
    total_pods, total_capacity = (
        max(1, sum(len(loads[n]) for n in nodes)),
        max(1, sum(capacity_removed[n] for n in nodes)),
    )
    return sorted(
        nodes,
        # Shifted by 40 bits before the division: the order stays exact in integers.
        key=lambda n: (
            ((len(loads[n]) * total_capacity + weight * capacity_removed[n] * total_pods) << 40) // max(1, saves[n]),
            saves[n],
            n,
        ),
    )
