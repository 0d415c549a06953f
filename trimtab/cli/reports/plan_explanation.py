"""The chain of reasons for one node or one pod, as text: first the pool's thresholds, then the plan's reasons.

If the pods of a node have no target, the chain ends with the nodes that have room for each pod after the plan, if only
that pod moved.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from trimtab.cli.reports.node_costs import convert_saving, format_saving
from trimtab.cli.reports.plan import ExplainReport
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction import explain
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.reasons import BLOCKED, NO_PLACE
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.plan_inputs import PlanInputs, PlanOptions, read_inputs
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import rejection_reason

MAX_PODS = 5
"""The largest number of pods that have a sentence of their own."""


def free_capacity_after(model: ClusterModel, plan: Plan) -> FreeCapacity:
    """Returns the free capacity of every node after the plan."""
    capacity, pods = FreeCapacity(model), {pod.key: number for number, pod in enumerate(model.pods)}
    for step in plan.all_steps:
        capacity.cordon_node(model.node_numbers[step.node])
    for move in plan.all_moves:
        number = pods[move.pod]
        capacity.uncount_pod(model.class_of[number].member_groups, model.node_of[number])
        capacity.add_pod(model.successor_class_of[number], model.node_numbers[move.target])
    return capacity


def explain_missing_targets(model: ClusterModel, plan: Plan, name: str) -> Iterator[str]:
    """Yields a sentence per pod of the node: on how many other nodes it would fit if only this pod moved, and why it
    does not fit on the rest."""
    capacity, own_node = free_capacity_after(model, plan), model.node_numbers[name]
    removed_nodes = {model.node_numbers[step.node] for step in plan.all_steps}
    other_nodes = [node for node in range(len(model.nodes)) if node != own_node and node not in removed_nodes]
    movable_pods = [
        number
        for number in model.pods_on_node[own_node]
        if not (model.pods[number].is_daemon or model.pods[number].is_static)
    ]
    fits_by_pod = {number: _count_fitting_nodes(capacity, number, other_nodes) for number in movable_pods}
    # The pods that fit on the fewest nodes explain best why the node stays.
    hardest_first = sorted(movable_pods, key=lambda number: (fits_by_pod[number][0], number))
    for number in hardest_first[:MAX_PODS]:
        fits, rejections = fits_by_pod[number]
        counts = ", ".join(f"{count} {code}" for code, count in rejections.most_common())
        others_text = f" (the others: {counts})" if counts else ""
        yield (
            f"after the plan, pod {model.pods[number].key} alone would fit on {fits} of {len(other_nodes)} other "
            f"nodes{others_text}"
        )
    if hardest_first and fits_by_pod[hardest_first[0]][0]:
        yield (
            "each pod of the node would fit on another node by itself, but all of them together do not fit, or "
            "the free capacity is reserved"
        )


def _count_fitting_nodes(capacity: FreeCapacity, number: int, other_nodes: list[int]) -> tuple[int, Counter[str]]:
    """Returns the number of nodes on which a pod's replacement fits, and reason code → the number of nodes on which it
    does not.

    The pod's own resources count as free, because the pod is deleted before its replacement is scheduled.
    """
    kind, requests, own_node = (
        capacity.world.successor_class_of[number],
        capacity.world.class_of[number].member_groups,
        capacity.world.node_of[number],
    )
    # The capacity is shared by all pods of the node, so the pod is counted again below.
    capacity.uncount_pod(requests, own_node)
    reasons = [rejection_reason(capacity, kind, node) for node in other_nodes]
    capacity.count_pod(requests, own_node)
    return reasons.count(None), Counter(reason.code.name for reason in reasons if reason is not None)


def check_subjects(inputs: PlanInputs, subjects: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError for every node or pod of --explain that is not in the snapshot."""
    names_by_kind = {
        "node": {node.name for node in inputs.inventory.nodes},
        "pod": {pod.key for pod in inputs.inventory.pods},
    }
    mistakes = [
        ConfigError(
            file=f"--explain {kind}",
            expected=f"a {kind} of the snapshot" + " (NAMESPACE/NAME)" * (kind == "pod"),
            got=repr(name),
            todo=suggest_name(name, names_by_kind[kind]),
        )
        for kind, name in subjects
        if name not in names_by_kind[kind]
    ]
    if mistakes:
        raise UsageError(mistakes)


