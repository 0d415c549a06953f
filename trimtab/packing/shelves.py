"""Which open node has the least room that is enough?

Open nodes lie on shelves, sorted by what they have free of the scarcer resource; nodes that the same pods may use
share a shelf. Best fit is then a binary search on few lists. A node too full for the smallest errand lies on none.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from trimtab.packing.errands import Errand
from trimtab.packing.room import Room

BITS = 20
"""Room for a million nodes below the free amount in one sortable integer."""
NODE = (1 << BITS) - 1
STEPS = (4,)
NEAR = 48
"""How many nearly fitting nodes per shelf are looked at for an exchange."""


class Shelves:
    __slots__ = (
        "_heavy",
        "_least_major",
        "_least_minor",
        "_light",
        "_lists",
        "_mean",
        "_shelf",
        "_steps",
        "_width",
        "open",
        "room",
    )

    def __init__(self, room: Room, masks: Sequence[bytearray], errands: Iterable[Errand]) -> None:
        self.room = room
        self.open = bytearray(len(room.world.nodes))
        errands = list(errands)
        self._least_major = min((e.major for e in errands), default=0)
        self._least_minor = min((e.minor for e in errands), default=0)
        atoms: dict[tuple[int, ...], int] = {}
        rows = zip(*masks, strict=True) if masks else [()] * len(self.open)
        self._shelf = [atoms.setdefault(row, len(atoms)) for row in rows]
        asked = sum(e.major for e in errands) or 1
        self._mean = sum(e.minor for e in errands) // asked
        self._steps = [self._mean * k // 4 for k in STEPS]
        self._width = len(self._steps) + 1
        self._lists: list[list[int]] = [[] for _ in range(len(atoms) * self._width)]
        near = [[a for row, a in atoms.items() if row[m]] for m in range(len(masks))]
        poor = range(self._width)
        self._light = [[[self._lists[a * self._width + b] for a in found] for b in poor] for found in near]
        self._heavy = [list(reversed(rows)) for rows in self._light]

    def _lies(self, node: int) -> bool:
        room = self.room
        return (
            room.major[node] >= self._least_major
            and room.minor[node] >= self._least_minor
            and room.slots[node] > 0
            and self.open[node] == 1
        )

    def _list(self, node: int) -> list[int]:
        free = self.room.major[node]
        ratio = self.room.minor[node] // free if free > 0 else 1 << 62
        return self._lists[self._shelf[node] * self._width + bisect_left(self._steps, ratio)]

    def _key(self, node: int) -> int:
        free = self.room.major[node]
        return (free << BITS if free > 0 else 0) | node

    def open_up(self, node: int) -> None:
        """The node takes pods from now on."""
        if not self.open[node]:
            self.open[node] = 1
            if self._lies(node):
                insort(self._list(node), self._key(node))

    def shut(self, node: int) -> None:
        if self._lies(node):
            self._remove(node)
        self.open[node] = 0

    def _remove(self, node: int) -> None:
        shelf = self._list(node)
        del shelf[bisect_left(shelf, self._key(node))]

    def take(self, errand: Errand, node: int) -> None:
        """The pod comes to the node, whose place on the shelf changes."""
        if self._lies(node):
            self._remove(node)
        self.room.take(errand.kind, node)
        if self._lies(node):
            insort(self._list(node), self._key(node))

    def give(self, errand: Errand, node: int) -> None:
        """The pod does not come after all."""
        if self._lies(node):
            self._remove(node)
        self.room.give(errand.kind, node)
        if self._lies(node):
            insort(self._list(node), self._key(node))

    def best(self, errand: Errand) -> int:
        """The open node with the least room that is enough; -1 when there is none."""
        room = self.room
        minor, slots, need, simple = room.minor, room.slots, errand.minor, errand.simple and not errand.kind.rest
        floor, best = errand.major << BITS, 1 << 62
        light = errand.minor < self._mean * errand.major
        for row in (self._light if light else self._heavy)[errand.where]:
            for shelf in row:
                for place in range(bisect_left(shelf, floor), len(shelf)):
                    key = shelf[place]
                    if key >= best:
                        break
                    node = key & NODE
                    if minor[node] >= need and slots[node] > 0 and (simple or self.suits(errand, node)):
                        best = key
                        break
            if best < 1 << 62:
                return best & NODE
        return -1

    def others(self, errand: Errand, most: int) -> Iterable[int]:
        """Open nodes with enough room, the tightest of each shelf first; so many are looked at."""
        room, floor = self.room, errand.major << BITS
        for shelf in (shelf for row in self._light[errand.where] for shelf in row):
            for place in range(bisect_left(shelf, floor), len(shelf)):
                if most <= 0:
                    return
                most -= 1
                node = shelf[place] & NODE
                if room.minor[node] >= errand.minor and room.slots[node] > 0 and self.suits(errand, node):
                    yield node

    def suits(self, errand: Errand, node: int) -> bool:
        """What is not on the shelves: other resources, and the pods that are there."""
        for number, amount in errand.kind.rest:
            if self.room.rest[number][node] < amount:
                return False
        for domain, counts in errand.bars:
            if domain[node] in counts:
                return False
        return all(domain[node] >= 0 and counts.get(domain[node], 0) <= most for domain, counts, most in errand.caps)

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
        for shelf in (shelf for row in self._light[errand.where] for shelf in row):
            end = bisect_left(shelf, floor)
            for place in range(end - 1, max(-1, end - 1 - NEAR), -1):
                yield shelf[place] & NODE
