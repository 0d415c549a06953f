"""Can the set of nodes that go be made better? Local search: one more node, or one node for another.

Every try is undone exactly when it does not pay. Work is bounded by `Search.effort`, a count and not a clock, so
that equal input gives an equal plan on any machine.

Which of several searches is the plan's? Two orders for the first pass, the better kept, then improved.

By evictions alone the order is lean: fewest pods moved for what is saved. Where room is the limit, a node that takes
little usable room away with it leaves more for others, and more can go at all; that costs evictions. The richer set
is taken only when each further eviction still saves a fair part of what the lean ones save.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop

from trimtab.compaction.search.drain_search import DRAINED, OPEN, Log, Search
from trimtab.compaction.search.node_order import by_evictions, by_room
from trimtab.compaction.search.preferences import steer
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.best_fit_index import BestFitIndex

DEAR = 4
"""An exchange may cost at most this many times the plan's own evictions per price."""

MOST_OUT, MOST_IN = 100, 200
"""Pairs looked at for a swap: the last of those that go, the first of those that stay."""


def improve(search: Search, prices: Sequence[int]) -> None:
    """Adds and swaps until nothing pays any more or the effort is spent."""
    fresh = True
    while search.effort > 0:
        if _add(search) or _swap(search, prices):
            fresh = True
        elif fresh and search.repack():
            fresh = False
        else:
            break


def _slack(search: Search) -> int:
    """Free room on open nodes."""
    return sum(max(0, search.room.major[n]) for n in range(len(search.state)) if search.shelves.open[n])


def _receivers(search: Search) -> list[int]:
    return [node for node in search.order if search.state[node] == OPEN and not search.shut[node]]


def _add(search: Search) -> bool:
    found, slack = False, _slack(search)
    for node in _receivers(search):
        if search.effort <= 0:
            break
        own = search.world_major(node)
        if own > slack:
            continue
        log: Log = []
        if search.empty(node, log):
            slack -= own
            found = True
    return found


def _swap(search: Search, prices: Sequence[int]) -> bool:
    """The first exchange that pays, most saved per pod first."""
    if search.effort <= 0:
        return False
    for out, into in _exchanges(search, prices):
        if search.effort <= 0:
            return False
        log: Log = []
        place = search.drained.index(out)
        search.refill(out, log)
        # A node that comes back may be fuller than its pool keeps its nodes.
        limits = search.limits[out]
        if (limits is None or limits.short() is None) and search.empty(into, log):
            return True
        search.again(out, log)
        search.drained.remove(out)
        search.drained.insert(place, out)
    return False


def _exchanges(search: Search, prices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(node that stays, node that goes instead), best first."""
    slack = _slack(search)
    moved, saved = len(search.dest), sum(prices[n] for n in search.drained)
    found, loads = [], search.loads
    receivers = [(n, search.world_major(n), prices[n], len(loads[n])) for n in _receivers(search)[:MOST_IN]]
    for out in [n for n in search.order if search.state[n] == DRAINED][-MOST_OUT:]:
        room, price, load = slack + search.world_major(out), prices[out], len(loads[out])
        for into, wanted, better, longer in receivers:
            if wanted > room:
                continue
            gain, more = better - price, longer - load
            if (gain > 0 and more * saved <= DEAR * gain * moved) or (gain == 0 and more < 0):
                found.append((-gain if more <= 0 else more * saved // gain - DEAR * moved, -gain, out, into))
    heapify(found)
    while found:
        _, _, out, into = heappop(found)
        yield out, into


ROOM_WEIGHT = 4
"""How much the room a node takes away counts against its evictions; see docs/explanation/compaction-order.md."""


def searched(made: CompactionProblem, effort: int) -> Search:
    """The first pass in one order or two, the better kept, then improved."""
    lean = by_evictions(made.candidates, made.loads, made.saves)
    roomy = by_room(made.candidates, made.loads, made.saves, _takes(made), ROOM_WEIGHT)

    before = made.room.saved() if roomy != lean else None
    found = _first(made, lean)
    if before is not None:
        after = found.set_aside(before)
        richer = _first(made, roomy)
        (saved, moved), (more, extra) = _value(made, found), _value(made, richer)
        if more <= saved or (extra - moved) * saved > DEAR * (more - saved) * max(1, moved):
            richer.set_aside(before)
            found.take_up(after)
        else:
            found = richer
    found.effort = effort
    improve(found, [made.saves.get(n, 0) for n in range(len(made.world.nodes))])
    steer(made, found)
    return found


def best_only(made: CompactionProblem) -> Search:
    """One pass over the candidates that were looked at closely, in order of evictions; the others just take pods."""
    found = _first(made, by_evictions(made.candidates, made.loads, made.saves))
    steer(made, found)
    return found


def _first(made: CompactionProblem, order: Sequence[int]) -> Search:
    allowances = [None if limits is None or limits.loose else limits.remaining for limits in made.limits]
    shelves = BestFitIndex(made.ways, allowances)
    search = Search(made.room, [*order, *made.later], made.loads, made.errands, shelves, made.limits, 0)
    for node in set(range(len(made.world.nodes))) - set(search.order):
        if not made.room.closed[node]:
            shelves.open_up(node)
    search.fill(len(order))
    return search


def _value(made: CompactionProblem, search: Search) -> tuple[int, int]:
    return sum(made.saves[n] for n in search.drained), len(search.dest)


def _takes(made: CompactionProblem) -> dict[int, int]:
    """Node → room it takes away: what its pods need elsewhere, and what is free on it and could be used.

    Free cores without memory to go with them are no room: what is free counts at most as much as its scarcer half.
    """
    world, moving = made.world, made.moving
    major = sum([moving[n][0] for n in made.candidates])
    minor = max(1, sum([moving[n][1] for n in made.candidates]))
    return {n: moving[n][0] + max(0, min(world.major[n], world.minor[n] * major // minor)) for n in made.candidates}
