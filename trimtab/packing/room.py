"""What is free at this moment? The only thing in this room that changes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trimtab.packing.kinds import Kind

if TYPE_CHECKING:
    from trimtab.packing.world import World


class Room:
    """Free resources by node and pods by group and domain. `take` and `give` undo each other exactly."""

    __slots__ = ("_domains", "closed", "counts", "leaving", "major", "minor", "rest", "slots", "world")

    def __init__(self, world: "World") -> None:
        self.world = world
        self.major = world.major[:]
        self.minor = world.minor[:]
        self.slots = world.slots[:]
        self.rest = [amounts[:] for amounts in world.rest]
        self.counts: list[dict[int, int]] = [counts.copy() for counts in world.counts]
        self.closed = bytearray(world.closed)
        """Nodes that take no pods."""
        self.leaving: set[int] = set()
        """Nodes that we cordon: they stay domains, except for who honours taints."""
        self._domains = [g.domain if not g.per_node else range(len(world.nodes)) for g in world.groups]

    def take(self, kind: Kind, node: int) -> None:
        """A pod of this kind comes to the node."""
        self.major[node] -= kind.major
        self.minor[node] -= kind.minor
        self.slots[node] -= 1
        for number, amount in kind.rest:
            self.rest[number][node] -= amount
        if kind.adds:
            self.count(kind.adds, node)

    def give(self, kind: Kind, node: int) -> None:
        """A pod of this kind leaves the node."""
        self.major[node] += kind.major
        self.minor[node] += kind.minor
        self.slots[node] += 1
        for number, amount in kind.rest:
            self.rest[number][node] += amount
        if kind.adds:
            self.uncount(kind.adds, node)

    def count(self, groups: Iterable[int], node: int) -> None:
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.counts[number]
                counts[domain] = counts.get(domain, 0) + 1

    def uncount(self, groups: Iterable[int], node: int) -> None:
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.counts[number]
                left = counts.get(domain, 0) - 1
                if left > 0:
                    counts[domain] = left
                else:
                    counts.pop(domain, None)

    def close(self, node: int) -> None:
        """The node is cordoned: nothing comes to it any more."""
        self.closed[node] = 1
        self.leaving.add(node)

    def reopen(self, node: int) -> None:
        self.closed[node] = self.world.closed[node]
        self.leaving.discard(node)
