"""Which open node has the least room that is enough?

Open nodes lie on shelves, sorted by what they have free of the scarcer resource; nodes that the same pods may use
share a shelf. Best fit is then a binary search on few lists. A node without a slot, or too full for the smallest
errand, lies on none.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import chain

from trimtab.packing.errands import Errand, Errands

BITS = 20
"""Room for a million nodes below the free amount in one sortable integer."""
NODE = (1 << BITS) - 1
MOST = 1 << 100
"""Above every such integer."""
NEAR = 48
"""How many nearly fitting nodes per shelf are looked at for an exchange."""
Shelf = list[int]
"""Nodes by what they have free, each below the free amount in one integer."""


class Shelves:
    __slots__ = ("_at", "_heavy", "_least_major", "_least_minor", "_light", "_mean", "_own", "open", "room")

    def __init__(self, made: Errands) -> None:
        self.room = made.room
        self.open = bytearray(len(made.world.nodes))
        self._least_major = min((e.major for e in made.all), default=0)
        self._least_minor = min((e.minor for e in made.all), default=0)
        self._mean = sum(e.minor for e in made.all) // (sum(e.major for e in made.all) or 1)
        atoms: dict[tuple[int, ...], tuple[Shelf, Shelf]] = {}
        rows = zip(*made.masks, strict=True) if made.masks else [()] * len(self.open)
        self._own = [atoms.setdefault(row, ([], [])) for row in rows]
        """Node → its shelf while memory is short on it (less per free core than pods ask for), and while it is not."""
        self._at: list[Shelf | None] = [None] * len(self.open)
        """Node → the one on which it lies."""
        near = [[both for row, both in atoms.items() if row[m]] for m in range(len(made.masks))]
        self._light = [([short for short, _ in found], [ample for _, ample in found]) for found in near]
        self._heavy = [(ample, short) for short, ample in self._light]

    def open_up(self, node: int) -> None:
        """The node takes pods from now on."""
        if not self.open[node]:
            self.open[node] = 1
            self._lay(node)

    def shut(self, node: int) -> None:
        self._lift(node)
        self.open[node] = 0

    def _lay(self, node: int) -> None:
        room = self.room
        major, minor = room.major[node], room.minor[node]
        if major >= self._least_major and minor >= self._least_minor and room.slots[node] > 0 and self.open[node]:
            shelf = self._at[node] = self._own[node][minor >= (self._mean + 1) * major]
            insort(shelf, major << BITS | node)

    def _lift(self, node: int) -> None:
        shelf = self._at[node]
        if shelf is not None:
            del shelf[bisect_left(shelf, self.room.major[node] << BITS | node)]
            self._at[node] = None

    def take(self, errand: Errand, node: int) -> None:
        """The pod comes to the node, whose place on the shelf changes."""
        self._lift(node)
        self.room.take(errand.kind, node)
        self._lay(node)

    def give(self, errand: Errand, node: int) -> None:
        """The pod does not come after all."""
        self._lift(node)
        self.room.give(errand.kind, node)
        self._lay(node)

    def best(self, errand: Errand) -> int:
        """The open node with the least room that is enough; -1 when there is none."""
        minor, need, simple = self.room.minor, errand.minor, errand.simple and not errand.kind.rest
        floor, best = errand.major << BITS, MOST
        light = need < self._mean * errand.major
        for row in (self._light if light else self._heavy)[errand.where]:
            for shelf in row:
                place, end = bisect_left(shelf, floor), len(shelf)
                while place < end and (key := shelf[place]) < best:
                    node = key & NODE
                    if minor[node] >= need and (simple or self.suits(errand, node)):
                        best = key
                    place += 1
            if best < MOST:
                return best & NODE
        return -1

    def others(self, errand: Errand, most: int) -> Iterable[int]:
        """Open nodes with enough room, the tightest of each shelf first; so many are looked at."""
        minor, need, floor = self.room.minor, errand.minor, errand.major << BITS
        for shelf in chain(*self._light[errand.where]):
            start = bisect_left(shelf, floor)
            near = shelf[start : start + most]
            most -= len(near)
            for key in near:
                node = key & NODE
                if minor[node] >= need and self.suits(errand, node):
                    yield node

    def suits(self, errand: Errand, node: int) -> bool:
        """What is not on the shelves: other resources, and the pods that are there."""
        for number, amount in errand.kind.rest:
            if self.room.rest[number][node] < amount:
                return False
        for domain, counts in errand.bars:
            if domain[node] in counts:
                return False
        caps = errand.caps
        return not caps or all(
            domain[node] >= 0 and counts.get(domain[node], 0) <= most for domain, counts, most in caps
        )

    def fits(self, errand: Errand, node: int) -> bool:
        """Would it fit on this very node, open or not?"""
        room = self.room
        return (
            errand.nodes[node] == 1
            and room.major[node] >= errand.major
            and room.minor[node] >= errand.minor
            and room.slots[node] > 0
            and self.suits(errand, node)
        )

    def nearly(self, errand: Errand) -> Iterable[int]:
        """Open nodes with a little less room than needed, the fullest gap first."""
        floor = errand.major << BITS
        for shelf in chain(*self._light[errand.where]):
            end = bisect_left(shelf, floor)
            for key in reversed(shelf[max(0, end - NEAR) : end]):
                yield key & NODE
