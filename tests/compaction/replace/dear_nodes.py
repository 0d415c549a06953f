"""Large dear nodes, and a node group of small ones."""

from typing import Any

from tests.cluster_of import ZONE, Item, node, pod
from trimtab.cluster.pool import Pool

LABEL = "cloud.google.com/gke-nodepool"
PRICE = "trimtab.dev/price"
KEPT = {"trimtab.dev/do-not-disrupt": "true"}
BIG = Pool(name="big", min_nodes=0, single_replicas=True)
SMALL = Pool(name="small", min_nodes=0)


def machine(name: str, group: str, cpu: str, memory: str, price: int | None, **more: Any) -> Item:
    labels = {
        LABEL: group,
        ZONE: "z1",
        **({PRICE: str(price)} if price else {}),
        **more.pop("labels", {}),
    }
    return node(name, cpu, memory, labels=labels, **more)


def big(name: str = "a", **more: Any) -> Item:
    return machine(name, "big", "16", "64Gi", 800_000, **more)


def small(price: int | None = 200_000, **more: Any) -> tuple[Item, Item]:
    """The group's node, and the pod that fills it."""
    return machine("s", "small", "4", "16Gi", price, **more), pod("full", "s", "3500m", annotations=KEPT)
