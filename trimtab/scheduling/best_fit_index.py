"""Which open node has the least room that is enough?

Open nodes lie on shelves, sorted by what they have free of the scarcer resource; nodes that the same pods may use
share a shelf, apart for pools that keep room free. Best fit is then a binary search on few lists. A node without a
slot, or too full for the smallest errand, lies on none; a pool that may take no more is passed over as a whole.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import chain

from trimtab.scheduling.placement_requests import PlacementRequest, PlacementRequests

BITS = 20
"""Room for a million nodes below the free amount in one sortable integer."""
NODE = (1 << BITS) - 1
MOST = 1 << 100
"""Above every such integer."""
NEAR = 48
"""How many nearly fitting nodes per shelf are looked at for an exchange."""
Shelf = list[int]
"""Nodes by what they have free, each below the free amount in one integer."""
Allowance = list[int]
"""[of the scarcer resource, of the other] that may still arrive on the nodes of one pool together. Its owner changes it
in place as pods arrive and leave."""


class BestFitIndex:
    __slots__ = (
        "_at",
        "_heavy",
        "_least_major",
        "_least_minor",
        "_light",
        "_mean",
        "_own",
        "allowances",
        "open",
        "room",
    )

    def __init__(self, made: PlacementRequests, allowances: Sequence[Allowance | None] | None = None) -> None:
        """`allowances`: node → what its pool may still take; None where a pool (or every pool) keeps no room free."""
        self.room = made.room
        self.allowances = allowances if allowances is not None else [None] * len(made.world.nodes)
        self.open = bytearray(len(made.world.nodes))
        self._least_major = min((e.major for e in made.all), default=0)
        self._least_minor = min((e.minor for e in made.all), default=0)
        self._mean = sum(e.minor for e in made.all) // (sum(e.major for e in made.all) or 1)
        atoms: dict[tuple[tuple[int, ...], int], tuple[Shelf, Shelf]] = {}
        of_atom: dict[tuple[tuple[int, ...], int], Allowance | None] = {}
        rows = zip(*made.masks, strict=True) if made.masks else [()] * len(self.open)
        self._own = []
        for row, allowance in zip(rows, self.allowances, strict=True):
            # By identity: two pools with equal amounts are two pools.
            atom = (row, id(allowance))
            of_atom[atom] = allowance
            self._own.append(atoms.setdefault(atom, ([], [])))
        """Node → its shelf while memory is short on it (less per free core than pods ask for), and while it is not."""
        self._at: list[Shelf | None] = [None] * len(self.open)
        """Node → the one on which it lies."""
        near = [
            [(*both, of_atom[atom]) for atom, both in atoms.items() if atom[0][mask]] for mask in range(len(made.masks))
        ]
        self._light = [
            ([(short, left) for short, _, left in shelves], [(ample, left) for _, ample, left in shelves])
            for shelves in near
        ]
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

    def take(self, errand: PlacementRequest, node: int) -> None:
        """The pod comes to the node, whose place on the shelf changes."""
        self._lift(node)
        self.room.take(errand.kind, node)
        self._lay(node)

    def give(self, errand: PlacementRequest, node: int) -> None:
        """The pod does not come after all."""
        self._lift(node)
        self.room.give(errand.kind, node)
        self._lay(node)

    def best(self, errand: PlacementRequest) -> int:
        """The open node with the least room that is enough; -1 when there is none."""
        minor, need, simple = self.room.minor, errand.minor, errand.simple and not errand.kind.rest
        floor, best = errand.major << BITS, MOST
        light = need < self._mean * errand.major
        for row in (self._light if light else self._heavy)[errand.where]:
            for shelf, allowance in row:
                # Most shelves are empty or hold nothing large enough: asking for the last is the quickest.
                if not shelf or shelf[-1] < floor:
                    continue
                if allowance is not None and (allowance[0] < errand.major or allowance[1] < need):
                    continue
                for place in range(bisect_left(shelf, floor), len(shelf)):
                    key = shelf[place]
                    if key >= best:
                        break
                    node = key & NODE
                    if minor[node] >= need and (simple or self.suits(errand, node)):
                        best = key
                        break
            if best < MOST:
                return best & NODE
        return -1

    def others(self, errand: PlacementRequest, most: int) -> Iterable[int]:
        """Open nodes with enough room, the tightest of each shelf first; so many are looked at.

        Whether their pools may take more is not asked: this is for pods that stay in the pool they are in.
        """
        minor, need, simple = self.room.minor, errand.minor, errand.simple and not errand.kind.rest
        floor = errand.major << BITS
        for shelf, _ in chain(*self._light[errand.where]):
            if not shelf or shelf[-1] < floor:
                continue
            start = bisect_left(shelf, floor)
            near = shelf[start : start + most]
            most -= len(near)
            for key in near:
                node = key & NODE
                if minor[node] >= need and (simple or self.suits(errand, node)):
                    yield node
            if not most:
                return

    def suits(self, errand: PlacementRequest, node: int) -> bool:
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

    def fits(self, errand: PlacementRequest, node: int) -> bool:
        """Would it fit on this very node, open or not? What its pool keeps free is asked by `is_allowed`."""
        room = self.room
        return (
            errand.nodes[node] == 1
            and room.major[node] >= errand.major
            and room.minor[node] >= errand.minor
            and room.slots[node] > 0
            and self.suits(errand, node)
        )

    def is_allowed(self, errand: PlacementRequest, node: int, leaving: PlacementRequest | None = None) -> bool:
        """Whether the node's pool may take the pod, once `leaving` (a pod that is there) has gone elsewhere."""
        allowance = self.allowances[node]
        if allowance is None:
            return True
        major, minor = (leaving.major, leaving.minor) if leaving is not None else (0, 0)
        return allowance[0] + major >= errand.major and allowance[1] + minor >= errand.minor

    def kept_from(self, errand: PlacementRequest) -> int:
        """An open node with room for the pod whose pool may not take it; -1 when there is none."""
        minor, floor = self.room.minor, errand.major << BITS
        for shelf, allowance in chain(*self._light[errand.where]):
            if allowance is not None and (allowance[0] < errand.major or allowance[1] < errand.minor):
                for key in shelf[bisect_left(shelf, floor) :]:
                    node = key & NODE
                    if minor[node] >= errand.minor and self.suits(errand, node):
                        return node
        return -1

    def nearly(self, errand: PlacementRequest) -> Iterable[int]:
        """Open nodes with a little less room than needed, the fullest gap first."""
        floor = errand.major << BITS
        for shelf, _ in chain(*self._light[errand.where]):
            end = bisect_left(shelf, floor)
            for key in reversed(shelf[max(0, end - NEAR) : end]):
                yield key & NODE
