"""How much could go at all? A bound that needs no solver.

Pods are taken for sand: a node that goes takes its free room away and puts its moving pods elsewhere, and all that
room must be there. The best set under one such limit is a knapsack of which a part of an item may be taken, so
sorting solves it; the tightest of the resources counts. Nodes that share no pods (other pools, other zones) are
bounded apart and summed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from trimtab.compaction.values import Bound

Row = tuple[int, ...]


class Item(Struct, frozen=True, kw_only=True, gc=False):
    """A node: what it saves, what it takes away of each resource, and what it has free of each."""

    node: int
    saves: int
    takes: Row
    free: Row


def bound(parts: Iterable[Sequence[Item]], may_go: set[int], pinned: set[int]) -> Bound:
    """The bound of each part, summed."""
    known = [(part, _free(part)) for part in parts]
    loose = may_go | pinned

    def total(saves: Callable[[Item], int], nodes: set[int]) -> int:
        return sum(_most([(saves(i), i) for i in part if i.node in nodes], free) for part, free in known)

    return Bound(
        saves=total(lambda i: i.saves, may_go), nodes=total(lambda _: 1, may_go), pinned=len(pinned),
        unpinned_nodes=total(lambda _: 1, loose), unpinned_saves=total(lambda i: i.saves, loose),
    )  # fmt: skip


def _free(part: Sequence[Item]) -> list[int]:
    """What there is to fill, of each resource."""
    return [sum([max(0, amount) for amount in amounts]) for amounts in zip(*[item.free for item in part], strict=True)]


def _most(items: Sequence[tuple[int, Item]], free: Sequence[int]) -> int:
    """Most savings; each item comes with what it saves."""
    return min(_knapsack(items, r, limit) for r, limit in enumerate(free)) if items else 0


def _knapsack(items: Sequence[tuple[int, Item]], r: int, limit: int) -> int:
    """Most savings within the limit; the last item may be taken in part (rounded down: savings are whole)."""
    total = 0
    for _, _, takes, saves in sorted([((i.takes[r] << 32) // max(1, s), i.node, i.takes[r], s) for s, i in items]):
        if takes > limit:
            return total + saves * limit // takes
        limit -= takes
        total += saves
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
        members = [node for node, there in enumerate(masks[number]) if there]
        if members:
            root = firsts[number] = find(members[0])
            for node in members:
                leader[find(node)] = root
    for node, used in uses.items():
        for number in used:
            if number in firsts:
                leader[find(node)] = find(firsts[number])
    return [find(node) for node in range(nodes)]
