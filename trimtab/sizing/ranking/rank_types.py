"""Ranks all machine types for one workload, with the reason for each type that is left out, and decides whether
switching to another type pays.

A type is a candidate if all of these hold: its name is among those asked for, the pods run on its architecture (or the
caller allows it), it has no special use that the caller did not include, it has a price, every pod of the workload fits
on an empty node of it, and each zone gets enough nodes that are not too large.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from trimtab.cluster.reason import Reason
from trimtab.sizing.ranking.capacity import Candidate, CapacityRules, NodeCapacity, measure_capacity
from trimtab.sizing.ranking.commitments import CommitmentCover
from trimtab.sizing.ranking.reasons import LARGEST_POD, SHARE_TOO_LARGE, TOO_FEW_NODES, TOO_SMALL
from trimtab.sizing.ranking.score import SurchargeRules, TypeScore, score_type
from trimtab.sizing.ranking.workload import PoolWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRules:
    """Everything on which a ranking depends, apart from the workload and the types."""

    capacity: CapacityRules = field(default_factory=CapacityRules)
    surcharges: SurchargeRules = field(default_factory=SurchargeRules)
    min_nodes_per_zone: int = 1
    max_node_share: float | None = None
    """The largest share of the workload, from 0 to 1, that may be on one node and so be lost with it; None for no
    limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The types in order, best first, and the types that are left out."""

    workload: PoolWorkload
    scores: tuple[TypeScore, ...]
    left_out: Mapping[str, Reason]
    """Type → why it is not a candidate."""
    cover: CommitmentCover = field(default_factory=CommitmentCover)
    """The part of the workload on nodes that are paid for whether they run or not. `workload` is the rest."""

    @property
    def best(self) -> TypeScore | None:
        return self.scores[0] if self.scores else None

    def score_of(self, name: str) -> TypeScore | None:
        """Returns the score of a type, or None if it is left out or unknown."""
        return next((score for score in self.scores if score.candidate.name == name), None)


def rank_types(workload: PoolWorkload, candidates: Iterable[Candidate], rules: RankingRules) -> Ranking:
    """Returns the candidates sorted by GiB of the workload per dollar, best first. Candidates with equal values are
    sorted by the price of whole nodes, then by name."""
    scores: list[TypeScore] = []
    left_out: dict[str, Reason] = {}
    for candidate in candidates:
        capacity = measure_capacity(workload, candidate, rules.capacity)
        reason = _exclusion_reason(workload, candidate, capacity, rules)
        if reason is not None:
            left_out[candidate.name] = reason
        else:
            scores.append(score_type(workload, candidate, capacity, rules.surcharges))
    scores.sort(key=lambda score: (-score.gib_per_dollar, score.total_price, score.candidate.name))
    return Ranking(workload=workload, scores=tuple(_put_dominating_first(scores)), left_out=left_out)


def _exclusion_reason(
    workload: PoolWorkload, candidate: Candidate, capacity: NodeCapacity, rules: RankingRules
) -> Reason | None:
    name = candidate.name
    if capacity.usable_gib <= 0:
        return TOO_SMALL(f"on an empty {name} the limit of {capacity.bottleneck} leaves no room for the workload")
    # (cores, GiB) that pods may request on an empty node: without the buffer, and in cores as pods request them (not
    # normalised).
    buffer = rules.capacity.buffer_pods / workload.pods
    cores, gib = (
        (capacity.free_cores + buffer * workload.cores) / candidate.performance,
        capacity.free_gib + buffer * workload.gib,
    )
    too_large = next((size for size in workload.largest_pods if size[0] > cores or size[1] > gib), None)
    if too_large is not None:
        return LARGEST_POD(
            f"a pod requests {too_large[0]:g} cores and {too_large[1]:.1f} GiB, but an empty {name} has "
            f"{cores:.1f} cores and {gib:.1f} GiB"
        )
    nodes_per_zone = workload.gib / workload.zones / capacity.usable_gib
    if rules.min_nodes_per_zone > 1 and nodes_per_zone < rules.min_nodes_per_zone:
        return TOO_FEW_NODES(
            f"a zone would have {nodes_per_zone:.1f} nodes of {name}, but {rules.min_nodes_per_zone} are required"
        )
    share = capacity.usable_gib / workload.gib
    if rules.max_node_share is not None and share > rules.max_node_share:
        return SHARE_TOO_LARGE(
            f"a node of {name} would hold {share:.1%} of the workload, but at most {rules.max_node_share:.0%} "
            "are allowed"
        )
    return None


def _put_dominating_first(scores: list[TypeScore]) -> Iterator[TypeScore]:
    """Yields the scores in an order in which no other score dominates the first one (see `_dominates`).

    A type with larger limits at the same price may have a larger surcharge for volumes, and so be sorted after a
    smaller type. It is still put first.
    """
    if scores:
        winner = scores[0]
        while (better := next((one for one in scores if _dominates(one, winner)), None)) is not None:
            winner = better
        yield winner
        yield from (one for one in scores if one is not winner)


def _dominates(one: TypeScore, other: TypeScore) -> bool:
    """Returns whether the first type is at least as good as the other in everything that counts, and better in
    something."""
    strong, weak = _merits(one), _merits(other)
    return strong != weak and all(a >= b for a, b in zip(strong, weak, strict=True))


def _merits(score: TypeScore) -> tuple[float, ...]:
    capacity, candidate = score.capacity, score.candidate
    free_memory = candidate.visible_gib - candidate.reservation.eviction_gib - capacity.reserved_gib
    free_cores = (candidate.cores - capacity.reserved_cores) * candidate.performance
    volumes = inf if candidate.max_volumes is None else candidate.max_volumes
    pods = inf if candidate.max_pods is None else candidate.max_pods
    return (-candidate.price, free_cores, free_memory, volumes, pods, capacity.usable_gib)


DEFAULT_HYSTERESIS = 0.05
DEFAULT_DWELL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchDecision:
    """Whether another type should be preferred from now on."""

    preferred: str
    is_switch: bool
    gain: float | None
    """By how much the best type is better than the current one, as a share; None if the current type is left out."""
    why: str


def decide_switch(
    ranking: Ranking, current: str, wins: int, hysteresis: float = DEFAULT_HYSTERESIS, dwell: int = DEFAULT_DWELL
) -> SwitchDecision | None:
    """Returns whether to prefer the best type instead of `current`, or None if there is no candidate.

    The best type must be better by more than `hysteresis` in at least `dwell` runs in a row. `wins` is the number of
    such runs so far, this one included. If the current type is left out (not offered, without a price, too small), it
    is replaced at once.
    """
    best = ranking.best
    if best is None:
        return None
    name, score = best.candidate.name, ranking.score_of(current)
    if score is None:
        why = (
            ranking.left_out[current].sentence
            if current in ranking.left_out
            else f"the ranking does not contain the current type {current}"
        )
        return SwitchDecision(preferred=name, is_switch=True, gain=None, why=why)
    gain = best.gib_per_dollar / score.gib_per_dollar - 1
    if name == current:
        return SwitchDecision(preferred=current, is_switch=False, gain=0.0, why=f"{current} is already the best type")
    if gain <= hysteresis:
        why = f"{name} is {gain:+.2%} better than {current}, but a switch needs more than {hysteresis:.0%}"
        return SwitchDecision(preferred=current, is_switch=False, gain=gain, why=why)
    if wins < dwell:
        why = f"{name} is {gain:+.2%} better than {current}, so far in {wins} of {dwell} consecutive runs"
        return SwitchDecision(preferred=current, is_switch=False, gain=gain, why=why)
    return SwitchDecision(preferred=name, is_switch=True, gain=gain, why=f"{name} is {gain:+.2%} better than {current}")
