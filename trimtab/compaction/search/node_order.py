"""What does each node save, and in which order are nodes tried?"""

from collections.abc import Mapping, Sequence

from trimtab.cluster.pool import Goal, Pool
from trimtab.machines.prices import amount, filled, quote
from trimtab.scheduling.cluster_model import ClusterModel

SHARES = 1_000_000
"""An average node of its pool, where pools save different things."""


def node_order(world: ClusterModel, pools: Mapping[int, Pool]) -> tuple[dict[int, int], str]:
    """(node → what it saves, the unit). A node without a price is taken for as dear as the others by their cores;
    where no price is known at all, cores are the stand-in."""
    goals = {pool.goal for pool in pools.values()}
    if goals == {Goal.NODES}:
        return dict.fromkeys(pools, 1), "nodes"
    cores = {node: world.amount(node, "cpu") for node in pools}
    money = filled({node: amount(quote(world.nodes[node], pool.prices)) for node, pool in pools.items()}, cores)
    unit = "micro-dollars an hour" if money else "millicores"
    money = money or cores
    if goals <= {Goal.COST}:
        return money, unit
    return _shares(pools, money), "millionths of an average node of the pool"


def _shares(pools: Mapping[int, Pool], money: Mapping[int, int]) -> dict[int, int]:
    totals: dict[str, list[int]] = {}
    for node, pool in pools.items():
        total = totals.setdefault(pool.name, [0, 0])
        total[0] += money[node]
        total[1] += 1

    def share(node: int, pool: Pool) -> int:
        total, count = totals[pool.name]
        return SHARES if pool.goal is Goal.NODES else money[node] * SHARES * count // max(1, total)

    return {node: share(node, pool) for node, pool in pools.items()}


def by_evictions(nodes: Sequence[int], loads: Sequence[Sequence[int]], saves: Mapping[int, int]) -> list[int]:
    """Fewest pods moved per price saved first; then the smaller saving, then the name."""
    return sorted(nodes, key=lambda n: ((len(loads[n]) << 40) // max(1, saves[n]), saves[n], n))


def by_room(
    nodes: Sequence[int],
    loads: Sequence[Sequence[int]],
    saves: Mapping[int, int],
    takes: Mapping[int, int],
    weight: int,
) -> list[int]:
    """Also counting the room a node takes away for what it saves: where room is the limit, that decides.

    `weight` says how much the room counts against the evictions, both as shares of their sums.
    """
    pods, room = max(1, sum(len(loads[n]) for n in nodes)), max(1, sum(takes[n] for n in nodes))
    return sorted(
        nodes,
        key=lambda n: (((len(loads[n]) * room + weight * takes[n] * pods) << 40) // max(1, saves[n]), saves[n], n),
    )
