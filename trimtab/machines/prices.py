"""The hourly price of a node, and the source of the price.

The first of these sources that has a price counts: a price file that names this node, the node's own label
`trimtab.dev/price` (micro-dollars an hour), the pool's settings for the instance type, the list prices. List prices are
known for one region of each cloud. In every other region of the cloud they count as well, as a guess: prices of regions
differ by tens of percent, but those of two types mostly by the same factor. A spot machine has a guessed discount. All
verbs have these prices. If no source has a price, the price is unknown, never zero, and a plan counts cores instead.

A price file has effective prices in OpenCost's CSV form: what is paid for a node, or for a type in a region. The
columns are those of OpenCost's CSV provider (pkg/cloud/provider/csvprovider.go): EndTimestamp, InstanceID, Region,
AssetClass, InstanceIDField, InstanceType, MarketPriceHourly, Version. A row gives the price of a node if its InstanceID
is that of the node, according to the field that InstanceIDField names; otherwise the mean of the rows for the node's
region and type counts. Rows for volumes and GPUs are left out. The columns may be in any order, and a header is
required. A column of our own, CapacityType, says of a row whether it is for machines on demand or on spot; without it,
a row is for both.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from io import StringIO
from math import isfinite
from typing import TypeVar

from trimtab.cluster.config_error import ConfigError, quote_value
from trimtab.cluster.node import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, REGION_LABEL, NodeInfo
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pool_values import MAX_PRICE
from trimtab.cluster.reason import Code, NotYet

T = TypeVar("T")
PRICE_LABEL = "trimtab.dev/price"
NO_PRICE = Code(
    "price-unknown",
    "The price of the node's type is not known.",
    "Name it in the pool's prices, in --prices, or in the node's label trimtab.dev/price. The label has "
    "micro-dollars an hour.",
)
NOT_A_MACHINE = Code(
    "price-of-no-machine",
    "The node has no price, because it is no machine that you pay for.",
    "Nothing to do: a serverless platform bills the pods on it.",
)
SPOT_LABELS = (
    CAPACITY_TYPE_LABEL,
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-preemptible",
)
PRICE_KEYS = (PRICE_LABEL, INSTANCE_TYPE_LABEL, REGION_LABEL, *SPOT_LABELS)
"""The labels on which the price of a node depends."""
SPOT_DISCOUNT_PERCENT = 65
"""The assumed discount of a spot node on its list price, in percent, if no source has its price. It is the middle of
the usual discounts, which change every hour."""


class PriceSource(StrEnum):
    """Where a price comes from."""

    FILE = "file"
    LABEL = "label"
    SETTINGS = "settings"
    LIST = "list"
    """The list price for the node's own region."""
    LIST_REGION_UNKNOWN = "list-region-unknown"
    """The list price for the table's region. It is a guess, because the node has no region label."""
    LIST_OTHER_REGION = "list-other-region"
    """The list price for the region of the same cloud that the table has. It is a guess, because the node is in another
    region."""
    SPOT_DISCOUNT = "spot-discount"
    """The list price minus the assumed discount for spot nodes. It is a guess."""


GUESSED_SOURCES = frozenset({PriceSource.LIST_REGION_UNKNOWN, PriceSource.LIST_OTHER_REGION, PriceSource.SPOT_DISCOUNT})


@dataclass(frozen=True, slots=True)
class MachinePrice:
    """The price of a node, with its source."""

    amount: int
    """The price in micro-dollars an hour."""
    source: PriceSource


@lru_cache(maxsize=1)
def price_table() -> Mapping[str, int]:
    """Returns instance type → on-demand price in micro-dollars an hour. The three clouds have no type names in
    common."""
    return {name: amount for name, (amount, _) in _list_prices().items()}


