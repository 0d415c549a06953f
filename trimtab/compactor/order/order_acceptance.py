"""Decides whether a new DrainOrder is accepted: who ordered it, which nodes it means, and what its author may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.order_entry import MAX_NAMESPACES, OrderEntry
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_nodes import select_nodes
from trimtab.compaction.order.order_object import OrderObject
from trimtab.compactor.order.author_witness import AuthorWitness
from trimtab.compactor.order.order_ledger import OrderLedger
from trimtab.compactor.order.order_source import OrderSource

LATER = (o.PAUSED, o.RIGHTS_UNKNOWN, o.SHARED_NODE, o.TOO_MANY_ORDERS)
"""The reasons for which an order is not accepted now, and may be later. All others refuse it for good."""
MAX_AGE_SECONDS, MAX_AGE_TEXT = 7 * 86_400, "7 days"
"""The age of an order from which its author is not believed any more. The order names groups in which the author was
when it was created, and nothing says whether that is still so."""


@dataclass(slots=True)
class OrderAcceptance:
    """Accepts or refuses new orders."""

    source: OrderSource
    ledger: OrderLedger
    witness: AuthorWitness
    rehearses: bool = False
    """Whether the process only makes dry runs."""

    def accept_order(self, order: OrderObject, view: ClusterView) -> OrderEntry | Reason:
        """Returns the stored entry of the order, or why it is not accepted. Raises ActuatorUnavailable."""
        if isinstance(order.spec, Unreadable):
            return o.UNREADABLE_ORDER(str(order.spec))
        if (reason := self.pause_reason(view)) is not None:
            return reason
        if is_too_old(order, view.now):
            return o.TOO_OLD(f"the order is older than {MAX_AGE_TEXT}")
        if (unproven := self.witness.author_reason(order)) is not None:
            return unproven
        # Before the nodes are looked for: whether a node or a label exists is nothing that an order tells a user.
        if (blind := self.source.sight_problem(order.spec)) is not None:
            return blind
        nodes = select_nodes(order.spec, view.inventory.nodes, view.pools)
        if isinstance(nodes, Reason):
            return nodes
        names = [node.name for node in nodes]
        notes = view.annotations.ordered.values()
        cordoning = frozenset(note.order.order for note in notes if note.order is not None)
        room = self.ledger.room_reason(order, names, cordoning)
        namespaces = namespaces_on(view, names)
        # Also without room: an order of an author without permissions must not wait beside those of others.
        problem = self.source.rights_problem(order.spec, names, namespaces, reads=room is None)
        if (reason := problem or room) is not None:
            return reason
        entry = OrderEntry(
            name=order.name,
            since=view.now,
            digest=order.spec.digest,
            nodes={node.name: node.uid for node in nodes},
            namespaces=tuple(sorted(namespaces)[:MAX_NAMESPACES]),
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


def is_too_old(order: OrderObject, now: Seconds) -> bool:
    """Returns whether the order is so old that its author is not believed any more."""
    return now - order.created > MAX_AGE_SECONDS


def namespaces_on(view: ClusterView, names: Iterable[str]) -> set[str]:
    """Returns the namespaces of the pods on these nodes that an order could evict."""
    return {pod.namespace for pod in evictable_pods(view, names)}


def evictable_pods(view: ClusterView, names: Iterable[str]) -> list[PodInfo]:
    """Returns the pods on these nodes that an order could evict."""
    members = frozenset(names)
    return [
        pod
        for pod in view.inventory.pods
        if pod.node in members and not (pod.is_daemon or pod.is_static or pod.is_finished)
    ]
