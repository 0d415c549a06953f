"""The memory that a machine's hypervisor and kernel use before the kubelet sees it.

A node's capacity is less than the memory with which its machine is sold. For Google Cloud, the difference follows from
a formula (cluster autoscaler, cloudprovider/gce/gce_reserved.go, August 2026). For other clouds, it is estimated by
size, from what the kernels of 1 092 EC2 instance types show (July 2026; the median of each size).
"""

from __future__ import annotations

from fractions import Fraction

from trimtab.reservations.profile import GIB, MIB

UBUNTU_EXTRA_BYTES = 4 * MIB
ARM_COS_SHARE = Fraction(9971, 10000)
"""The factor (`architectureOffsetRatio` in gce_reserved.go) by which the whole loss of an arm64 machine with
Container-Optimized OS is multiplied. The authors fitted it to measurements and give no cause."""

_SHARE_BY_SIZE = ((4, Fraction(74, 1000)), (8, Fraction(52, 1000)), (16, Fraction(42, 1000)), (64, Fraction(37, 1000)))
"""(largest size in GiB, share of the memory that is lost), by ascending size."""
_SHARE_ABOVE = Fraction(32, 1000)


def gce_kernel_bytes(memory_bytes: int, *, is_ubuntu: bool = False, is_arm_cos: bool = False) -> Fraction:
    """Returns the exact memory in bytes that the kernel of a Compute Engine machine uses.

    `memory_bytes` is the memory with which the machine is sold. `is_arm_cos`: an arm64 machine with Container-Optimized
    OS.
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
    """Returns the memory in bytes that a machine of this size usually loses, according to the table of sizes."""
    for gib, share in _SHARE_BY_SIZE:
        if memory_bytes <= gib * GIB:
            return int(share * memory_bytes)
    return int(_SHARE_ABOVE * memory_bytes)
