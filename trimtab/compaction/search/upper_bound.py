"""How much could go at all? A bound that needs no solver.

Pods are taken for sand: a node that goes takes its free room away and puts its moving pods elsewhere, and all that
room must be there. The best set under one such limit is a knapsack of which a part of an item may be taken, so
sorting solves it; the tightest of the resources counts. Nodes that share no pods (other pools, other zones) are
bounded apart and summed.

The bound by volume of one prepared world: which nodes share pods, and what each would take away.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from trimtab.compaction.plan_types import Bound
from trimtab.compaction.search.drain_search import DRAINED, Search
from trimtab.compaction.search.problem import CompactionProblem

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
        return sum(_most([i for i in part if i.node in nodes], saves, free) for part, free in known)

    return Bound(
        saves=total(lambda i: i.saves, may_go), nodes=total(lambda _: 1, may_go), pinned=len(pinned),
        unpinned_nodes=total(lambda _: 1, loose), unpinned_saves=total(lambda i: i.saves, loose),
    )  # fmt: skip


def _free(part: Sequence[Item]) -> list[int]:
    """What there is to fill, of each resource."""
    return [sum([max(0, amount) for amount in amounts]) for amounts in zip(*[item.free for item in part], strict=True)]


def _most(items: Sequence[Item], saves: Callable[[Item], int], free: Sequence[int]) -> int:
    """Most savings of these items, by what each saves."""
    saved = [saves(item) for item in items]
    return min(_knapsack(saved, [item.takes[r] for item in items], limit) for r, limit in enumerate(free))


def _knapsack(saves: Sequence[int], takes: Sequence[int], limit: int) -> int:
    """Most savings within the limit; the last item may be taken in part (rounded down: savings are whole)."""
    if sum(takes) <= limit:
        return sum(saves)
    total = 0
    ratios = [(taken << 32) // max(1, saved) for taken, saved in zip(takes, saves, strict=True)]
    for at in sorted(range(len(ratios)), key=ratios.__getitem__):
        if takes[at] > limit:
            return total + saves[at] * limit // takes[at]
        limit -= takes[at]
        total += saves[at]
    return total


def parts(masks: Sequence[bytearray], uses: Mapping[int, Iterable[int]], nodes: int) -> list[int]:
    """Node → number of its part: a node, and all nodes that its pods could go to, are in one.

    `uses` says which of the masks (node → 1 where pods may go) the pods of a node have.
    """
    spans = {number: bytearray(masks[number]) for used in uses.values() for number in used if any(masks[number])}
    for node, used in uses.items():
        for number in used:
            if number in spans:
                spans[number][node] = 1
    # Sets of nodes as one integer each: those that share a node are one.
    whole: list[int] = []
    for span in spans.values():
        found = int.from_bytes(span, "big")
        apart = []
        for other in whole:
            if other & found:
                found |= other
            else:
                apart.append(other)
        whole = [*apart, found]
    part = list(range(nodes))
    for found in whole:
        inside = found.to_bytes(nodes, "big")
        first = inside.index(1)
        for node, there in enumerate(inside):
            if there:
                part[node] = first
    return part


def bounded(made: CompactionProblem, search: Search) -> Bound:
    """What no plan over these candidates can exceed."""
    world, next_of = made.world, made.world.next_of
    pinned = {node: [next_of[pod] for pod in _all(made, node)] for node in made.pinned}
    uses = {node: {kind.where for kind in kinds} for node, kinds in pinned.items()}
    uses |= {node: {next_of[pod].where for pod in made.loads[node]} for node in made.candidates}
    moving = {node: (*made.moving[node], len(made.loads[node])) for node in made.candidates}
    moving |= {node: (sum([k.major for k in kinds]), sum([k.minor for k in kinds]), len(kinds))
               for node, kinds in pinned.items()}  # fmt: skip
    part = parts(world.wheres, uses, len(world.nodes))
    items: dict[int, list[Item]] = {}
    for node in range(len(world.nodes)):
        if not made.room.closed[node] or search.state[node] == DRAINED:
            items.setdefault(part[node], []).append(_item(made, node, moving.get(node, (0, 0, 0))))
    return bound(items.values(), set(made.candidates), made.pinned)


def _all(made: CompactionProblem, node: int) -> list[int]:
    """The pods that move, and those that must stay, as if nothing kept them but their nature.

    A DaemonSet pod that keeps its node would still go with it: it needs no place elsewhere.
    """
    pods = made.world.pods
    return made.loads[node] + [pod for pod in made.world.on[node] if pod in made.pods and not pods[pod].daemon]


def _item(made: CompactionProblem, node: int, moving: tuple[int, int, int]) -> Item:
    world = made.world
    free = (world.major[node], world.minor[node], world.slots[node])
    takes = tuple([max(0, left) + amount for left, amount in zip(free, moving, strict=True)])
    return Item(node=node, saves=made.saves.get(node, 0), takes=takes, free=free)
