"""The nodes of an order, as the command line names them: by name, by label selector, or as a pool."""

from collections.abc import Iterable, Iterator, Sequence

from trimtab.cluster.config_error import ConfigError, first_mistakes, suggest_name
from trimtab.cluster.format_count import join_first
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, pool_name
from trimtab.cluster.selectors import parse, requirement_matches
from trimtab.compaction.order.order_plan import wrong_target_reason
from trimtab.compaction.order.record import MAX_ORDER_NODES
from trimtab.inputs.command_faults import UsageError


def choose_order_nodes(
    nodes: Sequence[NodeInfo], pools: Sequence[Pool], names: Sequence[str], selector: str | None, pool: str | None
) -> tuple[str, ...]:
    """Returns the names of the nodes to drain. Raises UsageError with every mistake: no such node or pool, a selector
    that matches no node or all of them, a node of the control plane or of Karpenter, too many nodes."""
    ways = [bool(names), selector is not None, pool is not None]
    if sum(ways) != 1:
        got = "none of them" if not any(ways) else "more than one of them"
        raise UsageError([ConfigError(file="command line", expected="names of nodes, --selector or --pool", got=got)])
    if names:
        chosen = tuple(dict.fromkeys(names))
        mistakes = list(_unknown_nodes(chosen, [node.name for node in nodes]))
    elif selector is not None:
        chosen, mistakes = _select_nodes(nodes, selector)
    else:
        assert pool is not None
        chosen, mistakes = _nodes_of_pool(nodes, pools, pool)
    by_name = {node.name: node for node in nodes}
    mistakes += list_wrong_targets(by_name[name] for name in chosen if name in by_name)
    if len(chosen) > MAX_ORDER_NODES:
        expected = f"at most {MAX_ORDER_NODES} nodes in one order"
        mistakes.append(ConfigError(file="command line", expected=expected, got=str(len(chosen))))
    if mistakes:
        raise UsageError(first_mistakes(mistakes))
    return chosen


def _unknown_nodes(names: Iterable[str], known: Sequence[str]) -> Iterator[ConfigError]:
    for name in names:
        if name not in known:
            yield ConfigError(file="NODE", expected="a node of the cluster", got=name, todo=suggest_name(name, known))


def list_wrong_targets(nodes: Iterable[NodeInfo]) -> Iterator[ConfigError]:
    """Yields a mistake for each node that may never be part of an order."""
    for node in nodes:
        if reason := wrong_target_reason(node):
            expected = "a node that a user may drain"
            yield ConfigError(file="NODE", expected=expected, got=f"node {node.name}, which {reason}")


def _select_nodes(nodes: Sequence[NodeInfo], selector: str) -> tuple[tuple[str, ...], list[ConfigError]]:
    try:
        requirements = parse(selector)
    except ValueError as error:
        return (), [ConfigError(file="--selector", expected=str(error), got=selector)]
    chosen = tuple(node.name for node in nodes if all(requirement_matches(each, node.labels) for each in requirements))
    return chosen, _check_extent("--selector", selector, chosen, nodes)


def _nodes_of_pool(
    nodes: Sequence[NodeInfo], pools: Sequence[Pool], name: str
) -> tuple[tuple[str, ...], list[ConfigError]]:
    pool = next((each for each in pools if each.name == name), None)
    chosen = tuple(
        node.name for node in nodes if (pool.has_node(node) if pool is not None else pool_name(node) == name)
    )
    pool_names = sorted({*(each.name for each in pools), *(pool_name(node) for node in nodes)} - {""})
    if pool is None and not chosen:
        hint = suggest_name(name, pool_names) or (
            f"the pools are {join_first(pool_names, 5)}" if pool_names else "no node names one"
        )
        return (), [ConfigError(file="--pool", expected=f"a pool of the cluster ({hint})", got=name)]
    return chosen, _check_extent("--pool", name, chosen, nodes)


def _check_extent(flag: str, got: str, chosen: Sequence[str], nodes: Sequence[NodeInfo]) -> list[ConfigError]:
    if not chosen:
        return [ConfigError(file=flag, expected="a value that matches a node", got=got)]
    if len(chosen) == len(nodes):
        expected = "a value that leaves a node for the pods"
        return [ConfigError(file=flag, expected=expected, got=f"{got}, which matches every node")]
    return []
