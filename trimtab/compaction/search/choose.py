"""Which of several searches is the plan's? Two orders for the first pass, the better kept, then improved.

By evictions alone the order is lean: fewest pods moved for what is saved. Where room is the limit, a node that takes
little usable room away with it leaves more for others, and more can go at all; that costs evictions. The richer set
is taken only when each further eviction still saves a fair part of what the lean ones save.
"""

from collections.abc import Sequence

from trimtab.compaction.search.improve import DEAR, improve
from trimtab.compaction.search.prepare import Prepared
from trimtab.compaction.search.search import Search
from trimtab.compaction.search.steer import steer
from trimtab.compaction.search.weigh import by_evictions, by_room
from trimtab.packing.shelves import Shelves

ROOM_WEIGHT = 4
"""How much the room a node takes away counts against its evictions; see docs/explanation/compaction-order.md."""


def searched(made: Prepared, effort: int) -> Search:
    """The first pass in one order or two, the better kept, then improved."""
    lean = by_evictions(made.candidates, made.loads, made.saves)
    roomy = by_room(made.candidates, made.loads, made.saves, _takes(made), ROOM_WEIGHT)

    found = _first(made, lean)
    if roomy != lean:
        saved, moved = _value(made, found)
        found.clear()
        found = _first(made, roomy)
        more, extra = _value(made, found)
        if more <= saved or (extra - moved) * saved > DEAR * (more - saved) * max(1, moved):
            found.clear()
            found = _first(made, lean)
    found.effort = effort
    improve(found, [made.saves.get(n, 0) for n in range(len(made.world.nodes))])
    steer(made, found)
    return found


def best_only(made: Prepared) -> Search:
    """One pass over the candidates that were looked at closely, in order of evictions; the others just take pods."""
    found = _first(made, by_evictions(made.candidates, made.loads, made.saves))
    steer(made, found)
    return found


def _first(made: Prepared, order: Sequence[int]) -> Search:
    shelves = Shelves(made.ways)
    search = Search(made.room, [*order, *made.later], made.loads, made.errands, shelves, made.limits, 0)
    for node in set(range(len(made.world.nodes))) - set(search.order):
        if not made.room.closed[node]:
            shelves.open_up(node)
    search.fill(len(order))
    return search


def _value(made: Prepared, search: Search) -> tuple[int, int]:
    return sum(made.saves[n] for n in search.drained), len(search.dest)


def _takes(made: Prepared) -> dict[int, int]:
    """Node → room it takes away: what its pods need elsewhere, and what is free on it and could be used.

    Free cores without memory to go with them are no room: what is free counts at most as much as its scarcer half.
    """
    world, kinds = made.world, made.world.next_of
    moving = {n: sum([kinds[p].major for p in made.loads[n]]) for n in made.candidates}
    major = sum(moving.values())
    minor = max(1, sum([kinds[p].minor for n in made.candidates for p in made.loads[n]]))
    return {n: moving[n] + max(0, min(world.major[n], world.minor[n] * major // minor)) for n in made.candidates}
