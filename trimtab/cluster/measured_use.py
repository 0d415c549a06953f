"""The present use of pods that do not request cpu or memory, by owner.

The successor of such a pod is planned with the largest use of any pod of its owner: which of them a successor takes
over is not known, and pods of one owner keep the same requests, as replicas have.
"""

from collections.abc import Iterable, Mapping

from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts

MEASURED_RESOURCES = ("cpu", "memory")
POD_METRICS = "PodMetrics"
"""The kind of the objects that `kubectl get podmetrics -A -o yaml` prints."""


def owner_key(pod: PodInfo) -> OwnerKey:
    """Returns the key under which the pod's use is found."""
    if pod.owner is None:
        return (pod.namespace, "Pod", pod.name)
    return (pod.namespace, pod.owner.kind, pod.owner.name)


def is_use_needed(pod: PodInfo) -> bool:
    """Returns whether the pod requests no cpu or no memory, and may move. DaemonSet and static pods do not move."""
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable) or pod.is_finished or pod.is_daemon or pod.is_static:
        return False
    return not all(requests.get(resource) for resource in MEASURED_RESOURCES)


def use_by_owner(pods: Iterable[PodInfo], use_by_pod: Mapping[str, Amounts]) -> Mapping[OwnerKey, Amounts]:
    """Returns the largest use of each resource by one of these pods of each owner.

    `use_by_pod`: pod (namespace/name) → what its containers use together, in the scheduler's numbers.
    """
    largest: dict[OwnerKey, dict[str, int]] = {}
    for pod in pods:
        use = use_by_pod.get(pod.key)
        if use is None:
            continue
        maximum = largest.setdefault(owner_key(pod), {})
        for resource in MEASURED_RESOURCES:
            maximum[resource] = max(maximum.get(resource, 0), use.get(resource, 0))
    return largest
