"""In which waves do the nodes go? Budgets as one ledger per wave.

A budget that allows k disruptions lends k to a wave. A node that holds more pods of a budget than it allows has
the budget for itself in that wave and evicts them in turns, each waiting for the successors of the one before.

Would the plan go through, move by move? The scheduler's exact checks, in the plan's own order.

The search chose places that hold in any order where it could. Here every move is made in a fresh room: the pod
leaves, its successor is checked as the scheduler would check it, and takes its place. A node one of whose moves
fails goes back to the search's leftovers; nothing of it is kept.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.filters import admits

Needs = Mapping[int, int]
"""Budget → pods of it on the node."""


def arrange(nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int]) -> list[list[int]]:
    """Each node in the first wave whose ledger can pay for it; inside a wave the order given is kept."""
    waves: list[list[int]] = []
    ledgers: list[dict[int, int]] = []
    for node in nodes:
        cost = {budget: min(count, allowed[budget]) for budget, count in needs[node].items()}
        number = next((n for n, spent in enumerate(ledgers) if _pays(spent, cost, allowed)), len(waves))
        if number == len(waves):
            waves.append([])
            ledgers.append({})
        waves[number].append(node)
        for budget, amount in cost.items():
            ledgers[number][budget] = ledgers[number].get(budget, 0) + amount
    return waves


def _pays(spent: Mapping[int, int], cost: Mapping[int, int], allowed: Sequence[int]) -> bool:
    for budget, amount in cost.items():
        before = spent.get(budget)
        if before is not None and before + amount > allowed[budget]:
            return False
    return True


def turns(
    pods: Sequence[int], budget_of: Mapping[int, int], allowed: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """(pods in order of their turns, the turn of each): of one budget never more in a turn than it allows."""
    spent = [budget for pod in pods if (budget := budget_of.get(pod)) is not None]
    if len(set(spent)) == len(spent):
        return pods, [0] * len(pods)
    seen: Counter[int] = Counter()
    found = []
    for pod in pods:
        budget = budget_of.get(pod)
        turn = 0
        if budget is not None:
            turn = seen[budget] // allowed[budget]
            seen[budget] += 1
        found.append((pod, turn))
    found.sort(key=lambda item: item[1])
    return [pod for pod, _ in found], [turn for _, turn in found]


SEEDS = 24
"""How many nodes are tried as the first of all."""
FEW = 100
"""With more nodes than this to choose from, the first wave is good as it is."""
EARLY = 10
"""The early part of a plan: the first tenth of its evictions."""


def led(
    nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int], value: Mapping[int, tuple[int, int]]
) -> list[int]:
    """The order with another node at its head, where that saves more in the early part of the plan.

    Best first is not best when the first node's budgets keep the next three out of its wave. `value` is
    (evictions, savings) of each node.
    """
    if len(nodes) > FEW:
        return list(nodes)
    early = sum(value[node][0] for node in nodes) // EARLY + 1
    costs = {node: {b: min(count, allowed[b]) for b, count in needs[node].items()} for node in nodes}
    best, most = list(nodes), _saved_early(nodes, costs, allowed, value, early)
    for heads in _heads(nodes[:SEEDS]):
        order = [*heads, *(node for node in nodes if node not in heads)]
        found = _saved_early(order, costs, allowed, value, early)
        if found > most:
            best, most = order, found
    return best


def _heads(nodes: Sequence[int]) -> list[tuple[int, ...]]:
    return [(n,) for n in nodes] + [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]


def _saved_early(
    order: Sequence[int],
    costs: Mapping[int, Needs],
    allowed: Sequence[int],
    value: Mapping[int, tuple[int, int]],
    early: int,
) -> int:
    """What the first wave saves within so many evictions."""
    spent: dict[int, int] = {}
    total = 0
    for node in order:
        if not _pays(spent, costs[node], allowed):
            continue
        early -= value[node][0]
        if early < 0:
            break
        total += value[node][1]
        for budget, amount in costs[node].items():
            spent[budget] = spent.get(budget, 0) + amount
    return total


def replay(room: FreeCapacity, node: int, pods: Sequence[int], dest: Mapping[int, int]) -> bool:
    """Empties one node in the room, or leaves the room as it was."""
    kind_of, next_of = room.world.kind_of, room.world.next_of
    room.close(node)
    for at, pod in enumerate(pods):
        adds, kind, place = kind_of[pod].adds, next_of[pod], dest[pod]
        if adds:
            room.uncount(adds, node)
        if not admits(room, kind, place):
            room.count(adds, node)
            take_back(room, node, pods[:at], dest)
            return False
        room.take(kind, place)
    return True


def take_back(room: FreeCapacity, node: int, done: Iterable[int], dest: Mapping[int, int]) -> None:
    """Undoes `replay`."""
    for pod in reversed(list(done)):
        room.give(room.world.next_of[pod], dest[pod])
        room.count(room.world.kind_of[pod].adds, node)
    room.reopen(node)