@lru_cache(maxsize=1)
def _list_prices() -> Mapping[str, tuple[int, str]]:
    """Returns instance type → (on-demand price in micro-dollars an hour, the region of that price)."""
    prices: dict[str, tuple[int, str]] = {}
    region = ""
    for line in files("trimtab.machines").joinpath("prices.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            # A section begins with `[CLOUD REGION]`; the prices after it are those of the region.
            region = line.strip("[]").split()[1]
        elif line and line[0] != "#":
            name, amount = line.split()
            prices[name] = (int(amount), region)
    return prices


def _list_price(kind: str) -> tuple[int, str]:
    """Returns (micro-dollars an hour, region) for an instance type; (0, "") if there is no list price."""
    # Nodes without a type, as on bare metal, are looked up for every plan: the table is then not even read.
    return _list_prices().get(kind, (0, "")) if kind else (0, "")


def listed_region(kind: str) -> str:
    """Returns the region of an instance type's list price, or an empty string if there is none."""
    return _list_price(kind)[1]


# AWS, Google Cloud and Azure write their regions differently.
_REGION_FORMS = (re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+"), re.compile(r"[a-z]+-[a-z]+\d+"), re.compile(r"[a-z]+\d*"))


def regions_with_list_prices(region: str, kinds: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns the regions whose list prices count in this region: the region itself if its prices are known, otherwise
    the known region of the same cloud.

    `kinds`: instance types of nodes that are there. The form of the region's name or these types show the cloud. All
    known regions if the cloud cannot be found."""
    known_regions = sorted({known_region for _, known_region in _list_prices().values()})
    if region in known_regions:
        return (region,)
    of_kinds = {listed_region(kind) for kind in kinds} - {""}
    form = next((form for form in _REGION_FORMS if form.fullmatch(region)), None)
    # Azure's regions are words like any other, so there the nodes say more.
    if form is not None and not (form is _REGION_FORMS[-1] and of_kinds):
        of_kinds = {known_region for known_region in known_regions if form.fullmatch(known_region)}
    return tuple(sorted(of_kinds)) or tuple(known_regions)


def price_of(node: NodeInfo, settings: Mapping[str, int]) -> int | NotYet:
    """Returns the amount of `quote_price` in micro-dollars an hour, without its source; NotYet if it is unknown."""
    return amount_of(quote_price(node, settings))


def quote_price(node: NodeInfo, settings: Mapping[str, int]) -> MachinePrice | NotYet:
    """Returns the price of the node and its source. If no source has the price of a spot node, it is a guess.

    `settings`: instance type → micro-dollars an hour.
    """
    if (sign := node.nature.sign_of(NodeKind.SERVERLESS)) is not None:
        sentence = f"node {node.name} is no machine: {sign.platform} ({sign.evidence})"
        return NotYet(reason=NOT_A_MACHINE(sentence), have="no machine", need="a machine")
    # A price file is read before: it has the effective price of this very node, discounts included.
    if node.price is not None:
        return MachinePrice(node.price, PriceSource.FILE)
    by_labels = labelled_price(node.labels, settings)
    return by_labels if by_labels is not None else _unknown_price(node)


def price_key(node: NodeInfo) -> object:
    """Returns a key that is equal for nodes for which `quote_price` returns the same amount with the same settings."""
    return node.nature.is_machine, node.price, *map(node.labels.get, PRICE_KEYS)


def labelled_price(labels: Mapping[str, str], settings: Mapping[str, int]) -> MachinePrice | None:
    """Returns the price of a node according to its labels, the settings and the list prices, or None if none of these
    has it."""
    price_label = labels.get(PRICE_LABEL, "")
    # 0 is not accepted: a node that seems free would never be drained.
    if price_label.isdecimal() and int(price_label) > 0:
        return MachinePrice(int(price_label), PriceSource.LABEL)
    kind, own_region = labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(REGION_LABEL, "")
    if kind in settings:
        return MachinePrice(settings[kind], PriceSource.SETTINGS)
    amount, region = _list_price(kind)
    if not amount:
        return None
    if _is_spot(labels):
        return MachinePrice(amount * (100 - SPOT_DISCOUNT_PERCENT) // 100, PriceSource.SPOT_DISCOUNT)
    if not own_region:
        return MachinePrice(amount, PriceSource.LIST_REGION_UNKNOWN)
    return MachinePrice(amount, PriceSource.LIST if own_region == region else PriceSource.LIST_OTHER_REGION)


def _unknown_price(node: NodeInfo) -> NotYet:
    kind = node.labels.get(INSTANCE_TYPE_LABEL, "") or "unknown"
    return NotYet(
        reason=NO_PRICE(f"the price of node {node.name} is not known"),
        have=f"type {kind}{' on spot' if is_spot(node) else ''}",
        need="a price of this type",
    )


def with_estimates(prices: Mapping[T, int | NotYet], cores: Mapping[T, int]) -> dict[T, int]:
    """Returns all prices. Unknown ones are estimated from the number of cores, at the average price per core of the
    others. Empty if no price is known."""
    known_prices = {name: node_price for name, node_price in prices.items() if isinstance(node_price, int)}
    cores_with_price, total_price = sum(cores[name] for name in known_prices), sum(known_prices.values())
    return (
        {name: known_prices.get(name, cores[name] * total_price // cores_with_price) for name in prices}
        if cores_with_price
        else {}
    )


def amount_of(quoted: MachinePrice | NotYet) -> int | NotYet:
    """Returns the amount of a price, without its source; NotYet stays NotYet."""
    return quoted if isinstance(quoted, NotYet) else quoted.amount


def is_spot(node: NodeInfo) -> bool:
    """Returns whether the node is a spot machine, which the cloud may reclaim and whose price changes."""
    return _is_spot(node.labels)


def _is_spot(labels: Mapping[str, str]) -> bool:
    # Karpenter, EKS and AKS write the word in varying case; GKE's two labels are `true`.
    return any(labels.get(key, "").lower() in ("spot", "true") for key in SPOT_LABELS)


REQUIRED_COLUMNS = ("InstanceID", "AssetClass", "InstanceIDField", "InstanceType", "MarketPriceHourly")
# AWS writes spec.providerID as aws:///ZONE/INSTANCE; OpenCost's InstanceID is the last part alone.
_AWS = re.compile(r"aws:///[^/]+/([^/]+)")
_COMMENT = "#"
_CAPACITY_TYPES = ("", "spot", "on-demand")
"""The words of the column CapacityType, in the order of the fields of `PriceFile`."""

Key = tuple[str, str, str]
"""(field, region in lower case or empty, id in lower case)."""


@dataclass(frozen=True, slots=True)
class PriceFile:
    """The prices of a price file, in micro-dollars an hour."""

    nodes: Mapping[Key, int]
    types: Mapping[tuple[str, str], int]
    """(region in lower case, instance type) → the mean price of its rows, of those that are for any capacity type."""
    spot_types: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The same for the rows that are for spot machines."""
    on_demand_types: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The same for the rows that are for machines on demand."""

    @property
    def list_types(self) -> Mapping[tuple[str, str], int]:
        """(region in lower case, instance type) → the price on demand."""
        return {**self.types, **self.on_demand_types}

    def price_of(self, node: NodeInfo) -> int | None:
        """Returns the price of this node, or None if the file has none. The price of a type is only used in its own
        region."""
        # Without a region the type's price is looked up under the empty region, as in a file without that column.
        region = node.labels.get(REGION_LABEL, "")
        # A file may identify nodes by several fields; each row says by which.
        for id_field in {id_field for id_field, _, _ in self.nodes}:
            instance_id = _instance_id(node, id_field)
            for region_key in (region.lower(), "") if instance_id else ():
                if (node_price := self.nodes.get((id_field, region_key, instance_id.lower()))) is not None:
                    return node_price
        key = (region.lower(), node.labels.get(INSTANCE_TYPE_LABEL, ""))
        own = (self.spot_types if is_spot(node) else self.on_demand_types).get(key)
        return own if own is not None else self.types.get(key)


def _instance_id(node: NodeInfo, field: str) -> str:
    """Returns the node's value of the field that OpenCost's InstanceIDField names, or an empty string if it has
    none."""
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


def read_price_file(name: str, text: str) -> tuple[PriceFile, list[ConfigError]]:
    """Returns the price file of this name, and a mistake for every row that is not valid; such rows are ignored."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_COMMENT)]
    expected = f"OpenCost's columns {', '.join(REQUIRED_COLUMNS)}"
    try:
        rows = list(csv.DictReader(StringIO("\n".join(lines)), restval=""))
    except csv.Error as error:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got=str(error))]
    missing = [column for column in REQUIRED_COLUMNS if column not in (rows[0] if rows else ())]
    if missing:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got=f"no column {', '.join(missing)}")]
    nodes: dict[Key, int] = {}
    of_type: dict[str, dict[tuple[str, str], list[int]]] = {word: {} for word in _CAPACITY_TYPES}
    mistakes: list[ConfigError] = []
    for row in rows:
        # An empty class counts as a node: files that people write often leave it out.
        if row["AssetClass"] not in ("node", ""):
            continue
        amount = parse_price(row["MarketPriceHourly"])
        if amount is None:
            wanted = f"dollars an hour above 0 and below {MAX_PRICE} in the column MarketPriceHourly"
            got = f"{quote_value(row['MarketPriceHourly'])} for {row['InstanceID'] or row['InstanceType']}"
            mistakes.append(ConfigError(file=name, expected=wanted, got=got))
            continue
        capacity_type = row.get("CapacityType", "").strip().lower()
        if capacity_type not in of_type:
            wanted = "spot, on-demand or nothing in the column CapacityType"
            mistakes.append(ConfigError(file=name, expected=wanted, got=quote_value(row["CapacityType"])))
            continue
        region = row.get("Region", "")
        if row["InstanceID"]:
            nodes[row["InstanceIDField"], region.lower(), row["InstanceID"].lower()] = amount
        if row["InstanceType"]:
            of_type[capacity_type].setdefault((region.lower(), row["InstanceType"]), []).append(amount)
    return PriceFile(nodes, *(mean_prices(of_type[word]) for word in _CAPACITY_TYPES)), mistakes


def mean_prices(of_type: Mapping[tuple[str, str], Sequence[int]]) -> dict[tuple[str, str], int]:
    """Returns (region, type) → the mean of its prices, in micro-dollars an hour."""
    return {key: sum(amounts) // len(amounts) for key, amounts in of_type.items()}


def parse_price(text: str | float) -> int | None:
    """Returns an amount in dollars an hour as whole micro-dollars, or None if it is not a price. Zero is not a price,
    because no plan should treat a node as free."""
    try:
        dollars = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    amount = round(dollars * 1_000_000) if isfinite(dollars) and 0 < dollars < MAX_PRICE else 0
    return amount or None


def merge_price_files(files: Iterable[PriceFile]) -> PriceFile:
    """Returns several price files as one. If two have a price for the same node or type, the later file counts."""
    merged = PriceFile({}, {})
    for one in files:
        merged = PriceFile(
            {**merged.nodes, **one.nodes},
            {**merged.types, **one.types},
            {**merged.spot_types, **one.spot_types},
            {**merged.on_demand_types, **one.on_demand_types},
        )
    return merged
