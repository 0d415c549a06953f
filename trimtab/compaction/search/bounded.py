"""The bound by volume of one prepared world: which nodes share pods, and what each would take away."""

from trimtab.compaction.search.bound import Item, bound, parts
from trimtab.compaction.search.prepare import Prepared
from trimtab.compaction.search.search import DRAINED, Search
from trimtab.compaction.values import Bound


def bounded(made: Prepared, search: Search) -> Bound:
    """What no plan over these candidates can exceed."""
    world = made.world
    kinds = world.next_of
    uses = {node: {kinds[pod].where for pod in made.loads[node]} for node in made.candidates}
    uses |= {node: {kinds[pod].where for pod in _all(made, node)} for node in made.pinned}
    part = parts(world.wheres, uses, len(world.nodes))
    items: dict[int, list[Item]] = {}
    for node in range(len(world.nodes)):
        if not made.room.closed[node] or search.state[node] == DRAINED:
            items.setdefault(part[node], []).append(_item(made, node))
    return bound(items.values(), set(made.candidates), made.pinned)


def _all(made: Prepared, node: int) -> list[int]:
    """The pods that move, and those that must stay, as if nothing kept them but their nature.

    A DaemonSet pod that keeps its node would still go with it: it needs no place elsewhere.
    """
    pods = made.world.pods
    return made.loads[node] + [pod for pod in made.world.on[node] if pod in made.pods and not pods[pod].daemon]


def _item(made: Prepared, node: int) -> Item:
    world, kinds = made.world, made.world.next_of
    pods = _all(made, node) if node in made.pinned else made.loads[node]
    moving = (sum(kinds[p].major for p in pods), sum(kinds[p].minor for p in pods), len(pods))
    free = (world.major[node], world.minor[node], world.slots[node])
    takes = tuple(max(0, have) + more for have, more in zip(free, moving, strict=True))
    return Item(node=node, saves=made.saves.get(node, 0), takes=takes, free=free)
