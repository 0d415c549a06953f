"""The cluster as it is after drains: the successors run on their targets, and the drained nodes are gone."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import larger_amounts
from trimtab.scheduling.cluster_model import Again


def cluster_after_drains(
    inventory: Inventory, drained_nodes: Collection[str], target_of: Mapping[str, str], again: Again | None
) -> Inventory:
    """Returns the cluster as it is when the successors run and the cluster autoscaler has removed the empty nodes.

    `target_of`: pod (namespace/name) on a drained node → the node of its successor. `again` returns what a pod would
    request if it were admitted again."""
    pods: list[PodInfo] = []
    shared_requirements: dict[object, SchedulingRequirements] = {}
    for pod in inventory.pods:
        if pod.key in target_of and pod.node in drained_nodes:
            requirements = successor_requirements(pod, again)
            key = (id(pod.requirements), str(requirements.requests))
            # Replicas share one requirements object: the next model then classifies them with one lookup.
            pods.append(
                change(pod, node=target_of[pod.key], requirements=shared_requirements.setdefault(key, requirements))
            )
        elif pod.node not in drained_nodes:
            pods.append(pod)
    nodes = tuple(node for node in inventory.nodes if node.name not in drained_nodes)
    return replace(inventory, nodes=nodes, pods=tuple(pods))


def successor_requirements(pod: PodInfo, again: Again | None) -> SchedulingRequirements:
    """Returns the requirements of the pod's successor."""
    requests = again(pod) if again is not None else None
    if requests is None or isinstance(requests, Unreadable) or isinstance(pod.requirements.requests, Unreadable):
        return pod.requirements
    return change(pod.requirements, requests=larger_amounts(pod.requirements.requests, requests))
