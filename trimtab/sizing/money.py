"""What does a request cost in a month?

A machine's price, shared between its cores and its memory: a core costs as much as 7.5 GiB (the ratio of the list
prices of clouds that sell the two apart). Prices are in micro-dollars an hour, as `machines` has them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

HOURS = 730
"""In a month."""
GIB_PER_CORE = 7.5


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars an hour."""

    core: float
    gib: float

    def monthly(self, millicores: int, held: int) -> float:
        """Dollars a month for so much cpu and memory."""
        return (millicores / 1000 * self.core + held / (1 << 30) * self.gib) * HOURS / 1e6


def shared(price: float, cores: float, gib: float) -> Price:
    """A machine's price by what it holds."""
    core = price / (cores + gib / GIB_PER_CORE)
    return Price(core=core, gib=core / GIB_PER_CORE)


LIST = shared(96_000, 2, 8)
"""Where no node tells: a general-purpose machine (m5.large, us-east-1, July 2026)."""


def of_nodes(nodes: Iterable[tuple[float, float, float]]) -> Price | None:
    """(price, cores, GiB) of all nodes whose price is known; None where none is."""
    found = list(nodes)
    if not found:
        return None
    price, cores, gib = (sum(part) for part in zip(*found, strict=True))
    return shared(price, cores, gib)
