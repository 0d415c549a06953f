"""Are the steps of a plan still right, a moment later?

Between plan and act pods come and go. Each step is judged again on a fresh world: the node and its pods are those
the plan spoke of, all may still move, their budgets allow it now, the pool can spare the node, and all have a place
together. What a step takes (room, budgets, a node of a minimum) the steps after it don't have. A step that no longer
holds is dropped, with the reason; it is never bent into another one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import DrainStep
from trimtab.compaction.reasons import BUDGET_SPENT, NO_PLACE, WORTH_KEEPING
from trimtab.compaction.search.pool_limits import PoolLimits
from trimtab.compaction.search.problem import CompactionProblem, prepare
from trimtab.compaction.search.waves import replay, take_back
from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.drain_simulation import NoPlacement, exactly

NODE_GONE = Code("node-not-found", "The node of the plan is not there any more.", "Nothing.")
CHANGED = Code("node-changed", "Other pods run on the node than the plan spoke of.", "Wait for the next plan.")


def recheck(step: DrainStep, world: ClusterModel, pools: Sequence[Pool], now: PlanningContext) -> Reason | None:
    """Why this step, the only one, may not be taken now; None when it may."""
    return Recheck.of(world, pools, now).refuses(step)


@dataclass(slots=True, eq=False)
class Recheck:
    """Asked of one step after the other: what one that holds takes is taken."""

    made: CompactionProblem
    spent: Counter[int] = field(default_factory=Counter)
    """Budget → evictions that steps which hold need."""
    gone: set[int] = field(default_factory=set)
    """Nodes of steps that hold."""
    takes: set[int] = field(default_factory=set)
    """Nodes that have their pods."""

    @classmethod
    def of(cls, world: ClusterModel, pools: Sequence[Pool], now: PlanningContext) -> "Recheck":
        return cls(prepare(world, pools, now))

    def refuses(self, step: DrainStep) -> Reason | None:
        """Why the step may not be taken now; None when it may. Ages and thresholds are asked again too."""
        node = self.made.world.index.get(step.node)
        if node is None:
            return NODE_GONE(f"node {step.node} is gone")
        found = self.made.refusals.get(node)
        found = found or self._same(step, node) or self._affordable(node) or self._spared(node)
        return found or self._placed(step, node)

    def _same(self, step: DrainStep, node: int) -> Reason | None:
        planned = {(move.pod, move.uid) for move in step.moves}
        pods = [self.made.world.pods[pod] for pod in self.made.loads[node]]
        new = sorted(pod.key for pod in pods if (pod.key, pod.uid) not in planned)
        return CHANGED(f"node {step.node} has new pods since the plan: {', '.join(new)}") if new else None

    def _needs(self, node: int) -> Counter[int]:
        budget_of = self.made.budget_of
        return Counter(budget_of[pod] for pod in self.made.loads[node] if pod in budget_of)

    def _affordable(self, node: int) -> Reason | None:
        """At least one pod of each budget must be allowed to go; the others of it wait for their turn.

        Beside another node that spends from it, all of them must be.
        """
        for number, count in self._needs(node).items():
            budget, spent = self.made.world.inventory.budgets[number], self.spent[number]
            if not budget.allowed:
                return BUDGET_SPENT(f"budget {budget.key} allows no disruption now")
            if spent and spent + count > budget.allowed:
                return BUDGET_SPENT(f"budget {budget.key} is spent by a node that goes now: it allows {budget.allowed}")
        return None

    def _spared(self, node: int) -> Reason | None:
        limits, name = self.made.limits[node], self.made.world.nodes[node].name
        if node in self.takes:
            return WORTH_KEEPING(f"node {name} takes pods of a node that goes now")
        return limits.refuses(node) if limits is not None else None

    def _placed(self, step: DrainStep, node: int) -> Reason | None:
        """Where the plan wanted them, or anywhere else; taken where it holds."""
        made, closed = self.made, self.made.room.closed[node]
        dest = self._wanted(step, node)
        if not dest or not replay(made.room, node, list(dest), dest):
            made.room.closed[node] = closed
            others = [n for n in range(len(made.world.nodes)) if n != node and n not in self.gone]
            found = exactly(made.room, node, made.loads[node], others)
            if isinstance(found, NoPlacement):
                return found.reason
            dest = dict(found.of)
            if not replay(made.room, node, list(dest), dest):
                return NO_PLACE(f"not all pods of node {step.node} find a place elsewhere")
        short = self._take(node, dest)
        if short is not None:
            take_back(made.room, node, list(dest), dest)
            made.room.closed[node] = closed
        return short

    def _wanted(self, step: DrainStep, node: int) -> dict[int, int]:
        """Pod → place, in the plan's order; empty where a place is gone."""
        index, here = self.made.world.index, {self.made.world.pods[pod].uid: pod for pod in self.made.loads[node]}
        targets = {here[move.uid]: index.get(move.target, node) for move in step.moves if move.uid in here}
        return {} if self.gone & set(targets.values()) or node in targets.values() else targets

    def _take(self, node: int, dest: dict[int, int]) -> Reason | None:
        """The room that pools keep, and the budgets; nothing is changed where a pool would be short of room."""
        own = self.made.limits[node]
        if own is not None:
            own.go(node)
        short = self._arrive(dest, 1) or (own.short() if own is not None else None)
        if short is None:
            self.gone.add(node)
            self.takes.update(dest.values())
            self.spent.update(self._needs(node))
            return None
        self._arrive(dest, -1)
        if own is not None:
            own.back(node)
        return short

    def _arrive(self, dest: dict[int, int], sign: int) -> Reason | None:
        """The first pool that lacks room then."""
        touched: dict[int, PoolLimits] = {}
        for pod, place in dest.items():
            found = self.made.limits[place]
            if found is not None:
                found.arrive(self.made.world.next_of[pod], place, sign)
                touched[id(found)] = found
        return next((short for limits in touched.values() if (short := limits.short()) is not None), None)
