"""In which waves do the nodes go? Budgets as one ledger per wave.

A budget that allows k disruptions lends k to a wave. A node that holds more pods of a budget than it allows has
the budget for itself in that wave and evicts them in turns, each waiting for the successors of the one before.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

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


def turns(pods: Sequence[int], budget_of: Mapping[int, int], allowed: Sequence[int]) -> list[tuple[int, int]]:
    """(pod, turn) in order of turns: of one budget never more in a turn than it allows."""
    seen: Counter[int] = Counter()
    found = []
    for pod in pods:
        budget = budget_of.get(pod)
        turn = 0
        if budget is not None:
            turn = seen[budget] // allowed[budget]
            seen[budget] += 1
        found.append((pod, turn))
    return sorted(found, key=lambda item: item[1])
