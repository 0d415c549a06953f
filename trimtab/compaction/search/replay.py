"""Would the plan go through, move by move? The scheduler's exact checks, in the plan's own order.

The search chose places that hold in any order where it could. Here every move is made in a fresh room: the pod
leaves, its successor is checked as the scheduler would check it, and takes its place. A node one of whose moves
fails goes back to the search's leftovers; nothing of it is kept.
"""

from collections.abc import Iterable, Mapping, Sequence

from trimtab.packing.fit import admits
from trimtab.packing.room import Room


def replay(room: Room, node: int, pods: Sequence[int], dest: Mapping[int, int]) -> bool:
    """Empties one node in the room, or leaves the room as it was."""
    world = room.world
    room.close(node)
    done: list[int] = []
    for pod in pods:
        room.uncount(world.kind_of[pod].adds, node)
        if not admits(room, world.next_of[pod], dest[pod]):
            room.count(world.kind_of[pod].adds, node)
            take_back(room, node, done, dest)
            return False
        room.take(world.next_of[pod], dest[pod])
        done.append(pod)
    return True


def take_back(room: Room, node: int, done: Iterable[int], dest: Mapping[int, int]) -> None:
    """Undoes `replay`."""
    for pod in reversed(list(done)):
        room.give(room.world.next_of[pod], dest[pod])
        room.count(room.world.kind_of[pod].adds, node)
    room.reopen(node)
