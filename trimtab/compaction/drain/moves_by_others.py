"""Recognises pods that something other than our drains has just moved, so that they are not moved again at once.

A node may be emptied by a cluster autoscaler, by Karpenter, with `kubectl drain`, in an upgrade, or because its machine
fails. Each time the node takes no more pods or disappears, its pods end, and pods of the same owners appear on other
nodes. The observations are not stored: after a restart, only later moves are recognised.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.cluster_view import ClusterView


@dataclass(frozen=True, slots=True)
class Departure:
    """The pods of one owner that leave nodes which others empty."""

    since: Seconds
    """A time before which none of the pods was replaced."""
    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class MovesByOthers:
    """What was observed until now."""

    moved: Mapping[str, Seconds] = field(default_factory=dict)
    """Pod (namespace/name) → creation time, for pods that replaced one of those that left."""
    departures: Mapping[OwnerKey, Departure] = field(default_factory=dict)
    previous: Inventory | None = None
    previous_at: Seconds = 0

    def observe(self, view: ClusterView, rest: Seconds) -> "MovesByOthers":
        """Returns what is known after this view. Whatever is older than `rest` seconds is forgotten."""
        departures = {
            owner: departure for owner, departure in self.departures.items() if view.now - departure.since < rest
        }
        for pod in self._leaving_pods(view):
            if pod.owner is not None and not pod.is_daemon:
                departure = departures.get(pod.owner, Departure(self.previous_at, frozenset()))
                departures[pod.owner] = Departure(departure.since, departure.uids | {pod.uid})
        moved = {pod: created for pod, created in self.moved.items() if created > view.now - rest}
        if departures:
            moved |= _find_successors(view, departures)
        return MovesByOthers(moved, departures, view.inventory, view.now)

    def _leaving_pods(self, view: ClusterView) -> Iterator[PodInfo]:
        """Yields the pods that were on a node in the previous view and that leave it because others empty the node."""
        if self.previous is None:
            return
        nodes = {node.name: node for node in view.inventory.nodes}
        ends = {name for name, node in nodes.items() if node.removal_taint is not None}
        ends |= {node.name for node in self.previous.nodes if node.name not in nodes}
        cordoned = {name for name, node in nodes.items() if node.is_cordoned and name not in view.annotations.ours}
        if not ends and not cordoned:
            return
        present = view.inventory.pod_index.by_uid
        for pod in self.previous.pods:
            # From a node that is only cordoned, pods need not go.
            if pod.node in ends or (pod.node in cordoned and not _stays(present.get(pod.uid))):
                yield pod


def _stays(pod: PodInfo | None) -> bool:
    return pod is not None and pod.deletion_requested_at is None


def _find_successors(view: ClusterView, departures: Mapping[OwnerKey, Departure]) -> dict[str, Seconds]:
    """Returns pod → creation time of the oldest pods that appeared since their owner's pods left, at most one for each
    of those that are gone or are stopping."""
    young: dict[OwnerKey, list[tuple[Seconds, str]]] = {}
    remaining: dict[OwnerKey, int] = {}
    for owner, departure in departures.items():
        for pod in view.inventory.pod_index.by_owner.get(owner, ()):
            if pod.uid in departure.uids:
                remaining[owner] = remaining.get(owner, 0) + (pod.deletion_requested_at is None)
            elif pod.created is not None and pod.created >= departure.since:
                young.setdefault(owner, []).append((min(pod.created, view.now), pod.key))
    return {
        pod: created
        for owner, pods in young.items()
        for created, pod in sorted(pods)[: len(departures[owner].uids) - remaining.get(owner, 0)]
    }
