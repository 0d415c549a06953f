"""Whether the only replica of a ReplicaSet can get a second one: the compactor adds it before it evicts the first."""

from collections.abc import Sequence

from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resource_quotas import quota_without_room
from trimtab.compaction import reasons as r


def second_replica_reason(pod: PodInfo, pool: Pool, quotas: Sequence[ResourceQuota]) -> Reason | None:
    """Returns why the ReplicaSet of this pod cannot get a second replica, or None if nothing prevents that for certain.

    `quotas`: the ResourceQuotas of the pod's namespace."""
    if pool.scale_namespaces is not None and pod.namespace not in pool.scale_namespaces:
        return r.NO_RIGHT_TO_SCALE(
            f"pod {pod.key} is the only replica of {pod.owner}, and TRIMTAB_COMPACTOR_SCALE_NAMESPACES does not list "
            f"{pod.namespace}"
        )
    requests = pod.requirements.requests
    name = None if isinstance(requests, Unreadable) else quota_without_room(quotas, [requests])
    if name is None:
        return None
    return r.NO_QUOTA_FOR_SECOND_REPLICA(
        f"pod {pod.key} is the only replica of {pod.owner}, and ResourceQuota {pod.namespace}/{name} has no room for a "
        "second one"
    )
