"""What does a runtime cost per pod, beside what the pod's containers use?

A sandbox (a virtual machine's monitor, a user-space kernel) lies in the pod's cgroup and in no container's. So its
cost is what the pod used less what its containers used, at one moment.

What does a request cost in a month?

A machine's price, shared between its cores and its memory: a core costs as much as 7.5 GiB (the ratio of the list
prices of clouds that sell the two apart). Prices are in micro-dollars an hour, as `machines` has them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Code, NotYet

FEW_PODS = Code(
    "too-few-sandbox-pods",
    "Too few pods of the RuntimeClass were measured to say what it costs.",
    "Measure while at least this many pods of the class run, or measure several times.",
)
LEAST_PODS = 5
HEADROOM_PERCENT = 15
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxUse:
    """One pod at one moment."""

    cores: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class SandboxCost:
    """What a pod of the class needs beside its containers."""

    pods: int
    millicores: int
    """P95 of the pods and headroom, rounded up."""
    memory_bytes: int
    """The largest of the pods and headroom, rounded up to mebibytes: memory is not given back."""

    @property
    def pod_fixed(self) -> dict[str, str]:
        """As a RuntimeClass says it."""
        return {
            "cpu": quantity.format_quantity("cpu", self.millicores), "memory": quantity.format_quantity("memory",
            self.memory_bytes)
        }  # fmt: skip


def sandbox_cost(uses: Iterable[SandboxUse]) -> SandboxCost | NotYet:
    """From one or more moments of the pods of one class."""
    found = list(uses)
    if len(found) < LEAST_PODS:
        sentence = f"{len(found)} pod{'' if len(found) == 1 else 's'} measured"
        return NotYet(reason=FEW_PODS(sentence), have=str(len(found)), need=f"{LEAST_PODS} pods")
    cores = sorted(max(use.cores, 0.0) for use in found)
    millicores = cores[-(-len(cores) * 95 // 100) - 1] * 1000
    memory = max(max(use.memory_bytes for use in found), 0.0)
    return SandboxCost(len(found), max(_up(millicores, 1), 1), max(_up(memory, _MEBIBYTE), 1) * _MEBIBYTE)


def _up(amount: float, step: int) -> int:
    """With headroom, in whole steps."""
    return int(-(-amount * (100 + HEADROOM_PERCENT) // (100 * step)))


def larger(a: Mapping[str, Written], b: Mapping[str, Written]) -> dict[str, Written]:
    """The larger of two overheads, resource by resource. While pods of both are there, neither may be too small: those
    that are made anew get the class's, and those that run keep theirs."""
    both = {**a, **b}
    return {
        name: a[name] if name in a and (name not in b or quantity.compare(a[name], b[name]) >= 0) else b[name]
        for name in both
    }


HOURS = 730
"""In a month."""
GIB_PER_CORE = 7.5


@dataclass(frozen=True, slots=True)
class ResourcePrice:
    """Micro-dollars an hour."""

    core: float
    gib: float

    def monthly(self, millicores: int, held: int) -> float:
        """Dollars a month for so much cpu and memory."""
        return (millicores / 1000 * self.core + held / (1 << 30) * self.gib) * HOURS / 1e6


def shared(price: float, cores: float, gib: float) -> ResourcePrice:
    """A machine's price by what it holds."""
    core = price / (cores + gib / GIB_PER_CORE)
    return ResourcePrice(core=core, gib=core / GIB_PER_CORE)


LIST = shared(96_000, 2, 8)
"""Where no node tells: a general-purpose machine (m5.large, us-east-1, July 2026)."""


def of_nodes(nodes: Iterable[tuple[float, float, float]]) -> ResourcePrice | None:
    """(price, cores, GiB) of all nodes whose price is known; None where none is."""
    found = list(nodes)
    if not found:
        return None
    price, cores, gib = (sum(part) for part in zip(*found, strict=True))
    return shared(price, cores, gib)
