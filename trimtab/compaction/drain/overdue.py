"""Why did the autoscaler not take an empty node?

As far as it tells: its annotations on the node, its settings, its status, its own soft taint on what it means to
remove. Where it is the node that keeps it, the node waits before it is tried again; where it is the autoscaler or its
group, emptying the next node would be for nothing too, and it counts against the pool.

Has a drain kept somebody waiting for too long?
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, group_of
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.candidates import DELAY, NO_SCALE_DOWN
from trimtab.compaction.drain.actions import NOT_CREATED, NOT_PLACED, NOT_STARTED, FailureCause, Release
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.backoff import waiting_successor
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.release import opened
from trimtab.compaction.drain.timeouts import DrainTimeouts, unneeded_time
from trimtab.scheduling.cluster_model import FreeCapacity, build
from trimtab.scheduling.filters import admits
from trimtab.scheduling.pod_class import PodClass

"""Its soft taint on a node it has no need of; the value says since when, in Unix seconds."""


def why_not_removed(node: NodeInfo, note: DrainAnnotation, view: ClusterView, waits: int) -> tuple[str, FailureCause]:
    """In words, and whose fault it is; `waits`: seconds we have waited."""
    scaler = view.autoscaler_of(note.pool)
    if found := next(_node(node, view), ""):
        return found, FailureCause.NODE
    if scaler is None:
        return "no cluster autoscaler is to be seen", FailureCause.POOL
    if found := _unable(scaler, view) or _minimum(node, note, scaler):
        return found, FailureCause.POOL
    if found := _too_soon(node, scaler, view, waits):
        return found, FailureCause.NODE
    return f"nothing that we can see keeps it{_candidates(note, scaler)}", FailureCause.POOL


def _node(node: NodeInfo, view: ClusterView) -> Iterator[str]:
    """What lies on the node itself."""
    if node.annotations.get(NO_SCALE_DOWN) == "true":
        yield f"the node says {NO_SCALE_DOWN}"
    yield from (f"the node says {key}" for key in sorted(node.annotations) if key.startswith(DELAY))
    system = sorted(
        pod.key for pod in view.inventory.pods
        if pod.node == node.name and pod.namespace == "kube-system" and not (pod.daemon or pod.static or pod.finished)
    )  # fmt: skip
    if system:
        yield f"system pods are left on it: {', '.join(system)}"


def _unable(scaler: Autoscaler, view: ClusterView) -> str:
    if not scaler.scale_down:
        return "the autoscaler never removes nodes (--scale-down-enabled=false)"
    if scaler.silent(view.at) or not scaler.healthy:
        return "the autoscaler is silent or calls the cluster unhealthy"
    return ""


def _minimum(node: NodeInfo, note: DrainAnnotation, scaler: Autoscaler) -> str:
    own = group_of(node, scaler.groups)
    for group in (own,) if own is not None else scaler.of(note.pool):
        if group.min_size is not None and group.target is not None and group.target <= group.min_size:
            return f"group {group.name} is at its minimum of {group.min_size}"
    return ""


def _too_soon(node: NodeInfo, scaler: Autoscaler, view: ClusterView, waits: int) -> str:
    needs = unneeded_time(scaler, ready=node.ready)
    since = next((taint.value for taint in node.taints if taint.key == CANDIDATE_TAINT), "")
    if since.isdecimal() and view.at - int(since) < needs:
        been = view.at - int(since)
        return f"not enough time: the autoscaler has had no need of it for {been} s and removes it after {needs} s"
    if waits < needs:
        return f"not enough time: the autoscaler removes what it had no need of for {needs} s"
    return ""


def _candidates(note: DrainAnnotation, scaler: Autoscaler) -> str:
    groups = scaler.of(note.pool)
    if not groups:
        return ""
    told = ", ".join(f"{group.candidates} in group {group.name}" for group in groups)
    return f"; the autoscaler tells of nodes it would remove: {told}"


def overdue_successor(
    view: ClusterView, workloads: Workloads, note: DrainAnnotation, terms: DrainTimeouts
) -> Release | None:
    """The end of a drain with a successor that cannot be created, or has no node or is not ready past its time; None
    while all is well.

    Which pods can be created is a matter of their namespace: the blame is the node's, so that nobody closes a pool by
    a quota of their own.
    """
    for key in dict.fromkeys(move.workload for move in note.moves if move.owner and workloads.newly_missing(move)):
        if failure := workloads.failure(key):  # no need to wait for a pod that nobody can create
            namespace, kind, name = key
            return Release(NOT_CREATED(f"{kind} {namespace}/{name} cannot create a pod: {failure}"), FailureCause.NODE)
        for pod in workloads.unready.get(key, ()):
            if pod.created is None or pod.created < note.since:
                continue
            age = view.at - pod.created
            if not pod.node and age > terms.pending:
                ours = waiting_successor(note, view, workloads, terms.pending)
                told = NOT_PLACED(f"pod {ours or pod.key} finds no node for {age} s")
                return Release(told, FailureCause.POOL if ours else FailureCause.NOBODY)
            if age > terms.ready:
                return Release(NOT_STARTED(f"pod {pod.key} is not ready after {age} s"), FailureCause.POOL)
    return None


@dataclass(slots=True)
class PendingPods:
    """Pods that have waited for a node past their time; looked at once for all drains of a moment."""

    view: ClusterView
    terms: DrainTimeouts
    _room: FreeCapacity | None = None
    _kinds: list[tuple[str, PodClass]] | None = None

    def only_on(self, node: NodeInfo) -> str:
        """The first of them (namespace/name) that would run on this node, were it open, and on no open one."""
        room, kinds = self._looked()
        if not kinds or room is None:
            return ""
        number = room.world.index[node.name]
        return next((name for name, kind in kinds if self._needs(room, kind, number)), "")

    def _needs(self, room: FreeCapacity, kind: PodClass, number: int) -> bool:
        """In the room all nodes that we cordoned are open: of them only the one that is asked for counts."""
        nodes = room.world.nodes
        ours = {n for n, node in enumerate(nodes) if node.name in self.view.notes.ours}
        others = (n for n in range(len(nodes)) if n not in ours)
        return admits(room, kind, number) and not any(admits(room, kind, n) for n in others)

    def _looked(self) -> tuple[FreeCapacity | None, list[tuple[str, PodClass]]]:
        if self._kinds is None:
            late = {pod.key for pod in self.view.inventory.pods if self._is_late(pod)}
            world = build(opened(self.view.inventory, self.view.notes.ours)) if late else None
            self._room = FreeCapacity(world) if world is not None else None
            self._kinds = [(pod.key, kind) for pod, kind in world.waiting if pod.key in late] if world else []
        return self._room, self._kinds

    def _is_late(self, pod: PodInfo) -> bool:
        if not pod.seeking or pod.finished or pod.created is None:
            return False
        return self.view.at - pod.created > self.terms.pending
