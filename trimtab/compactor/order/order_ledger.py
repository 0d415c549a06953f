"""The entries of accepted DrainOrders, in the state of the pool `ORDERS`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace as change

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Reason
from trimtab.compaction.drain.order_entry import ORDERS, OrderEntry, PolicySighting
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_object import OrderObject
from trimtab.compactor.pool_state_store import PoolStates

MAX_ORDERS, MAX_NODES = 50, 2000
"""The largest numbers of orders, and of their nodes together, that are accepted and not deleted. The entries of all
orders are stored in one object."""


@dataclass(slots=True)
class OrderLedger:
    """Reads and stores the entries."""

    pool_states: PoolStates

    @property
    def entries(self) -> Mapping[str, OrderEntry]:
        """Uid → entry, for the accepted orders that are not released yet."""
        return self.pool_states.state_of(ORDERS).orders

    def store_entry(self, uid: str, entry: OrderEntry | None) -> None:
        """Stores the entry of an order, or removes it, before anything else is written. Raises ActuatorUnavailable."""
        state = self.pool_states.state_of(ORDERS)
        if state.orders.get(uid) == entry:
            return
        orders = {name: one for name, one in state.orders.items() if name != uid}
        if entry is not None:
            orders[uid] = entry
        self.pool_states.set_state(ORDERS, change(state, orders=orders))
        self.pool_states.save_states((ORDERS,))

    @property
    def policy_sighting(self) -> PolicySighting | None:
        """The generations of the admission policy since which authors may be certain; None if there are none."""
        return self.pool_states.state_of(ORDERS).author_policy

    def store_sighting(self, sighting: PolicySighting | None) -> None:
        """Stores the generations, before an order is accepted because of them. Raises ActuatorUnavailable."""
        state = self.pool_states.state_of(ORDERS)
        if state.author_policy != sighting:
            self.pool_states.set_state(ORDERS, change(state, author_policy=sighting))
            self.pool_states.save_states((ORDERS,))

    def save_changes(self) -> None:
        """Saves the entries again if the last save has failed: no entry is acted on before it is stored. Raises
        ActuatorUnavailable."""
        if ORDERS in self.pool_states.states:
            self.pool_states.save_states((ORDERS,))

    def ordered_nodes(self) -> frozenset[str]:
        """Returns the nodes of orders that are carried out."""
        return frozenset(name for entry in self.entries.values() if not entry.ended for name in entry.nodes)

    def room_reason(self, order: OrderObject, names: Iterable[str], cordoning: Container[str]) -> Reason | None:
        """Returns why an order of these nodes is not accepted beside the others; None if it may be.

        cordoning: the uids of the orders for which a node is cordoned. An order that has ended and has released its
        nodes, or has cordoned none, shares them."""
        members = frozenset(names)
        for uid, entry in self.entries.items():
            has_nodes = not entry.ended or entry.gives_back or uid in cordoning
            if uid != order.uid and has_nodes and (shared := sorted(members & entry.nodes.keys())):
                state = "has ended and was not deleted" if entry.ended else "is carried out"
                return o.SHARED_NODE(f"node {shared[0]} belongs to DrainOrder {entry.name}, which {state}")
        total = sum(len(entry.nodes) for entry in self.entries.values())
        if len(self.entries) >= MAX_ORDERS or total + len(members) > MAX_NODES:
            return o.TOO_MANY_ORDERS(
                f"there are {format_count(len(self.entries), 'order')} with {format_count(total, 'node')} together "
                "that were not deleted"
            )
        return None
