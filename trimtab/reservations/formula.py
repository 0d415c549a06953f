"""Calculates the reservations of a node of a given size by a profile.

Allocatable = what the kubelet sees − kube reserved − system reserved − the hard eviction threshold (kubelet,
pkg/kubelet/cm/node_container_manager_linux.go `GetNodeAllocatableReservation`, 1.36).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from trimtab.reservations.profile import ZERO, LossRule, Profile, ReservedAs, Term

ARM64 = "arm64"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSize:
    """The size of a node before anything is reserved."""

    millicores: int
    memory_bytes: int
    """The memory of the machine in bytes. The kubelet sees this minus `lost_bytes`."""
    max_pods: int | Fraction = 110
    """The number of pods for which resources are reserved. A vendor's formula counts the kubelet's maxPods. The number
    may be a fraction if a model predicts a mean."""
    lost_bytes: int = 0
    """The memory in bytes that the hypervisor and the kernel use before the kubelet sees it; 0 if `memory_bytes` is a
    node's capacity."""
    architecture: str = "amd64"
    is_shared_core: bool = False
    boot_disk_bytes: int | None = None
    """The size of the boot disk in bytes, or None if it is not known."""
    local_disks: int = 0
    """The number of local disks that hold ephemeral storage in place of the boot disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceReservation:
    """What is reserved of one resource, as exact amounts: millicores for cpu, bytes otherwise."""

    size: Fraction
    lost: Fraction = ZERO
    """The amount that the kubelet does not see."""
    kube: Fraction = ZERO
    system: Fraction = ZERO
    eviction: Fraction = ZERO
    terms: tuple[Term, ...] = ()
    """The parts of the formula; their sum is kube reserved plus system reserved."""

    @property
    def reserved(self) -> Fraction:
        """The sum of kube reserved and system reserved."""
        return self.kube + self.system

    @property
    def withheld(self) -> Fraction:
        """The sum of everything that pods cannot request, at most the size itself."""
        return min(self.size, self.lost + self.reserved + self.eviction)

    @property
    def allocatable(self) -> int:
        """The amount that pods can request, in whole units; 0 if nothing is left."""
        return int((self.size - self.withheld) // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReservations:
    """The reservations of one node by one profile."""

    profile: Profile
    size: NodeSize
    cpu: ResourceReservation
    memory: ResourceReservation
    disk: ResourceReservation | None
    """The reservation of ephemeral storage, or None if the profile has none or the disk is not known."""

    @property
    def process_ids(self) -> int | None:
        """The number of reserved process ids, or None if the profile has none."""
        return self.profile.process_ids

    @property
    def allocatable_millicores(self) -> int:
        """The cpu that pods can request, in millicores."""
        return self.cpu.allocatable

    @property
    def allocatable_memory_bytes(self) -> int:
        """The memory that pods can request, in bytes."""
        return self.memory.allocatable

    @property
    def fits_machine(self) -> bool:
        """Whether some cpu and some memory are left for pods."""
        return self.cpu.allocatable > 0 and self.memory.allocatable > 0


def calculate_reservations(profile: Profile, size: NodeSize) -> NodeReservations:
    """Returns the reservations of a node of this size by the profile."""
    pods = Fraction(size.max_pods)
    installed = Fraction(size.memory_bytes)
    lost = Fraction(size.lost_bytes) if profile.loss is None else _planned_loss(profile.loss, size)
    counted = installed if profile.counts_installed_memory else installed - lost
    memory_terms = profile.memory.list_terms(counted, pods)
    cpu_terms = profile.cpu.list_terms(Fraction(size.millicores), pods, is_shared_core=size.is_shared_core)
    return NodeReservations(
        profile=profile,
        size=size,
        cpu=_reserve_terms(profile, Fraction(size.millicores), cpu_terms),
        memory=_reserve_terms(profile, installed, memory_terms, lost=lost, eviction=profile.eviction_memory),
        disk=_reserve_disk(profile, size),
    )


def _reserve_terms(
    profile: Profile, size: Fraction, terms: tuple[Term, ...], *, lost: Fraction = ZERO, eviction: Fraction = ZERO
) -> ResourceReservation:
    reserved = sum((term.amount for term in terms), ZERO)
    is_kube = profile.reserved_as is ReservedAs.KUBE
    return ResourceReservation(
        size=size,
        lost=lost,
        eviction=eviction,
        terms=terms,
        kube=reserved if is_kube else ZERO,
        system=ZERO if is_kube else reserved,
    )


def _planned_loss(rule: LossRule, size: NodeSize) -> Fraction:
    first = rule.arm64 if size.architecture == ARM64 else ZERO
    share = rule.share * (size.memory_bytes - first)
    return first + (rule.rounding.round_amount(share) if rule.rounding else share)


def _reserve_disk(profile: Profile, size: NodeSize) -> ResourceReservation | None:
    rule = profile.disk
    if rule is None or size.boot_disk_bytes is None:
        return None
    disk = Fraction(size.boot_disk_bytes)
    reserved = (
        rule.local_disks[min(size.local_disks, len(rule.local_disks)) - 1]
        if size.local_disks and rule.local_disks
        else min(base + share * disk for base, share in rule.smallest_of)
    )
    is_kube = profile.reserved_as is ReservedAs.KUBE
    return ResourceReservation(
        size=disk,
        eviction=profile.eviction_disk * disk,
        kube=reserved if is_kube else ZERO,
        system=ZERO if is_kube else reserved,
    )


def compare_profiles(profiles: Iterable[Profile], size: NodeSize) -> tuple[NodeReservations, ...]:
    """Returns the reservations of the same node by each profile, in their order."""
    return tuple(calculate_reservations(profile, size) for profile in profiles)


def withheld_price_share(reservations: NodeReservations, cpu_price_share: Fraction) -> Fraction:
    """Returns the share of a node's price, from 0 to 1, that pays for what pods cannot request.

    `cpu_price_share` is the share of the price that pays for cpu; the rest pays for memory.
    """
    cpu, memory = reservations.cpu, reservations.memory
    return cpu_price_share * cpu.withheld / cpu.size + (1 - cpu_price_share) * memory.withheld / memory.size
