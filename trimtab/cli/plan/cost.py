"""Which price counts for each node, on whose word, and how much of a saving is a guess?

What is saved, in words that mean something to whoever pays: dollars a month, else cores.
"""

from collections import Counter
from collections.abc import Sequence

from trimtab.cli.output import ReportPart
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import INSTANCE_TYPE, NodeInfo
from trimtab.cluster.pool import Goal, Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.compaction.plan_types import Plan
from trimtab.machines.prices import (
    GUESSED,
    LABEL,
    SPOT_DISCOUNT,
    MachinePrice,
    PriceSource,
    amount,
    filled,
    listed_region,
    quote,
)

MOST_TYPES = 5


class PriceReport(ReportPart, frozen=True, kw_only=True):
    """Nodes whose price is on the same word."""

    source: str
    """`file`, `label`, `settings`, `list`, `list-region-unknown`, `spot-discount`, or the code of why it is unknown."""
    nodes: int
    is_guessed: bool
    text: str


_SAID = {
    PriceSource.FILE: "by the price file",
    PriceSource.LABEL: f"by the label {LABEL}",
    PriceSource.SETTINGS: "by the pool's prices",
}


def prices(inventory: Inventory, pools: Sequence[Pool]) -> list[PriceReport]:
    """By source, most nodes first; nodes outside of pools are not asked."""
    found: Counter[tuple[str, bool, str]] = Counter()
    index = PoolIndex(pools)
    for node in inventory.nodes:
        if index.of(node):
            found[_said(node, quoted(node, index))] += 1
    return [
        PriceReport(source=source, nodes=count, is_guessed=guessed, text=text)
        for (source, guessed, text), count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    ]


def _said(node: NodeInfo, found: MachinePrice | NotYet) -> tuple[str, bool, str]:
    if isinstance(found, NotYet):
        code = found.reason.code.name
        return code, True, "without a price of their own"
    region = listed_region(node.labels.get(INSTANCE_TYPE, ""))
    text = (
        _SAID.get(found.source)
        or {
            PriceSource.LIST: f"at the list price of {region}",
            PriceSource.LIST_REGION_UNKNOWN: f"at the list price of {region}, a guess: they name no region",
            PriceSource.SPOT_DISCOUNT: f"on spot, a guess: {SPOT_DISCOUNT} % below the list price of {region}",
        }[found.source]
    )
    return found.source.value, found.source in GUESSED, text


def guessed(inventory: Inventory, pools: Sequence[Pool], plan: Plan) -> int:
    """How much of what the plan saves rests on guessed prices, in its unit; 0 where it does not count money."""
    if plan.unit != "micro-dollars an hour":
        return 0
    nodes, index = {node.name: node for node in inventory.nodes}, PoolIndex(pools)
    return sum(step.saves for step in plan.steps if _is_guess(quoted(nodes[step.node], index)))


def _is_guess(found: MachinePrice | NotYet) -> bool:
    return isinstance(found, NotYet) or found.source in GUESSED


def unpriced(inventory: Inventory, pools: Sequence[Pool]) -> list[str]:
    """A note where money was asked for and not every price is known: which types lack one."""
    index = PoolIndex(pools)
    found = {
        node.name: quoted(node, index) for node in inventory.nodes
        if any(pool.goal is Goal.COST for pool in index.of(node))
    }  # fmt: skip
    missing = Counter(price.have for price in found.values() if isinstance(price, NotYet))
    if not missing:
        return []
    types = ", ".join(f"{name}: {count}" for name, count in sorted(missing.items())[:MOST_TYPES])
    more = f" and {len(missing) - MOST_TYPES} more types" if len(missing) > MOST_TYPES else ""
    none = missing.total() == len(found)
    how = (
        "what is saved is counted in cores" if none else
        "each is taken for as dear as the others by its cores, and so far what is saved is an estimate"
    )  # fmt: skip
    return [f"the price of {missing.total()} of {len(inventory.nodes)} nodes is not known ({types}{more}): {how}"]


def cost(inventory: Inventory, pools: Sequence[Pool]) -> tuple[dict[str, int], str]:
    """(node → what it costs, the unit): micro-dollars an hour, or millicores where no price is known at all."""
    cores = {node.name: _cores(node) for node in inventory.nodes}
    index = PoolIndex(pools)
    money = filled({node.name: amount(quoted(node, index)) for node in inventory.nodes}, cores)
    return (money, "micro-dollars an hour") if money else (cores, "millicores")


def _cores(node: NodeInfo) -> int:
    return 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get("cpu", 0)


def quoted(node: NodeInfo, index: PoolIndex) -> MachinePrice | NotYet:
    """The price of the node, by the settings of its pool."""
    pool = index.first(node)
    return quote(node, pool.prices if pool else {})


HOURS = 730
"""In a month, as clouds count."""
_SCALES = {
    "micro-dollars an hour": (HOURS / 1_000_000, "dollars a month"),
    "millicores": (1 / 1000, "cores"),
    "nodes": (1, "nodes"),
}
_SHARES = (1 / 1_000_000, "average nodes")


class Saving(ReportPart, frozen=True, kw_only=True):
    amount: float
    unit: str
    """`dollars a month`, `cores` where no price is known, `nodes`, or `average nodes` where goals differ."""


def saving(amount: int, unit: str) -> Saving:
    """Of a plan's own number and unit."""
    factor, name = _SCALES.get(unit, _SHARES)
    return Saving(amount=round(amount * factor, 2), unit=name)


def counted(count: int, name: str) -> str:
    """ "1 node", "1,234 nodes"."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def words(found: Saving) -> str:
    """ "$1,234 a month", "5,390 cores"."""
    if found.unit == "dollars a month":
        return f"${found.amount:,.0f} a month" if found.amount >= 100 else f"${found.amount:,.2f} a month"
    number = f"{found.amount:,.1f}".removesuffix(".0")
    return f"{number} {found.unit.removesuffix('s') if found.amount == 1 else found.unit}"
