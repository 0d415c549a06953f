"""Finds the ratio of memory to cores at which one family of machine types becomes cheaper than another.

Consider two families, and a workload whose ratio of memory to cores lies between theirs. Nodes of the family with less
memory per core are full when their memory is used up, nodes of the other when their cores are. They cost the same if
price₁ / GiB₁ = price₂ / (cores₂ × ratio). Cores and GiB are what remains for the workload after reservations and
DaemonSets; with nominal sizes, the point would be wrong by several percent.

`compare_families` asks the same of each family for this workload: what its core and its GiB cost, and what they would
have to cost so that the family costs this workload as much as the best type.
"""

from dataclasses import dataclass

from trimtab.sizing.ranking.rank_types import Ranking
from trimtab.sizing.ranking.score import DOLLAR, TypeScore

MAX_FAMILIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Two machine types, and the ratio of memory to cores at which they cost the same."""

    less_memory: TypeScore
    more_memory: TypeScore
    gib_per_core: float
    """The ratio of memory to cores at which both cost the same. Workloads with less memory per core cost less on
    `less_memory`, and those with more on `more_memory`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyCost:
    """The best type of a family: what its cores and its memory cost, and what they may cost at most."""

    score: TypeScore
    core_price: float
    """Dollars an hour for a core that pods of the workload can use (normalised by speed), if the price were for cores
    alone."""
    gib_price: float
    """Dollars an hour for a GiB that pods of the workload can use, if the price were for memory alone."""
    break_even: float
    """The share of these prices at which the family costs this workload as much as the best type; 1 for that type,
    below 1 for the others."""


def compare_families(ranking: Ranking) -> tuple[FamilyCost, ...]:
    """Returns the cost of each of the best families, the best one first."""
    best = ranking.best
    if best is None:
        return ()
    return tuple(
        FamilyCost(
            score=score,
            core_price=score.candidate.price / DOLLAR / score.capacity.free_cores,
            gib_price=score.candidate.price / DOLLAR / score.capacity.free_gib,
            break_even=score.gib_per_dollar / best.gib_per_dollar,
        )
        for score in list_best_of_families(ranking)
    )


def list_best_of_families(ranking: Ranking) -> list[TypeScore]:
    """Returns the best type of each of the best families, the best one first."""
    best: dict[str, TypeScore] = {}
    for score in ranking.scores:
        best.setdefault(score.candidate.family, score)
    return list(best.values())[:MAX_FAMILIES]


def usable_ratio(score: TypeScore) -> float:
    """Returns the GiB per core that a node of this type has left for the workload."""
    return score.capacity.free_gib / score.capacity.free_cores


def find_break_even(one: TypeScore, other: TypeScore) -> BreakEven | None:
    """Returns the ratio at which the two types cost the same, or None if one of the two is cheaper at every ratio."""
    less, more = sorted((one, other), key=usable_ratio)
    gib, cores = less.capacity.free_gib, more.capacity.free_cores
    ratio = more.candidate.price / less.candidate.price * gib / cores
    if not usable_ratio(less) < ratio < usable_ratio(more):
        return None
    return BreakEven(less_memory=less, more_memory=more, gib_per_core=ratio)


def list_break_evens(ranking: Ranking) -> tuple[BreakEven, ...]:
    """Returns the break-even points between the best types of the best families, sorted by ratio."""
    chosen = list_best_of_families(ranking)
    points = [find_break_even(one, other) for number, one in enumerate(chosen) for other in chosen[number + 1 :]]
    return tuple(sorted([point for point in points if point is not None], key=lambda point: point.gib_per_core))
