"""An upper bound on what any plan can save, calculated without a solver.

Pods are treated as divisible. The drain of a node removes its free capacity, and its pods need capacity on other nodes.
The free capacity of the cluster limits the sum of both. The choice of the best set of nodes under one such limit is a
fractional knapsack problem, which can be solved by sorting. The resource that gives the smallest bound counts. Nodes
whose pods cannot be on the same nodes (other pools, other zones) are bounded separately, and the bounds are added.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from trimtab.compaction.plan_types import Bound
from trimtab.compaction.search.drain_search import DRAINED, Search
from trimtab.compaction.search.problem import CompactionProblem

Amounts = tuple[int, ...]
"""One amount per resource: major, minor, pod slots."""


class Item(Struct, frozen=True, kw_only=True, gc=False):
    """A node as an item of the knapsack: its savings and, for each resource, what its drain removes and what is free on
    it."""

    node: int
    saves: int
    takes: Amounts
    free: Amounts


def upper_bound(parts: Iterable[Sequence[Item]], candidates: set[int], pinned: set[int], unexamined: int = 0) -> Bound:
    """Returns the sum of the bounds of all parts of the cluster.

    `candidates`: the nodes that may be drained. `pinned`: the nodes with a pod that may not move. `unexamined`: the
    number of candidates that were not examined; they are in neither of the two sets.
    """
    # The free amounts of the part, by resource.
    parts_with_free = [
        (
            part,
            [
                sum([max(0, amount) for amount in amounts])
                for amounts in zip(*[item.free for item in part], strict=True)
            ],
        )
        for part in parts
    ]
    removable = candidates | pinned

    most_saves, most_nodes = _max_savings(parts_with_free, candidates)
    unpinned_saves, unpinned_nodes = (
        _max_savings(parts_with_free, removable) if removable != candidates else (most_saves, most_nodes)
    )
    return Bound(
        saves=most_saves,
        nodes=most_nodes,
        pinned=len(pinned),
        unpinned_nodes=unpinned_nodes,
        unpinned_saves=unpinned_saves,
        candidates=len(candidates) + unexamined,
    )


def _max_savings(parts: Iterable[tuple[Sequence[Item], Sequence[int]]], nodes: set[int]) -> tuple[int, int]:
    """Returns the maximum savings, and the maximum number of drained nodes, if only these nodes may be drained."""
    most_saves = most_nodes = 0
    for part, free in parts:
        items = [item for item in part if item.node in nodes]
        saves, ones = [item.saves for item in items], [1] * len(items)
        columns = [[item.takes[resource] for item in items] for resource in range(len(free))]
        limits = list(zip(columns, free, strict=True))
        most_saves += min(_knapsack(saves, takes, limit) for takes, limit in limits)
        most_nodes += min(_knapsack(ones, takes, limit) for takes, limit in limits)
    return most_saves, most_nodes


def _knapsack(saves: Sequence[int], takes: Sequence[int], limit: int) -> int:
    """Returns the maximum savings within the limit. Only a part of the last item may be used; its saving is rounded
    down, because savings are whole numbers."""
    if sum(takes) <= limit:
        return sum(saves)
    total = 0
    # Shifted before the division: the ratios keep their order in integers.
    ratios = [(amount << 32) // max(1, saved) for amount, saved in zip(takes, saves, strict=True)]
    for item in sorted(range(len(ratios)), key=ratios.__getitem__):
        if takes[item] > limit:
            return total + saves[item] * limit // takes[item]
        limit -= takes[item]
        total += saves[item]
    return total


def partition_nodes(masks: Sequence[bytearray], uses: Mapping[int, Iterable[int]], nodes: int) -> list[int]:
    """Returns node → the number of its part of the cluster. A node and all nodes that could receive its pods are in the
    same part.

    `masks` are sets of nodes (node → 1 if pods may be placed on it); `uses` is node → the masks that its pods have.
    """
    spans = {number: bytearray(masks[number]) for number in set().union(*uses.values()) if any(masks[number])}
    for node, set_numbers in uses.items():
        for number in set_numbers:
            if number in spans:
                spans[number][node] = 1
    # Each set of nodes is one integer, so an intersection is one operation; sets that share a node are merged.
    disjoint: list[int] = []
    for span in spans.values():
        merged = int.from_bytes(span, "big")
        separate = []
        for other in disjoint:
            if other & merged:
                merged |= other
            else:
                separate.append(other)
        disjoint = [*separate, merged]
    part = list(range(nodes))
    for merged in disjoint:
        members = merged.to_bytes(nodes, "big")
        first = members.index(1)
        for node, is_member in enumerate(members):
            if is_member:
                part[node] = first
    return part


def bound_problem(problem: CompactionProblem, search: Search) -> Bound:
    """Returns the bound that no plan over these candidates can exceed."""
    model, next_of = problem.model, problem.model.successor_class_of
    pinned = {node: [next_of[pod] for pod in _all_pods(problem, node)] for node in problem.pinned_nodes}
    uses = {node: {pod_class.node_set for pod_class in classes} for node, classes in pinned.items()}
    uses |= {node: {next_of[pod].node_set for pod in problem.pods_to_move[node]} for node in problem.candidates}
    moving = {node: (*problem.moving_amounts[node], len(problem.pods_to_move[node])) for node in problem.candidates}
    moving |= {
        node: (sum([one.major for one in classes]), sum([one.minor for one in classes]), len(classes))
        for node, classes in pinned.items()
    }
    part = partition_nodes(model.node_sets, uses, len(model.nodes))
    items: dict[int, list[Item]] = {}
    for node in range(len(model.nodes)):
        if not problem.capacity.closed_nodes[node] or search.state[node] == DRAINED:
            items.setdefault(part[node], []).append(_bound_item(problem, node, moving.get(node, (0, 0, 0))))
    return upper_bound(items.values(), set(problem.candidates), problem.pinned_nodes, len(problem.unexamined))


def _all_pods(problem: CompactionProblem, node: int) -> list[int]:
    """Returns the node's pods that move, and those that may not move, as if only their node constraints could prevent a
    move.

    A DaemonSet pod is left out: it is deleted with the node and needs no place on another node.
    """
    pods = problem.model.pods
    return problem.pods_to_move[node] + [
        pod for pod in problem.model.pods_on_node[node] if pod in problem.blocked_pods and not pods[pod].is_daemon
    ]


def _bound_item(problem: CompactionProblem, node: int, moving: tuple[int, int, int]) -> Item:
    model = problem.model
    major, minor, slots = model.major[node], model.minor[node], model.slots[node]
    takes = (max(0, major) + moving[0], max(0, minor) + moving[1], max(0, slots) + moving[2])
    return Item(node=node, saves=problem.savings.get(node, 0), takes=takes, free=(major, minor, slots))
