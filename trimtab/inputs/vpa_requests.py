"""What the API server says about the requests that a VPA may set for a workload.

The VPA's webhook brings a recommendation within the min and max of LimitRanges for containers, then within minAllowed
and maxAllowed, then (RequestsOnly) below the limit. It does not respect maxLimitRequestRatio (VPA,
pkg/utils/vpa/capping.go).
"""

from collections.abc import Iterable, Mapping
from functools import partial

from trimtab.admission.fitted_requests import FittedRequests, ProposedAmounts, changed_pod
from trimtab.admission.resource_refusal import refuse_resources
from trimtab.autoscaling.simulation.propose_vpas import RefuseRequests, RequestRange
from trimtab.cluster import quantity
from trimtab.cluster.limit_ranges import LimitRangeBounds
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.request_bounds import RequestBound, held_limit, request_floors, round_down
from trimtab.cluster.resources import POD_LEVEL, limits_of, requests_of
from trimtab.histogram.batch_history import ContainerKey
from trimtab.inputs.current_requests import CurrentContainer, CurrentRequests

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
    not count, because what they have left changes."""
    return partial(_refuse, current, owner, tuple(key for key in containers if key in current.containers))


def _refuse(
    current: CurrentRequests,
    owner: OwnerKey,
    containers: tuple[ContainerKey, ...],
    resource: str,
    ranges: Mapping[str, RequestRange],
) -> str:
    pod = current.find_pod(owner, containers)
    if pod is None:
        return ""
    facts = current.containers[containers[0]].pod_context.facts
    for recommended in (1, _LARGEST):
        try:
            changes = {
                (key.name, resource): ProposedAmounts(
                    _capped_recommendation(current.containers[key], resource, recommended, ranges[key.name])
                )
                for key in containers if key.name in ranges
            }  # fmt: skip
            refused = refuse_resources(
                changed_pod(pod, FittedRequests(changes=changes)), facts, owner.namespace, by_quotas=False
            )
        except NotAQuantity:
            return ""
        if refused is not None:
            amounts = ", ".join(
                f"{quantity.format_quantity(resource, amounts.request)} for {name}"
                for (name, _), amounts in changes.items()
            )
            return f"with a {resource} request of {amounts} the API server would refuse the pod: {refused.message}"
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
