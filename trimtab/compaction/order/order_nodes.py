"""The nodes of a DrainOrder: which ones its spec names, and why they may not be part of an order."""

from collections.abc import Iterable, Sequence

from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, pool_name
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import parse, requirement_matches
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_object import OrderSpec
from trimtab.compaction.order.order_plan import wrong_target_reason
from trimtab.compaction.order.record import MAX_ORDER_NODES

MAX_NAMED = 5


def select_nodes(spec: OrderSpec, nodes: Sequence[NodeInfo], pools: Iterable[Pool]) -> tuple[NodeInfo, ...] | Reason:
    """Returns the nodes of the order, or why the order is refused: a node that does not exist, one that may never be
    drained, all nodes of the cluster, none, or too many."""
    if sum((bool(spec.nodes), bool(spec.selector), bool(spec.pool))) != 1:
        return o.WRONG_NODES("the order must name its nodes in exactly one of nodes, selector and pool")
    if spec.nodes:
        by_name = {node.name: node for node in nodes}
        names = tuple(dict.fromkeys(spec.nodes))
        if unknown := [name for name in names if name not in by_name]:
            return o.WRONG_NODES(f"there is no node {join_first(unknown, MAX_NAMED)}")
        chosen = tuple(by_name[name] for name in names)
    elif spec.selector:
        try:
            requirements = parse(spec.selector)
        except ValueError as error:
            return o.WRONG_NODES(f"the selector is not valid: {error}")
        chosen = tuple(node for node in nodes if all(requirement_matches(each, node.labels) for each in requirements))
    else:
        pool = next((each for each in pools if each.name == spec.pool), None)
        chosen = tuple(
            node for node in nodes if (pool.has_node(node) if pool is not None else pool_name(node) == spec.pool)
        )
    return _extent_reason(chosen, sum(not wrong_target_reason(node) for node in nodes)) or chosen


def _extent_reason(chosen: Sequence[NodeInfo], total: int) -> Reason | None:
    if not chosen:
        return o.WRONG_NODES("the order matches no node")
    wrong = [f"node {node.name}, which {reason}" for node in chosen if (reason := wrong_target_reason(node))]
    if wrong:
        return o.WRONG_NODES(f"an order may not drain {join_first(wrong, MAX_NAMED)}")
    if len(chosen) == total:
        return o.WRONG_NODES("the order matches every node of the cluster, so no node is left for the pods")
    if len(chosen) > MAX_ORDER_NODES:
        return o.WRONG_NODES(
            f"the order matches {format_count(len(chosen), 'node')}, and an order has at most {MAX_ORDER_NODES}"
        )
    return None
