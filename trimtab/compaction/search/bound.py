"""How much could go at all? A bound that needs no solver.

Pods are taken for sand: a node that goes takes its free room away and puts its moving pods elsewhere, and all that
room must be there. The best set under one such limit is a knapsack of which a part of an item may be taken, so
sorting solves it; the tightest of the resources counts. Nodes that share no pods (other pools, other zones) are
bounded apart and summed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.compaction.values import Bound

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A node: what it saves, what it takes away of each resource, and what it has free of each."""

    node: int
    saves: int
    takes: Row
    free: Row


def bound(parts: Iterable[Sequence[Item]], may_go: set[int], pinned: set[int]) -> Bound:
    """The bound of each part, summed."""
    parts = [list(part) for part in parts]
    loose = may_go | pinned

    def total(saves: Callable[[Item], int], nodes: set[int]) -> int:
        return sum(_most(part, saves, nodes) for part in parts)

    return Bound(
        saves=total(lambda i: i.saves, may_go), nodes=total(lambda _: 1, may_go), pinned=len(pinned),
        unpinned_nodes=total(lambda _: 1, loose), unpinned_saves=total(lambda i: i.saves, loose),
    )  # fmt: skip


def _most(part: Sequence[Item], saves: Callable[[Item], int], nodes: set[int]) -> int:
    candidates = [item for item in part if item.node in nodes]
    if not candidates:
        return 0
    limits = [sum(max(0, item.free[r]) for item in part) for r in range(len(part[0].free))]
    return min(_knapsack(candidates, saves, r, limit) for r, limit in enumerate(limits))


def _knapsack(items: Sequence[Item], saves: Callable[[Item], int], r: int, limit: int) -> int:
    """Most savings within the limit; the last item may be taken in part (rounded down: savings are whole)."""
    total = 0
    for item in sorted(items, key=lambda i: ((i.takes[r] << 32) // max(1, saves(i)), i.node)):
        if item.takes[r] > limit:
            return total + saves(item) * limit // item.takes[r]
        limit -= item.takes[r]
        total += saves(item)
    return total


def parts(masks: Sequence[bytearray], uses: Mapping[int, Iterable[int]], nodes: int) -> list[int]:
    """Node → number of its part: a node, and all nodes that its pods could go to, are in one.

    `uses` says which of the masks (node → 1 where pods may go) the pods of a node have.
    """
    leader = list(range(nodes))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    firsts = {}
    for number in sorted({number for used in uses.values() for number in used}):
        members = [node for node in range(nodes) if masks[number][node]]
        for node in members:
            leader[find(node)] = find(members[0])
        if members:
            firsts[number] = members[0]
    for node, used in uses.items():
        for number in used:
            if number in firsts:
                leader[find(node)] = find(firsts[number])
    return [find(node) for node in range(nodes)]
