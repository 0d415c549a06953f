"""What is saved, in words that mean something to whoever pays: dollars a month, else cores."""

from collections import Counter
from collections.abc import Sequence

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.node import Node
from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.command.why import Part
from trimtab.machines.prices import filled, price

HOURS = 730
"""In a month, as clouds count."""
_SCALES = {
    "micro-dollars an hour": (HOURS / 1_000_000, "dollars a month"),
    "millicores": (1 / 1000, "cores"),
    "nodes": (1, "nodes"),
}
_SHARES = (1 / 1_000_000, "average nodes")


class Saving(Part, frozen=True, kw_only=True):
    amount: float
    unit: str
    """`dollars a month`, `cores` where no price is known, `nodes`, or `average nodes` where goals differ."""


def saving(amount: int, unit: str) -> Saving:
    """Of a plan's own number and unit."""
    factor, name = _SCALES.get(unit, _SHARES)
    return Saving(amount=round(amount * factor, 2), unit=name)


def words(found: Saving) -> str:
    """ "$1,234 a month", "5,390 cores"."""
    if found.unit == "dollars a month":
        return f"${found.amount:,.0f} a month" if found.amount >= 100 else f"${found.amount:,.2f} a month"
    number = f"{found.amount:,.1f}".removesuffix(".0")
    return f"{number} {found.unit.removesuffix('s') if found.amount == 1 else found.unit}"


def unpriced(inventory: Inventory, pools: Sequence[Pool]) -> list[str]:
    """A note where money was asked for and not every price is known: which types lack one."""
    prices = {
        node.name: _price(node, pools) for node in inventory.nodes
        if any(pool.has(node) and pool.goal is Goal.COST for pool in pools)
    }  # fmt: skip
    missing = Counter(found.have for found in prices.values() if isinstance(found, NotYet))
    if not missing:
        return []
    types = ", ".join(f"{name}: {count}" for name, count in sorted(missing.items())[:MOST_TYPES])
    more = f" and {len(missing) - MOST_TYPES} more types" if len(missing) > MOST_TYPES else ""
    none = missing.total() == len(prices)
    how = (
        "what is saved is counted in cores" if none else
        "each is taken for as dear as the others by its cores, and so far what is saved is an estimate"
    )  # fmt: skip
    return [f"the price of {missing.total()} of {len(inventory.nodes)} nodes is not known ({types}{more}): {how}"]


MOST_TYPES = 5


def cost(inventory: Inventory, pools: Sequence[Pool]) -> tuple[dict[str, int], str]:
    """(node → what it costs, the unit): micro-dollars an hour, or millicores where no price is known at all."""
    cores = {node.name: _cores(node) for node in inventory.nodes}
    money = filled({node.name: _price(node, pools) for node in inventory.nodes}, cores)
    return (money, "micro-dollars an hour") if money else (cores, "millicores")


def _cores(node: Node) -> int:
    return 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get("cpu", 0)


def _price(node: Node, pools: Sequence[Pool]) -> int | NotYet:
    pool = next((pool for pool in pools if pool.has(node)), None)
    return price(node, pool.prices if pool else {})
