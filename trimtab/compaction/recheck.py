"""Is a step still right, a moment later?

Between plan and act pods come and go. The step is judged again on a fresh world: the node and its pods are those
the plan spoke of, all may still move, their budgets allow it now, and all have a place together. A step that no
longer holds is dropped, with the reason; it is never bent into another one.
"""

from collections import Counter
from collections.abc import Sequence

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.candidates import Now
from trimtab.compaction.prepare import Prepared, prepare
from trimtab.compaction.reasons import BUDGET_SPENT
from trimtab.compaction.values import Step
from trimtab.packing.drain import Nowhere, exactly
from trimtab.packing.world import World

NODE_GONE = Code("node-gone", "The node of the plan is not there any more.", "Nothing.")
CHANGED = Code("node-changed", "Other pods run on the node than the plan spoke of.", "Wait for the next plan.")


def recheck(step: Step, world: World, pools: Sequence[Pool], now: Now) -> Reason | None:
    """Why the step may not be taken now; None when it may. Ages and thresholds are asked again too."""
    node = world.index.get(step.node)
    if node is None:
        return NODE_GONE(f"node {step.node} is gone")
    made = prepare(world, pools, now)
    refusal = made.refusals.get(node)
    if refusal is not None:
        return refusal
    return _same(step, made, node) or _affordable(made, node) or _placed(step, made, node)


def _same(step: Step, made: Prepared, node: int) -> Reason | None:
    planned = {(move.pod, move.uid) for move in step.moves}
    pods = [made.world.pods[pod] for pod in made.loads[node]]
    new = sorted(pod.key for pod in pods if (pod.key, pod.uid) not in planned)
    return CHANGED(f"node {step.node} has new pods since the plan: {', '.join(new)}") if new else None


def _affordable(made: Prepared, node: int) -> Reason | None:
    """At least one pod of each budget must be allowed to go; the others of it wait for their turn."""
    needs = Counter(made.budget_of[pod] for pod in made.loads[node] if pod in made.budget_of)
    for number in needs:
        budget = made.world.inventory.budgets[number]
        if not budget.allowed:
            return BUDGET_SPENT(f"budget {budget.key} allows no disruption now")
    return None


def _placed(step: Step, made: Prepared, node: int) -> Reason | None:
    others = [n for n in range(len(made.world.nodes)) if n != node]
    found = exactly(made.room, node, made.loads[node], others)
    return found.reason if isinstance(found, Nowhere) else None
