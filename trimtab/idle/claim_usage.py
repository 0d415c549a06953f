"""Finds claims that are mostly empty, or whose storage class costs more than another one of the cluster.

How full a volume is comes from the kubelets' volume statistics. A claim without any is judged by its class alone, and
counts with the capacity that its status or its spec names. The statistics do not count I/O operations, so it is not
known whether a claim needs the speed of its class, and the advice says so. A claim cannot shrink: a smaller claim means
a new claim and a copy of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.quantity import is_quantity, to_whole_units
from trimtab.cluster.reason import Code, Reason
from trimtab.idle.object_mentions import Manifest, name_of
from trimtab.idle.storage_prices import StorageClassPrice, cheaper_class, price_storage_class

GIB = 1 << 30
MIN_EMPTY_SHARE = 0.8
"""The share of a volume that must be free for a finding."""
MIN_EMPTY_BYTES = 10 * GIB
"""The number of bytes that must be free for a finding: less is not worth a migration."""
SPARE = 1.5
"""The ratio of the proposed size to the highest usage."""

CLAIM_MOSTLY_EMPTY = Code(
    "claim-mostly-empty",
    "Most of the claim's volume was free at each measurement.",
    "Copy the content to a smaller claim, because a claim cannot shrink.",
)
CLAIM_CLASS_DEAR = Code(
    "claim-class-dear",
    "Another StorageClass of the same provisioner costs less per GiB.",
    "Move the claim to the cheaper class if that is fast enough. Measure the operations and the throughput of the "
    "volume first.",
)


@dataclass(frozen=True, slots=True)
class VolumeUsage:
    """One measurement of a claim that is mounted."""

    namespace: str
    claim: str
    used_bytes: int
    capacity_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFinding:
    """One claim, and how much a smaller claim or a cheaper class would save."""

    namespace: str
    claim: str
    reason: Reason
    used_bytes: int
    """The highest measured usage in bytes; 0 if the claim was not measured and is reported only for its class."""
    capacity_bytes: int
    proposed_bytes: int | None = None
    proposed_class: str = ""
    dollars_per_month: float | None = None
    """The dollars a month that the finding would save, or None if the price of the class is not known."""


def find_claim_savings(usages: Iterable[VolumeUsage], manifests: Iterable[Manifest]) -> tuple[ClaimFinding, ...]:
    """Returns every finding, sorted by namespace and claim. `manifests` has the claims and StorageClasses of the
    cluster."""
    classes: dict[str, StorageClassPrice] = {}
    claims: dict[tuple[str, str], str] = {}
    capacities: dict[tuple[str, str], int] = {}
    for manifest in manifests:
        kind, namespace, name = name_of(manifest)
        if kind == "StorageClass" and (priced := price_storage_class(manifest)) is not None:
            classes[name] = priced
        if kind == "PersistentVolumeClaim":
            spec = manifest.get("spec")
            claims[namespace, name] = str(spec.get("storageClassName") or "") if isinstance(spec, Mapping) else ""
            capacities[namespace, name] = _read_capacity(manifest)
    highest: dict[tuple[str, str], VolumeUsage] = {}
    for usage in usages:
        key = (usage.namespace, usage.claim)
        if key not in highest or usage.used_bytes > highest[key].used_bytes:
            highest[key] = usage
    findings: list[ClaimFinding] = []
    for key, usage in sorted(highest.items()):
        price = classes.get(claims.get(key, ""))
        findings += filter(None, (_empty_finding(usage, price), _dear_finding(usage, price, classes)))
    for (namespace, name), capacity in capacities.items():
        if (namespace, name) not in highest and capacity:
            unmeasured = VolumeUsage(namespace, name, used_bytes=0, capacity_bytes=capacity)
            findings += filter(None, (_dear_finding(unmeasured, classes.get(claims[namespace, name]), classes),))
    return tuple(sorted(findings, key=lambda one: (one.namespace, one.claim)))


def _read_capacity(claim: Manifest) -> int:
    """Returns the bytes of a claim's volume: its status, or else what it requests; 0 if neither can be read."""
    for path in (("status", "capacity"), ("spec", "resources", "requests")):
        value: Any = claim
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and is_quantity(amount := value.get("storage")):
            return to_whole_units(amount)
    return 0


def _empty_finding(usage: VolumeUsage, price: StorageClassPrice | None) -> ClaimFinding | None:
    free = usage.capacity_bytes - usage.used_bytes
    if usage.capacity_bytes <= 0 or free < MIN_EMPTY_BYTES or free < MIN_EMPTY_SHARE * usage.capacity_bytes:
        return None
    proposed = max(1, -(-int(usage.used_bytes * SPARE) // GIB)) * GIB
    saved = None if price is None else (usage.capacity_bytes - proposed) / GIB * price.dollars_per_gib
    sentence = (
        f"{usage.used_bytes / GIB:.1f} of {usage.capacity_bytes / GIB:.1f} GiB are used; {proposed // GIB} GiB "
        "would be enough"
    )
    return ClaimFinding(
        namespace=usage.namespace,
        claim=usage.claim,
        reason=CLAIM_MOSTLY_EMPTY(sentence),
        used_bytes=usage.used_bytes,
        capacity_bytes=usage.capacity_bytes,
        proposed_bytes=proposed,
        dollars_per_month=saved,
    )


def _dear_finding(
    usage: VolumeUsage, price: StorageClassPrice | None, classes: Mapping[str, StorageClassPrice]
) -> ClaimFinding | None:
    better = cheaper_class(price, classes) if price is not None else None
    if price is None or better is None:
        return None
    other, as_fast = better
    saved = usage.capacity_bytes / GIB * (price.dollars_per_gib - other.dollars_per_gib)
    speed = "and is at least as fast" if as_fast else "and may be slower"
    sentence = (
        f"{other.name} ({other.volume_type}) costs ${other.dollars_per_gib:g} per GiB, {price.name} "
        f"({price.volume_type}) costs ${price.dollars_per_gib:g}, {speed}"
    )
    return ClaimFinding(
        namespace=usage.namespace,
        claim=usage.claim,
        reason=CLAIM_CLASS_DEAR(sentence),
        used_bytes=usage.used_bytes,
        capacity_bytes=usage.capacity_bytes,
        proposed_class=other.name,
        dollars_per_month=saved,
    )
