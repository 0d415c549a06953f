"""The order in which drains take their next step.

If small successors run first, they take a little of the free capacity of every node, and no node keeps enough for a
large one. So drains that began together evict their largest pods first.
"""

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView


def order_drains(view: ClusterView) -> list[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
    """Returns the nodes with an authentic annotation of this compactor, in the order in which their drains take their
    next step.

    The drain that began first comes first, so that it also ends first. Of drains that began together, the one with the
    largest pod to evict comes first: the one that requests most cpu, then most memory.
    """
    drains = view.annotated_nodes()
    uids = [
        move.uid for _, annotation in drains if isinstance(annotation, DrainAnnotation) for move in annotation.moves
    ]
    largest: dict[str, tuple[int, int]] = {}
    for pod in [pod for uid in uids if (pod := view.inventory.pod_index.by_uid.get(uid)) is not None]:
        requests = pod.requirements.requests
        if not isinstance(requests, Unreadable):
            amounts = (requests.get("cpu", 0), requests.get("memory", 0))
            largest[pod.node] = max(largest.get(pod.node, (0, 0)), amounts)

    def rank(drain: tuple[NodeInfo, DrainAnnotation | Unreadable]) -> tuple[int, int, int]:
        node, annotation = drain
        cpu, memory = largest.get(node.name, (0, 0))
        return annotation.since if isinstance(annotation, DrainAnnotation) else 0, -cpu, -memory

    return sorted(drains, key=rank)
