"""Checks, just before the steps of a plan are executed, whether they are still valid.

Pods are created and deleted between plan and execution. So each step is checked again on a new snapshot: the node and
its pods are those of the plan, all pods may still be moved, their budgets allow it now, the pool does not need the
node, and all pods fit on other nodes together. What a valid step uses (capacity, disruptions, nodes above a minimum) is
not available to later steps. A step that is no longer valid is dropped with the reason; it is not changed into another
step.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.reasons import BUDGET_SPENT, NO_PLACE, NODE_CHANGED, NODE_GONE, WORTH_KEEPING
from trimtab.compaction.search.drain_order import replay_drain, undo_replay
from trimtab.compaction.search.pool_limits import PoolLimits
from trimtab.compaction.search.problem import CompactionProblem, prepare_problem
from trimtab.compaction.surge.transient_room import TransientRoom
from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.drain_simulation import NoPlacement, drain_exactly


def holds_as_planned(plan: Plan, model: ClusterModel, pools: Sequence[Pool], context: PlanningContext) -> bool:
    """Returns whether every step of the plan is possible in this model, with exactly the moves of the plan. Each wave
    starts with full disruption budgets."""
    check = Recheck.prepare(model, pools, context)
    for wave in plan.waves:
        check.spent_disruptions.clear()
        for step in wave.steps:
            if not check.holds_with_planned_moves(step):
                return False
    return True


@dataclass(slots=True, eq=False)
class Recheck:
    """Checks steps one after the other. Capacity, disruptions and nodes that a valid step uses are not available to the
    next."""

    problem: CompactionProblem
    spent_disruptions: Counter[int] = field(default_factory=Counter)
    """Budget → evictions that the valid steps need."""
    drained_nodes: set[int] = field(default_factory=set)
    """The nodes that the valid steps drain."""
    receivers: set[int] = field(default_factory=set)
    """Nodes that receive pods of the valid steps."""
    allowed_disruptions: list[int] = field(init=False)
    transient_room: TransientRoom = field(init=False)
    """The room of the additional pods that the valid steps need for a while."""

    def __post_init__(self) -> None:
        self.allowed_disruptions = self.problem.allowed_disruptions
        self.transient_room = TransientRoom(self.problem.model, self.problem.surge_of, self.problem.capacity)

    @classmethod
    def prepare(cls, model: ClusterModel, pools: Sequence[Pool], context: PlanningContext) -> "Recheck":
        """Returns a recheck for a new snapshot."""
        return cls(prepare_problem(model, pools, context))

    def rejection_reason(self, step: DrainStep) -> Reason | None:
        """Returns why the step may not be executed now, or None if it may. The ages and thresholds of nodes are checked
        again too."""
        node = self.problem.model.node_numbers.get(step.node)
        if node is None:
            return NODE_GONE(f"node {step.node} no longer exists")
        reason = self.problem.refusals.get(node)
        reason = (
            reason or self._changed_pods_reason(step, node) or self._budget_reason(node) or self._limit_reason(node)
        )
        return reason or self._place_pods(step, node)

    def holds_with_planned_moves(self, step: DrainStep) -> bool:
        """Returns whether the step is possible with exactly its own moves. If so, what it uses is counted."""
        node = self.problem.model.node_numbers.get(step.node)
        if node is None or self.problem.refusals.get(node) is not None:
            return False
        reason = self._changed_pods_reason(step, node) or self._budget_reason(node) or self._limit_reason(node)
        if reason is not None:
            return False
        dest = self._planned_targets(step, node)
        if len(dest) < len(step.moves) or not replay_drain(self.problem.capacity, node, list(dest), dest):
            return False
        return self._count_drain(node, dest) is None

    def _changed_pods_reason(self, step: DrainStep, node: int) -> Reason | None:
        planned = {(move.pod, move.uid) for move in step.moves}
        pods = [self.problem.model.pods[pod] for pod in self.problem.pods_to_move[node]]
        companions = {pod.uid for pod in step.companions}
        others = [self.problem.model.pods[pod] for pod in self.problem.companions.get(node, ())]
        new_pods = sorted(pod.key for pod in pods if (pod.key, pod.uid) not in planned)
        new_pods += sorted(pod.key for pod in others if pod.uid not in companions)
        return (
            NODE_CHANGED(f"node {step.node} has new pods since the plan: {', '.join(new_pods)}") if new_pods else None
        )

    def _budget_reason(self, node: int) -> Reason | None:
        """Returns the reason if a budget does not allow the drain now, otherwise None.

        Each budget must allow at least one eviction; its other pods wait for their turn. But if another valid step uses
        the same budget, the budget must allow all evictions of this step.
        """
        for number, count in self.problem.budget_needs(node).items():
            budget, spent = self.problem.model.inventory.pdbs[number], self.spent_disruptions[number]
            allowed = self.allowed_disruptions[number]
            if not allowed:
                return BUDGET_SPENT(f"at present budget {budget.key} allows no disruption")
            if spent and spent + count > allowed:
                return BUDGET_SPENT(
                    f"nodes that are being drained use up budget {budget.key}, which allows {allowed} disruptions"
                )
        return None

    def _limit_reason(self, node: int) -> Reason | None:
        limits, name = self.problem.limits[node], self.problem.model.nodes[node].name
        if node in self.receivers:
            return WORTH_KEEPING(f"node {name} receives pods of a node that is being drained")
        return limits.rejection_reason(node) if limits is not None else None

    def _place_pods(self, step: DrainStep, node: int) -> Reason | None:
        """Places the pods on the nodes of the plan, or else on any other node. If all fit, keeps the placement and
        returns None; otherwise returns the reason."""
        problem, closed = self.problem, self.problem.capacity.closed_nodes[node]
        # The planned targets first: they were chosen together with those of the other steps.
        dest = self._planned_targets(step, node)
        if not dest or not replay_drain(problem.capacity, node, list(dest), dest):
            problem.capacity.closed_nodes[node] = closed
            others = [n for n in range(len(problem.model.nodes)) if n != node and n not in self.drained_nodes]
            placement = drain_exactly(problem.capacity, node, problem.pods_to_move[node], others)
            if isinstance(placement, NoPlacement):
                return placement.reason
            dest = dict(placement.moves)
            if not replay_drain(problem.capacity, node, list(dest), dest):
                return NO_PLACE(f"not all pods of node {step.node} fit on other nodes")
        shortage = self._count_drain(node, dest)
        if shortage is not None:
            undo_replay(problem.capacity, node, list(dest), dest)
            problem.capacity.closed_nodes[node] = closed
        return shortage

    def _planned_targets(self, step: DrainStep, node: int) -> dict[int, int]:
        """Returns pod → target, in the plan's order; an empty mapping if a target is itself drained or no longer
        exists."""
        numbers, pod_by_uid = (
            self.problem.model.node_numbers,
            {self.problem.model.pods[pod].uid: pod for pod in self.problem.pods_to_move[node]},
        )
        targets = {
            pod_by_uid[move.uid]: numbers.get(move.target, node) for move in step.moves if move.uid in pod_by_uid
        }
        return {} if self.drained_nodes & set(targets.values()) or node in targets.values() else targets

    def _count_drain(self, node: int, dest: dict[int, int]) -> Reason | None:
        """Counts the drain in the limits of the pools and in the budgets. If a pool would lack headroom, counts nothing
        and returns the reason."""
        own = self.problem.limits[node]
        if own is not None:
            own.remove_node(node)
        shortage = self._count_arrivals(dest, 1) or (own.shortage_reason() if own is not None else None)
        if shortage is None and self.problem.surge_of and not self.transient_room.reserve(dest):
            shortage = self.transient_room.shortage_reason(self.problem.model.nodes[node].name)
        if shortage is None:
            self.drained_nodes.add(node)
            self.receivers.update(dest.values())
            self.spent_disruptions.update(self.problem.budget_needs(node))
            return None
        self._count_arrivals(dest, -1)
        if own is not None:
            own.restore_node(node)
        return shortage

    def _count_arrivals(self, dest: dict[int, int], sign: int) -> Reason | None:
        """Adds the arriving pods to the limits of the pools (or, with sign -1, removes them). Returns the reason of the
        first pool that then lacks headroom, or None."""
        affected: dict[int, PoolLimits] = {}
        for pod, target in dest.items():
            limits = self.problem.limits[target]
            if limits is not None:
                limits.count_arrival(self.problem.model.successor_class_of[pod], target, sign)
                affected[id(limits)] = limits
        return next(
            (shortage for limits in affected.values() if (shortage := limits.shortage_reason()) is not None), None
        )
