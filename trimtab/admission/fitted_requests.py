"""Brings the requests that are proposed for the containers of one pod within what bounds the pod as a whole.

A container's own bounds are already in a proposal. Here the sums count: pod-level resources (`spec.resources`,
KEP-2837), LimitRanges of type Pod, quotas, and the QoS class. The pod-level request rises with the sum of its
containers, and the sum stays within the pod-level limit. A change with which the API server would still refuse the pod,
or with which the pod would become Guaranteed, is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.apiserver import resource_sums, resourcequota
from trimtab.admission.reasons import POD_LEVEL_CAPS, POD_LEVEL_RISES, REQUEST_REFUSED
from trimtab.admission.resource_refusal import complete_resources, refuse_resources
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, qos_class, requests_of
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.reasons import QOS_WOULD_CHANGE

Key = tuple[str, str]
"""(container, resource)."""
_STEPS = {"cpu": 1, "memory": 1 << 20}


@dataclass(frozen=True, slots=True)
class ProposedAmounts:
    """The proposed request and limit of one resource of one container, in the scheduler's unit. `limit` is None if the
    limit stays."""

    request: int
    limit: int | None = None


Changes = Mapping[Key, ProposedAmounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRequests:
    """The changes that the API server accepts, and why the others differ from what was proposed."""

    changes: Changes
    pod_requests: Mapping[str, int] = field(default_factory=dict)
    """Resource → the pod-level request, where it rises."""
    reasons: Mapping[Key, Reason] = field(default_factory=dict)
    """Why a change is not the proposed one or is left out, or what else changes with it."""


def fit_requests(pod: Pod, facts: ClusterFacts, namespace: str, proposed: Changes) -> FittedRequests:
    """Returns the changes for this pod that the API server accepts in its namespace: all of them if possible, otherwise
    those of one resource."""
    if not proposed:
        return FittedRequests(changes={})
    try:
        return _fit(pod, facts, namespace, proposed)
    except NotAQuantity:
        return FittedRequests(changes=proposed)


def _fit(pod: Pod, facts: ClusterFacts, namespace: str, proposed: Changes) -> FittedRequests:
    resources = sorted({resource for _, resource in proposed})
    refused_before = refuse_resources(pod, facts, namespace)
    by_resource = {
        resource: _within_pod_level(pod, facts, namespace, resource, _only(proposed, (resource,)))
        for resource in resources
    }
    first_reason: Reason | None = None
    # All resources together, then each of them alone.
    for chosen in [resources, *([resource] for resource in resources if len(resources) > 1)]:
        fitted = _join(by_resource[resource] for resource in chosen)
        changed = changed_pod(pod, fitted)
        refused = refuse_resources(changed, facts, namespace)
        # A full quota refuses the pod without the change as well, and a smaller request is what helps.
        is_accepted = refused is None or all(map(resourcequota.is_exceeded_quota, (refused, refused_before)))
        if refused is not None and not is_accepted:
            reason = REQUEST_REFUSED(f"the API server would refuse the pod: {refused.message}")
        elif _becomes_guaranteed(pod, changed):
            reason = QOS_WOULD_CHANGE(f"the pod would change to the QoS class {QoS.GUARANTEED}")
        else:
            dropped = {key: first_reason for key in proposed if key[1] not in chosen and first_reason is not None}
            return FittedRequests(
                changes=fitted.changes, pod_requests=fitted.pod_requests, reasons={**fitted.reasons, **dropped}
            )
        first_reason = first_reason or reason
    assert first_reason is not None
    return FittedRequests(changes={}, reasons=dict.fromkeys(proposed, first_reason))


def _becomes_guaranteed(pod: Pod, changed: Pod) -> bool:
    """Returns whether the changes give the pod the QoS class Guaranteed, as policies do not either: it changes which
    pods are evicted first, and to which cpus a pod is bound."""
    return qos_class(changed.spec) is QoS.GUARANTEED and qos_class(pod.spec) is not QoS.GUARANTEED


def _only(changes: Changes, resources: Iterable[str]) -> dict[Key, ProposedAmounts]:
    return {key: amounts for key, amounts in changes.items() if key[1] in resources}


def _join(parts: Iterable[FittedRequests]) -> FittedRequests:
    changes, pod_requests, reasons = dict[Key, ProposedAmounts](), dict[str, int](), dict[Key, Reason]()
    for part in parts:
        changes.update(part.changes)
        pod_requests.update(part.pod_requests)
        reasons.update(part.reasons)
    return FittedRequests(changes=changes, pod_requests=pod_requests, reasons=reasons)


def _within_pod_level(
    pod: Pod, facts: ClusterFacts, namespace: str, resource: str, proposed: dict[Key, ProposedAmounts]
) -> FittedRequests:
    """Returns the changes of one resource, so that their sum is at most the pod-level limit, with the pod-level request
    that the sum needs."""
    request, limit = (_amount_of(read(pod.spec.resources), resource) for read in (requests_of, limits_of))
    if resource not in POD_LEVEL or (request is None and limit is None):
        return FittedRequests(changes=proposed)
    changes, reasons = proposed, dict[Key, Reason]()
    total = _total(pod, facts, namespace, resource, changes)
    if limit is not None and total > limit:
        spec = complete_resources(pod, facts, namespace).spec
        containers = (*spec.init_containers, *spec.containers)
        present = {one.name: _amount_of(requests_of(one.resources), resource) or 0 for one in containers}
        changes = _capped_changes(proposed, present, total - limit, _STEPS[resource])
        shown = quantity.format_quantity(resource, limit)
        reason = POD_LEVEL_CAPS(f"the pod-level limit is {shown}, and the containers may not request more together")
        reasons = {key: reason for key in proposed if changes.get(key) != proposed[key]}
        total = _total(pod, facts, namespace, resource, changes)
    if request is None or total <= request:
        return FittedRequests(changes=changes, reasons=reasons)
    before, after = (quantity.format_quantity(resource, amount) for amount in (request, total))
    rises = POD_LEVEL_RISES(f"the pod-level request rises from {before} to {after}, the sum of the containers")
    return FittedRequests(
        changes=changes, pod_requests={resource: total}, reasons={**dict.fromkeys(changes, rises), **reasons}
    )


def _capped_changes(
    proposed: Mapping[Key, ProposedAmounts], present: Mapping[str, int], excess: int, step: int
) -> dict[Key, ProposedAmounts]:
    """Returns the changes with each raise cut in proportion, so that the sum falls by `excess`. A raise is left out if
    nothing remains of it."""
    raises = {key: amounts.request - present.get(key[0], 0) for key, amounts in proposed.items()}
    total_raise = sum(raised for raised in raises.values() if raised > 0)
    changes = dict[Key, ProposedAmounts]()
    for key, amounts in proposed.items():
        if raises[key] <= 0:
            changes[key] = amounts
            continue
        cut = -(-raises[key] * excess // total_raise)
        request = (amounts.request - cut) // step * step
        if request > present.get(key[0], 0):
            changes[key] = ProposedAmounts(request, None if amounts.limit is None else request)
    return changes


def _total(pod: Pod, facts: ClusterFacts, namespace: str, resource: str, changes: Changes) -> int:
    """Returns the sum that the API server compares with the pod-level request."""
    changed = complete_resources(changed_pod(pod, FittedRequests(changes=changes)), facts, namespace)
    return _amount_of(resource_sums.sum_containers(changed.spec, requests_of), resource) or 0


def _amount_of(amounts: Mapping[str, quantity.Written], resource: str) -> int | None:
    return quantity.scheduler_value(resource, amounts[resource]) if resource in amounts else None


def changed_pod(pod: Pod, fitted: FittedRequests) -> Pod:
    """Returns the pod with these requests and limits."""
    spec = change(
        pod.spec,
        containers=tuple(_changed_container(one, fitted.changes) for one in pod.spec.containers),
        init_containers=tuple(_changed_container(one, fitted.changes) for one in pod.spec.init_containers),
    )
    if fitted.pod_requests:
        own = value_or(spec.resources, Resources())
        requests = {**requests_of(own), **_written(fitted.pod_requests)}
        spec = change(spec, resources=change(own, requests=requests))
    return change(pod, spec=spec)


def _changed_container(container: Container, changes: Changes) -> Container:
    own = {resource: amounts for (name, resource), amounts in changes.items() if name == container.name}
    if not own:
        return container
    resources = value_or(container.resources, Resources())
    requests = {**requests_of(resources), **_written({name: one.request for name, one in own.items()})}
    new_limits = _written({name: one.limit for name, one in own.items() if one.limit is not None})
    resources = change(resources, requests=requests)
    if new_limits:
        resources = change(resources, limits={**limits_of(resources), **new_limits})
    return change(container, resources=resources)


def _written(amounts: Mapping[str, int]) -> dict[str, quantity.Written]:
    return {name: quantity.format_quantity(name, amount) for name, amount in amounts.items()}


def share_pod_level(spec: PodSpec, resource: str, amounts: Mapping[str, int]) -> dict[str, int]:
    """Returns container → its share of what the pod requests of a resource, in proportion to the containers' own
    requests. Without a pod-level request, the shares are these requests.

    `spec`: the pod as `complete_resources` returns it. `amounts`: the requests of the containers that run all the
    time."""
    pod_level = _amount_of(requests_of(spec.resources), resource)
    if pod_level is None or not amounts:
        return dict(amounts)
    own = sum(amounts.values())
    shares = {name: pod_level * amount // own if own else 0 for name, amount in amounts.items()}
    shares[next(iter(amounts))] += pod_level - sum(shares.values())
    return shares
