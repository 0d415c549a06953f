"""One drain in progress, as the cluster shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.drain.pool_state import PoolState


@dataclass(frozen=True, slots=True)
class DrainInProgress:
    """One drain: its node and its authentic annotation, in the view of the present round."""

    view: ClusterView
    node: NodeInfo
    annotation: DrainAnnotation

    @property
    def name(self) -> str:
        """The name of the drain."""
        return self.annotation.drain

    @property
    def pool(self) -> str:
        """The name of the pool."""
        return self.annotation.pool

    @property
    def version(self) -> str:
        """The resourceVersion of the node in the view."""
        return self.view.versions[self.node.name]

    @property
    def is_deleted(self) -> bool:
        """Whether another client is deleting the node."""
        return is_deleted(self.node)

    @property
    def is_emptying(self) -> bool:
        """Whether the node is not empty yet."""
        return self.annotation.emptied is None

    @property
    def is_cleared(self) -> bool:
        """Whether every pod of the drain has left the node, even if successors are not ready yet."""
        if not self.is_emptying:
            return True
        leaving = {move.uid for move in self.annotation.moves}
        pods = self.view.inventory.pod_index.by_uid
        return all(uid not in pods or pods[uid].is_finished for uid in leaving)

    def surges_in(self, state: PoolState) -> tuple[str, ...]:
        """Returns the Deployments to which this drain has given a second replica, or was about to give one."""
        return tuple(deployment for deployment, drain in state.surged.items() if drain == self.name)

    def with_annotation(self, annotation: DrainAnnotation) -> DrainInProgress:
        """Returns the same drain with another annotation."""
        return self if annotation is self.annotation else replace(self, annotation=annotation)


def is_deleted(node: NodeInfo) -> bool:
    """Returns whether another client is deleting the node."""
    return node.removal_taint is not None


def drains_in(view: ClusterView) -> list[DrainInProgress]:
    """Returns the drains with a readable annotation; the one that began first comes first."""
    return [
        DrainInProgress(view, node, annotation)
        for node, annotation in view.annotated_nodes()
        if isinstance(annotation, DrainAnnotation)
    ]


def drains_of_orders(entries: Mapping[str, OrderEntry], view: ClusterView) -> dict[str, DrainAnnotation]:
    """Returns node → annotation, for the nodes that DrainOrders in progress still have to empty. They count towards the
    limits of their pools.

    entries: uid of a DrainOrder → what is known of it."""
    return {
        node: annotation
        for node, annotation in view.annotations.ordered.items()
        if annotation.emptied is None
        and annotation.order is not None
        and (entry := entries.get(annotation.order.order)) is not None
        and not entry.ended
    }


def count_evictions(name: str, view: ClusterView) -> int:
    """Returns the number of pods on this node that are evicted when the autoscaler deletes the node."""
    pods = (pod for pod in view.inventory.pods if pod.node == name and not pod.is_finished)
    return sum(not (pod.is_daemon or pod.is_static) for pod in pods)
