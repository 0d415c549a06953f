"""What did an estafette node-compactor do here? Its configuration as pools of ours, with notes for what differs.

The ConfigMap holds JSON under `estafette-k8s-node-compactor-config.yaml`: per GKE node pool `enabled`,
`scaleDownCPURequestRatioLimit` and `scaleDownRequiredUnderutilizedNodeCount` (estafette-k8s-node-compactor, readme).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from trimtab.cluster.documents import Document
from trimtab.cluster.mistake import Mistake, shown
from trimtab.cluster.pool import Pool, preset
from trimtab.cluster.pool_file import PoolReading

KEY = "estafette-k8s-node-compactor-config.yaml"
NOTES = (
    "memory counts too: estafette looked at cpu only; the memory line of the preset is kept off",
    "pods are evicted through the eviction API and budgets are kept; estafette deleted pods whatever their budget said",
    "a node goes only when all of its pods have a place elsewhere; estafette relied on the number of under-used nodes",
    "nothing is done before dryRun is false",
)


def is_estafette(document: Document) -> bool:
    """Is this its ConfigMap?"""
    value = document.value
    data = value.get("data") if isinstance(value, dict) else None
    return isinstance(data, dict) and KEY in data


def imported(documents: Iterable[Document]) -> PoolReading:
    """Pools, mistakes, and what will be different from now on."""
    pools: list[Pool] = []
    mistakes: list[Mistake] = []
    for document in filter(is_estafette, documents):
        found = _pools(document, mistakes)
        for name in sorted(found):
            pool = _pool(document, name, found[name], mistakes)
            if pool is not None:
                pools.append(pool)
    return PoolReading(tuple(pools), tuple(mistakes), NOTES if pools else ())


def _pools(document: Document, mistakes: list[Mistake]) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(document.value["data"][KEY])
    except (msgspec.DecodeError, TypeError) as error:
        mistakes.append(document.mistake(("data", KEY), "JSON", str(error)))
        return {}
    pools = found.get("nodePools") if isinstance(found, dict) else None
    if not isinstance(pools, dict):
        mistakes.append(document.mistake(("data", KEY, "nodePools"), "a mapping of pools", shown(pools)))
        return {}
    return pools


def _pool(document: Document, name: str, said: Any, mistakes: list[Mistake]) -> Pool | None:
    path = ("data", KEY, "nodePools", name)
    if not isinstance(said, dict):
        mistakes.append(document.mistake(path, "a mapping", shown(said)))
        return None
    ratio = said.get("scaleDownCPURequestRatioLimit", 0)
    count = said.get("scaleDownRequiredUnderutilizedNodeCount", 0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        mistakes.append(document.mistake((*path, "scaleDownCPURequestRatioLimit"), "a share from 0 to 1", shown(ratio)))
        return None
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        mistakes.append(document.mistake((*path, "scaleDownRequiredUnderutilizedNodeCount"), "a count", shown(count)))
        return None
    return replace(
        preset("balanced", name), enabled=said.get("enabled") is True,
        labels={"cloud.google.com/gke-nodepool": name}, under={"cpu": round(ratio * 100)},
        under_count=max(1, count), under_for=300,
    )  # fmt: skip
