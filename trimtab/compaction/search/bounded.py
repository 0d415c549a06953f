"""The bound by volume of one prepared world: which nodes share pods, and what each would take away."""

from collections.abc import Sequence

from trimtab.compaction.search.bound import Item, bound, parts
from trimtab.compaction.search.prepare import Prepared
from trimtab.compaction.search.search import DRAINED, Search
from trimtab.compaction.values import Bound
from trimtab.packing.kinds import Kind


def bounded(made: Prepared, search: Search) -> Bound:
    """What no plan over these candidates can exceed."""
    world, next_of = made.world, made.world.next_of
    moving = {node: [next_of[pod] for pod in made.loads[node]] for node in made.candidates}
    moving |= {node: [next_of[pod] for pod in _all(made, node)] for node in made.pinned}
    uses = {node: {kind.where for kind in kinds} for node, kinds in moving.items()}
    part = parts(world.wheres, uses, len(world.nodes))
    items: dict[int, list[Item]] = {}
    for node in range(len(world.nodes)):
        if not made.room.closed[node] or search.state[node] == DRAINED:
            items.setdefault(part[node], []).append(_item(made, node, moving.get(node, ())))
    return bound(items.values(), set(made.candidates), made.pinned)


def _all(made: Prepared, node: int) -> list[int]:
    """The pods that move, and those that must stay, as if nothing kept them but their nature.

    A DaemonSet pod that keeps its node would still go with it: it needs no place elsewhere.
    """
    pods = made.world.pods
    return made.loads[node] + [pod for pod in made.world.on[node] if pod in made.pods and not pods[pod].daemon]


def _item(made: Prepared, node: int, kinds: Sequence[Kind]) -> Item:
    world = made.world
    major, minor, slots = free = (world.major[node], world.minor[node], world.slots[node])
    takes = (
        max(0, major) + sum([kind.major for kind in kinds]),
        max(0, minor) + sum([kind.minor for kind in kinds]),
        max(0, slots) + len(kinds),
    )
    return Item(node=node, saves=made.saves.get(node, 0), takes=takes, free=free)
