"""Records what removed nodes have saved, by day and namespace, and formats amounts of savings.

A node's saving is divided among namespaces by the number of their pods that were moved from the node. Days are UTC
dates.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from trimtab.cluster.timestamps import Seconds, format_timestamp

MAX_DAYS = 92
"""The number of days that are stored: a quarter of a year."""
MAX_NAMESPACES = 20
"""The number of namespaces per day that are stored by name: those with the largest shares. The others are added up,
because a state has to fit into a ConfigMap."""
OTHER_NAMESPACES = ""
"""The name under which the other namespaces are added up; also used for a node without pods. No namespace has this
name."""

HOURS_PER_MONTH = 730
"""The hours of a month, as cloud providers' price pages count them: 365 * 24 / 12."""
MONEY = "micro-dollars an hour"
_SCALES = {
    MONEY: (HOURS_PER_MONTH / 1_000_000, "dollars a month"),
    "millicores": (1 / 1000, "cores"),
    "nodes": (1, "nodes"),
}
_SHARES = (1 / 1_000_000, "average nodes")


class DaySavings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The nodes of a pool that were removed on one day, and what that saves."""

    nodes: int
    at: Seconds
    """The mean time of the removals of this day, in seconds since 1970."""
    worth: dict[str, int] = {}
    """Unit → the total savings of the nodes removed on this day."""
    namespaces: dict[str, dict[str, int]] = {}
    """Unit → namespace → its share of the savings. The shares of a unit add up to the total."""


def add_saving(
    days: Mapping[str, DaySavings], now: Seconds, saving: tuple[str, int], pods: Mapping[str, int]
) -> dict[str, DaySavings]:
    """Returns the days with a node added that was removed now. `saving` is (unit, amount); `pods` is namespace → number
    of moved pods."""
    unit, amount = saving
    name = format_timestamp(now)[:10]
    day = days.get(name, DaySavings(nodes=0, at=now))
    worth, namespaces = day.worth, day.namespaces
    if unit:
        worth = {**worth, unit: worth.get(unit, 0) + amount}
        shares = add_amounts((namespaces.get(unit, {}), divide_by_pods(amount, pods)))
        namespaces = {**namespaces, unit: _keep_largest(shares)}
    at = (day.at * day.nodes + now) // (day.nodes + 1)
    added = {**days, name: DaySavings(nodes=day.nodes + 1, at=at, worth=worth, namespaces=namespaces)}
    return {name: added[name] for name in sorted(added)[-MAX_DAYS:]}


def divide_by_pods(amount: int, pods: Mapping[str, int]) -> dict[str, int]:
    """Returns namespace → its share of the amount, in proportion to its pods. The shares add up to exactly the
    amount."""
    total = sum(pods.values())
    if total <= 0:
        return {OTHER_NAMESPACES: amount}
    shares, given, counted = {}, 0, 0
    for namespace in sorted(pods):
        counted += pods[namespace]
        # Each share is the difference of two roundings of a running sum, so no remainder is left.
        shares[namespace] = amount * counted // total - given
        given += shares[namespace]
    return shares


def add_amounts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns name → the sum of its amounts."""
    sums: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums.get(name, 0) + amount
    return sums


def _keep_largest(shares: Mapping[str, int]) -> dict[str, int]:
    named = sorted((name for name in shares if name != OTHER_NAMESPACES), key=lambda name: (-shares[name], name))
    kept = {name: shares[name] for name in named[:MAX_NAMESPACES]}
    rest = sum(shares.values()) - sum(kept.values())
    return {**kept, OTHER_NAMESPACES: rest} if rest else kept


def convert_amount(amount: float, unit: str) -> tuple[float, str]:
    """Returns an amount of a plan in a unit for people: dollars a month, cores, nodes or average nodes."""
    factor, name = _SCALES.get(unit, _SHARES)
    return round(amount * factor, 2), name


def format_amount(amount: float, unit: str) -> str:
    """Returns a converted amount as text, as in "$1,234 a month" and "5,390 cores"."""
    if unit == "dollars a month":
        return f"${amount:,.0f} a month" if amount >= 100 else f"${amount:,.2f} a month"
    number = f"{amount:,.1f}".removesuffix(".0")
    return f"{number} {unit.removesuffix('s') if amount == 1 else unit}"


class AmountInUnit(Protocol):
    """A converted amount, in any report."""

    @property
    def amount(self) -> float: ...

    @property
    def unit(self) -> str: ...


def format_amounts(amounts: Iterable[AmountInUnit]) -> str:
    """Returns the amounts as text, as in "$219 a month, 4 cores"; "–" if there are none."""
    return ", ".join(format_amount(each.amount, each.unit) for each in amounts) or "–"


def format_savings(nodes: int, worth: Mapping[str, int]) -> str:
    """Returns the savings of removed nodes as text, as in "3 nodes, $12.40 a month"."""
    amounts = [format_amount(*convert_amount(amount, unit)) for unit, amount in sorted(worth.items()) if amount]
    return ", ".join((f"{nodes:,} node{'' if nodes == 1 else 's'}", *amounts))
