"""What a namespace demands of every container: the bounds that its LimitRanges set, and the limits that its
ResourceQuotas require."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange, LimitRangeItem, ResourceQuota, ScopedRequirement
from trimtab.cluster.api.meta import ResourceList, change, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import (
    QoS,
    all_containers,
    is_pod_level,
    limits_of,
    limits_without_overhead,
    qos_class,
    requests_of,
    requests_without_overhead,
)


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """The value of a bound, and the name of the LimitRange that sets it."""

    value: Written
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRangeBounds:
    """The bounds that all LimitRanges of a namespace together set for one resource of a container. A field is None if
    there is no such bound."""

    default: ResourceBound | None = None
    """The limit that is given to a container without one."""
    default_request: ResourceBound | None = None
    min: ResourceBound | None = None
    """The largest of the minima of all LimitRanges."""
    max: ResourceBound | None = None
    """The smallest of the maxima of all LimitRanges."""
    ratio: ResourceBound | None = None
    """The smallest of the maximum ratios of limit to request."""

    @property
    def limit_restored_by(self) -> ResourceBound | None:
        """The bound that keeps Trimtab from removing a container's limit; None if there is none.

        A default limit would be set in place of the removed limit. A maximum, or a maximum ratio, would reject a pod
        without a limit."""
        return self.default or self.max or self.ratio


def with_defaults(item: LimitRangeItem) -> LimitRangeItem:
    """Returns the item with its defaults filled in, as the API server stores it (SetDefaults_LimitRangeItem).

    - If there is no default limit, `max` becomes the default limit.
    - If there is no default request, the default limit becomes the default request; if there is no default limit
      either, `min` does.
    """
    if item.type != "Container":
        return item
    # The order of precedence of SetDefaults_LimitRangeItem, lowest first.
    default = {**item.max, **item.default}
    request = {**item.min, **default, **item.default_request}
    return change(item, default=default, default_request=request)


def container_bounds(ranges: Iterable[LimitRange]) -> dict[str, LimitRangeBounds]:
    """Returns resource → bounds for containers. A resource that no LimitRange bounds is not in the mapping."""
    bounds_by_resource: dict[str, LimitRangeBounds] = {}
    for limit_range in ranges:
        own: dict[str, LimitRangeBounds] = {}
        # Within one LimitRange the last item's default counts; among several LimitRanges the first one's (measured
        # against the API server).
        for item in reversed([with_defaults(item) for item in limit_range.spec.limits]):
            if item.type == "Container":
                _add_item(own, item, limit_range.metadata.name)
        for resource, bounds in own.items():
            bounds_by_resource[resource] = _merge_bounds(bounds_by_resource.get(resource, LimitRangeBounds()), bounds)
    return bounds_by_resource


def _add_item(bounds_by_resource: dict[str, LimitRangeBounds], item: LimitRangeItem, by: str) -> None:
    resource_lists = item.default, item.default_request, item.min, item.max, item.max_limit_request_ratio
    for resource in {name for part in resource_lists for name in part}:
        bounds = LimitRangeBounds(
            default=_bound_of(item.default, resource, by),
            default_request=_bound_of(item.default_request, resource, by),
            min=_bound_of(item.min, resource, by),
            max=_bound_of(item.max, resource, by),
            ratio=_bound_of(item.max_limit_request_ratio, resource, by),
        )
        bounds_by_resource[resource] = _merge_bounds(bounds_by_resource.get(resource, LimitRangeBounds()), bounds)


def _merge_bounds(a: LimitRangeBounds, b: LimitRangeBounds) -> LimitRangeBounds:
    """Returns the combination of two sets of bounds: for each bound, the stricter of the two. If both have a default,
    that of `a` is used."""
    return LimitRangeBounds(
        default=a.default or b.default,
        default_request=a.default_request or b.default_request,
        # The plugin checks every LimitRange in turn, so the tightest bound of each kind decides.
        min=_tighter(a.min, b.min, most=True),
        max=_tighter(a.max, b.max, most=False),
        ratio=_tighter(a.ratio, b.ratio, most=False),
    )


def _bound_of(values: ResourceList, resource: str, by: str) -> ResourceBound | None:
    return ResourceBound(values[resource], by) if resource in values else None


def _tighter(a: ResourceBound | None, b: ResourceBound | None, *, most: bool) -> ResourceBound | None:
    if a is None or b is None:
        return a or b
    later = quantity.compare_quantities(b.value, a.value)
    return b if (later > 0 if most else later < 0) else a


def limit_range_broken_by_pod(ranges: Iterable[LimitRange], spec: PodSpec, resource: str) -> str | None:
    """Returns the name of the LimitRange whose bounds for whole pods the pod breaks for one resource, or None if it
    breaks none.

    The amounts of a pod are the sums over its containers (`minConstraint`, `maxConstraint` and
    `limitRequestRatioConstraint` of the LimitRanger plugin).
    """
    bounding = [
        (item, limit_range.metadata.name)
        for limit_range in ranges
        for item in limit_range.spec.limits
        if item.type == "Pod"
        and any(resource in values for values in (item.min, item.max, item.max_limit_request_ratio))
    ]
    if not bounding:
        return None
    # The plugin's sums leave pod overhead out.
    request = requests_without_overhead(spec, only=resource).get(resource)
    limit = limits_without_overhead(spec, only=resource).get(resource)
    return next((name for item, name in bounding if _breaks_item(item, resource, request, limit)), None)


def _breaks_item(item: LimitRangeItem, resource: str, request: int | None, limit: int | None) -> bool:
    low, high, ratio = item.min.get(resource), item.max.get(resource), item.max_limit_request_ratio.get(resource)
    return (
        (low is not None and breach_of_min(quantity.scheduler_value(resource, low), request, limit) is not None)
        or (high is not None and breach_of_max(quantity.scheduler_value(resource, high), request, limit) is not None)
        or (ratio is not None and breach_of_ratio(quantity.to_milli(ratio), request, limit) is not None)
    )


Breach = Literal["unspecified", "request", "limit"]
"""How a container breaks a bound. "unspecified": the value that the bound limits is missing; "request" or "limit": that
value is out of bounds."""


def breach_of_min(minimum: int, request: int | None, limit: int | None) -> Breach | None:
    """Returns how the values break a minimum (`minConstraint` of the LimitRanger plugin), or None if they do not. All
    three numbers have the same unit."""
    if request is None:
        return "unspecified"
    if request < minimum:
        return "request"
    return "limit" if limit is not None and limit < minimum else None


def breach_of_max(maximum: int, request: int | None, limit: int | None) -> Breach | None:
    """Returns how the values break a maximum (`maxConstraint` of the LimitRanger plugin), or None if they do not. All
    three numbers have the same unit."""
    if limit is None:
        return "unspecified"
    if limit > maximum:
        return "limit"
    return "request" if request is not None and request > maximum else None


def breach_of_ratio(max_thousandths: int, request: int | None, limit: int | None) -> Breach | None:
    """Returns how the values break a maximum ratio of limit to request (`limitRequestRatioConstraint` of the
    LimitRanger plugin), or None if they do not.

    "request": the request is missing or zero; "unspecified": the limit is missing or zero; "limit": the limit is too
    large for the request.
    """
    if not request:
        return "request"
    return "unspecified" if not limit else ("limit" if ratio_of(request, limit) * 1000 > max_thousandths else None)


def ratio_of(request: int, limit: int) -> float:
    """Returns limit ÷ request. The API server divides floating-point numbers too, and both must round alike: a ratio of
    exactly 1.5 must not break a maximum of 1.5."""
    return limit / request


def quota_counting_limit(quotas: Iterable[ResourceQuota], pod: Pod, resource: str) -> str | None:
    """Returns the name of a ResourceQuota that counts the limits of this resource for this pod, or None if there is
    none. Such a quota rejects a pod without that limit."""
    for quota in quotas:
        if f"limits.{resource}" in quota.spec.hard and quota_covers(quota, pod):
            return quota.metadata.name
    return None


def quota_with_qos_scope(quotas: Iterable[ResourceQuota]) -> str | None:
    """Returns the name of a ResourceQuota whose scope is BestEffort or NotBestEffort, or None if there is none."""
    for quota in quotas:
        scopes = {*quota.spec.scopes, *(e.scope_name for e in quota.spec.scope_selector.match_expressions)}
        if scopes & {"BestEffort", "NotBestEffort"}:
            return quota.metadata.name
    return None


# A quota of one of these makes every container name the resource; a quota of another resource does not (`Constraints`
# of the pod evaluator, pkg/quota/v1/evaluator/core/pods.go).
_DEMANDED_RESOURCES = tuple(
    sorted(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory"))
)


def quota_rejecting_pod(quotas: Iterable[ResourceQuota], pod: Pod) -> str | None:
    """Returns the name of a ResourceQuota that rejects the pod, because the quota counts a request or limit that one of
    the containers does not set, or None if there is none."""
    unmet = (q for q in quotas if any(unnamed_resources(effective_hard(q), pod.spec)) and quota_covers(q, pod))
    return next((quota.metadata.name for quota in unmet), None)


def effective_hard(quota: ResourceQuota) -> ResourceList:
    """Returns the amounts that the quota allows: the amounts in the status, which the controller has confirmed, or the
    amounts in the spec if there is no status (as in a file)."""
    return quota.status.hard or quota.spec.hard


def unnamed_resources(counted: Collection[str], spec: PodSpec) -> Iterator[tuple[str, list[str]]]:
    """Yields (request or limit, containers that do not set it) for each request or limit that every container must set
    because a quota counts it. A pod-level value exempts the containers (`Constraints` of the ResourceQuota plugin's pod
    evaluator).
    """
    if any(map(is_pod_level, (*requests_of(spec.resources), *limits_of(spec.resources)))):
        return
    for demand in _DEMANDED_RESOURCES:
        if demand in counted:
            side, _, name = demand.rpartition(".")
            read = limits_of if side == "limits" else requests_of
            lacking = sorted(c.name for c in all_containers(spec) if name not in read(c.resources))
            if lacking:
                yield demand, lacking


def quota_covers(quota: ResourceQuota, pod: Pod) -> bool:
    """Returns whether all scopes of the quota match the pod; a quota without scopes covers every pod."""
    # `scopes` is the old form of `scopeSelector` with the operator Exists (`getScopeSelectorsFromQuota`).
    scopes = [ScopedRequirement(scope_name=name, operator="Exists") for name in quota.spec.scopes]
    return all(_matches_scope(scope, pod) for scope in (*scopes, *quota.spec.scope_selector.match_expressions))


def _matches_scope(scope: ScopedRequirement, pod: Pod) -> bool:
    match scope.scope_name:
        case "BestEffort":
            return qos_class(pod.spec) is QoS.BEST_EFFORT
        case "NotBestEffort":
            return qos_class(pod.spec) is not QoS.BEST_EFFORT
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "PriorityClass":
            return _matches_priority_class(scope, value_or(pod.spec.priority_class_name, ""))
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_affinity(pod)
    return True


def _matches_priority_class(scope: ScopedRequirement, name: str) -> bool:
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return not name
    return bool(name)


def _has_cross_namespace_affinity(pod: Pod) -> bool:
    affinity = value_or(pod.spec.affinity, None)
    if affinity is None:
        return False
    for part in (value_or(affinity.pod_affinity, None), value_or(affinity.pod_anti_affinity, None)):
        terms = (*part.required, *(p.pod_affinity_term for p in part.preferred)) if part else ()
        # An empty namespaceSelector selects all namespaces, so its presence is what counts.
        if any(term.namespaces or value_or(term.namespace_selector, None) is not None for term in terms):
            return True
    return False
