"""Pods whose successors may come back to the node that they leave, because they tolerate its cordon."""

from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import TOLERATES_CORDON
from trimtab.scheduling import node_filters
from trimtab.scheduling.cluster_model import ClusterModel


def returning_reason(model: ClusterModel, number: int) -> Reason | None:
    """Returns the reason if the scheduler may place the successor of this pod on the node that the pod leaves,
    otherwise None. A drain would evict such a pod again and again, and never empty the node."""
    pod_class, pod, node = model.successor_class_of[number], model.pods[number], model.nodes[model.node_of[number]]
    # A pod without an owner has no successor.
    if pod.owner is None or not node_filters.may_return(pod_class.ask, pod_class.volumes, node):
        return None
    return TOLERATES_CORDON(
        f"pod {pod.key} tolerates the cordon of node {node.name}, so the scheduler may place its successor there again"
    )
