"""What pods without a cpu or memory request use now, by owner.

The pod that replaces such a pod after an eviction is planned with the largest use of any pod of its owner. It is not
known which pod's work it takes over, and all replicas of an owner have the same requests.
"""

from collections.abc import Iterable, Mapping

from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts

MEASURED_RESOURCES = ("cpu", "memory")
POD_METRICS = "PodMetrics"
"""The kind of the objects that `kubectl get podmetrics -A -o yaml` prints."""


def owner_key(pod: PodInfo) -> OwnerKey:
    """Returns the key of the pod's owner, or of the pod itself if it has no owner."""
    return pod.owner or OwnerKey(pod.namespace, POD, pod.name)


def is_use_needed(pod: PodInfo) -> bool:
    """Returns whether the planner needs the pod's measured use: the pod requests no cpu or no memory, and may move,
    which DaemonSet and static pods do not."""
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable) or pod.is_finished or pod.is_daemon or pod.is_static:
        return False
    return not all(requests.get(resource) for resource in MEASURED_RESOURCES)


def use_by_owner(pods: Iterable[PodInfo], use_by_pod: Mapping[str, Amounts]) -> Mapping[OwnerKey, Amounts]:
    """Returns, for each owner, the largest use of each resource by one of its pods. `use_by_pod` maps a pod
    (namespace/name) to the sum over its containers, in the scheduler's units.
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
