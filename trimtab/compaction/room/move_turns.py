"""In which turn each pod moves, so that budgets hold and no pod comes before those that make its place free."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter

from trimtab.compaction.plan_types import Move
from trimtab.scheduling.cluster_model import ClusterModel


def list_moves(
    model: ClusterModel,
    targets: Mapping[int, int],
    moved_before: Mapping[int, Sequence[int]],
    budget_of: Mapping[int, int | None],
    allowed: Sequence[int],
) -> tuple[Move, ...]:
    """Returns the moves in the order of their turns. A pod moves in the first turn in which its budget allows it, but
    not before those that leave its new node for it.

    `targets`: pod → its new node. `moved_before`: pod → the pods that may not leave its new node later. `budget_of`:
    pod → its budget; `allowed`: budget → how many evictions it allows in one turn."""
    pods, nodes, budgets = model.pods, model.nodes, model.inventory.pdbs
    moves: dict[int, Move] = {}
    evictions: Counter[tuple[int, int]] = Counter()

    def add_move(pod: int) -> None:
        if pod in moves:
            return
        for other in moved_before[pod]:
            add_move(other)
        turn = max((moves[other].turn for other in moved_before[pod]), default=0)
        budget = budget_of.get(pod)
        if budget is not None:
            while evictions[budget, turn] >= allowed[budget]:
                turn += 1
            evictions[budget, turn] += 1
        moves[pod] = Move(
            pod=pods[pod].key,
            uid=pods[pod].uid,
            source=nodes[model.node_of[pod]].name,
            target=nodes[targets[pod]].name,
            budget=budgets[budget].key if budget is not None else None,
            turn=turn,
        )

    for pod in targets:
        add_move(pod)
    return tuple(sorted(moves.values(), key=attrgetter("turn")))