def explain_in_plan(cluster: ClusterOptions, kind: str, name: str) -> list[str]:
    """Returns the chain of reasons of `trimtab plan --explain` for a node or a pod of a cluster; one sentence if the
    objects allow no plan."""
    if "-" in cluster.paths:
        return ["no plan was made, because standard input can be read only once: write it to a file"]
    try:
        inputs = read_inputs(PlanOptions(cluster=cluster), like_compactor=True)
    except UsageError as error:
        return [f"no plan can be made of these objects: {error.mistakes[0].sentence}"]
    model = build_cluster_model(inputs.inventory, inputs.readmitted_requests)
    return explain_subject(inputs, model, make_plan(model, inputs.pools, inputs.context), kind, name).chain


def explain_subject(inputs: PlanInputs, model: ClusterModel, plan: Plan, kind: str, name: str) -> ExplainReport:
    """Returns the chain of reasons for a node, or for a pod (whose name is namespace/name)."""
    sentences = _explain_node(inputs, model, plan, name) if kind == "node" else _explain_pod(model, plan, name)
    return ExplainReport(kind=kind, name=name, chain=list(sentences))


def _explain_node(inputs: PlanInputs, model: ClusterModel, plan: Plan, name: str) -> Iterator[str]:
    node = model.nodes[model.node_numbers[name]]
    yield from explain.explain_node(plan, model, name)
    pools = [pool for pool in inputs.pools if pool.has_node(node)]
    yield f"the node is in {' and '.join(f'pool {pool.name}' for pool in pools) or 'no pool'}"
    if len(pools) == 1:
        yield _describe_thresholds(pools[0])
    pods = [model.pods[number] for number in model.pods_on_node[model.node_numbers[name]]]
    bound_pods = sum(pod.is_daemon or pod.is_static for pod in pods)
    yield (
        f"the node runs {format_count(len(pods), 'pod')}; {bound_pods} of these belong to it (DaemonSets, static pods) "
        "and are removed with it"
    )
    step = next((step for step in plan.all_steps if step.node == name), None)
    if step is not None:
        yield f"to drain the node saves {format_saving(convert_saving(step.saves, plan.unit))}"
        return
    if plan.refusals[name].code is NO_PLACE:
        yield from explain_missing_targets(model, plan, name)
    reasons = [plan.pods[pod.key] for pod in pods if pod.key in plan.pods]
    if not reasons or plan.refusals[name].code is not BLOCKED:
        yield _describe_reason(plan.refusals[name])
    # What to do stands behind the reason of each pod.
    yield from dict.fromkeys(map(_describe_code, reasons))


def _describe_thresholds(pool: Pool) -> str:
    lines = ", ".join(f"{resource} at most {percent} %" for resource, percent in sorted(pool.under.items()))
    return f"the pool considers {f'nodes with {lines} requested' if lines else 'every node'}"


def _describe_reason(reason: Reason) -> str:
    return f"{reason.code.name}: {reason.code.means} What to do: {reason.code.todo} ({reason.page_path})"


def _describe_code(reason: Reason) -> str:
    return f"{reason.code.name}: {reason.code.means} ({reason.page_path})"


def _explain_pod(model: ClusterModel, plan: Plan, key: str) -> Iterator[str]:
    pod = next((pod for pod in model.pods if pod.key == key), None)
    if pod is None:
        yield (
            "the pod uses no node of the snapshot: the pod is finished or pending, or its node is not in the snapshot"
        )
    elif pod.is_daemon or pod.is_static:
        yield f"the pod runs on node {pod.node}"
        yield (
            "a DaemonSet or the kubelet created the pod for this node: the pod is not moved, and does not block a drain"
        )
    else:
        yield f"the pod runs on node {pod.node}"
        yield from explain.explain_pod(plan, model, key)
        if key in plan.pods:
            yield _describe_code(plan.pods[key])
        elif pod.node in plan.refusals:
            yield _describe_reason(plan.refusals[pod.node])
