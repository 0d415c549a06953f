"""List prices of volumes and load balancers, in dollars, by the provisioner of a StorageClass and the cloud of a node.

The prices are those of the clouds' public price pages of 2025, for one region each: AWS us-east-1 (EBS, EFS, ELB), GCP
us-central1 (persistent disks, forwarding rules), Azure eastus (managed disks by the GiB of a 128 GiB tier, standard
load balancer). Operations and throughput that are paid for apart are not in them. A class that is not listed has no
price: None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.idle.object_mentions import Manifest, name_of

_AWS = {"gp2": 0.10, "gp3": 0.08, "io1": 0.125, "io2": 0.125, "st1": 0.045, "sc1": 0.015, "standard": 0.05}
_GCP = {
    "pd-standard": 0.04, "pd-balanced": 0.10, "pd-ssd": 0.17, "pd-extreme": 0.125, "hyperdisk-balanced": 0.08,
}  # fmt: skip
_AZURE = {
    "premium_lrs": 0.154, "standardssd_lrs": 0.075, "standard_lrs": 0.046, "premiumv2_lrs": 0.081,
}  # fmt: skip
_PROVISIONERS: Mapping[str, tuple[Mapping[str, float], tuple[str, ...], str]] = {
    "ebs.csi.aws.com": (_AWS, ("type", "Type"), "gp3"),
    "kubernetes.io/aws-ebs": (_AWS, ("type",), "gp2"),
    "pd.csi.storage.gke.io": (_GCP, ("type",), "pd-standard"),
    "kubernetes.io/gce-pd": (_GCP, ("type",), "pd-standard"),
    "disk.csi.azure.com": (
        _AZURE,
        ("skuName", "skuname", "storageaccounttype", "storageAccountType"),
        "standardssd_lrs",
    ),
    "kubernetes.io/azure-disk": (_AZURE, ("skuName", "storageaccounttype"), "standard_lrs"),
    "efs.csi.aws.com": ({"": 0.30}, (), ""),
}
"""Provisioner → prices by type in dollars per GiB and month, the parameters that name the type, and the type without
them."""
_EQUAL_OR_BETTER = frozenset((("gp2", "gp3"), ("io1", "io2")))
"""(type, type that serves at least as many operations at the same size, up to 1 TiB): AWS' volume types."""
_LOAD_BALANCERS = {"aws": 16.43, "gce": 18.25, "azure": 18.25}
"""Cloud by the scheme of a node's providerID → dollars a month: a network load balancer, a forwarding rule, a standard
load balancer with its first rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClassPrice:
    """One StorageClass with its list price."""

    name: str
    provisioner: str
    volume_type: str
    dollars_per_gib: float
    """In a month."""


def price_storage_class(manifest: Manifest) -> StorageClassPrice | None:
    """The class with its price; None where its provisioner or type is not listed."""
    provisioner = str(manifest.get("provisioner") or "")
    if provisioner not in _PROVISIONERS:
        return None
    prices, keys, default = _PROVISIONERS[provisioner]
    parameters: Mapping[str, Any] = manifest.get("parameters") or {}
    volume_type = next((str(parameters[key]) for key in keys if key in parameters), default).lower()
    if volume_type not in prices:
        return None
    return StorageClassPrice(
        name=name_of(manifest)[2], provisioner=provisioner, volume_type=volume_type,
        dollars_per_gib=prices[volume_type],
    )  # fmt: skip


def cheaper_class(
    current: StorageClassPrice, classes: Mapping[str, StorageClassPrice]
) -> tuple[StorageClassPrice, bool] | None:
    """The cheapest class of the same provisioner that costs less, and whether it serves at least as many operations.

    A class that surely does so is preferred over a cheaper one that may not. None where no class costs less.
    """
    others = [
        other for other in classes.values()
        if other.provisioner == current.provisioner and other.dollars_per_gib < current.dollars_per_gib
    ]  # fmt: skip
    if not others:
        return None
    best = min(
        others, key=lambda other: ((current.volume_type, other.volume_type) not in _EQUAL_OR_BETTER,
                                   other.dollars_per_gib, other.name))  # fmt: skip
    return best, (current.volume_type, best.volume_type) in _EQUAL_OR_BETTER


def price_load_balancer(provider_ids: Iterable[str]) -> float | None:
    """The list price of a load balancer in dollars a month, by the providerIDs of nodes; None without a known cloud."""
    schemes = {text.partition(":")[0] for text in provider_ids}
    known = [_LOAD_BALANCERS[scheme] for scheme in schemes if scheme in _LOAD_BALANCERS]
    return known[0] if len(known) == 1 else None
