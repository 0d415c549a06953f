"""What does this node cost an hour, and on whose word?

In this order: what whoever pays says of this very node (a price file), the node's own label `trimtab.dev/price`
(micro-dollars an hour), the pool's settings by instance type, the table of list prices. A list price is one region's:
a node of another region has none. Otherwise the price is not known, and a plan counts cores instead: never a wrong
zero.

Effective prices in OpenCost's CSV form: what is really paid for a node, or for a type in a region.

The columns are those of OpenCost's CSV provider (pkg/cloud/provider/csvprovider.go): EndTimestamp, InstanceID, Region,
AssetClass, InstanceIDField, InstanceType, MarketPriceHourly, Version. A row whose InstanceID is the node's, by the
field that InstanceIDField names, is that node's price; otherwise the mean of the rows of its region and type is. Rows
for volumes and GPUs are left out. Order of columns does not matter, and a header is required.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from io import StringIO
from math import isfinite
from typing import TypeVar

from trimtab.cluster.config_error import ConfigError, shown
from trimtab.cluster.node import INSTANCE_TYPE, REGION, NodeInfo
from trimtab.cluster.reason import Code, NotYet

__all__ = [
    "GUESSED",
    "LABEL",
    "NO_PRICE",
    "OTHER_REGION",
    "MachinePrice",
    "PriceFile",
    "SPOT_DISCOUNT",
    "PriceSource",
    "amount",
    "filled",
    "labelled_price",
    "listed_region",
    "price",
    "quote",
    "read",
    "spot",
    "table",
    "together",
]


T = TypeVar("T")
LABEL = "trimtab.dev/price"
NO_PRICE = Code(
    "price-unknown",
    "Nobody says what a node of this type costs.",
    "Name it in the pool's prices, give a price file (--prices), or label the node trimtab.dev/price with "
    "micro-dollars an hour.",
)
OTHER_REGION = Code(
    "price-of-another-region",
    "The list price of this machine type is known for another region only, and prices differ between regions.",
    "Name it in the pool's prices, give a price file (--prices), or label the node trimtab.dev/price with "
    "micro-dollars an hour.",
)
SPOT = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-spot",
        "kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-preemptible")  # fmt: skip
SPOT_DISCOUNT = 65
"""Percent below the list price that a spot node is taken to cost where nobody says: the middle of the usual discounts,
which change by the hour."""


class PriceSource(StrEnum):
    """On whose word a price is."""

    FILE = "file"
    LABEL = "label"
    SETTINGS = "settings"
    LIST = "list"
    """The list price of the node's own region."""
    LIST_REGION_UNKNOWN = "list-region-unknown"
    """The node says no region: the list price of the table's region, a guess."""
    SPOT_DISCOUNT = "spot-discount"
    """The list price less `SPOT_DISCOUNT`, a guess."""


GUESSED = frozenset({PriceSource.LIST_REGION_UNKNOWN, PriceSource.SPOT_DISCOUNT})


@dataclass(frozen=True, slots=True)
class MachinePrice:
    amount: int
    """Micro-dollars an hour."""
    source: PriceSource


@lru_cache(maxsize=1)
def table() -> Mapping[str, int]:
    """Instance type → micro-dollars an hour on demand. Type names of the three clouds do not overlap."""
    return {name: amount for name, (amount, _) in _listed().items()}


