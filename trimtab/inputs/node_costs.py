"""What each node costs, by its price or, if no price is known at all, by its cores. How it is written in a report is in
`trimtab.cli.reports.node_costs`."""

from collections.abc import Sequence

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.machines.prices import MachinePrice, amount_of, quote_price, with_estimates


def compute_node_costs(inventory: Inventory, pools: Sequence[Pool]) -> tuple[dict[str, int], str]:
    """Returns the cost of each node that is a machine, and the unit: micro-dollars an hour, or millicores if no price
    is known at all."""
    cores = {
        node.name: 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get("cpu", 0)
        for node in inventory.machines
    }
    index = PoolIndex(pools)
    money = with_estimates({node.name: amount_of(quote_node(node, index)) for node in inventory.machines}, cores)
    return (money, "micro-dollars an hour") if money else (cores, "millicores")


def quote_node(node: NodeInfo, index: PoolIndex) -> MachinePrice | NotYet:
    """Returns the price of the node, by the price settings of its pool if there are any; NotYet if the price is not
    known."""
    pool = index.first_pool_of(node)
    return quote_price(node, pool.prices if pool else {})
