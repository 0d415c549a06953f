"""Which sets of nodes have pods that fit together on one new node, by the sums of what they request.

This is the coarse half of the search: amounts and sets of nodes are compared, no pod is placed. `plan_replacements`
places the pods of the chosen sets one by one. Of many nodes only the most promising sets are built: level by level,
each set is one of the most expensive of its size with one more node. `SoftSpread` leaves out sets that would bring
replicas together.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from msgspec import Struct

from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.pod import SchedulingRequirements
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.cluster_model import ClusterModel

MAX_SET_NODES = 4
"""The largest number of nodes that one new node replaces."""
MAX_PARTIAL_SETS = 120
"""The number of sets of one size that are extended by one node each."""
MAX_SETS = 3_000
"""The largest number of sets that are compared for one new node."""
MAX_EXACT_NODES = 11
"""The largest number of nodes whose best partition into sets is found exactly."""
Amounts = tuple[int, ...]


class Replaceable(Struct, frozen=True, kw_only=True, gc=False):
    """A node that may be replaced, with the sums of what its moving pods request."""

    node: int
    price: int
    amounts: Amounts
    """The amounts of major, minor, pod slots and each other resource."""
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The next node of one node group: what is free on it, and what it costs."""

    number: int
    price: int
    free: Amounts


class ReplacementSet(Struct, frozen=True, kw_only=True, gc=False):
    """A set of nodes whose pods fit, by their sums, on the node of an offer."""

    nodes: tuple[int, ...]
    offer: int
    saves: int


def list_sets(offer: Offer, nodes: Sequence[Replaceable], is_worth: Callable[[int, int], bool]) -> list[ReplacementSet]:
    """Returns the sets of these nodes that the offer's node could replace for less than they cost.

    `is_worth`: whether a saving (micro-dollars an hour) is worth a number of evictions."""
    fitting = sorted((one for one in nodes if _fits(one.amounts, offer.free)), key=lambda one: (-one.price, one.node))
    found: list[ReplacementSet] = []
    partial: list[tuple[int, tuple[int, ...], Amounts, int]] = [(0, (), (0,) * len(offer.free), 0)]
    for _ in range(MAX_SET_NODES):
        extended: list[tuple[int, tuple[int, ...], Amounts, int]] = []
        for price, members, amounts, evictions in partial:
            for position in range(members[-1] + 1 if members else 0, len(fitting)):
                one = fitting[position]
                total = tuple([amount + more for amount, more in zip(amounts, one.amounts, strict=True)])
                if _fits(total, offer.free):
                    extended.append((price + one.price, (*members, position), total, evictions + one.evictions))
        found += [
            ReplacementSet(
                nodes=tuple(sorted(fitting[position].node for position in members)),
                offer=offer.number,
                saves=price - offer.price,
            )
            for price, members, _, evictions in extended
            if price > offer.price and is_worth(price - offer.price, evictions)
        ]
        partial = nlargest(MAX_PARTIAL_SETS, extended) if len(extended) > MAX_PARTIAL_SETS else extended
    return nlargest(MAX_SETS, found, key=lambda one: (one.saves, one.nodes)) if len(found) > MAX_SETS else found


def _fits(amounts: Amounts, free: Amounts) -> bool:
    return all(amount <= available for amount, available in zip(amounts, free, strict=True))


def choose_sets(sets: Iterable[ReplacementSet], max_of_offer: Mapping[int, int]) -> list[ReplacementSet]:
    """Returns sets without a common node that save as much as possible together, the largest saving first.

    `max_of_offer`: offer → how many nodes of it there may be. Few nodes are partitioned exactly, as long as no offer
    runs out; of many, the best of several orders is taken."""
    sets = list(sets)
    chosen = [_choose_in_order(sets, max_of_offer, weight) for weight in (0, 1, 2)]
    members = {node for one in sets for node in one.nodes}
    if len(members) <= MAX_EXACT_NODES:
        exact = _partition_exactly(sets, sorted(members))
        used = [one.offer for one in exact]
        if all(used.count(offer) <= max_of_offer[offer] for offer in set(used)):
            chosen.append(exact)
    best = max(chosen, key=lambda several: sum(one.saves for one in several), default=[])
    return sorted(best, key=lambda one: (-one.saves, one.nodes))


