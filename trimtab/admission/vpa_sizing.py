"""Computes what the VPA's own webhook sets in a pod, and whether the API server admits the pod with it.

The VPA's webhook is called in the same request as Trimtab's. It sets each request to the VPA's recommendation, within
minAllowed and maxAllowed, and multiplies the limit by the same factor, unless the policy of the container says
`RequestsOnly` (vertical-pod-autoscaler, pkg/utils/vpa/limit_and_request_scaling.go). It caps the result to the minima
and maxima of LimitRanges, but neither to their ratios nor to quotas (pkg/utils/vpa/capping.go).
"""

from dataclasses import dataclass, replace

from trimtab.admission.apiserver import limitranger, resourcequota
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import Amounts, limits_of, requests_of
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import PodContext

_RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaAmount:
    """One request that the VPA sets, with the limit that follows from it."""

    container: str
    resource: str
    request_before: str | None
    """The request without the VPA, or None if there is none."""
    request: str
    limit_before: str | None
    limit: str | None
    """The limit, or None if the container has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaSizing:
    """What the VPA of a pod's owner sets when the pod is created."""

    name: str
    """The name of the VPA."""
    amounts: tuple[VpaAmount, ...]
    is_capped: bool
    """Whether a LimitRange does not permit these amounts, so that the VPA sets others, which are nearer to the present
    ones."""
    refused: PodRejected | None
    """The rejection of the pod with these amounts; None if it is admitted, or if the amounts are capped."""


def size_by_vpa(pod: Pod, facts: ClusterFacts, namespace: str) -> VpaSizing | None:
    """Returns what the VPA's webhook sets in this pod, or None if no VPA manages the pod, if it has no recommendation
    yet, or if it changes nothing.

    pod: the pod with the changes of policies and with the API server's defaults.
    """
    subject = PodContext(pod=pod, namespace=namespace, facts=facts)
    manager = autoscalers.find_managing_vpa(subject)
    if manager is None:
        return None
    constraints = autoscalers.VpaConstraintsIndex(manager, subject)
    amounts: list[VpaAmount] = []
    containers = list(pod.spec.containers)
    for place in subject.container_refs:
        for resource in _RESOURCES if place.part == "containers" else ():
            sizing = constraints.constraints_for(place, resource)
            amount = None if sizing is None else _amount_of(place.container, resource, sizing)
            if amount is not None:
                amounts.append(amount)
                containers[place.index] = _with_amount(containers[place.index], amount)
    if not amounts:
        return None
    sized = change(pod, spec=change(pod.spec, containers=tuple(containers)))
    bounds = _with_ranges(facts, namespace, ratio=False)
    is_capped = isinstance(limitranger.check_limit_ranges(sized, bounds, namespace), PodRejected)
    refused = None if is_capped else _find_refusal(sized, facts, namespace)
    return VpaSizing(name=manager.metadata.name, amounts=tuple(amounts), is_capped=is_capped, refused=refused)


def _amount_of(container: Container, resource: str, sizing: autoscalers.VpaConstraints) -> VpaAmount | None:
    """Returns what changes, or None if nothing does."""
    request, limit = requests_of(container.resources).get(resource), limits_of(container.resources).get(resource)
    if sizing.target is None:
        return None
    try:
        before, limit_before = (
            None if one is None else quantity.scheduler_value(resource, one) for one in (request, limit)
        )
    except NotAQuantity:
        return None
    # A limit without a request counts as equal to the request.
    new_limit = limit_before
    if sizing.keeps_ratio and limit_before:
        new_limit = limit_before * sizing.target // before if before else sizing.target
    if (before, limit_before) == (sizing.target, new_limit):
        return None
    return VpaAmount(
        container=container.name,
        resource=resource,
        request=quantity.format_quantity(resource, sizing.target),
        request_before=None if before is None else quantity.format_quantity(resource, before),
        limit_before=None if limit_before is None else quantity.format_quantity(resource, limit_before),
        limit=None if new_limit is None else quantity.format_quantity(resource, new_limit),
    )


def _with_amount(container: Container, amount: VpaAmount) -> Container:
    resources = value_or(container.resources, Resources())
    requests = {**requests_of(resources), amount.resource: amount.request}
    limits = limits_of(resources)
    if amount.limit is not None:
        limits = {**limits, amount.resource: amount.limit}
    return change(container, resources=change(resources, requests=requests, limits=limits))


def _with_ranges(facts: ClusterFacts, namespace: str, *, ratio: bool) -> ClusterFacts:
    """Returns the facts with only the ratios of the namespace's LimitRanges, or with everything but them."""
    ranges = tuple(_part_of(one, ratio=ratio) for one in facts.limit_ranges.get(namespace, ()))
    return replace(facts, limit_ranges={namespace: ranges})


def _part_of(limit_range: LimitRange, *, ratio: bool) -> LimitRange:
    nothing: Amounts = {}
    items = tuple(
        change(item, min=nothing, max=nothing) if ratio else change(item, max_limit_request_ratio=nothing)
        for item in limit_range.spec.limits
    )
    return change(limit_range, spec=change(limit_range.spec, limits=items))


def _find_refusal(sized: Pod, facts: ClusterFacts, namespace: str) -> PodRejected | None:
    checked = limitranger.check_limit_ranges(sized, _with_ranges(facts, namespace, ratio=True), namespace)
    if not isinstance(checked, PodRejected):
        checked = resourcequota.check_quotas(sized, facts, namespace)
    return checked if isinstance(checked, PodRejected) else None