@lru_cache(maxsize=1)
def _listed() -> Mapping[str, tuple[int, str]]:
    """Instance type → (micro-dollars an hour on demand, the region that is the price of)."""
    found: dict[str, tuple[int, str]] = {}
    region = ""
    for line in files("trimtab.machines").joinpath("prices.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            region = line.strip("[]").split()[1]
        elif line and line[0] != "#":
            name, amount = line.split()
            found[name] = (int(amount), region)
    return found


def listed_region(kind: str) -> str:
    """The region whose list price of the instance type is known; empty where none is."""
    return _listed().get(kind, (0, ""))[1]


def price(node: NodeInfo, settings: Mapping[str, int]) -> int | NotYet:
    """Micro-dollars an hour, NotYet where that would be a spot node's: its price changes by the hour."""
    found = quote(node, settings)
    if isinstance(found, NotYet):
        return found
    return _unknown(node) if found.source is PriceSource.SPOT_DISCOUNT else found.amount


def quote(node: NodeInfo, settings: Mapping[str, int]) -> MachinePrice | NotYet:
    """The price of the node and on whose word it is; a spot node's is guessed where nobody says it.

    `settings`: instance type → micro-dollars an hour.
    """
    if node.price is not None:
        return MachinePrice(node.price, PriceSource.FILE)
    found = labelled_price(node.labels, settings)
    if found is not None:
        return found
    kind, own = node.labels.get(INSTANCE_TYPE, ""), node.labels.get(REGION, "")
    amount, region = _listed().get(kind, (0, ""))
    if amount and own and own != region:
        return NotYet(
            reason=OTHER_REGION(f"the list price of {kind} is known for {region}, node {node.name} is in {own}"),
            have=f"type {kind} in {own}, the list price of {region}", need=f"a price for it in {own}",
        )  # fmt: skip
    return _unknown(node)


def labelled_price(labels: Mapping[str, str], settings: Mapping[str, int]) -> MachinePrice | None:
    """The price of a node by its labels; None where they, the settings and the list do not tell it."""
    said = labels.get(LABEL, "")
    if said.isdecimal() and int(said) > 0:
        return MachinePrice(int(said), PriceSource.LABEL)
    kind, own = labels.get(INSTANCE_TYPE, ""), labels.get(REGION, "")
    if kind in settings:
        return MachinePrice(settings[kind], PriceSource.SETTINGS)
    amount, region = _listed().get(kind, (0, ""))
    if not amount or (own and own != region):
        return None
    if _is_spot(labels):
        return MachinePrice(amount * (100 - SPOT_DISCOUNT) // 100, PriceSource.SPOT_DISCOUNT)
    return MachinePrice(amount, PriceSource.LIST if own else PriceSource.LIST_REGION_UNKNOWN)


def _unknown(node: NodeInfo) -> NotYet:
    kind = node.labels.get(INSTANCE_TYPE, "") or "unknown"
    return NotYet(
        reason=NO_PRICE(f"nobody says what node {node.name} costs"),
        have=f"type {kind}{' on spot' if spot(node) else ''}", need="a price for it",
    )  # fmt: skip


def filled(prices: Mapping[T, int | NotYet], cores: Mapping[T, int]) -> dict[T, int]:
    """What is not known is taken for as dear as the others by its cores; empty when no price is known at all."""
    known = {name: found for name, found in prices.items() if isinstance(found, int)}
    priced, paid = sum(cores[name] for name in known), sum(known.values())
    return {name: known.get(name, cores[name] * paid // priced) for name in prices} if priced else {}


def amount(found: MachinePrice | NotYet) -> int | NotYet:
    """The bare number of a quote."""
    return found if isinstance(found, NotYet) else found.amount


def spot(node: NodeInfo) -> bool:
    """Is it a machine that may be taken away, at a price of the moment?"""
    return _is_spot(node.labels)


def _is_spot(labels: Mapping[str, str]) -> bool:
    return any(labels.get(key, "").lower() in ("spot", "true") for key in SPOT)


NEEDED = ("InstanceID", "AssetClass", "InstanceIDField", "InstanceType", "MarketPriceHourly")
MAX_PRICE = 100_000
"""Dollars an hour."""
_AWS = re.compile(r"aws:///[^/]+/([^/]+)")
_COMMENT = "#"

Key = tuple[str, str, str]
"""(field, region in lower case or empty, id in lower case)."""


@dataclass(frozen=True, slots=True)
class PriceFile:
    """What a price file says, in micro-dollars an hour."""

    nodes: Mapping[Key, int]
    types: Mapping[tuple[str, str], int]
    """(region in lower case, instance type) → the mean of its rows."""

    def price(self, node: NodeInfo) -> int | None:
        """Of this node; None where the file says nothing of it. A type's price counts in its own region only."""
        region = node.labels.get(REGION, "")
        for field in {field for field, _, _ in self.nodes}:
            said = _id(node, field)
            for where in (region.lower(), "") if said else ():
                if (found := self.nodes.get((field, where, said.lower()))) is not None:
                    return found
        return self.types.get((region.lower(), node.labels.get(INSTANCE_TYPE, "")))


def _id(node: NodeInfo, field: str) -> str:
    """What the node has in the field that OpenCost's InstanceIDField names; empty where it has none."""
    root, _, rest = field.partition(".")
    part, _, key = rest.partition(".")
    if (root, rest) == ("spec", "providerID"):
        instance = _AWS.match(node.provider_id)
        return instance[1] if instance else node.provider_id.removeprefix("azure://")
    if root != "metadata":
        return ""
    if part == "name":
        return node.name
    return {"labels": node.labels, "annotations": node.annotations}.get(part, {}).get(key, "")


def read(name: str, text: str) -> tuple[PriceFile, list[ConfigError]]:
    """The price file of this name, and every row of it that cannot be understood (those are in no price)."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_COMMENT)]
    expected = f"OpenCost's columns {', '.join(NEEDED)}"
    try:
        rows = list(csv.DictReader(StringIO("\n".join(lines)), restval=""))
    except csv.Error as error:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got=str(error))]
    missing = [column for column in NEEDED if column not in (rows[0] if rows else ())]
    if missing:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got=f"no {', '.join(missing)}")]
    nodes: dict[Key, int] = {}
    of_type: dict[tuple[str, str], list[int]] = {}
    mistakes: list[ConfigError] = []
    for row in rows:
        if row["AssetClass"] not in ("node", ""):
            continue
        amount = _amount(row["MarketPriceHourly"])
        if amount is None:
            wanted = f"dollars an hour above 0, below {MAX_PRICE}, under MarketPriceHourly"
            got = f"{shown(row['MarketPriceHourly'])} for {row['InstanceID'] or row['InstanceType']}"
            mistakes.append(ConfigError(file=name, expected=wanted, got=got))
            continue
        region = row.get("Region", "")
        if row["InstanceID"]:
            nodes[row["InstanceIDField"], region.lower(), row["InstanceID"].lower()] = amount
        if row["InstanceType"]:
            of_type.setdefault((region.lower(), row["InstanceType"]), []).append(amount)
    return PriceFile(nodes, {key: sum(found) // len(found) for key, found in of_type.items()}), mistakes


def _amount(text: str) -> int | None:
    """Whole micro-dollars an hour; None for what is no price. A free node is none: it would be wrong everywhere."""
    try:
        dollars = float(text)
    except ValueError:
        return None
    amount = round(dollars * 1_000_000) if isfinite(dollars) and 0 < dollars < MAX_PRICE else 0
    return amount or None


def together(files: Iterable[PriceFile]) -> PriceFile:
    """Several files as one; of what two say, the later counts."""
    nodes: dict[Key, int] = {}
    types: dict[tuple[str, str], int] = {}
    for found in files:
        nodes |= found.nodes
        types |= found.types
    return PriceFile(nodes, types)
