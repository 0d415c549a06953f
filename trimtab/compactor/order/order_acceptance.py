"""Decides whether a new DrainOrder is accepted: who ordered it, which nodes it means, and what its author may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_nodes import select_nodes
from trimtab.compaction.order.order_object import OrderObject
from trimtab.compactor.order.order_ledger import OrderLedger
from trimtab.compactor.order.order_source import OrderSource
from trimtab.kube.errors import KubeFault

LATER = (o.PAUSED, o.RIGHTS_UNKNOWN, o.SHARED_NODE, o.TOO_MANY_ORDERS)
"""The reasons for which an order is not accepted now, and may be later. All others refuse it for good."""


@dataclass(slots=True)
class OrderAcceptance:
    """Accepts or refuses new orders."""

    source: OrderSource
    ledger: OrderLedger
    rehearses: bool = False
    """Whether the process only makes dry runs."""

    def accept_order(self, order: OrderObject, view: ClusterView) -> OrderEntry | Reason:
        """Returns the stored entry of the order, or why it is not accepted. Raises ActuatorUnavailable."""
        if isinstance(order.spec, Unreadable):
            return o.UNREADABLE_ORDER(str(order.spec))
        if (reason := self.pause_reason(view)) is not None:
            return reason
        try:
            unproven = self.source.author_problem(order)
        except KubeFault as error:
            return o.RIGHTS_UNKNOWN(f"the admission policy for authors cannot be read: {error}")
        if unproven is not None:
            return unproven
        nodes = select_nodes(order.spec, view.inventory.nodes, view.pools)
        if isinstance(nodes, Reason):
            return nodes
        names = [node.name for node in nodes]
        room = self.ledger.room_reason(order, names)
        # Also without room: an order of an author without permissions must not wait beside those of others.
        problem = self.source.rights_problem(order.spec, names, namespaces_on(view, names), reads=room is None)
        if (reason := problem or room) is not None:
            return reason
        entry = OrderEntry(
            name=order.name,
            since=view.now,
            digest=order.spec.digest,
            nodes={node.name: node.uid for node in nodes},
        )
        self.ledger.store_entry(order.uid, entry)
        accepted = o.ACCEPTED(f"the drain of {format_count(len(nodes), 'node')} was accepted")
        self.source.report_event(order, accepted, is_warning=False)
        return entry

    def pause_reason(self, view: ClusterView) -> Reason | None:
        """Returns why no order is carried out now, whatever its pools say; None if orders may be."""
        if self.rehearses:
            return o.PAUSED("the compactor only rehearses (TRIMTAB_COMPACTOR_REHEARSE)")
        return o.PAUSED(view.paused) if view.paused else None


def namespaces_on(view: ClusterView, names: Iterable[str]) -> set[str]:
    """Returns the namespaces of the pods on these nodes that an order could evict."""
    members = frozenset(names)
    return {
        pod.namespace
        for pod in view.inventory.pods
        if pod.node in members and not (pod.is_daemon or pod.is_static or pod.is_finished)
    }
