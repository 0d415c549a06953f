"""Costs: the overhead that a container runtime adds to each pod, and the price of a request in a month.

A sandbox (a virtual machine's monitor, a user-space kernel) runs in the pod's cgroup but in none of its containers'
cgroups. So its usage is that of the pod minus that of its containers, at the same moment.

A machine's price is divided between its cores and its memory: a core costs as much as 7.5 GiB (the ratio of the list
prices of clouds that sell the two separately). Prices are micro-dollars an hour, as in `machines`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet
from trimtab.sizing.reasons import FEW_PODS

MIN_PODS = 5
HEADROOM_PERCENT = 15
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxUse:
    """The usage of the sandbox of one pod at one moment."""

    cores: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class SandboxCost:
    """The overhead of the pods of a RuntimeClass: what they use in addition to their containers."""

    pods: int
    millicores: int
    """The cpu overhead: the P95 over the pods, with headroom, rounded up."""
    memory_bytes: int
    """The memory overhead: the largest value of the pods, with headroom, rounded up to mebibytes. The largest is used
    because a sandbox does not return memory."""

    @property
    def pod_fixed(self) -> dict[str, str]:
        """The overhead in the form of a RuntimeClass's `overhead.podFixed`."""
        return {
            "cpu": quantity.format_quantity("cpu", self.millicores),
            "memory": quantity.format_quantity("memory", self.memory_bytes),
        }


def sandbox_cost(uses: Iterable[SandboxUse]) -> SandboxCost | NotYet:
    """Returns the overhead, measured at one or more moments for the pods of one class; NotYet if there are fewer than
    `MIN_PODS` pods."""
    sandboxes = list(uses)
    if len(sandboxes) < MIN_PODS:
        sentence = f"{len(sandboxes)} pod{'' if len(sandboxes) == 1 else 's'} measured"
        return NotYet(reason=FEW_PODS(sentence), have=str(len(sandboxes)), need=f"{MIN_PODS} pods")
    cores = sorted(max(use.cores, 0.0) for use in sandboxes)
    # P95 by nearest rank, in integers.
    millicores = cores[-(-len(cores) * 95 // 100) - 1] * 1000
    memory = max(max(use.memory_bytes for use in sandboxes), 0.0)
    return SandboxCost(
        len(sandboxes), max(_with_headroom(millicores, 1), 1), max(_with_headroom(memory, _MEBIBYTE), 1) * _MEBIBYTE
    )


def _with_headroom(amount: float, step: int) -> int:
    """Returns an amount with headroom, rounded up to whole steps."""
    return int(-(-amount * (100 + HEADROOM_PERCENT) // (100 * step)))


def larger_overhead(first: Mapping[str, Written], second: Mapping[str, Written]) -> dict[str, Written]:
    """Returns, for each resource, the larger of two overheads.

    New pods get the overhead of the class, and running pods keep the overhead that they have. While there are pods with
    both overheads, neither may be too small."""
    both = {**first, **second}
    return {
        name: first[name]
        if name in first and (name not in second or quantity.compare_quantities(first[name], second[name]) >= 0)
        else second[name]
        for name in both
    }


HOURS_PER_MONTH = 730
"""Hours in a month."""
GIB_PER_CORE = 7.5


@dataclass(frozen=True, slots=True)
class ResourcePrice:
    """The price of a core and of a GiB, in micro-dollars an hour."""

    core: float
    gib: float

    def monthly_cost(self, millicores: int, memory_bytes: int) -> float:
        """Returns the cost of an amount of cpu and memory, in dollars a month."""
        return (millicores / 1000 * self.core + memory_bytes / (1 << 30) * self.gib) * HOURS_PER_MONTH / 1e6


def divide_price(price: float, cores: float, gib: float) -> ResourcePrice:
    """Returns a machine's price, divided between its cores and its memory, per core and per GiB."""
    core = price / (cores + gib / GIB_PER_CORE)
    return ResourcePrice(core=core, gib=core / GIB_PER_CORE)


LIST_PRICE = divide_price(96_000, 2, 8)
"""The price that is used if no node's price is known: that of a general-purpose machine (m5.large, us-east-1, July
2026)."""


def average_price(nodes: Iterable[tuple[float, float, float]]) -> ResourcePrice | None:
    """Returns the average price of all nodes, or None if no price is known. Each node with a known price is given as
    (price, cores, GiB)."""
    priced_nodes = list(nodes)
    if not priced_nodes:
        return None
    price, cores, gib = (fsum(column) for column in zip(*priced_nodes, strict=True))
    return divide_price(price, cores, gib)
