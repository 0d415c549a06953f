"""The network interfaces of every EC2 instance type, and the IPv4 addresses of each.

The table is `eni_table.txt`: facts of Amazon's own table for nodes (amazon-eks-ami, nodeadm, July 2026; MIT-0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class NetworkInterfaces:
    """The elastic network interfaces of a machine."""

    count: int
    addresses: int
    """The number of IPv4 addresses of each interface, including its own."""


@lru_cache(maxsize=1)
def interfaces_by_type() -> Mapping[str, NetworkInterfaces]:
    """Returns instance type → its network interfaces. A type that is not in the mapping is unknown."""
    table: dict[str, NetworkInterfaces] = {}
    shape = NetworkInterfaces(0, 0)
    for line in files("trimtab.reservations").joinpath("eni_table.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            # `[INTERFACES ADDRESSES]` begins a section; every type after it has these.
            count, addresses = line.strip("[]").split()
            shape = NetworkInterfaces(int(count), int(addresses))
        elif line and line[0] != "#":
            family, *sizes = line.split()
            table.update({f"{family}.{size}": shape for size in sizes})
    return table
