"""What the terms of pods mean for a search: nodes that stay for the day, and nodes that are dear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trimtab.compaction import reasons as r
from trimtab.compaction.search.drain_order import by_evictions
from trimtab.compaction.terms.daily_numbers import DailyNumbers
from trimtab.compaction.terms.stated_costs import sum_costs

if TYPE_CHECKING:
    from trimtab.compaction.search.problem import CompactionProblem


def apply_terms(problem: CompactionProblem, nodes: Sequence[int]) -> None:
    """Blocks the pods of these nodes whose workloads have no evictions left for the day, and sums the costs of the
    others."""
    _block_spent_workloads(problem, nodes)
    model = problem.model
    problem.term_costs = sum_costs(problem.movable_pods, model.pods, model.node_of, problem.pool_of)


def _block_spent_workloads(problem: CompactionProblem, nodes: Sequence[int]) -> None:
    """Blocks the pods of nodes for which their workloads have too few evictions left for the day, in the order in which
    the nodes are tried."""
    model, moving, observations = problem.model, problem.pods_to_move, problem.context.observations
    daily = DailyNumbers(problem.eviction_checker.term_ledger, problem.context.now)
    for name in observations.draining if observations is not None else ():
        if (number := model.node_numbers.get(name)) is not None:
            daily.reserve(model.pods[pod] for pod in model.pods_on_node[number])
    for node in by_evictions([n for n in nodes if n not in problem.pinned_nodes], moving, problem.savings):
        for number, reason in daily.reserve_within(model.pods, moving[node], problem.pool_of[node]).items():
            problem.blocked_pods[number] = reason
            problem.pinned_nodes.add(node)
            problem.refusals.setdefault(node, r.BLOCKED(f"node {model.nodes[node].name} stays: {reason}"))
