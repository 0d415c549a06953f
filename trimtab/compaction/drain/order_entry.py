"""What the compactor's stored state knows of a DrainOrder: the second witness, beside the signed annotation on a node.

The entry is written before the first node is cordoned. A node is treated as cordoned for an order only if both its
annotation and an entry say so. The entries of all orders stand in one state, that of the pool `ORDERS`.
"""

from typing import Annotated

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.timestamps import Seconds

ORDERS = "drain-orders.trimtab.dev"
"""The name of the state that has the orders. It also counts the evictions from nodes that belong to no pool."""


MAX_NAMESPACES = 64
"""The largest number of namespaces that an entry names."""


class PolicySighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """Generations of the admission policy that ties the authors of DrainOrders to users, and since when it is in force
    in them."""

    policy: str
    """The uid and the generation of the policy."""
    binding: str
    """The uid and the generation of its binding."""
    since: Seconds = 0
    """The last time at which an order was created that may be older than these generations, by the clock of the API
    server."""


class OrderEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One DrainOrder that the compactor has accepted."""

    name: str
    """The name of the DrainOrder."""
    since: Seconds
    """When the order was accepted."""
    digest: str
    """A hash of the order's spec. An order whose spec has changed is not carried out."""
    nodes: dict[str, str]
    """Node → its uid when the order was accepted. A selector or pool is resolved once."""
    namespaces: tuple[str, ...] = ()
    """The first `MAX_NAMESPACES` namespaces, in alphabetical order, whose pods the author was permitted to evict when
    the order was accepted."""
    recorded: tuple[str, ...] = ()
    """The nodes on which the annotation of the order was observed."""
    emptied: tuple[str, ...] = ()
    """The nodes whose annotation said that the order emptied them."""
    skipped: tuple[str, ...] = ()
    """The nodes that the order has left out, because they could not be emptied when it began."""
    stop: str = ""
    """Why nothing new is begun any more, as the code of a reason: what was evicted is waited for, and the order ends
    then. Empty while the order goes on."""
    stop_why: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    """The sentence of that reason."""
    ended: str = ""
    """Why the order has ended, as the code of a reason; empty while it is carried out."""
    ended_why: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    """The sentence of that reason."""
    succeeded: bool = False
    """Whether the order has ended because all its nodes are empty or gone."""
    gives_back: bool = False
    """Whether the order has ended and its nodes are released, although the DrainOrder still exists."""

    def end(self, code: str, why: str, *, succeeded: bool = False, gives_back: bool = False) -> "OrderEntry":
        """Returns the entry of the ended order."""
        return change(self, ended=code, ended_why=why[:2000], succeeded=succeeded, gives_back=gives_back)
