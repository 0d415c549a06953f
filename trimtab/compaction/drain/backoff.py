"""Decides when no drain may start in a whole pool for a while (it backs off), because its drains left pods pending or
made the autoscaler add a node.

If a drain ends because the cluster has changed, or if only the load has grown, nothing is counted against the pool. But
if pods that a drain evicted are pending, or if a node was added that would not have been needed without the drains, the
next drain of the pool would have the same result.

A legacy pool, which is to be emptied (`NodeInfo.is_legacy`), does not back off: new nodes for its pods are wanted, and
each of its nodes is drained only once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Labels
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import NO_OWNER_KEY, OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.plan_types import backoff_seconds
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.node_filters import UNSCHEDULABLE_TAINT
from trimtab.scheduling.pod_class import PodClass

FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 3600, 24 * 3600
"""The first and the longest back-off of a pool in seconds. Each one in a row is twice as long as the one before."""
FORGET_AFTER_SECONDS = 24 * 3600
"""If this many seconds pass after a back-off without another setback, the next setback counts as the first again."""
REPLACEMENT_SECONDS = 1800
"""A node that is added within this many seconds after a drain may be a replacement for the drained node."""
SETTLED_AFTER_SECONDS = 30
"""A new node is judged only after this many seconds, when the pods for which it was added run on it."""


class PoolBackoff(msgspec.Struct, frozen=True):
    """The number of setbacks of a pool in a row, and the time of the last one."""

    times: int
    last: Seconds

    @property
    def retry_after(self) -> Seconds:
        """When the back-off ends: an hour after the first setback; each further setback doubles the time, to at most a
        day."""
        return self.last + backoff_seconds(self.times, FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS)

    def is_forgotten(self, now: Seconds) -> bool:
        """Returns whether the last setback is so long ago that the next one counts as the first again."""
        return now >= self.retry_after + FORGET_AFTER_SECONDS


class EmptiedNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """The capacity of a drained node. It is recorded because it is needed when the node no longer exists."""

    at: Seconds
    """When the node became empty."""
    labels: Labels
    allocatable: dict[str, int]
    taints: tuple[Taint, ...] = ()
    attachable: dict[str, int] = {}

    def as_node(self, name: str) -> NodeInfo:
        """Returns the node as it would be now if it had not been removed: uncordoned, ready and without pods."""
        return NodeInfo(
            name=name,
            labels=self.labels,
            annotations={},
            taints=self.taints,
            is_cordoned=False,
            is_ready=True,
            allocatable=dict(self.allocatable),
            capacity=dict(self.allocatable),
            attachable_volumes=self.attachable,
            created=None,
            provider_id="",
        )


def emptied_node(node: NodeInfo, at: Seconds) -> EmptiedNode | None:
    """Returns the record of a node that has just become empty, or None if its capacity cannot be read, or if it belongs
    to a legacy pool."""
    if isinstance(node.allocatable, Unreadable) or node.is_legacy:
        return None
    # Without the compactor's own marks on it: the cordon, and the soft taint of the plan.
    taints = tuple(
        taint for taint in node.taints if taint.key != UNSCHEDULABLE_TAINT.key and taint.effect != "PreferNoSchedule"
    )
    return EmptiedNode(
        at=at,
        labels=dict(node.labels),
        allocatable=dict(node.allocatable),
        taints=taints,
        attachable=dict(node.attachable_volumes),
    )


# ── pods that a drain displaced ──────────────────────────────────────────────────────────────────────


def workload_growth(moves: Iterable[PodToEvict], workloads: Workloads) -> dict[OwnerKey, int]:
    """Returns workload → the number of pods that it wants now in addition to those it wanted when the drain began. That
    many of its new pods are not successors."""
    return {
        move.owner_key: max(0, workloads.wanted_replicas(move.owner_key) - move.wanted) if move.wanted else 0
        for move in moves
        if move.owner
    }


def find_displaced_pod(annotation: DrainAnnotation, pods: Iterable[PodInfo], workloads: Workloads) -> str:
    """Returns the first of these pods (namespace/name) that is a successor of a pod which the drain evicted, or an
    empty string if there is none.

    The pods of an evicted pod's workload that were created since the drain began are successors, minus the number by
    which the workload has grown. All successors were ready when the node became empty, so a pod that was created later
    is not one.
    """
    planned, grown = {move.uid for move in annotation.moves}, workload_growth(annotation.moves, workloads)
    created_since: dict[OwnerKey, list[str]] = {}
    for pod in pods:
        key = pod.owner or NO_OWNER_KEY
        created = pod.created
        is_new = (
            created is not None
            and annotation.since <= created <= (annotation.emptied or created)
            and pod.uid not in planned
        )
        if is_new and key in grown and pod.deletion_requested_at is None and not pod.is_finished:
            created_since.setdefault(key, []).append(pod.key)
    return next((sorted(keys)[0] for key, keys in sorted(created_since.items()) if len(keys) > grown[key]), "")


def find_waiting_successor(
    annotation: DrainAnnotation, view: ClusterView, workloads: Workloads, pending: Seconds
) -> str:
    """Returns a successor (namespace/name) that fits on no node, or an empty string if there is none: kube-scheduler
    reports it as unschedulable, or it has had no node for `pending` seconds."""
    waiting = (pod for pod in view.inventory.pods if pod.needs_node and is_unplaced(pod, view.now, pending))
    return find_displaced_pod(annotation, waiting, workloads)


def is_unplaced(pod: PodInfo, at: Seconds, pending: Seconds) -> bool:
    """Returns whether the pod fits on no node: kube-scheduler reports it as unschedulable, or it has been pending for
    longer than `pending` seconds."""
    return pod.is_unschedulable or (pod.created is not None and at - pod.created > pending)


# ── nodes that were added ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Setback:
    """A reason why a pool must back off: a drain left a pod pending, or made the autoscaler add a node."""

    pool: str
    cause: str
    """The name of the drain or of the added node that caused the setback. Each counts once."""
    why: str


Emptied = Mapping[str, Mapping[str, EmptiedNode]]
"""Pool → recently emptied node → its capacity."""


def find_setbacks(view: ClusterView, emptied: Emptied, judged: Iterable[str]) -> Iterator[Setback]:
    """Yields the setbacks of nodes that were added because of drains. `judged`: drains and nodes that have been counted
    already."""
    judged_causes = set(judged)
    added = [(node, pods) for node, pods in _added_nodes(view) if node.name not in judged_causes]
    if added:
        workloads = Workloads(view)
        annotations = [
            annotation
            for node, annotation in view.annotated_nodes()
            if isinstance(annotation, DrainAnnotation) and annotation.drain not in judged_causes and not node.is_legacy
        ]
        yield from _setbacks_by_successors(added, annotations, workloads)
        yield from _setbacks_by_capacity(added, view, emptied)


def _added_nodes(view: ClusterView) -> list[tuple[NodeInfo, list[PodInfo]]]:
    """Returns the new nodes in order of creation, each with the pods for which it was added, that is, the pods on it
    that are older than the node."""
    new = {
        node.name: node
        for node in view.inventory.nodes
        if node.created is not None and SETTLED_AFTER_SECONDS <= view.now - node.created < REPLACEMENT_SECONDS
    }
    pods: dict[str, list[PodInfo]] = {}
    for pod in view.inventory.pods if new else ():
        if pod.node in new and _is_older_than_node(pod, new[pod.node]):
            pods.setdefault(pod.node, []).append(pod)
    # In the order of their creation: the first node that was added uses the capacity of the drained ones first.
    return sorted(
        ((new[name], pods_of_node) for name, pods_of_node in pods.items()),
        key=lambda pair: (pair[0].created, pair[0].name),
    )


def _is_older_than_node(pod: PodInfo, node: NodeInfo) -> bool:
    if pod.is_daemon or pod.is_static or pod.is_finished or pod.created is None or node.created is None:
        return False
    return pod.created <= node.created


def _setbacks_by_successors(
    added: Sequence[tuple[NodeInfo, list[PodInfo]]], annotations: Iterable[DrainAnnotation], workloads: Workloads
) -> Iterator[Setback]:
    for annotation in annotations:
        pods = [
            pod
            for node, pods_of_node in added
            if node.created is not None and node.created >= annotation.since
            for pod in pods_of_node
        ]
        if pod_key := find_displaced_pod(annotation, pods, workloads):
            yield Setback(
                annotation.pool,
                annotation.drain,
                f"the autoscaler added a node for pod {pod_key}, which drain {annotation.drain} moved",
            )


def _setbacks_by_capacity(
    added: Sequence[tuple[NodeInfo, list[PodInfo]]], view: ClusterView, emptied: Emptied
) -> Iterator[Setback]:
    """Yields setbacks for the added nodes whose pods would all have fit on nodes that were drained in the half hour
    before."""
    names = {node.name: node for node in view.inventory.nodes}
    first_added = min(node.created or 0 for node, _ in added)
    drained_nodes = {
        name: (pool, shape)
        for pool, nodes in emptied.items()
        for name, shape in nodes.items()
        if shape.at > first_added - REPLACEMENT_SECONDS and (name not in names or name in view.annotations.ours)
    }
    if not drained_nodes:
        return
    model = _cluster_without_drains(view, added, {name: shape for name, (_, shape) in drained_nodes.items()})
    capacity, classes = FreeCapacity(model), {pod.uid: pod_class for pod, pod_class in model.pending_pods}
    for node, pods in added:
        added_at = node.created or 0
        candidates = [
            name for name, (_, shape) in drained_nodes.items() if shape.at <= added_at < shape.at + REPLACEMENT_SECONDS
        ]
        used = _place_all(
            capacity, [classes[pod.uid] for pod in pods], [model.node_numbers[name] for name in candidates]
        )
        if used is not None:
            name = model.nodes[used].name
            why = f"node {node.name} was added for pods that would have fit on the drained node {name}"
            yield Setback(drained_nodes[name][0], node.name, why)


def _cluster_without_drains(
    view: ClusterView, added: Sequence[tuple[NodeInfo, list[PodInfo]]], shapes: Mapping[str, EmptiedNode]
) -> ClusterModel:
    """Returns the cluster as if no node had been drained or added: drained nodes are present, and the pods of added
    nodes are pending."""
    pending = {pod.uid for _, pods in added for pod in pods}
    pods = tuple(msgspec.structs.replace(pod, node="") if pod.uid in pending else pod for pod in view.inventory.pods)
    nodes = [node for node in view.inventory.nodes if node.name not in shapes]
    nodes += [shape.as_node(name) for name, shape in shapes.items()]
    # The model numbers nodes in the order of their names.
    nodes.sort(key=lambda node: node.name)
    return build_cluster_model(replace(view.inventory, nodes=tuple(nodes), pods=pods))


def _place_all(capacity: FreeCapacity, classes: Sequence[PodClass], nodes: Sequence[int]) -> int | None:
    """Places all pods on these nodes, and returns one of the nodes that received a pod. If they do not all fit, returns
    None and leaves the capacity unchanged."""
    placements: list[tuple[PodClass, int]] = []
    for pod_class in classes:
        target = next((node for node in nodes if fits_on_node(capacity, pod_class, node)), None)
        if target is None:
            for placed_class, node in placements:
                capacity.remove_pod(placed_class, node)
            return None
        capacity.add_pod(pod_class, target)
        placements.append((pod_class, target))
    return placements[0][1] if placements else None
