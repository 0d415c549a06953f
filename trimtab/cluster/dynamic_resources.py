"""How many devices does a claim hold, and how many of its kind has each node? Counted where devices are single.

A claim is counted when it was made from a template for one pod, and asks only for a number of whole devices of classes
that choose by their driver alone. Everything else (alternatives, selectors, constraints, shared claims, devices that
are parts of others) is for the scheduler: such a pod keeps its node, and its devices are nobody else's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.api.devices import AllocatedDevice, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice

PREFIX = "devices:"
"""Begins the name under which a driver's devices are counted among a node's resources."""
KINDS = frozenset({"DeviceClass", "ResourceClaim", "ResourceSlice"})
_BY_DRIVER = re.compile(r"""\s*device\.driver\s*==\s*(["'])([a-z0-9.-]+)\1\s*""")

Claimed = Mapping[str, int] | str
"""Resource → devices of it that a claim holds; in words why that cannot be told."""


@dataclass(frozen=True, slots=True)
class Devices:
    """Of one cluster."""

    claims: Mapping[tuple[str, str], Claimed] = field(default_factory=dict)
    """(namespace, name) of a ResourceClaim → what it holds."""
    nodes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → resource → devices that counted claims may hold there, held ones included."""
    forbidden: tuple[str, ...] = ()
    """Kinds without which no claim can be counted, and that the user was not allowed to list."""

    def of(self, namespace: str, claims: Iterable[str]) -> Claimed:
        """What the claims of a pod hold together."""
        total: Counter[str] = Counter()
        for name in claims:
            if self.forbidden:
                return f"claim {name or 'without a name yet'}: {plurals(self.forbidden)} may not be listed"
            found = self.claims.get((namespace, name), "is not in the snapshot")
            if isinstance(found, str):
                return f"claim {name or 'without a name yet'} {found}"
            total.update(found)
        return total


def devices(
    claims: Iterable[ResourceClaim], slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass],
    forbidden: Iterable[str] = (),
) -> Devices:  # fmt: skip
    """Of all claims, slices and classes of a cluster, and of the kinds that may not be listed."""
    drivers = {one.metadata.name: _driver(one) for one in classes}
    held: dict[tuple[str, str], Claimed] = {}
    taken: set[tuple[str, str, str]] = set()
    for claim in claims:
        found = _claimed(claim, drivers)
        held[claim.metadata.namespace, claim.metadata.name] = found
        if isinstance(found, str):
            taken.update((one.driver, one.pool, one.device) for one in _allocated(claim))
    return Devices(held, _of_nodes(slices, taken), tuple(sorted(set(forbidden) & KINDS)))


def plurals(kinds: Iterable[str]) -> str:
    """Their plurals in a sentence: "DeviceClasses, ResourceClaims and ResourceSlices"."""
    *first, last = (kind + ("es" if kind.endswith("s") else "s") for kind in kinds)
    return f"{', '.join(first)} and {last}" if first else last


def _driver(found: DeviceClass) -> str:
    """The driver of which the class takes any device; empty where it chooses otherwise."""
    if len(found.spec.selectors) != 1 or found.spec.selectors[0].cel is None:
        return ""
    read = _BY_DRIVER.fullmatch(found.spec.selectors[0].cel.expression)
    return read[2] if read else ""


def _claimed(claim: ResourceClaim, drivers: Mapping[str, str]) -> Claimed:
    if claim.metadata.controller is None or claim.metadata.controller.kind != "Pod":
        return "is no single pod's"
    if claim.spec.devices.constraints:
        return "holds devices to each other by constraints"
    total: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        counted = _counted(request, drivers)
        if isinstance(counted, str):
            return counted
        total.update({f"{PREFIX}{counted[0]}": counted[1]})
    got = Counter(f"{PREFIX}{one.driver}" for one in _allocated(claim))
    return total if total == got else "was given other devices than it asks for, or none yet"


def _counted(request: DeviceRequest, drivers: Mapping[str, str]) -> tuple[str, int] | str:
    """(driver, how many); in words why that cannot be told."""
    asked = request.exactly
    if asked is None:
        return f"asks for one of several alternatives ({request.name})"
    if asked.allocation_mode not in ("", "ExactCount") or asked.admin_access or asked.selectors or asked.capacity:
        return f"asks for devices by more than class and number ({request.name})"
    driver = drivers.get(asked.device_class_name, "")
    if not driver:
        return f"asks for devices of class {asked.device_class_name}, which does not choose by driver alone"
    return driver, asked.count


def _allocated(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


def _of_nodes(slices: Iterable[ResourceSlice], taken: set[tuple[str, str, str]]) -> dict[str, dict[str, int]]:
    """Of pools that are whole (all slices of the newest generation) and hold nothing but single devices."""
    pools: dict[tuple[str, str, str], list[ResourceSlice]] = {}
    for found in slices:
        if found.spec.node_name:
            pools.setdefault((found.spec.node_name, found.spec.driver, found.spec.pool.name), []).append(found)
    nodes: dict[str, dict[str, int]] = {}
    for (node, driver, pool), parts in pools.items():
        newest = max(part.spec.pool.generation for part in parts)
        parts = [part for part in parts if part.spec.pool.generation == newest]
        is_whole = all(part.spec.pool.resource_slice_count == len(parts) for part in parts)
        if is_whole and all(map(_is_single, parts)):
            free = sum((driver, pool, one.name) not in taken for part in parts for one in part.spec.devices)
            amounts = nodes.setdefault(node, {})
            amounts[f"{PREFIX}{driver}"] = amounts.get(f"{PREFIX}{driver}", 0) + free
    return nodes


def _is_single(found: ResourceSlice) -> bool:
    return not found.spec.shared_counters and not any(
        one.consumes_counters or one.taints or one.allow_multiple_allocations or one.node_name
        for one in found.spec.devices
    )
