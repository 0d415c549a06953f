"""What the API server says about the requests that a VPA may set for a workload.

The VPA's webhook brings a recommendation within the min and max of LimitRanges for containers, then within minAllowed
and maxAllowed, then (RequestsOnly) below the limit. It does not respect maxLimitRequestRatio (VPA,
pkg/utils/vpa/capping.go).
"""

from collections.abc import Iterable, Mapping
from functools import partial

from trimtab.admission.apiserver import resourcequota
from trimtab.admission.fitted_requests import FittedRequests, ProposedAmounts, changed_pod
from trimtab.admission.resource_refusal import refuse_resources
from trimtab.autoscaling.simulation.propose_vpas import PromiseRequests, RefuseRequests, RequestRange
from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.limit_ranges import LimitRangeBounds, RequestBound, held_limit, request_floors, round_down
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import POD_LEVEL, limits_of, requests_of
from trimtab.histogram.batch_history import ContainerKey
from trimtab.inputs.current_requests import CurrentContainer, CurrentRequests
from trimtab.inputs.vpa_quotas import VpaQuotas

_LARGEST = 1 << 50
_NO_BOUNDS = LimitRangeBounds()


def has_pod_level(current: CurrentRequests, owner: OwnerKey, containers: Iterable[ContainerKey]) -> bool:
    """Returns whether the pods of a workload set cpu or memory for all their containers together."""
    pod = current.find_pod(owner, containers)
    return pod is not None and any(
        name in read(pod.spec.resources) for read in (requests_of, limits_of) for name in POD_LEVEL
    )


def find_floors(current: CurrentRequests, key: ContainerKey) -> Mapping[str, RequestBound]:
    """Returns resource → the largest lower bound that LimitRanges set for the request of a container whose limit does
    not change."""
    container = current.containers.get(key)
    if container is None:
        return {}
    floors = {}
    for resource in POD_LEVEL:
        bounds = _bounds_of(container, resource)
        try:
            own = request_floors(resource, bounds, _limit_of(container, resource))
        except NotAQuantity:
            continue
        if own:
            floors[resource] = max(own, key=lambda bound: bound.amount)
    return floors


def refuse_by_api_server(
    current: CurrentRequests, owner: OwnerKey, containers: Iterable[ContainerKey]
) -> RefuseRequests:
    """Returns the function that tells why the API server would refuse requests of a VPA with RequestsOnly. Quotas do
    not count here (see `refuse_by_quotas`)."""
    return partial(_refuse, current, owner, tuple(key for key in containers if key in current.containers), None)


def refuse_by_quotas(
    current: CurrentRequests, owner: OwnerKey, containers: Iterable[ContainerKey], quotas: VpaQuotas
) -> RefuseRequests:
    """Returns the function that tells why a ResourceQuota would refuse a pod of the workload, if a VPA with
    RequestsOnly has set the requests of all its pods."""
    return partial(_refuse, current, owner, tuple(key for key in containers if key in current.containers), quotas)


def promise_room(
    current: CurrentRequests, owner: OwnerKey, containers: Iterable[ContainerKey], quotas: VpaQuotas
) -> PromiseRequests:
    """Returns the function that records which requests a proposed VPA may set."""
    return partial(_promise, current, owner, tuple(key for key in containers if key in current.containers), quotas)


def _promise(
    current: CurrentRequests,
    owner: OwnerKey,
    containers: tuple[ContainerKey, ...],
    quotas: VpaQuotas,
    ranges: Mapping[str, Mapping[str, RequestRange]],
) -> None:
    pod = current.find_pod(owner, containers)
    if pod is None:
        return
    try:
        changes = {
            (key.name, resource): ProposedAmounts(
                _capped_recommendation(current.containers[key], resource, _LARGEST, by_container[key.name])
            )
            for resource, by_container in ranges.items()
            for key in containers
            if key.name in by_container
        }
        largest = changed_pod(pod, FittedRequests(changes=changes))
    except NotAQuantity:
        return
    quotas.promise_room(owner, largest, _count_pods(current, owner, containers, quotas))


def _count_pods(
    current: CurrentRequests, owner: OwnerKey, containers: tuple[ContainerKey, ...], quotas: VpaQuotas
) -> int:
    """Returns the largest number of pods that the workload may have at once, as far as it is known."""
    known = [current.containers[key] for key in containers]
    wanted = (resourcequota.largest_pod_count(container.pod_context) or container.replicas for container in known)
    return max(1, len(quotas.pods.get(owner, ())), *wanted)


def _refuse(
    current: CurrentRequests,
    owner: OwnerKey,
    containers: tuple[ContainerKey, ...],
    quotas: VpaQuotas | None,
    resource: str,
    ranges: Mapping[str, RequestRange],
) -> str:
    """Returns why the API server would refuse a pod with requests within the ranges: one of all pods by `quotas`, or,
    without these, one pod by validation or a LimitRange. Empty if it accepts them."""
    pod = current.find_pod(owner, containers)
    if pod is None:
        return ""
    facts = current.containers[containers[0]].pod_context.facts
    count = 1 if quotas is None else _count_pods(current, owner, containers, quotas)
    for recommended in (1, _LARGEST):
        try:
            changes = {
                (key.name, resource): ProposedAmounts(
                    _capped_recommendation(current.containers[key], resource, recommended, ranges[key.name])
                )
                for key in containers
                if key.name in ranges
            }
            changed = changed_pod(pod, FittedRequests(changes=changes))
            refused = (
                refuse_resources(changed, facts, owner.namespace, by_quotas=False)
                if quotas is None
                else quotas.refuse_pods(owner, changed, count, facts)
            )
        except NotAQuantity:
            return ""
        if refused is not None:
            amounts = ", ".join(
                f"{quantity.format_quantity(resource, amounts.request)} for {name}"
                for (name, _), amounts in changes.items()
            )
            subject = "the pod" if count == 1 else f"one of {format_count(count, 'pod')}"
            return f"with a {resource} request of {amounts} the API server would refuse {subject}: {refused.message}"
    return ""


def _capped_recommendation(container: CurrentContainer, resource: str, amount: int, allowed: RequestRange) -> int:
    """Returns the request that the VPA's webhook sets for a recommendation."""
    bounds, limit = _bounds_of(container, resource), _limit_of(container, resource)
    if bounds.min is not None:
        amount = max(amount, quantity.scheduler_value(resource, bounds.min.value))
    if bounds.max is not None:
        amount = min(amount, round_down(resource, bounds.max.value))
    least, most = allowed
    amount = max(amount, least)
    amount = amount if most is None else min(amount, most)
    return amount if limit is None else min(amount, round_down(resource, limit))


def _bounds_of(container: CurrentContainer, resource: str) -> LimitRangeBounds:
    subject = container.pod_context
    return subject.facts.bounds.get(subject.namespace, {}).get(resource, _NO_BOUNDS)


def _limit_of(container: CurrentContainer, resource: str) -> quantity.Written | None:
    written = limits_of(container.container_ref.container.resources).get(resource)
    return held_limit(_bounds_of(container, resource), written)
