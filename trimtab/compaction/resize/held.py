"""Which requests count for a pod whose resize is being verified: the larger of its present requests and those that a
revert would restore.

The planner of drains must not use capacity that a revert may need. kube-scheduler knows nothing of reverts and may use
this capacity nevertheless; the revert then does not fit, and the pod is evicted and replaced.
"""

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resizable_pod import ResizablePod
from trimtab.cluster.resources import Amounts
from trimtab.compaction.resize.records import OpenResize


def amounts_to_hold(record: OpenResize, pod: ResizablePod | None) -> Amounts:
    """Returns resource → by how much a revert of this resize would raise the pod's requests. Resources that it would
    not raise are left out.

    `pod` is None if the pod is not known; then all changes of the resize count.
    """
    more: Amounts = {}
    for resource in {change.resource for change in record.changes}:
        changes = {change.container: change for change in record.changes if change.resource == resource}
        # What its node still holds for it counts already (`PodInfo`), whatever its spec says.
        now = {name: pod.held(name, resource) if pod is not None else None for name in changes}
        present = {
            name: change.amount_after if (amount := now[name]) is None else amount for name, change in changes.items()
        }
        after_revert = {name: max(present[name], change.amount_before) for name, change in changes.items()}
        if pod is None:
            growth = sum(after_revert.values()) - sum(present.values())
        else:
            growth = pod.total_request(resource, after_revert) - pod.total_request(resource, present)
        if growth > 0:
            more[resource] = growth
    return more


def with_held_requests(
    inventory: Inventory, records: Mapping[str, OpenResize], pods: Mapping[str, ResizablePod]
) -> Inventory:
    """Returns the inventory in which pods with a resize in progress request at least what they requested before it.

    `records` and `pods` are keyed by uid. A pod that no longer exists, or that already has its earlier requests again,
    is not changed.
    """
    if not records:
        return inventory
    shared: dict[tuple[int, tuple[tuple[str, int], ...]], SchedulingRequirements] = {}
    held = tuple([_with_record(pod, records.get(pod.uid), pods.get(pod.uid), shared) for pod in inventory.pods])
    return replace(inventory, pods=held)


def _with_record(
    pod: PodInfo,
    record: OpenResize | None,
    running: ResizablePod | None,
    shared: dict[tuple[int, tuple[tuple[str, int], ...]], SchedulingRequirements],
) -> PodInfo:
    requests = pod.requirements.requests
    if record is None or isinstance(requests, Unreadable):
        return pod
    more = amounts_to_hold(record, running)
    if not more:
        return pod
    key = (id(pod.requirements), tuple(sorted(more.items())))
    if key not in shared:
        raised = {**requests, **{name: requests.get(name, 0) + amount for name, amount in more.items()}}
        shared[key] = msgspec.structs.replace(pod.requirements, requests=raised)
    # Pods that are alike share their answers: this one is like no other now.
    return msgspec.structs.replace(pod, requirements=shared[key], likeness=-1)
