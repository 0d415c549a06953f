"""The pods on other nodes that are evicted with a node, because they are of one group with pods of the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_values import GroupMode
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import Verdict
from trimtab.compaction.groups.group_moves import GroupPlanner
from trimtab.compaction.plan_types import Companion, DrainStep
from trimtab.compaction.search.drain_order import by_evictions

if TYPE_CHECKING:
    from trimtab.compaction.search.problem import CompactionProblem


def plan_groups(problem: CompactionProblem, nodes: Sequence[int]) -> None:
    """Finds the groups that move as a whole with one of these nodes, and blocks the pods of the others."""
    model, checker, context = problem.model, problem.eviction_checker, problem.context

    def judge_member(pod: PodInfo, pool: Pool) -> Verdict:
        verdict = checker.judge_pod(pod, pool)
        verdict = checker.block_moved(pod, verdict) if pod.key in context.moved_pods else verdict
        return checker.block_unsettled(pod, verdict, problem.unsettled_owners)

    draining = context.observations.draining if context.observations is not None else ()
    numbers = frozenset(model.node_numbers[name] for name in draining if name in model.node_numbers)
    planner = GroupPlanner(checker, model.pods, model.node_of, problem.pool_of, numbers, judge_member)
    order = by_evictions(
        [n for n in nodes if n not in problem.pinned_nodes and problem.pool_of[n].groups is GroupMode.MOVE],
        problem.pods_to_move,
        problem.savings,
    )
    groups = planner.plan_groups(order, problem.pods_to_move)
    problem.companions, problem.group_of = groups.companions, groups.groups
    for number, reason in groups.refusals.items():
        node = model.node_of[number]
        problem.blocked_pods[number] = reason
        problem.pinned_nodes.add(node)
        problem.refusals.setdefault(node, r.BLOCKED(f"node {model.nodes[node].name} stays: {reason}"))


def list_companions(problem: CompactionProblem, nodes: Sequence[int]) -> tuple[Companion, ...]:
    """Returns the pods on other nodes that are evicted with these nodes."""
    model = problem.model
    return tuple(
        Companion(pod=model.pods[one].key, uid=model.pods[one].uid, node=model.nodes[model.node_of[one]].name)
        for node in nodes
        for one in problem.companions.get(node, ())
    )


def with_companions(step: DrainStep, problem: CompactionProblem, node: int) -> DrainStep:
    """Returns the step with the pods on other nodes that are evicted too."""
    pods, numbers = problem.model.pods, problem.companions[node]
    groups = {
        pods[number].uid: "/".join(problem.group_of[number])
        for number in (*problem.pods_to_move[node], *numbers)
        if number in problem.group_of
    }
    says = f"{step.reason}; with it {format_count(len(numbers), 'pod')} of its groups on other nodes are evicted"
    return replace(step, companions=list_companions(problem, [node]), groups=groups, reason=step.reason.code(says))
