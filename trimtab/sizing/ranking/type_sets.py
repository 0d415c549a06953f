"""Finds the cheapest set of at most two machine types for a workload, in whole nodes of each zone.

Two types with different ratios of memory to cores can cost less than one, because together they match the ratio of the
workload. Each zone gets the same share of the workload, and the same nodes. The search considers the types that are
cheapest for some weighting of cores against memory. The best pair of a linear program is among them, because it is the
cheapest pair at the program's own shadow prices.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations
from math import ceil, inf, isfinite

from trimtab.sizing.ranking.rank_types import Ranking
from trimtab.sizing.ranking.score import TypeScore
from trimtab.sizing.ranking.workload import PoolWorkload

WEIGHTS = 24
"""The number of weightings of cores against memory that are considered, evenly spaced."""
TYPES_PER_WEIGHT = 8
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSet:
    """Machine types, each with the number of nodes that a zone gets."""

    types: tuple[TypeScore, ...]
    nodes_per_zone: tuple[int, ...]
    zones: int

    @property
    def node_counts(self) -> tuple[int, ...]:
        """For each type, the number of nodes in all zones together."""
        return tuple(count * self.zones for count in self.nodes_per_zone)

    @property
    def total_price(self) -> int:
        """The price of all nodes in micro-dollars an hour."""
        return sum(count * score.candidate.price for count, score in zip(self.node_counts, self.types, strict=True))


_Vector = tuple[float, ...]
"""(normalised cores, GiB, pods, volumes)."""


def find_cheapest_sets(ranking: Ranking, buffer_pods: float, max_types: int = 2, keep: int = 6) -> list[TypeSet]:
    """Returns the cheapest set of each pair of families (and of each single family), the cheapest first, at most `keep`
    sets.

    Types are chosen with the buffer that the ranking keeps free on each node, because large nodes fill better. The
    nodes are then counted without the buffer, from the sums of requests. `packing` calculates how many nodes the real
    pods need.
    """
    workload = ranking.workload
    zones = workload.zones
    demand = (workload.cores / zones, workload.gib / zones, workload.pods / zones, workload.volumes / zones)
    candidates = _efficient_types(ranking, demand)
    supplies = {score.candidate.name: _supply_of(score, workload, 0.0) for score in candidates}
    best: dict[frozenset[str], tuple[float, tuple[TypeScore, ...]]] = {}

    def offer(types: tuple[TypeScore, ...], price: float) -> None:
        families = frozenset(score.candidate.family for score in types)
        if families not in best or price < best[families][0]:
            best[families] = (price, types)

    for score in candidates:
        offer((score,), float(_nodes_for(demand, supplies[score.candidate.name]) * score.candidate.price))
    bound = min((price for price, _ in best.values()), default=0.0)
    for first, second in combinations(candidates if max_types > 1 else (), 2):
        names = (first.candidate.name, second.candidate.name)
        pair = _cheapest_pair(demand, (supplies[names[0]], supplies[names[1]]), _prices(first, second), bound)
        if pair is not None and all(pair[1]):
            offer((first, second), pair[0])
    chosen = sorted(best.values(), key=lambda found: (found[0], len(found[1])))[:keep]
    sets = [_count_nodes(workload, demand, types, buffer_pods) for _, types in chosen]
    # Where nodes of one type of a pair are enough, the pair is the set of that type.
    different = {tuple(score.candidate.name for score in one.types): one for one in sets}
    return sorted(different.values(), key=lambda one: (one.total_price, len(one.types)))


def _prices(first: TypeScore, second: TypeScore) -> tuple[int, int]:
    return (first.candidate.price, second.candidate.price)


def _count_nodes(workload: PoolWorkload, demand: _Vector, types: tuple[TypeScore, ...], buffer_pods: float) -> TypeSet:
    """Returns the set, with the number of nodes that the sums of requests need in each zone."""
    supplies = [_supply_of(score, workload, buffer_pods) for score in types]
    if len(types) == 1:
        return TypeSet(types=types, nodes_per_zone=(max(1, _nodes_for(demand, supplies[0])),), zones=workload.zones)
    pair = _cheapest_pair(demand, (supplies[0], supplies[1]), _prices(*types), inf)
    assert pair is not None, "without a bound, nodes of the second type alone are enough"
    used = [(score, count) for score, count in zip(types, pair[1], strict=True) if count]
    return TypeSet(
        types=tuple(score for score, _ in used), nodes_per_zone=tuple(count for _, count in used), zones=workload.zones
    )


def _supply_of(score: TypeScore, workload: PoolWorkload, buffer_pods: float) -> _Vector:
    """Returns what a node holds without the buffer: its capacity plus the room for `buffer_pods` average pods, which
    the ranking had subtracted."""
    capacity, buffer = score.capacity, buffer_pods / workload.pods
    return (
        capacity.free_cores + buffer * workload.cores,
        capacity.free_gib + buffer * workload.gib,
        capacity.free_pods + buffer_pods,
        capacity.free_volumes + buffer * workload.volumes,
    )


def _nodes_for(demand: Sequence[float], supply: _Vector) -> int:
    """Returns the smallest number of nodes whose supply covers the demand in every dimension."""
    return max(
        (ceil(wanted / given - _ROUNDING) for wanted, given in zip(demand, supply, strict=True) if wanted > 0),
        default=0,
    )


def _efficient_types(ranking: Ranking, demand: _Vector) -> list[TypeScore]:
    """Returns the types that are among the cheapest for some weighting of cores against memory, in order of their
    rank."""
    chosen: set[str] = set()
    for step in range(WEIGHTS + 1):
        weight = step / WEIGHTS
        rated = [(_price_of_share(score, demand, weight), score.candidate.name) for score in ranking.scores]
        chosen |= {name for _, name in nsmallest(TYPES_PER_WEIGHT, rated)}
    return [score for score in ranking.scores if score.candidate.name in chosen]


def _price_of_share(score: TypeScore, demand: _Vector, weight: float) -> float:
    """Returns the price of a node, divided by the share of the workload that it holds, with cores weighted by
    `weight`."""
    cores, gib, pods, volumes = (
        score.capacity.free_cores,
        score.capacity.free_gib,
        score.capacity.free_pods,
        score.capacity.free_volumes,
    )
    share = weight * cores / demand[0] + (1 - weight) * gib / demand[1]
    # A node cannot hold more than its pods and its volumes allow, however large it is, nor more than there is.
    share = min(share, 1.0, pods / demand[2] if demand[2] else inf, volumes / demand[3] if demand[3] else inf)
    return score.candidate.price / share if share > 0 else inf


def _cheapest_pair(
    demand: _Vector, supplies: tuple[_Vector, _Vector], prices: tuple[int, int], bound: float
) -> tuple[float, tuple[int, int]] | None:
    """Returns (price per zone, number of nodes of each type) of the cheapest mix that costs less than `bound`, or None
    if there is none."""
    if not _may_cost_less(demand, supplies, prices, bound):
        return None
    best: tuple[float, tuple[int, int]] | None = None
    for count in range(_nodes_for(demand, supplies[0]) + 1):
        if count * prices[0] >= bound:
            break
        rest = [
            wanted - (count * given if isfinite(given) else inf)
            for wanted, given in zip(demand, supplies[0], strict=True)
        ]
        others = max(_nodes_for(rest, supplies[1]), 0)
        price = float(count * prices[0] + others * prices[1])
        if price < bound:
            best, bound = (price, (count, others)), price
    return best


def _may_cost_less(demand: _Vector, supplies: Sequence[_Vector], prices: Iterable[int], bound: float) -> bool:
    """Returns whether the pair could cost less than `bound`, estimated by weak duality with equal prices for cores and
    memory."""
    least = 0.0
    for weight in (0.25, 0.5, 0.75):
        rates = [
            (weight * supply[0] / demand[0] + (1 - weight) * supply[1] / demand[1]) / price
            for supply, price in zip(supplies, prices, strict=True)
        ]
        least = max(least, 1 / max(rates))
    return least < bound