def rank_set(one: ReplacementSet, weight: int) -> tuple[int, tuple[int, ...], int]:
    """Returns the place of a set in the order of savings. With a larger `weight`, small sets come earlier: 1 compares
    the saving by the square root of the nodes, 2 by the nodes."""
    return -(one.saves**2 << 20) // len(one.nodes) ** weight, one.nodes, one.offer


def _choose_in_order(
    sets: Sequence[ReplacementSet], max_of_offer: Mapping[int, int], weight: int
) -> list[ReplacementSet]:
    """Returns sets without a common node, taken in the order of `rank_set`."""
    left, used, chosen = dict(max_of_offer), set[int](), []
    for one in sorted(sets, key=lambda one: rank_set(one, weight)):
        if left[one.offer] and used.isdisjoint(one.nodes):
            chosen.append(one)
            used.update(one.nodes)
            left[one.offer] -= 1
    return chosen


def _partition_exactly(sets: Sequence[ReplacementSet], members: Sequence[int]) -> list[ReplacementSet]:
    """Returns the sets without a common node that save the most together, whatever the number of offers."""
    bits = {node: 1 << position for position, node in enumerate(members)}
    best_of: dict[int, ReplacementSet] = {}
    for one in sets:
        mask = sum(bits[node] for node in one.nodes)
        if mask not in best_of or one.saves > best_of[mask].saves:
            best_of[mask] = one
    by_first: dict[int, list[tuple[int, ReplacementSet]]] = {}
    for mask, one in best_of.items():
        by_first.setdefault(mask & -mask, []).append((mask, one))
    # For each set of nodes that are left: (savings, the set that holds its first node or None).
    table: list[tuple[int, ReplacementSet | None, int]] = [(0, None, 0)]
    for left in range(1, 1 << len(members)):
        first = left & -left
        best: tuple[int, ReplacementSet | None, int] = (table[left ^ first][0], None, left ^ first)
        for mask, one in by_first.get(first, ()):
            if mask & left == mask and table[left ^ mask][0] + one.saves > best[0]:
                best = (table[left ^ mask][0] + one.saves, one, left ^ mask)
        table.append(best)
    chosen, left = [], (1 << len(members)) - 1
    while left:
        _, one_set, left = table[left]
        if one_set is not None:
            chosen.append(one_set)
    return chosen


@dataclass(slots=True)
class SoftSpread:
    """Finds the sets that would bring replicas together which ask, without requiring it, to be on different nodes: by a
    topology spread with ScheduleAnyway, or by preferred anti-affinity, over host names.

    One new node in place of one node changes nothing for them. In place of several nodes, it may have no more of them
    than one of these nodes had."""

    model: ClusterModel
    problem: CompactionProblem
    _counts: dict[int, Counter[int]] = field(default_factory=dict)

    def is_kept(self, one: ReplacementSet) -> bool:
        """Returns whether no more pods of a workload come together than are on one of the nodes now."""
        counts = [count for node in one.nodes if (count := self._count_on(node))]
        total, largest = Counter[int](), Counter[int]()
        for count in counts if len(counts) > 1 else ():
            total, largest = total + count, largest | count
        return total == largest

    def _count_on(self, node: int) -> Counter[int]:
        if node not in self._counts:
            classes = [self.model.successor_class_of[pod] for pod in self.problem.pods_to_move[node]]
            self._counts[node] = Counter(one.workload for one in classes if _prefers_different_nodes(one.ask))
        return self._counts[node]


def _prefers_different_nodes(ask: SchedulingRequirements) -> bool:
    return any(constraint.topology_key == HOSTNAME_LABEL for constraint in ask.soft_spreads) or any(
        weight < 0 and term.topology_key == HOSTNAME_LABEL for weight, term in ask.preferred_affinity
    )
