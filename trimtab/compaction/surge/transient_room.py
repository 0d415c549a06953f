"""Keeps room for the pods that run for a while before the evictions of a wave, so that no node is added for them.

The successors of the evicted pods are placed by the plan. A surge needs more room than that: until the count is back,
the Deployment has its additional pods, and its controller may already replace the evicted pod. The room is needed only
during the wave; the next wave may use it. The same holds for the room in the ResourceQuotas of a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resource_quotas import quota_without_room
from trimtab.compaction.surge.find_surge import Surge
from trimtab.compaction.surge.reasons import NO_QUOTA, NO_ROOM
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True)
class TransientRoom:
    """The room that the additional pods of the present wave use in `capacity`."""

    model: ClusterModel
    surge_of: Mapping[int, Surge]
    """Pod → its surge."""
    capacity: FreeCapacity
    used: list[tuple[PodClass, int, PodInfo]] = field(default_factory=list)
    """(class of an additional pod, node on which it fits, the pod like which it is)."""
    full_quota: str = ""
    """The ResourceQuota, as namespace/name, because of which the last reservation failed; empty if none has."""
    peak: int = 0
    """The largest amount of the scarcer resource that the additional pods of one wave use."""
    peak_pods: int = 0
    """The largest number of additional pods in one wave."""

    def reserve(self, pods: Iterable[int]) -> bool:
        """Reserves room for the additional pods that run while these pods are evicted. Returns whether there is enough;
        if not, nothing is reserved."""
        mark, self.full_quota = len(self.used), ""
        for surge, pod in self._surges_of(pods).values():
            pod_class = self.model.successor_class_of[pod]
            for _ in range(surge.extra):
                node = self._find_node(pod_class)
                if node is None:
                    self.release(mark)
                    return False
                self.capacity.add_pod(pod_class, node)
                self.used.append((pod_class, node, self.model.pods[pod]))
        for namespace in sorted({one.namespace for _, _, one in self.used[mark:]}):
            if quota := self._quota_without_room(namespace):
                self.full_quota = f"{namespace}/{quota}"
                self.release(mark)
                return False
        self.peak_pods = max(self.peak_pods, len(self.used))
        self.peak = max(self.peak, sum(pod_class.major for pod_class, _, _ in self.used))
        return True

    def shortage_reason(self, node: str) -> Reason:
        """Returns why the last reservation failed, which was for the pods of this node."""
        if self.full_quota:
            return NO_QUOTA(
                f"ResourceQuota {self.full_quota} has no room for all the additional pods that run for a while before "
                f"node {node} is drained"
            )
        return NO_ROOM(
            f"the other nodes have no room for the additional pods that run for a while before node {node} is drained"
        )

    def end_wave(self) -> None:
        """Frees the room: the counts of all Deployments are back."""
        self.release(0)

    def notes(self, pods: Iterable[int]) -> list[str]:
        """Returns a note about the additional pods of a plan that moves these pods; none if it needs none."""
        count = sum(pod in self.surge_of for pod in pods)
        if not count:
            return []
        return [
            f"{format_count(count, 'eviction')} of the plan can be made only after a Deployment was given more pods "
            f"for a while (surge.extraPods); the plan keeps room for {format_count(self.peak_pods, 'such pod')} in a "
            "wave"
        ]

    def _surges_of(self, pods: Iterable[int]) -> dict[OwnerKey, tuple[Surge, int]]:
        surges: dict[OwnerKey, tuple[Surge, int]] = {}
        for pod in pods:
            surge = self.surge_of.get(pod)
            if surge is not None:
                surges.setdefault(surge.deployment, (surge, pod))
        return surges

    def _quota_without_room(self, namespace: str) -> str | None:
        """Returns the name of a ResourceQuota that rejects the additional pods of the namespace together, or None."""
        quotas = self.model.inventory.quotas.get(namespace, ())
        pods = [pod for _, _, pod in self.used if pod.namespace == namespace]
        requests = [one for pod in pods if not isinstance(one := pod.requirements.requests, Unreadable)]
        return quota_without_room(quotas, requests)

    def _find_node(self, pod_class: PodClass) -> int | None:
        closed = self.capacity.closed_nodes
        return next(
            (
                node
                for node in range(len(self.model.nodes))
                if not closed[node] and fits_on_node(self.capacity, pod_class, node)
            ),
            None,
        )

    def release(self, mark: int) -> None:
        """Frees the room that was reserved since `used` had `mark` entries."""
        while len(self.used) > mark:
            pod_class, node, _ = self.used.pop()
            self.capacity.remove_pod(pod_class, node)
