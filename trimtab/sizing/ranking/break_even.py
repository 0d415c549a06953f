"""The ratio of memory to cores at which one family becomes cheaper than another.

Of two families, the one with less memory per core is full by memory, the other one by cores, as long as the ratio of
the workload lies between theirs. They cost the same where price₁ / GiB₁ = price₂ / (cores₂ × ratio). Cores and GiB are
what is left for the workload, after reservations and DaemonSets: nominal sizes shift the point by several percent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.sizing.ranking.rank_types import Ranking
from trimtab.sizing.ranking.score import TypeScore

MAX_FAMILIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Two types and the ratio at which they cost the same."""

    less_memory: TypeScore
    more_memory: TypeScore
    gib_per_core: float
    """Workloads with less memory per core cost less on `less_memory`, those with more on `more_memory`."""


def usable_ratio(score: TypeScore) -> float:
    """Returns the GiB per core that a node has for the workload."""
    return score.capacity.free_gib / score.capacity.free_cores


def find_break_even(one: TypeScore, other: TypeScore) -> BreakEven | None:
    """Returns where the two types cost the same, or None if one of them is cheaper at every ratio."""
    less, more = sorted((one, other), key=usable_ratio)
    gib, cores = less.capacity.free_gib, more.capacity.free_cores
    ratio = more.candidate.price / less.candidate.price * gib / cores
    if not usable_ratio(less) < ratio < usable_ratio(more):
        return None
    return BreakEven(less_memory=less, more_memory=more, gib_per_core=ratio)


def list_break_evens(ranking: Ranking) -> tuple[BreakEven, ...]:
    """Returns the break-even points between the best types of the best families, by ratio."""
    best: dict[str, TypeScore] = {}
    for score in ranking.scores:
        best.setdefault(score.candidate.family, score)
    chosen = list(best.values())[:MAX_FAMILIES]
    return tuple(sorted(_pairwise_points(chosen), key=lambda point: point.gib_per_core))


def _pairwise_points(scores: Sequence[TypeScore]) -> list[BreakEven]:
    points = [find_break_even(one, other) for number, one in enumerate(scores) for other in scores[number + 1 :]]
    return [point for point in points if point is not None]
