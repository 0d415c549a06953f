"""The facts about machine types: size, architecture, limits and measured speed, from a table that names its sources and
dates.

The table is `types.txt` of this package; it has no prices. What has not been published is unknown: no limit and no
measurement is invented. If the memory that the operating system sees is unknown, it is estimated from the size, and is
marked as an estimate.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files

from trimtab.reservations.kernel import gce_kernel_bytes, typical_kernel_bytes

_UNKNOWN = "."
_MIB = 1 << 20
BASELINE_COREMARK = 14235
"""The CoreMark score per core of m5.large, whose performance counts as 1."""
AZURE_BASELINE_COREMARK = 12810
"""The same for Azure, whose scores were measured in another way: Standard_D8s_v3 with the processor of m5.large."""


class Use(StrEnum):
    """The special purpose of a machine type; a general-purpose type has none."""

    GENERAL = "general"
    ACCELERATED = "accelerated"
    """The type has GPUs, FPGAs, or chips for inference or training."""
    BURSTABLE = "burstable"
    """The full speed of a core is not available all the time."""
    HPC = "hpc"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One machine type of one cloud."""

    name: str
    cloud: str
    """aws, azure or gcp; empty for a type that a user described."""
    arch: str
    """The processor architecture: amd64 or arm64."""
    cores: float
    memory_mib: int
    """The memory in MiB that the cloud sells."""
    visible_mib: int | None
    """The memory in MiB that the operating system reports (MemTotal), or None if it was not measured."""
    max_pods: int | None
    """The largest number of pods to which the cloud's network gives addresses, or None if the type sets no limit."""
    max_volumes: int | None
    """The largest number of volumes that the CSI driver attaches, or None if unknown."""
    shares_volumes: bool = False
    """Whether network interfaces count towards the limit of volumes."""
    coremark: int | None = None
    """The CoreMark score per core, or None if it is not known."""
    is_coremark_alike: bool = False
    """Whether the score is that of another size of the family."""
    is_coremark_estimated: bool = False
    """Whether the score is that of the same processor on another cloud."""
    use: Use = Use.GENERAL

    @property
    def kernel_mib(self) -> float:
        """The memory in MiB that the operating system sees: measured, or else estimated from the size."""
        return (
            float(self.visible_mib)
            if self.visible_mib is not None
            else estimate_visible_memory(self.memory_mib, self.cloud)
        )

    @property
    def performance(self) -> float | None:
        """The speed of a core, relative to a core of m5.large, or None if it is not known. Speeds of types of one cloud
        can be compared."""
        baseline = AZURE_BASELINE_COREMARK if self.cloud == "azure" else BASELINE_COREMARK
        return None if self.coremark is None else self.coremark / baseline

    @property
    def family(self) -> str:
        """The name without its size. Types of one family have the same processor, and mostly the same ratio of memory
        to cores."""
        return family_of(self.name)


def estimate_visible_memory(memory_mib: int, cloud: str = "") -> float:
    """Returns the memory in MiB that the operating system probably sees on a machine of this size: on Google Cloud by
    the cluster autoscaler's formula, elsewhere estimated from the size."""
    size = memory_mib * _MIB
    lost = gce_kernel_bytes(size) if cloud == "gcp" else typical_kernel_bytes(size)
    return memory_mib - float(lost / _MIB)


_AZURE = re.compile(r"(?:Standard_)?([A-Z]+)\d+(?:-\d+)?([a-z]*)((?:_\w+)?)")


def family_of(name: str) -> str:
    """Returns the family of a machine type: m7i for m7i.2xlarge, Es_v5 for Standard_E8s_v5, n2-highmem for
    n2-highmem-8.

    A name of another form is a family of its own.
    """
    if "." in name:
        return name.partition(".")[0]
    if azure := _AZURE.fullmatch(name):
        return "".join(azure.groups())
    base, dash, size = name.rpartition("-")
    return base if dash and size.isdecimal() else name


@lru_cache(maxsize=1)
def machine_types() -> Mapping[str, MachineType]:
    """Returns name → facts, for every type in the table. The three clouds have no names in common."""
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
                name=name,
                cloud=cloud,
                arch=arch,
                cores=float(cores),
                memory_mib=int(memory),
                visible_mib=_number(visible),
                max_pods=_number(pods),
                max_volumes=_number(volumes.rstrip("s")),
                shares_volumes=volumes.endswith("s"),
                coremark=_number(coremark.lstrip("~?")),
                is_coremark_alike=coremark.startswith("~"),
                is_coremark_estimated=coremark.startswith("?"),
                use=Use.GENERAL if use == _UNKNOWN else Use(use),
            )


def _number(text: str) -> int | None:
    return None if text == _UNKNOWN else int(text)
