"""The worked examples of the vendors' formulas: 32 of them, each with every value that is published or computed for it.

An example counts only if all of its values hold. `count_exact_examples()` is for benches.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from trimtab.reservations.eni_table import interfaces_by_type
from trimtab.reservations.formula import NodeReservations, NodeSize, calculate_reservations
from trimtab.reservations.kernel import gce_kernel_bytes
from trimtab.reservations.pod_limits import count_interface_pods, count_prefix_pods
from trimtab.reservations.profile import GIB, MIB, TermKind
from trimtab.reservations.read_profile import shipped_profiles


@dataclass(frozen=True)
class Check:
    """One value of an example. `printed` has the digits of the source; a value is rounded to them only if `rounded`."""

    got: Fraction | int
    printed: str
    rounded: bool = False

    @property
    def holds(self) -> bool:
        if not self.rounded:
            return Fraction(self.got) == Fraction(self.printed)
        digits = len(self.printed.partition(".")[2])
        return abs(Fraction(self.got) - Fraction(self.printed)) <= Fraction(1, 2 * 10**digits)


def reserve(
    profile: str, *, cores: int = 4, gib: str | float = 16, pods: int = 110, arch: str = "amd64"
) -> NodeReservations:
    """The reservations of a machine by a shipped profile."""
    size = NodeSize(
        millicores=1000 * cores, memory_bytes=int(Fraction(str(gib)) * GIB), max_pods=pods, architecture=arch
    )
    return calculate_reservations(shipped_profiles()[profile], size)


def gke_memory(gib: str, mib: str = "", in_gib: str = "") -> Check:
    reserved = reserve("gke", gib=gib).memory.kube
    return Check(reserved / MIB, mib) if mib else Check(reserved / GIB, in_gib)


def cpu(profile: str, cores: int, millicores: str) -> Check:
    return Check(reserve(profile, cores=cores).cpu.reserved, millicores)


def eks_memory(pods: int, mib: str) -> Check:
    return Check(reserve("eks", pods=pods).memory.kube / MIB, mib)


def interface_pods(kind: str, pods: str) -> Check:
    return Check(count_interface_pods(interfaces_by_type()[kind]), pods)


def prefix_pods(kind: str, cores: int, pods: str) -> tuple[Check, Check]:
    interfaces = interfaces_by_type()[kind]
    return (
        Check(count_prefix_pods(interfaces, cores, is_capped=False), pods),
        Check(count_prefix_pods(interfaces, cores), "110"),
    )


def aks_old(gib: str, withheld_gib: str, percent: str = "") -> Iterator[Check]:
    memory = reserve("aks", gib=gib).memory
    yield Check(memory.withheld / GIB, withheld_gib, rounded=True)
    if percent:
        yield Check(100 * memory.withheld / memory.size, percent, rounded=True)


def aks_new(gigabytes: int, pods: int, megabytes: str) -> Check:
    return Check(_aks_new(gigabytes, pods).memory.kube / 10**6, megabytes)


def _aks_new(gigabytes: int, pods: int) -> NodeReservations:
    size = NodeSize(millicores=4000, memory_bytes=gigabytes * 10**9, max_pods=pods)
    return calculate_reservations(shipped_profiles()["aks-1.29"], size)


def openshift(gib: str, old: str, new: str) -> Iterator[Check]:
    yield Check(reserve("openshift", gib=gib).memory.system / GIB, old)
    yield Check(reserve("openshift-2026", gib=gib).memory.system / GIB, new)


def before_rounding(gib: str, amount: str) -> Check:
    terms = reserve("openshift-2026", gib=gib).memory.terms
    return Check(sum(term.amount for term in terms if term.kind is not TermKind.ROUNDING) / GIB, amount)


def openshift_cpu(cores: int, printed: str) -> Iterator[Check]:
    profile = shipped_profiles()["openshift-2026"]
    without_minimum = replace(profile, cpu=replace(profile.cpu, minimum=Fraction(0)))
    size = NodeSize(millicores=1000 * cores, memory_bytes=16 * GIB)
    yield Check(calculate_reservations(without_minimum, size).cpu.system / 1000, printed)
    if cores <= 38:
        yield Check(calculate_reservations(profile, size).cpu.system / 1000, "0.5")


def karpenter(mib: int, pods: int, allocatable_mib: str, arch: str = "amd64") -> Check:
    size = NodeSize(millicores=2000, memory_bytes=mib * MIB, max_pods=pods, architecture=arch)
    reservations = calculate_reservations(shipped_profiles()["karpenter"], size)
    return Check(Fraction(reservations.allocatable_memory_bytes, MIB), allocatable_mib)


def kernel(gib: int, mib: str) -> Check:
    return Check(gce_kernel_bytes(gib * GIB) / MIB, mib, rounded=True)


def _anthos() -> Iterator[Check]:
    reservations = reserve("anthos", cores=4, gib=8)
    yield Check(reservations.cpu.kube, "120")
    yield Check(reservations.memory.kube / MIB, "689.6")


def _aks_decimal() -> Iterator[Check]:
    yield aks_new(8, 30, "650")
    yield Check(Fraction(_aks_new(8, 30).allocatable_memory_bytes, 10**9), "7.25", rounded=True)


def _aks_node_of_issue_3525() -> Iterator[Check]:
    yield from aks_old("4", "1.732", "43")
    yield Check(reserve("aks", gib=4).memory.withheld / 1024, str(4025836 - 2209260))


EXAMPLES: dict[int, Callable[[], tuple[Check, ...]]] = {
    1: lambda: (gke_memory("0.6", "255"),),
    2: lambda: (gke_memory("1", "256"),),
    3: lambda: (gke_memory("2", "512"),),
    4: lambda: (gke_memory("4", "1024"),),
    5: lambda: (gke_memory("7.5", "1740.8"),),
    6: lambda: (gke_memory("15", "2560"),),
    7: lambda: (gke_memory("96", in_gib="7.40"),),
    8: lambda: (gke_memory("192", in_gib="10.60"),),
    9: lambda: (gke_memory("384", in_gib="14.44"),),
    10: lambda: (gke_memory("512", in_gib="17.00"),),
    11: lambda: (gke_memory("1024", in_gib="27.24"),),
    12: lambda: tuple(
        cpu("gke", cores, millicores)
        for cores, millicores in (
            (1, "60"),
            (2, "70"),
            (3, "75"),
            (4, "80"),
            (5, "82.5"),
            (8, "90"),
            (16, "110"),
            (32, "150"),
            (48, "190"),
            (64, "230"),
            (96, "310"),
            (128, "390"),
        )
    ),
    13: lambda: (cpu("eks", 5, "82"), cpu("eks", 96, "310"), cpu("eks", 192, "550"), cpu("gke", 5, "82.5")),
    14: lambda: tuple(
        eks_memory(pods, mib)
        for pods, mib in (
            (8, "343"),
            (29, "574"),
            (58, "893"),
            (110, "1465"),
            (234, "2829"),
            (250, "3005"),
            (737, "8362"),
        )
    ),
    15: lambda: (
        interface_pods("m5.large", "29"),
        interface_pods("m5.xlarge", "58"),
        interface_pods("m5.4xlarge", "234"),
        interface_pods("m5.24xlarge", "737"),
    ),
    16: lambda: (*prefix_pods("m5.large", 2, "434"), *prefix_pods("m5.4xlarge", 16, "3714")),
    17: lambda: tuple(
        cpu(profile, cores, millicores)
        for profile in ("aks", "aks-1.29")
        for cores, millicores in ((1, "60"), (2, "100"), (4, "140"), (8, "180"), (16, "260"), (32, "420"), (64, "740"))
    ),
    18: lambda: tuple(_aks_node_of_issue_3525()),
    19: lambda: (*aks_old("7", "2.332", "33"), *aks_old("64", "6.212")),
    20: lambda: tuple(_aks_decimal()),
    21: lambda: (aks_new(4, 70, "1000"),),
    22: lambda: (aks_new(16, 250, "4000"),),
    23: lambda: (aks_new(64, 250, "5050"),),
    24: lambda: (
        *openshift("7", "2", "1"),
        *openshift("7.8", "2", "1"),
        *openshift("8", "2", "1"),
        *openshift("15", "3", "1"),
        before_rounding("15", "1.42"),
        *openshift("31", "4", "2"),
        before_rounding("31", "2.38"),
        *openshift("62", "5", "4"),
        *openshift("125", "9", "8"),
        *openshift("251", "12", "10"),
        *openshift("512", "17", "16"),
        *openshift("1024", "27", "26"),
    ),
    25: lambda: tuple(
        check
        for cores, printed in (
            (1, "0.06"),
            (4, "0.10"),
            (8, "0.14"),
            (16, "0.24"),
            (32, "0.43"),
            (38, "0.50"),
            (64, "0.82"),
            (128, "1.58"),
        )
        for check in openshift_cpu(cores, printed)
    ),
    26: lambda: (karpenter(2048, 8, "1392", "arm64"),),
    27: lambda: (karpenter(4096, 29, "3055", "arm64"),),
    28: lambda: (karpenter(8192, 29, "6903"),),
    29: lambda: (karpenter(393216, 234, "360795"),),
    30: lambda: (karpenter(131072, 737, "112720", "arm64"),),
    31: lambda: (
        kernel(2, "59.6"),
        kernel(4, "159.2"),
        kernel(8, "230.3"),
        kernel(32, "649.3"),
        kernel(128, "2357.4"),
        kernel(256, "4424.0"),
    ),
    32: lambda: tuple(_anthos()),
}


def count_exact_examples() -> int:
    """The number of examples of which every value holds."""
    return sum(all(check.holds for check in checks()) for checks in EXAMPLES.values())
