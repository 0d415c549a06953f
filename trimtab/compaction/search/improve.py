"""Can the set of nodes that go be made better? Local search: one more node, or one node for another.

Every try is undone exactly when it does not pay. Work is bounded by `Search.effort`, a count and not a clock, so
that equal input gives an equal plan on any machine.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop

from trimtab.compaction.search.search import DRAINED, OPEN, Log, Search

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
        if search.empty(into, log):
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
