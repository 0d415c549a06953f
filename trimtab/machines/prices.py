"""What does this node cost an hour?

In this order: the node's own label `trimtab.dev/price` (micro-dollars an hour), the pool's settings by instance
type, our table of list prices. Otherwise it is not known, and a plan counts cores instead: never a wrong zero.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TypeVar

from trimtab.cluster.node import INSTANCE_TYPE, Node
from trimtab.cluster.reason import Code, NotYet

T = TypeVar("T")
LABEL = "trimtab.dev/price"
NO_PRICE = Code(
    "price-unknown",
    "Nobody says what a node of this type costs.",
    "Name it in the pool's prices, or label the node trimtab.dev/price with micro-dollars an hour.",
)
SPOT = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-spot",
        "kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-preemptible")  # fmt: skip


@lru_cache(maxsize=1)
def table() -> Mapping[str, int]:
    """Instance type → micro-dollars an hour on demand. Type names of the three clouds do not overlap."""
    text = files("trimtab.machines").joinpath("prices.txt").read_text("utf-8")
    lines = (line.split() for line in text.splitlines() if line and line[0] not in "#[")
    return {name: int(price) for name, price in lines}


def price(node: Node, settings: Mapping[str, int]) -> int | NotYet:
    """Micro-dollars an hour. The list price of a spot node is not known to us: it changes by the hour."""
    said = node.labels.get(LABEL, "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    kind = node.labels.get(INSTANCE_TYPE, "")
    if kind in settings:
        return settings[kind]
    if kind in table() and not spot(node):
        return table()[kind]
    return NotYet(
        reason=NO_PRICE(f"nobody says what node {node.name} costs"),
        have=f"type {kind or 'unknown'}{' on spot' if spot(node) else ''}", need="a price for it",
    )  # fmt: skip


def filled(prices: Mapping[T, int | NotYet], cores: Mapping[T, int]) -> dict[T, int]:
    """What is not known is taken for as dear as the others by its cores; empty when no price is known at all."""
    known = {name: found for name, found in prices.items() if isinstance(found, int)}
    priced, paid = sum(cores[name] for name in known), sum(known.values())
    return {name: known.get(name, cores[name] * paid // priced) for name in prices} if priced else {}


def spot(node: Node) -> bool:
    """Is it a machine that may be taken away, at a price of the moment?"""
    return any(node.labels.get(key, "").lower() in ("spot", "true") for key in SPOT)


__all__ = ["LABEL", "NO_PRICE", "filled", "price", "spot", "table"]
