"""Of the workloads on which the system depends, only one moves at a time in the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import CRITICAL_PRIORITY, PodInfo
from trimtab.compaction.drain.actions import Wait
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads, is_gone
from trimtab.compaction.drain.reasons import ONE_CRITICAL


@dataclass(slots=True)
class CriticalMoves:
    """The system workloads with a pod that is moving."""

    view: ClusterView
    workloads: Workloads
    pods_on_node: Mapping[str, Sequence[PodInfo]]
    _workloads: set[OwnerKey] | None = None
    """Those that move, including those chosen in this round; computed when it is first needed."""

    def wait_for_others(self, move: PodToEvict) -> Wait | None:
        """Returns a wait if the pod belongs to a system workload and another system workload is moving, otherwise
        None."""
        if move.priority < CRITICAL_PRIORITY:
            return None
        for other in self._moving():
            if other != move.owner_key:
                return Wait(
                    ONE_CRITICAL(
                        f"pod {move.pod} waits until {other.described}, on which the system also depends, has moved"
                    )
                )
        return None

    def add_workload(self, workload: OwnerKey) -> None:
        """Counts a workload that begins to move in this round."""
        self._moving().add(workload)

    def _moving(self) -> set[OwnerKey]:
        """Returns the system workloads with an evicted pod whose successor is not ready yet."""
        if self._workloads is None:
            self._workloads = set()
            for node, annotation in self.view.moving_drains():
                if isinstance(annotation, DrainAnnotation) and annotation.emptied is None:
                    uids = {pod.uid for pod in self.pods_on_node.get(node.name, ()) if not is_gone(pod, self.view)}
                    self._workloads |= {
                        move.owner_key
                        for move in annotation.moves
                        if move.priority >= CRITICAL_PRIORITY
                        and move.uid not in uids
                        and self.workloads.newly_missing(move)
                    }
        return self._workloads
