"""Reports history entries as Events: on the node, on the workload whose pod moves, and on the pool's ConfigMap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.kube.events import About, Recorder

CONTROLLER = "trimtab.dev/compactor"
REASONS = {
    "planned": "CompactionPlanned",
    "started": "DrainStarted",
    "ordered": "DrainOrdered",
    "evicted": "PodEvicted",
    "refused": "EvictionRefused",
    "emptied": "NodeDrained",
    "removed": "NodeRemoved",
    "released": "DrainReverted",
    "abandoned": "DrainAbandoned",
    "closed": "PoolClosed",
    "scaled": "WorkloadSurged",
    "unreadable": "PoolStateUnreadable",
    "not-authentic": "AnnotationNotAuthentic",
    "left-surged": "WorkloadLeftSurged",
    "resized": "PodResized",
    "resize-verified": "PodResizeVerified",
    "resize-reverted": "PodResizeReverted",
    "resize-stopped": "PodResizeStopped",
    "resize-replaced": "PodReplaced",
    "resize-rejected": "PodResizeRejected",
    "resize-ended": "PodResizeEnded",
}
WARNING_DECISIONS = frozenset(
    {
        "released",
        "closed",
        "unreadable",
        "not-authentic",
        "left-surged",
        "resize-reverted",
        "resize-stopped",
        "resize-replaced",
        "resize-rejected",
    }
)
"""The decisions that are reported as Events of the type Warning."""
HOW_TO_UNDO = (
    ". Trimtab's compactor cordoned the node. To uncordon it, run `trimtab compactor release --yes {node}`, or "
    "`trimtab compactor pause` for all nodes"
)
_GROUPS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


@dataclass(slots=True)
class EventRecorder:
    """Creates Events for decisions."""

    recorder: Recorder
    namespace: str
    """The compactor's own namespace."""
    config_map: Callable[[str], tuple[str, str] | None]
    """Pool → (name, uid) of its ConfigMap."""

    def record_events(self, record: HistoryEntry) -> None:
        """Creates the Events for a decision. Raises nothing, because a lost Event must not stop the work."""
        reason = REASONS.get(record.what)
        if reason is None or record.rehearsed:
            return
        for about in self._involved_objects(record):
            note = record.why + (HOW_TO_UNDO.format(node=record.node) if record.what == "started" else "")
            self.recorder.record_event(about, reason, note, action="Compact", warning=record.what in WARNING_DECISIONS)

    def _involved_objects(self, record: HistoryEntry) -> Iterable[About]:
        is_of_pod = record.what in ("evicted", "refused") or record.what.startswith("resize")
        if record.node and not is_of_pod:
            # As the kubelet does: `kubectl describe node` finds Events with the node's name as uid.
            yield About(kind="Node", name=record.node, uid=record.node)
        if record.owner:
            kind, _, name = record.owner.partition("/")
            namespace = record.pod.partition("/")[0]
            yield About(kind=kind, name=name, namespace=namespace, api_version=_GROUPS.get(kind, "v1"))
        config_map = self.config_map(record.pool)
        if config_map is not None and record.what != "scaled" and not is_of_pod:
            name, uid = config_map
            yield About(kind="ConfigMap", name=name, namespace=self.namespace, uid=uid)
