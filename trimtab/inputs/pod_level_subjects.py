"""Reads from a snapshot what decides whether a pod may request as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.cluster import quantity
from trimtab.cluster.operating_system import runs_on_windows
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import POD_LEVEL, QoS, Role, limits_of, requests_of
from trimtab.cluster.whole_pods import has_huge_pages
from trimtab.histogram.batch_history import ContainerKey
from trimtab.inputs.current_requests import CurrentContainer, CurrentRequests
from trimtab.policy import autoscalers
from trimtab.policy.pod_level.obstacles import PodLevelSubject


def list_lasting_containers(current: CurrentRequests) -> dict[OwnerKey, frozenset[str]]:
    """Returns workload → the names of the containers that run as long as its pods do, for workloads with several."""
    names: dict[OwnerKey, set[str]] = {}
    for key, container in current.containers.items():
        if container.container_ref.role is not Role.INIT:
            names.setdefault(key.owner, set()).add(key.name)
    return {owner: frozenset(of_owner) for owner, of_owner in names.items() if len(of_owner) > 1}


def read_pod_level_subject(
    current: CurrentRequests, containers: Iterable[ContainerKey], resource: str, separate: int
) -> PodLevelSubject | None:
    """Returns what is known of one resource of the pods of a workload; None if the snapshot does not have it.
    `containers` are all containers of the workload, and `separate` is what they would request together."""
    of_workload = [current.containers[key] for key in containers if key in current.containers]
    lasting = [one for one in of_workload if one.container_ref.role is not Role.INIT]
    if not lasting:
        return None
    context = lasting[0].pod_context
    pod, vpa = context.pod, autoscalers.find_managing_vpa(context)
    of_pod = autoscalers.counts_utilization_of(context, WHOLE, resource)
    of_container = next(
        (name for one in lasting if (name := autoscalers.counts_utilization_of(context, _name(one), resource))), ""
    )
    bounds = context.facts.bounds.get(context.namespace, {}).get(resource)
    default = None if bounds is None else bounds.default_request
    return PodLevelSubject(
        resource=resource,
        containers=len(lasting),
        separate=separate,
        has_pod_level=any(name in read(pod.spec.resources) for read in (requests_of, limits_of) for name in POD_LEVEL),
        is_guaranteed=context.qos is QoS.GUARANTEED,
        is_windows=runs_on_windows(pod.spec),
        has_huge_pages=has_huge_pages(pod.spec),
        scheduler=pod.spec.scheduler_name,
        vpa="" if vpa is None else vpa.metadata.name,
        hpa=of_pod,
        container_hpa="" if of_pod else of_container,
        default_by="" if default is None else default.by,
        default_request=0 if default is None else _amount(resource, default.value),
    )


WHOLE = ""
"""In place of a container's name: the metric of an HPA that measures the pod as a whole."""


def _name(container: CurrentContainer) -> str:
    return container.container_ref.container.name


def _amount(resource: str, value: quantity.Written) -> int:
    try:
        return quantity.scheduler_value(resource, value)
    except NotAQuantity:
        return 0
