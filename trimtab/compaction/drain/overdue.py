"""Drains that take too long: why the autoscaler has not removed an empty node, and which successors are late.

Why a node was not removed is read from annotations on the node, from the autoscaler's settings and status, and from its
soft taint on nodes that it is about to remove. If the node itself is the cause, it waits before it is drained again. If
the autoscaler or its node group is the cause, further drains would be useless too, so the failure counts against the
pool.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.autoscaler_evictions import read_eviction_rules
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, group_of
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.candidates import DELAY_DELETION_PREFIX, NO_SCALE_DOWN
from trimtab.compaction.drain.actions import FailureCause, Release
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.backoff import find_waiting_successor
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.reasons import NOT_CREATED, NOT_PLACED, NOT_STARTED
from trimtab.compaction.drain.release import with_nodes_open
from trimtab.compaction.drain.timeouts import DrainTimeouts, unneeded_time
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass


def why_not_removed(
    node: NodeInfo, annotation: DrainAnnotation, view: ClusterView, waits: int
) -> tuple[str, FailureCause]:
    """Returns why the autoscaler has not removed the node, as text, and what the failure counts against.

    `waits` is the number of seconds for which the compactor has waited.
    """
    autoscaler = view.autoscaler_of(annotation.pool)
    if cause := next(_causes_on_node(node, view, read_eviction_rules(autoscaler).system_pod_seconds), ""):
        return cause, FailureCause.NODE
    if autoscaler is None:
        return "there is no cluster autoscaler", FailureCause.POOL
    if cause := _autoscaler_cause(node, autoscaler, view) or _group_minimum_cause(node, annotation, autoscaler):
        return cause, FailureCause.POOL
    if cause := _time_cause(node, autoscaler, view, waits):
        return cause, FailureCause.NODE
    return f"the cause is not known{_candidate_counts(annotation, autoscaler)}", FailureCause.POOL


def _causes_on_node(node: NodeInfo, view: ClusterView, system_pod_seconds: int) -> Iterator[str]:
    """Yields the causes that are on the node itself. `system_pod_seconds`: the age in seconds until which system pods
    keep a node; 0 if they never do."""
    if node.annotations.get(NO_SCALE_DOWN) == "true":
        yield f"the node has the annotation {NO_SCALE_DOWN}"
    yield from (
        f"the node has the annotation {key}"
        for key in sorted(node.annotations)
        if key.startswith(DELAY_DELETION_PREFIX)
    )
    system = sorted(
        pod.key
        for pod in view.inventory.pods
        if system_pod_seconds
        and pod.node == node.name
        and pod.namespace == "kube-system"
        and not (pod.is_daemon or pod.is_static or pod.is_finished)
    )
    if system:
        yield f"system pods run on the node: {', '.join(system)}"


def _autoscaler_cause(node: NodeInfo, autoscaler: Autoscaler, view: ClusterView) -> str:
    if not autoscaler.scale_down:
        return "the autoscaler never removes nodes (--scale-down-enabled=false)"
    if not node.is_ready and any(not f.UNREADY_ENABLED.is_true_in(one.flags) for one in autoscaler.each):
        return "the autoscaler removes no node that is not ready (--scale-down-unready-enabled=false)"
    if autoscaler.is_silent(view.now) or not autoscaler.healthy:
        return "the autoscaler does not report, or reports the cluster as unhealthy"
    return ""


def _group_minimum_cause(node: NodeInfo, annotation: DrainAnnotation, autoscaler: Autoscaler) -> str:
    own = group_of(node, autoscaler.groups)
    for group in (own,) if own is not None else autoscaler.groups_of_pool(annotation.pool):
        if group.min_size is not None and group.target is not None and group.target <= group.min_size:
            return f"node group {group.name} is at its minimum of {group.min_size}"
    return ""


def _time_cause(node: NodeInfo, autoscaler: Autoscaler, view: ClusterView, waits: int) -> str:
    unneeded_seconds = unneeded_time(autoscaler, ready=node.is_ready)
    since = next((taint.value for taint in node.taints if taint.key == CANDIDATE_TAINT), "")
    if since.isdecimal() and view.now - int(since) < unneeded_seconds:
        unneeded = view.now - int(since)
        return (
            f"the autoscaler has found the node unneeded for only {unneeded} s, and removes it after "
            f"{unneeded_seconds} s"
        )
    if waits < unneeded_seconds:
        return f"the autoscaler removes a node only after it has found it unneeded for {unneeded_seconds} s"
    return ""


def _candidate_counts(annotation: DrainAnnotation, autoscaler: Autoscaler) -> str:
    groups = autoscaler.groups_of_pool(annotation.pool)
    if not groups:
        return ""
    counts = ", ".join(f"{group.candidates} in group {group.name}" for group in groups)
    return f"; numbers of nodes that the autoscaler would remove: {counts}"


def overdue_successor(
    view: ClusterView, workloads: Workloads, node: NodeInfo, annotation: DrainAnnotation, timeouts: DrainTimeouts
) -> Release | None:
    """Returns the step that ends a drain because a successor could not be created, placed or made ready in time, or
    None if no successor is late.

    Whether a pod can be created depends on its namespace. So the failure counts against the node only: otherwise a
    tenant could close a whole pool with a quota. In a legacy pool, a late successor counts against nothing, because the
    autoscaler is expected to add a node for it.
    """
    for key in dict.fromkeys(
        move.owner_key for move in annotation.moves if move.owner and workloads.newly_missing(move)
    ):
        # A pod that cannot be created will not be late: there is no reason to wait for the timeout.
        if failure := workloads.create_failure(key):
            namespace, pod_class, name = key
            return Release(
                NOT_CREATED(f"{pod_class} {namespace}/{name} cannot create a successor: {failure}"), FailureCause.NODE
            )
        for pod in workloads.unready_pods(key):
            if pod.created is None or pod.created < annotation.since:
                continue
            age = view.now - pod.created
            if not pod.node and age > timeouts.pending:
                successor = find_waiting_successor(annotation, view, workloads, timeouts.pending)
                reason = NOT_PLACED(f"pod {successor or pod.key} has been Pending for {age} s")
                blame = FailureCause.POOL if successor and not node.is_legacy else FailureCause.NOBODY
                return Release(reason, blame, (successor or pod.key).partition("/")[0])
            if age > timeouts.ready:
                reason = NOT_STARTED(f"pod {pod.key} is not ready {age} s after its creation")
                return Release(reason, FailureCause.POOL, pod.namespace)
    return None


@dataclass(slots=True)
class PendingPods:
    """The pods that have been pending for longer than the limit; calculated once for all drains of a round."""

    view: ClusterView
    timeouts: DrainTimeouts
    _capacity: FreeCapacity | None = None
    _classes: list[tuple[str, PodClass]] | None = None

    def fits_only_on(self, node: NodeInfo) -> str:
        """Returns the first pod (namespace/name) that has been pending for too long, would fit on this node if it were
        uncordoned, and fits on no open node. Empty if there is none."""
        capacity, classes = self._calculate()
        if not classes or capacity is None:
            return ""
        number = capacity.world.node_numbers[node.name]
        return next((name for name, pod_class in classes if self._fits_only_on(capacity, pod_class, number)), "")

    def _fits_only_on(self, capacity: FreeCapacity, pod_class: PodClass, number: int) -> bool:
        """Returns whether the pod fits on this drained node and on no node that is open to pods.

        In `capacity`, all drained nodes are uncordoned. The other drained nodes are not considered, because they are
        cordoned in the cluster."""
        nodes = capacity.world.nodes
        cordoned = {n for n, node in enumerate(nodes) if node.name in self.view.annotations.ours}
        others = (n for n in range(len(nodes)) if n not in cordoned)
        return fits_on_node(capacity, pod_class, number) and not any(
            fits_on_node(capacity, pod_class, n) for n in others
        )

    def _calculate(self) -> tuple[FreeCapacity | None, list[tuple[str, PodClass]]]:
        if self._classes is None:
            late_pods = {pod.key for pod in self.view.inventory.pods if self._is_late(pod)}
            model = (
                build_cluster_model(with_nodes_open(self.view.inventory, self.view.annotations.ours))
                if late_pods
                else None
            )
            self._capacity = FreeCapacity(model) if model is not None else None
            self._classes = (
                [(pod.key, pod_class) for pod, pod_class in model.pending_pods if pod.key in late_pods] if model else []
            )
        return self._capacity, self._classes

    def _is_late(self, pod: PodInfo) -> bool:
        if not pod.needs_node or pod.is_finished or pod.created is None:
            return False
        return self.view.now - pod.created > self.timeouts.pending
