"""Chooses the drained nodes that are uncordoned for pods that fit on no open node.

The autoscaler adds a node for an unschedulable pod within one scan (ten seconds) and does not consider cordoned nodes.
If the compactor were slower, the autoscaler would add a node although an empty one is there. As few nodes as possible
are uncordoned, the smallest first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.backoff import is_unplaced
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.node_filters import UNSCHEDULABLE_TAINT
from trimtab.scheduling.pod_class import PodClass


def nodes_to_open(view: ClusterView, timeouts: DrainTimeouts) -> dict[str, str]:
    """Returns drained node → a pod (namespace/name) for which the node is uncordoned.

    No pool uncordons more nodes than its limit for the hour allows. A pod counts if kube-scheduler reports it as
    unschedulable, or if it has had no node for longer than the pending timeout. Pods that fit on an open node do not
    count.
    """
    emptied = [node for node, annotation in view.annotated_nodes() if _may_open(node, annotation)]
    pods = (
        [
            pod
            for pod in view.inventory.pod_index.by_node.get("", ())
            if pod.needs_node and pod.deletion_requested_at is None and is_unplaced(pod, view.now, timeouts.pending)
        ]
        if emptied
        else []
    )
    if not pods:
        return {}
    model = build_cluster_model(with_nodes_open(view.inventory, {node.name for node in emptied}))
    classes = {pod.uid: pod_class for pod, pod_class in model.pending_pods}
    # In the order in which kube-scheduler would place them: priority first, then the oldest.
    order = sorted(pods, key=lambda pod: (-pod.priority, pod.created or 0, pod.key))
    queue = [(pod.key, classes[pod.uid]) for pod in order if pod.uid in classes]
    closed = {model.node_numbers[node.name] for node in emptied}
    sizes = {number: [model.allocatable_amount(number, name) for name in model.main_resources] for number in closed}
    chosen = choose_nodes(FreeCapacity(model), queue, sorted(sizes, key=lambda number: (sizes[number], number)))
    return _within_allowance({model.nodes[number].name: pod for number, pod in chosen.items()}, view)


def choose_nodes(
    capacity: FreeCapacity, queue: Sequence[tuple[str, PodClass]], closed: Sequence[int]
) -> dict[int, str]:
    """Returns closed node → the first pod of `queue` that is placed on it.

    `closed`: the drained nodes that may be uncordoned, in order of preference; in `capacity` they are open already.
    Each pod uses another open node if there is one. Then the closed node that holds most of the remaining pods is
    opened (among equals, the first in `closed`), and so on.
    """
    closed_nodes, chosen = set(closed), dict[int, str]()
    open_nodes = [node for node in range(len(capacity.world.nodes)) if node not in closed_nodes]
    unplaced = [(pod, pod_class) for pod, pod_class in queue if not _place_pod(capacity, pod_class, open_nodes)]
    candidates = list(closed)
    while unplaced and candidates:
        fitting = {node: _fitting_pods(capacity, unplaced, node) for node in candidates}
        best = max(candidates, key=lambda node: (len(fitting[node]), -candidates.index(node)))
        if not fitting[best]:
            break
        chosen[best] = unplaced[fitting[best][0]][0]
        for number in fitting[best]:
            capacity.add_pod(unplaced[number][1], best)
        unplaced = [pair for number, pair in enumerate(unplaced) if number not in set(fitting[best])]
        candidates.remove(best)
    return chosen


def with_nodes_open(inventory: Inventory, names: Iterable[str]) -> Inventory:
    """Returns the inventory with these nodes uncordoned."""
    opened_names = set(names)
    nodes = tuple(
        replace(
            node,
            is_cordoned=False,
            taints=tuple(taint for taint in node.taints if taint.key != UNSCHEDULABLE_TAINT.key),
        )
        if node.name in opened_names
        else node
        for node in inventory.nodes
    )
    return replace(inventory, nodes=nodes)


def _may_open(node: NodeInfo, annotation: object) -> bool:
    """Returns whether the node is empty, ready, and cordoned only by the compactor."""
    if not isinstance(annotation, DrainAnnotation) or annotation.emptied is None:
        return False
    return node.is_ready and node.is_cordoned and node.removal_taint is None


def _place_pod(capacity: FreeCapacity, pod_class: PodClass, nodes: Iterable[int]) -> bool:
    target = next((node for node in nodes if fits_on_node(capacity, pod_class, node)), None)
    if target is not None:
        capacity.add_pod(pod_class, target)
    return target is not None


def _fitting_pods(capacity: FreeCapacity, queue: Sequence[tuple[str, PodClass]], node: int) -> list[int]:
    """Returns the numbers of those pods of the queue that fit on the node together. The capacity is unchanged
    afterwards."""
    numbers = []
    for number, (_, pod_class) in enumerate(queue):
        if fits_on_node(capacity, pod_class, node):
            capacity.add_pod(pod_class, node)
            numbers.append(number)
    for number in numbers:
        capacity.remove_pod(queue[number][1], node)
    return numbers


def _within_allowance(chosen: dict[str, str], view: ClusterView) -> dict[str, str]:
    """Returns the chosen nodes, without those with which a pool would uncordon more nodes than it may in an hour."""
    annotations, remaining = view.annotations.ours, dict[str, int]()
    allowed: dict[str, str] = {}
    for name, pod in chosen.items():
        annotation = annotations[name]
        pool = view.find_pool(annotation.pool) if isinstance(annotation, DrainAnnotation) else None
        if pool is not None:
            remaining.setdefault(pool.name, pool.openings_per_hour - view.opened_counts.get(pool.name, 0))
            if remaining[pool.name] > 0:
                remaining[pool.name] -= 1
                allowed[name] = pod
    return allowed
