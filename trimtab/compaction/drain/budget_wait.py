"""Says which PodDisruptionBudgets allow no eviction of the pods that a drain still has to evict."""

from collections.abc import Iterable, Mapping

from trimtab.cluster.format_count import join_first
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.drain.annotation import PodToEvict

MAX_BUDGETS = 3
"""The largest number of budgets that a sentence names."""


def describe_budget_wait(moves: Iterable[PodToEvict], pods: Mapping[str, PodInfo], index: PdbIndex) -> str:
    """Returns which budgets at present allow no eviction of pods that the drain still has to evict, as in "budget
    shop/web allows 0 disruptions"; an empty string if none does.

    moves: the pods of the drain. pods: uid → pod, for all pods that still exist.
    """
    blocking: dict[str, Pdb] = {}
    for pod in (pods[move.uid] for move in moves if move.uid in pods):
        if pod.deletion_requested_at is not None or pod.is_finished or pod.is_outside_budgets:
            continue
        for number in index.matching_numbers(pod.namespace, pod.requirements.labels):
            budget = index.pdbs[number]
            if not budget.allows_eviction(pod_is_ready=pod.is_ready):
                blocking[budget.key] = budget
    return join_first([_describe_budget(blocking[key]) for key in sorted(blocking)], MAX_BUDGETS)


def _describe_budget(budget: Pdb) -> str:
    if budget.selector_problem:
        return f"budget {budget.key} has a selector that is not valid"
    if budget.is_stale:
        return f"the status of budget {budget.key} is out of date"
    return f"budget {budget.key} allows 0 disruptions"
