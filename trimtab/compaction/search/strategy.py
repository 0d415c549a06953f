"""Searches in two orders, chooses the better result, and improves it by local search.

- Ordered by evictions alone, the search moves the fewest pods for what it saves. If capacity is the limit, it is better
  to drain nodes that remove little usable capacity: more nodes can then be drained, with more evictions. The larger
  result is chosen only if each further eviction still saves a fair part of what the others save.
- Local search drains one more node, or swaps one node for another. Every step is undone exactly if it saves nothing.
  The work is bounded by `Search.effort`, a number and not a time, so that equal input gives an equal plan on any
  machine.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop

from trimtab.compaction.search.drain_order import by_evictions, by_evictions_and_capacity
from trimtab.compaction.search.drain_search import DRAINED, OPEN, MoveLog, Search
from trimtab.compaction.search.preferences import improve_preferences
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.best_fit_index import BestFitIndex

MAX_COST_RATIO = 4
"""How costly an exchange may be: at most this many times the evictions per saved price that the plan has on average."""

MAX_SWAP_OUT, MAX_SWAP_IN = 100, 200
"""The maximum number of nodes that are examined for swaps: the last ones of the nodes that are drained, and the first
ones of those that stay."""


def improve_search(search: Search, prices: Sequence[int]) -> None:
    """Adds and swaps nodes until no further step saves anything or the effort is used up."""
    can_repack = True
    while search.effort > 0:
        if _add_nodes(search) or _swap_nodes(search, prices):
            can_repack = True
        elif can_repack and search.repack_pods():
            can_repack = False
        else:
            break


def _free_capacity(search: Search) -> int:
    """Returns the free capacity of the open nodes, in the scarcer of cpu and memory."""
    return sum(max(0, search.capacity.major[n]) for n in range(len(search.state)) if search.index.open_nodes[n])


def _receivers(search: Search) -> list[int]:
    return [node for node in search.order if search.state[node] == OPEN and not search.closed_nodes[node]]


def _add_nodes(search: Search) -> bool:
    has_added, free_capacity = False, _free_capacity(search)
    for node in _receivers(search):
        if search.effort <= 0:
            break
        removed = search.capacity_removed(node)
        if removed > free_capacity:
            continue
        log: MoveLog = []
        if search.drain_receiver(node, log):
            free_capacity -= removed
            has_added = True
    return has_added


def _swap_nodes(search: Search, prices: Sequence[int]) -> bool:
    """Makes the first exchange of two nodes that saves something; those that save most per pod are tried first. Returns
    whether there was one."""
    if search.effort <= 0:
        return False
    for out, into in _exchanges(search, prices):
        if search.effort <= 0:
            return False
        log: MoveLog = []
        position = search.drained_nodes.index(out)
        search.keep_node(out, log)
        # A node that stays after all adds its pods: its pool may then have less free capacity than its headroom.
        limits = search.limits[out]
        if (limits is None or limits.shortage_reason() is None) and search.drain_receiver(into, log):
            return True
        search.drain_again(out, log)
        search.drained_nodes.remove(out)
        search.drained_nodes.insert(position, out)
    return False


def _exchanges(search: Search, prices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields (drained node that would stay, node that would be drained instead), the most promising pairs first."""
    free_capacity = _free_capacity(search)
    moved, saved = len(search.targets), sum(prices[n] for n in search.drained_nodes)
    exchanges, loads = [], search.pods_to_move
    receivers = [(n, search.capacity_removed(n), prices[n], len(loads[n])) for n in _receivers(search)[:MAX_SWAP_IN]]
    for out in [n for n in search.order if search.state[n] == DRAINED][-MAX_SWAP_OUT:]:
        available, price, load = free_capacity + search.capacity_removed(out), prices[out], len(loads[out])
        for into, removed, other_price, other_load in receivers:
            if removed > available:
                continue
            gain, more_moves = other_price - price, other_load - load
            if (gain > 0 and more_moves * saved <= MAX_COST_RATIO * gain * moved) or (gain == 0 and more_moves < 0):
                exchanges.append(
                    (
                        -gain if more_moves <= 0 else more_moves * saved // gain - MAX_COST_RATIO * moved,
                        -gain,
                        out,
                        into,
                    )
                )
    # A heap and not a sort: the first exchange that works ends the loop, and most of the pairs are never read.
    heapify(exchanges)
    while exchanges:
        _, _, out, into = heappop(exchanges)
        yield out, into


CAPACITY_WEIGHT = 4
"""The weight of the capacity that a drain removes, relative to its evictions; see
docs/explanation/compaction-order.md."""


def search_drains(problem: CompactionProblem, effort: int) -> Search:
    """Returns the better of two searches in different orders, improved by local search."""
    by_evictions_order = by_evictions(problem.candidates, problem.pods_to_move, problem.savings)
    by_capacity_order = by_evictions_and_capacity(
        problem.candidates, problem.pods_to_move, problem.savings, _capacity_removed(problem), CAPACITY_WEIGHT
    )

    before = problem.capacity.save_state() if by_capacity_order != by_evictions_order else None
    search = _run_first_pass(problem, by_evictions_order)
    if before is not None:
        # Both searches write into the same capacity and limits, so the first is suspended while the second runs.
        after = search.suspend_search(before)
        larger = _run_first_pass(problem, by_capacity_order)
        (saved, moved), (more_saved, more_moved) = (
            _savings_and_moves(problem, search),
            _savings_and_moves(problem, larger),
        )
        if more_saved <= saved or (more_moved - moved) * saved > MAX_COST_RATIO * (more_saved - saved) * max(1, moved):
            larger.suspend_search(before)
            search.resume_search(after)
        else:
            search = larger
    search.effort = effort
    improve_search(search, [problem.savings.get(n, 0) for n in range(len(problem.model.nodes))])
    improve_preferences(problem, search)
    return search


def search_once(problem: CompactionProblem) -> Search:
    """Returns the result of one pass over the closely examined candidates, in order of evictions; other nodes only
    receive pods."""
    search = _run_first_pass(problem, by_evictions(problem.candidates, problem.pods_to_move, problem.savings))
    improve_preferences(problem, search)
    return search


def _run_first_pass(problem: CompactionProblem, order: Sequence[int]) -> Search:
    allowances = [None if limits is None or limits.keeps_no_headroom else limits.allowance for limits in problem.limits]
    index = BestFitIndex(problem.placement_requests, allowances)
    search = Search(
        problem.capacity,
        [*order, *problem.unexamined],
        problem.pods_to_move,
        problem.requests,
        index,
        problem.limits,
        0,
    )
    for node in set(range(len(problem.model.nodes))) - set(search.order):
        if not problem.capacity.closed_nodes[node]:
            index.open_node(node)
    search.run_first_pass(len(order))
    return search


def _savings_and_moves(problem: CompactionProblem, search: Search) -> tuple[int, int]:
    return sum(problem.savings[n] for n in search.drained_nodes), len(search.targets)


def _capacity_removed(problem: CompactionProblem) -> dict[int, int]:
    """Returns node → the capacity that its drain removes: what its pods need on other nodes, and its own free capacity
    as far as it is usable.

    Free cores without free memory are not usable, so the free capacity counts only as much as the scarcer of the two
    allows.
    """
    world, moving = problem.model, problem.moving_amounts
    major = sum([moving[n][0] for n in problem.candidates])
    minor = max(1, sum([moving[n][1] for n in problem.candidates]))
    return {n: moving[n][0] + max(0, min(world.major[n], world.minor[n] * major // minor)) for n in problem.candidates}
