"""The memory that a machine's hypervisor and kernel take before the kubelet sees it.

A node's capacity is less than the memory that its machine is sold with. Google's loss is known by a formula (cluster
autoscaler, cloudprovider/gce/gce_reserved.go, August 2026); elsewhere the share is known by size, from what the kernel
of 1 092 EC2 instance types shows (July 2026; the median of each size).
"""

from __future__ import annotations

from fractions import Fraction

from trimtab.reservations.profile import GIB, MIB

UBUNTU_EXTRA_BYTES = 4 * MIB
ARM_COS_SHARE = Fraction(9971, 10000)
"""`architectureOffsetRatio` of that file: the whole loss of an arm64 machine with Container-Optimized OS is scaled by
it. Its authors fitted it to measurements; they name no cause."""

_SHARE_BY_SIZE = ((4, Fraction(74, 1000)), (8, Fraction(52, 1000)), (16, Fraction(42, 1000)), (64, Fraction(37, 1000)))
"""(GiB up to and including which, the share of the memory that is lost)."""
_SHARE_ABOVE = Fraction(32, 1000)


def gce_kernel_bytes(memory_bytes: int, *, is_ubuntu: bool = False, is_arm_cos: bool = False) -> Fraction:
    """Returns the memory in bytes that the kernel of a Compute Engine machine takes, exact.

    `memory_bytes`: what the machine is sold with. `is_arm_cos`: an arm64 machine with Container-Optimized OS.
    """
    memory = Fraction(memory_bytes)
    amount = memory / 64 + 16 * MIB + min(memory * Fraction(175, 100_000), Fraction(248 * MIB))
    if memory_bytes > 3 * GIB:
        # Bounce buffers for devices that cannot address more than 32 bits.
        amount += 64 * MIB
    if memory_bytes <= 8 * GIB:
        amount += 8 * MIB
    if is_ubuntu:
        amount += UBUNTU_EXTRA_BYTES
    return amount * ARM_COS_SHARE if is_arm_cos else amount


def typical_kernel_bytes(memory_bytes: int) -> int:
    """Returns the memory in bytes that a machine of this size usually loses, by the table of sizes."""
    for gib, share in _SHARE_BY_SIZE:
        if memory_bytes <= gib * GIB:
            return int(share * memory_bytes)
    return int(_SHARE_ABOVE * memory_bytes)
