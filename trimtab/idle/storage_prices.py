"""Prices of volumes in dollars per GiB and month: the user's own price, or else list prices by provisioner and volume
type.

The annotation `trimtab.dev/price-per-gib-month` of a StorageClass is the user's price. Each list price is for one
region (AWS us-east-1, Google Cloud us-central1), and only for types that a published summary of the cloud's price page
names: for AWS menuvis1-blip.github.io/autonomous-researcher/aws/architecture/storage/2026/02/24/amazon-ebs.html, for
Google Cloud c3x.dev/blog/gcp-persistent-disk-types-cost, both read in 2026. I/O operations and throughput that are paid
for separately are not included. A class with neither has no price: None, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.idle.object_mentions import Manifest, name_of

PRICE_ANNOTATION = "trimtab.dev/price-per-gib-month"
_AWS = {"gp2": 0.10, "gp3": 0.08, "io1": 0.125, "io2": 0.125, "st1": 0.045, "sc1": 0.015}
_GCP = {"pd-standard": 0.04, "pd-balanced": 0.10, "pd-ssd": 0.17}
_PROVISIONERS: Mapping[str, tuple[Mapping[str, float], tuple[str, ...], str]] = {
    "ebs.csi.aws.com": (_AWS, ("type", "Type"), "gp3"),
    "kubernetes.io/aws-ebs": (_AWS, ("type",), "gp2"),
    "pd.csi.storage.gke.io": (_GCP, ("type",), "pd-standard"),
    "kubernetes.io/gce-pd": (_GCP, ("type",), "pd-standard"),
}
"""Provisioner → (type → price in dollars per GiB and month, the parameters that may name the type, the default
type)."""
_EQUAL_OR_BETTER = frozenset((("gp2", "gp3"), ("io1", "io2")))
"""Pairs of AWS volume types: at the same size, up to 1 TiB, the second type allows at least as many I/O operations as
the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClassPrice:
    """One StorageClass with its list price."""

    name: str
    provisioner: str
    volume_type: str
    dollars_per_gib: float
    """The price of a GiB in dollars a month."""


def price_storage_class(manifest: Manifest) -> StorageClassPrice | None:
    """Returns the class with its price; None if its author gives no price and its provisioner or type is not listed."""
    provisioner = str(manifest.get("provisioner") or "")
    prices, keys, default = _PROVISIONERS.get(provisioner, ({}, ("type",), ""))
    parameters: Mapping[str, Any] = manifest.get("parameters") or {}
    volume_type = next((str(parameters[key]) for key in keys if key in parameters), default).lower()
    dollars = _written_price(manifest)
    if dollars is None:
        dollars = prices.get(volume_type)
    if dollars is None:
        return None
    return StorageClassPrice(
        name=name_of(manifest)[2], provisioner=provisioner, volume_type=volume_type, dollars_per_gib=dollars
    )


def _written_price(manifest: Manifest) -> float | None:
    """Returns the price in the class's annotation, or None if the annotation is missing or is not a number above 0."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = annotations.get(PRICE_ANNOTATION) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str) or re.fullmatch(r"\d{1,6}(\.\d{1,9})?", text) is None:
        return None
    return float(text) or None


def cheaper_class(
    current: StorageClassPrice, classes: Mapping[str, StorageClassPrice]
) -> tuple[StorageClassPrice, bool] | None:
    """Returns the best cheaper class of the same provisioner, and whether it certainly allows at least as many I/O
    operations; None if no class costs less.

    If some cheaper classes certainly allow as many operations, the cheapest of these is returned, otherwise the
    cheapest of all.
    """
    others = [
        other
        for other in classes.values()
        if other.provisioner == current.provisioner and other.dollars_per_gib < current.dollars_per_gib
    ]
    if not others:
        return None
    best = min(
        others,
        key=lambda other: (
            (current.volume_type, other.volume_type) not in _EQUAL_OR_BETTER,
            other.dollars_per_gib,
            other.name,
        ),
    )
    return best, (current.volume_type, best.volume_type) in _EQUAL_OR_BETTER
