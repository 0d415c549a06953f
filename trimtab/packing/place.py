"""Many pods on many nodes: where would they all go?

Largest first, each to the tightest place (best fit decreasing). For pods that are not there yet: what waits, what
comes back, what is only asked about.
"""

from collections.abc import Iterable, Sequence

from trimtab.packing.fit import admits
from trimtab.packing.kinds import Kind
from trimtab.packing.room import Room


def place(room: Room, kinds: Iterable[Kind], nodes: Sequence[int]) -> list[int | None]:
    """A node for each kind, in the order given; None for what found none. Places found are taken in the room."""
    kinds = list(kinds)
    found: list[int | None] = [None] * len(kinds)
    for number in sorted(range(len(kinds)), key=lambda n: (-kinds[n].major, -kinds[n].minor, n)):
        best, free = None, 1 << 62
        for node in nodes:
            if room.major[node] < free and admits(room, kinds[number], node):
                best, free = node, room.major[node]
        if best is not None:
            room.take(kinds[number], best)
            found[number] = best
    return found
