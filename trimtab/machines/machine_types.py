"""The facts about machine types: size, architecture, limits and measured speed, from a table with source and date.

The table is `types.txt` of this package; prices are not in it. What nobody published is unknown: no limit, no
measurement and no memory is invented. Where the memory that the kernel sees is unknown, it is estimated by size, and
the estimate says so.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files

from trimtab.machines.prices import listed_region
from trimtab.reservations.kernel import gce_kernel_bytes, typical_kernel_bytes

_UNKNOWN = "."
_MIB = 1 << 20
BASELINE_COREMARK = 14235
"""CoreMark per core of m5.large: performance 1."""


class Use(StrEnum):
    """The purpose that a type was made for; a general type has none."""

    GENERAL = "general"
    ACCELERATED = "accelerated"
    """With GPUs, FPGAs or chips for inference and training."""
    BURSTABLE = "burstable"
    """A core is not available all the time."""
    HPC = "hpc"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One machine type of one cloud."""

    name: str
    cloud: str
    """aws, azure or gcp; empty for a type that a user described."""
    arch: str
    """amd64 or arm64."""
    cores: float
    memory_mib: int
    """What the cloud sells."""
    visible_mib: int | None
    """What the kernel reports as MemTotal, or None if nobody measured it."""
    max_pods: int | None
    """The most pods that the cloud's network gives addresses to, or None if the type sets no limit."""
    max_volumes: int | None
    """The most volumes that the CSI driver attaches, or None if unknown."""
    shares_volumes: bool = False
    """Network interfaces take from the limit of volumes."""
    coremark: int | None = None
    """CoreMark per core, or None if nobody measured it."""
    use: Use = Use.GENERAL

    @property
    def kernel_mib(self) -> float:
        """The memory that the kernel sees in MiB: measured, else estimated by size."""
        return (
            float(self.visible_mib)
            if self.visible_mib is not None
            else estimate_visible_memory(self.memory_mib, self.cloud)
        )

    @property
    def performance(self) -> float | None:
        """The speed of a core beside a core of m5.large, or None if nobody measured it."""
        return None if self.coremark is None else self.coremark / BASELINE_COREMARK

    @property
    def family(self) -> str:
        """The name without its size: types of one family have the same processor, and mostly the same ratio of memory
        to cores."""
        return family_of(self.name)


def estimate_visible_memory(memory_mib: int, cloud: str = "") -> float:
    """Returns the memory in MiB that the kernel of a machine of this size is expected to see: on Google Cloud by the
    cluster autoscaler's formula, elsewhere by size."""
    size = memory_mib * _MIB
    lost = gce_kernel_bytes(size) if cloud == "gcp" else typical_kernel_bytes(size)
    return memory_mib - float(lost / _MIB)


_AZURE = re.compile(r"(?:Standard_)?([A-Z]+)\d+(?:-\d+)?([a-z]*)((?:_\w+)?)")


def family_of(name: str) -> str:
    """Returns the family of a machine type: m7i of m7i.2xlarge, Es_v5 of Standard_E8s_v5, n2-highmem of n2-highmem-8.

    A name of another form is its own family.
    """
    if "." in name:
        return name.partition(".")[0]
    if azure := _AZURE.fullmatch(name):
        return "".join(azure.groups())
    base, dash, size = name.rpartition("-")
    return base if dash and size.isdecimal() else name


@lru_cache(maxsize=1)
def machine_types() -> Mapping[str, MachineType]:
    """Returns name → facts of every type of the table. Names of the three clouds do not overlap."""
    return {
        kind.name: kind for kind in _parse_table(files("trimtab.machines").joinpath("types.txt").read_text("utf-8"))
    }


def _parse_table(text: str) -> Iterable[MachineType]:
    cloud = ""
    for line in text.splitlines():
        if line.startswith("["):
            cloud = line.strip("[]")
        elif line and line[0] != "#":
            name, arch, cores, memory, visible, pods, volumes, coremark, use = line.split()
            yield MachineType(
                name=name, cloud=cloud, arch=arch, cores=float(cores), memory_mib=int(memory),
                visible_mib=_number(visible), max_pods=_number(pods), max_volumes=_number(volumes.rstrip("s")),
                shares_volumes=volumes.endswith("s"), coremark=_number(coremark),
                use=Use.GENERAL if use == _UNKNOWN else Use(use),
            )  # fmt: skip


def _number(text: str) -> int | None:
    return None if text == _UNKNOWN else int(text)


def types_of_region(region: str) -> tuple[MachineType, ...]:
    """Returns the types whose list price is that of this region, by name, or an empty tuple if the table has no such
    region."""
    return tuple(kind for name, kind in sorted(machine_types().items()) if listed_region(name) == region)
