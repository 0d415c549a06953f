"""What is saved, in words that mean something to whoever pays: dollars a month, else cores."""

from collections.abc import Sequence

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.node import Node
from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.command.why import Part
from trimtab.machines.prices import price

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
    """`dollars a month`, `cores` where not every price is known, `nodes`, or `average nodes` where goals differ."""


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
    """A note where money was asked for and not every price is known."""
    missing = []
    for node in inventory.nodes:
        pool = next((pool for pool in pools if pool.has(node)), None)
        if pool is not None and pool.goal is Goal.COST and isinstance(found := price(node, pool.prices), NotYet):
            missing.append(found)
    if not missing:
        return []
    types = ", ".join(sorted({found.have for found in missing})[:3])
    return [f"the price of {len(missing)} of {len(inventory.nodes)} nodes is not known ({types}): "
            "what is saved is counted in cores"]  # fmt: skip


def cost(nodes: Sequence[Node], pools: Sequence[Pool], *, money: bool) -> Saving:
    """Of all these nodes: dollars a month, or cores."""
    if not money:
        have = [node.allocatable for node in nodes]
        return saving(sum(0 if isinstance(h, Unreadable) else h.get("cpu", 0) for h in have), "millicores")
    return saving(
        sum(found for node in nodes if isinstance(found := _price(node, pools), int)), "micro-dollars an hour"
    )


def priced(nodes: Sequence[Node], pools: Sequence[Pool]) -> bool:
    """Is every price known?"""
    return all(isinstance(_price(node, pools), int) for node in nodes)


def _price(node: Node, pools: Sequence[Pool]) -> int | NotYet:
    pool = next((pool for pool in pools if pool.has(node)), None)
    return price(node, pool.prices if pool else {})
