"""A record as Events: on the node, on the workload whose pod moves, and on the pool's ConfigMap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.kube.events import About, Recorder

CONTROLLER = "trimtab.dev/compactor"
REASONS = {
    "planned": "CompactionPlanned", "begun": "DrainStarted", "evicted": "PodEvicted", "refused": "EvictionRefused",
    "emptied": "NodeDrained", "taken": "NodeRemoved", "released": "DrainReverted", "dropped": "DrainAbandoned",
    "closed": "PoolClosed", "scaled": "WorkloadSurged", "unread": "PoolStateUnreadable",
    "doubted": "AnnotationNotAuthentic", "left": "WorkloadLeftSurged",
}  # fmt: skip
LOUD = frozenset({"released", "closed", "unread", "doubted", "left"})
"""Told as warnings."""
_GROUPS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


@dataclass(slots=True)
class EventRecorder:
    recorder: Recorder
    namespace: str
    """Ours."""
    config_map: Callable[[str], tuple[str, str] | None]
    """Pool → (name, uid) of its ConfigMap."""

    def tell(self, record: HistoryEntry) -> None:
        """Never raises: an Event that is lost must not stop the work."""
        reason = REASONS.get(record.what)
        if reason is None or record.rehearsed:
            return
        for about in self._abouts(record):
            self.recorder.tell(about, reason, record.why, action="Compact", warning=record.what in LOUD)

    def _abouts(self, record: HistoryEntry) -> Iterable[About]:
        if record.node and record.what not in ("evicted", "refused"):
            yield About(kind="Node", name=record.node, uid=record.node)  # as the kubelet does: kubectl looks for it
        if record.owner:
            kind, _, name = record.owner.partition("/")
            namespace = record.pod.partition("/")[0]
            yield About(kind=kind, name=name, namespace=namespace, api_version=_GROUPS.get(kind, "v1"))
        found = self.config_map(record.pool)
        if found is not None and record.what not in ("evicted", "refused", "scaled"):
            yield About(kind="ConfigMap", name=found[0], namespace=self.namespace, uid=found[1])
