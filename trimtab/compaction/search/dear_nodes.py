"""Keeps nodes whose pods state a cost, where a node without one can be drained instead.

The search itself does not know of costs, so that a cost never decides by chance what else is found. Afterwards, each
dear node of the result is exchanged for the first other node that saves as much with fewer evictions, costs counted.
The dear nodes are tried in the order of their numbers, whatever their costs, and none is brought in: so a higher cost
never moves its node forward.
"""

from trimtab.compaction.search.drain_order import by_evictions
from trimtab.compaction.search.drain_search import DRAINED, OPEN, MoveLog, Search
from trimtab.compaction.search.problem import CompactionProblem

MAX_EXCHANGED = 100
"""The maximum number of dear nodes for which another node is looked for."""
MAX_OTHERS = 20
"""The maximum number of other nodes that are tried for one of them."""
_EFFORT = 200
"""How many placements one exchange may try."""


def exchange_dear_nodes(problem: CompactionProblem, search: Search) -> None:
    """Exchanges dear nodes of the result for cheaper ones that are not in it."""
    dear = sorted(node for node in problem.term_costs if search.state[node] == DRAINED)[:MAX_EXCHANGED]
    effort = search.effort
    for node in dear:
        others = [
            other
            for other in search.order
            if search.state[other] == OPEN
            and not search.closed_nodes[other]
            and other not in problem.term_costs
            and problem.savings[other] >= problem.savings[node]
        ]
        ranked = by_evictions([node, *others], problem.pods_to_move, problem.savings, problem.surcharges)
        for other in ranked[: min(ranked.index(node), MAX_OTHERS)]:
            # Each exchange has an effort of its own: what one of them uses must not decide about another.
            search.effort = _EFFORT
            if exchange_nodes(search, node, other):
                break
    search.effort = effort


def exchange_nodes(search: Search, out: int, into: int) -> bool:
    """Drains the node `into` instead of `out`. If that is not possible, changes nothing. Returns whether it was
    done."""
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
