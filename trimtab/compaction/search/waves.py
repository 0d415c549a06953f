"""Arranges drained nodes in waves, and replays a plan move by move.

- Waves: a PodDisruptionBudget that allows k disruptions allows k evictions in each wave. A node with more pods of a
  budget than the budget allows is the only node of its wave that uses the budget, and evicts these pods in turns; each
  turn waits for the successors of the one before.
- Replay: as far as possible, the search has chosen targets that fit in any order. `replay_drain` makes every move of a
  node in the plan's own order: the pod leaves, its successor is checked by all filters of kube-scheduler, and is
  placed. If one move of a node fails, the node is left out, and its moves are undone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.filters import fits_on_node

Needs = Mapping[int, int]
"""Budget → the number of its pods on a node."""


def arrange_waves(nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int]) -> list[list[int]]:
    """Returns the waves: each node is in the first wave whose budgets still allow it. Within a wave, the order of
    `nodes` is kept."""
    waves: list[list[int]] = []
    ledgers: list[dict[int, int]] = []
    for node in nodes:
        # A node that needs more than the budget allows takes the whole budget of the wave, and spends it again in each
        # turn.
        cost = {budget: min(count, allowed[budget]) for budget, count in needs[node].items()}
        number = next((n for n, spent in enumerate(ledgers) if _is_within_budgets(spent, cost, allowed)), len(waves))
        if number == len(waves):
            waves.append([])
            ledgers.append({})
        waves[number].append(node)
        for budget, amount in cost.items():
            ledgers[number][budget] = ledgers[number].get(budget, 0) + amount
    return waves


def _is_within_budgets(spent: Mapping[int, int], cost: Mapping[int, int], allowed: Sequence[int]) -> bool:
    for budget, amount in cost.items():
        before = spent.get(budget)
        if before is not None and before + amount > allowed[budget]:
            return False
    return True


def eviction_turns(
    pods: Sequence[int], budget_of: Mapping[int, int], allowed: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Returns (pods in order of their turns, the turn of each). No turn has more pods of a budget than the budget
    allows."""
    budgets = [budget for pod in pods if (budget := budget_of.get(pod)) is not None]
    if len(set(budgets)) == len(budgets):
        return pods, [0] * len(pods)
    counts: Counter[int] = Counter()
    pods_with_turns = []
    for pod in pods:
        budget = budget_of.get(pod)
        turn = 0
        if budget is not None:
            turn = counts[budget] // allowed[budget]
            counts[budget] += 1
        pods_with_turns.append((pod, turn))
    pods_with_turns.sort(key=lambda item: item[1])
    return [pod for pod, _ in pods_with_turns], [turn for _, turn in pods_with_turns]


MAX_FIRST_NODES = 24
"""The maximum number of nodes that are tried as the first one of the plan."""
MAX_NODES_TO_REORDER = 100
"""A plan with more nodes than this is not reordered, because its first wave is full enough without that."""
EARLY_FRACTION = 10
"""The early part of a plan has one in this many of its evictions (the first tenth)."""


def choose_first_node(
    nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int], value: Mapping[int, tuple[int, int]]
) -> list[int]:
    """Returns the nodes with a better first node, if another one saves more in the early part of the plan; otherwise in
    the given order.

    The node that is best by itself is not always the best first one, because its budgets may keep the next nodes out of
    the first wave. `value` is node → (evictions, savings).
    """
    if len(nodes) > MAX_NODES_TO_REORDER:
        return list(nodes)
    early = sum(value[node][0] for node in nodes) // EARLY_FRACTION + 1
    costs = {node: {b: min(count, allowed[b]) for b, count in needs[node].items()} for node in nodes}
    best, best_savings = list(nodes), _early_savings(nodes, costs, allowed, value, early)
    for heads in _possible_heads(nodes[:MAX_FIRST_NODES]):
        order = [*heads, *(node for node in nodes if node not in heads)]
        savings = _early_savings(order, costs, allowed, value, early)
        if savings > best_savings:
            best, best_savings = order, savings
    return best


def _possible_heads(nodes: Sequence[int]) -> list[tuple[int, ...]]:
    return [(n,) for n in nodes] + [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]


def _early_savings(
    order: Sequence[int],
    costs: Mapping[int, Needs],
    allowed: Sequence[int],
    value: Mapping[int, tuple[int, int]],
    early: int,
) -> int:
    """Returns what the first wave saves within its first `early` evictions.

    `costs`: node → budget → evictions that the node needs. `allowed`: the evictions that each budget allows. `value`:
    node → (evictions, savings)."""
    spent: dict[int, int] = {}
    total = 0
    for node in order:
        if not _is_within_budgets(spent, costs[node], allowed):
            continue
        early -= value[node][0]
        if early < 0:
            break
        total += value[node][1]
        for budget, amount in costs[node].items():
            spent[budget] = spent.get(budget, 0) + amount
    return total


def replay_drain(capacity: FreeCapacity, node: int, pods: Sequence[int], dest: Mapping[int, int]) -> bool:
    """Makes all moves of one node's drain in `capacity`, and returns whether they were made. If one of them is not
    possible, none is made. `dest` is pod → target node."""
    kind_of, next_of = capacity.world.class_of, capacity.world.successor_class_of
    capacity.cordon_node(node)
    for position, pod in enumerate(pods):
        groups, pod_class, target = kind_of[pod].member_groups, next_of[pod], dest[pod]
        if groups:
            capacity.uncount_pod(groups, node)
        if not fits_on_node(capacity, pod_class, target):
            capacity.count_pod(groups, node)
            undo_replay(capacity, node, pods[:position], dest)
            return False
        capacity.add_pod(pod_class, target)
    return True


def undo_replay(capacity: FreeCapacity, node: int, pods: Iterable[int], dest: Mapping[int, int]) -> None:
    """Undoes `replay_drain`."""
    for pod in reversed(list(pods)):
        capacity.remove_pod(capacity.world.successor_class_of[pod], dest[pod])
        capacity.count_pod(capacity.world.class_of[pod].member_groups, node)
    capacity.uncordon_node(node)
