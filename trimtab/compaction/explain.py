"""Explains why the plan drains or does not drain a node, or moves or does not move a pod, as lines of text.

Every line is a fact that the plan used. For a pod that fits on no node, the last line gives the number of nodes per
rejecting constraint, as kube-scheduler's Event does.
"""

from collections.abc import Iterable

from trimtab.cluster.format_count import format_count
from trimtab.compaction.plan_types import Move, Plan
from trimtab.compaction.reasons import WORTH_KEEPING
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, drain_exactly, no_node_reason
from trimtab.scheduling.filters import fits_on_node


def explain_node(plan: Plan, model: ClusterModel, name: str) -> tuple[str, ...]:
    """Returns what the plan does with a node, and why, or an empty tuple if there is no such node."""
    if name not in model.node_numbers:
        return ()
    return tuple(_explain_drained(plan, name)) or tuple(_explain_kept(plan, model, name))


def _explain_drained(plan: Plan, name: str) -> Iterable[str]:
    for number, wave in enumerate(plan.waves, 1):
        for place, step in enumerate(wave.steps, 1):
            if step.node == name:
                yield (
                    f"node {name} is drained in wave {number} of {len(plan.waves)}, as node {place} of "
                    f"{len(wave.steps)} in this wave"
                )
                yield f"{step.reason}; the drain evicts {format_count(len(step.moves), 'pod')}"
                yield from map(_explain_move, step.moves)


def _explain_move(move: Move) -> str:
    turn = f" in turn {move.turn + 1}" if move.turn else ""
    budget = f"budget {move.budget} allows the eviction" if move.budget else "no PodDisruptionBudget selects the pod"
    return f"pod {move.pod} fits on node {move.target}{turn}; {budget}"


def _explain_budget(model: ClusterModel, move: Move) -> Iterable[str]:
    """Yields a line that says what the PodDisruptionBudget of a move allows now."""
    budget = next((budget for budget in model.inventory.pdbs if budget.key == move.budget), None)
    if budget is not None:
        yield f"at present budget {budget.key} allows {budget.allowed} disruption{'' if budget.allowed == 1 else 's'}"


def _explain_refusal(plan: Plan, node: str) -> str:
    """Returns a sentence that says why the plan does not drain the node."""
    sentence = str(plan.refusals[node])
    return sentence if sentence.startswith(f"node {node} stays") else f"node {node} stays: {sentence}"


def _explain_kept(plan: Plan, model: ClusterModel, name: str) -> Iterable[str]:
    yield _explain_refusal(plan, name)
    advised_codes = set[str]()
    for number in model.pods_on_node[model.node_numbers[name]]:
        reason = plan.pods.get(model.pods[number].key)
        if reason is not None:
            # What to do is the same for all pods of a code.
            advice = "" if reason.code.name in advised_codes else f" ({reason.code.todo})"
            advised_codes.add(reason.code.name)
            yield f"pod {model.pods[number].key} must stay: {reason}{advice}"
    arrivals = [move for move in plan.all_moves if move.target == name]
    if arrivals:
        sources = sorted({move.source for move in arrivals})
        origin = f"node {sources[0]}, which is drained" if len(sources) == 1 else f"{len(sources)} drained nodes"
        yield f"node {name} receives {len(arrivals)} pod{'' if len(arrivals) == 1 else 's'} of {origin}"
    if plan.refusals[name].code is WORTH_KEEPING:
        yield _explain_alternative(plan, model, name)


def _explain_alternative(plan: Plan, model: ClusterModel, name: str) -> str:
    """Returns a sentence that says whether a node which receives pods in the plan could itself have been drained, in
    the present state of the cluster."""
    node = model.node_numbers[name]
    pods = [n for n in model.pods_on_node[node] if not (model.pods[n].is_daemon or model.pods[n].is_static)]
    others = [n for n in range(len(model.nodes)) if n != node and not model.closed_nodes[n]]
    placement = drain_exactly(FreeCapacity(model), node, pods, others)
    if isinstance(placement, DrainPlacement):
        count = format_count(len(pods), "pod")
        return (
            f"node {name} could be drained instead of other nodes: before any drain, the other nodes have room "
            f"for its {count}"
        )
    return f"node {name} could not be drained instead of other nodes, even before any other drain: {placement.reason}"


def explain_pod(plan: Plan, model: ClusterModel, key: str) -> tuple[str, ...]:
    """Returns what the plan does with a pod (namespace/name), and why, or an empty tuple if no node has such a pod."""
    number = next((n for n, info in enumerate(model.pods) if info.key == key), None)
    if number is None:
        return ()
    move = next((move for move in plan.all_moves if move.pod == key), None)
    if move is not None:
        waves = enumerate(plan.waves, 1)
        wave = next(number for number, wave in waves if any(step.node == move.source for step in wave.steps))
        return (
            f"pod {move.pod} is evicted from node {move.source} in wave {wave} of {len(plan.waves)}",
            _explain_move(move),
            *_explain_budget(model, move),
            _explain_other_targets(plan, model, number, move),
        )
    reason = plan.pods.get(key)
    home = model.nodes[model.node_of[number]].name
    lines = [f"pod {key} must stay: {reason} ({reason.code.todo})"] if reason else []
    return (
        *lines,
        *((_explain_refusal(plan, home),) if home in plan.refusals else ()),
        *_explain_other_nodes(model, number),
    )


def _explain_other_targets(plan: Plan, model: ClusterModel, number: int, move: Move) -> str:
    """Returns a sentence that says how many other nodes could also hold the pod, of those that the plan does not drain.
    The present state of the cluster counts."""
    capacity, pod_class = FreeCapacity(model), model.successor_class_of[number]
    capacity.uncount_pod(model.class_of[number].member_groups, model.node_of[number])
    drained = {step.node for step in plan.all_steps}
    others = [n for n, node in enumerate(model.nodes) if node.name not in drained and node.name != move.target]
    fits = [model.nodes[n].name for n in others if fits_on_node(capacity, pod_class, n)]
    example = f", for example {fits[0]}" if fits else ""
    return (
        f"at present, the pod would also fit on {len(fits)} of {format_count(len(others), 'other node')} "
        f"that stay{example}"
    )


def _explain_other_nodes(model: ClusterModel, number: int) -> tuple[str, ...]:
    """Returns sentences that say on which other nodes the pod would fit in the present state of the cluster."""
    capacity, source, pod_class = FreeCapacity(model), model.node_of[number], model.successor_class_of[number]
    capacity.uncount_pod(model.class_of[number].member_groups, source)
    capacity.cordon_node(source)
    others = [n for n in range(len(model.nodes)) if n != source]
    fits = [model.nodes[n].name for n in others if fits_on_node(capacity, pod_class, n)]
    if fits:
        return (
            f"at present, the pod would fit on {len(fits)} of {format_count(len(others), 'other node')}, for "
            f"example {fits[0]}",
        )
    return (str(no_node_reason(capacity, pod_class, others, model.pods[number].key)),)
