"""What does a namespace demand of every container: LimitRange bounds, and limits that a ResourceQuota counts?"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange, LimitRangeItem, ResourceQuota, ScopedRequirement
from trimtab.cluster.api.meta import ResourceList, change, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import (
    QoS,
    all_containers,
    is_pod_level,
    limits_of,
    limits_without_overhead,
    qos,
    requests_of,
    requests_without_overhead,
)


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """A value and the object that says it."""

    value: Written
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRangeBounds:
    """What the LimitRanges of a namespace say together about one resource of a container; None: nothing."""

    default: ResourceBound | None = None
    """The limit a container without one is given."""
    default_request: ResourceBound | None = None
    min: ResourceBound | None = None
    """The largest of the minima."""
    max: ResourceBound | None = None
    """The smallest of the maxima."""
    ratio: ResourceBound | None = None
    """The smallest limit:request ratio allowed."""

    @property
    def limit_comes_back(self) -> ResourceBound | None:
        """Who puts a limit back, or refuses the pod without one (a ratio needs a limit too); None: nobody."""
        return self.default or self.max or self.ratio


def defaulted(item: LimitRangeItem) -> LimitRangeItem:
    """As stored: `max` is the default limit, and that the default request, where none is written.

    (SetDefaults_LimitRangeItem: a default request falls back on the default limit, then on `min`.)
    """
    if item.type != "Container":
        return item
    default = {**item.max, **item.default}
    request = {**item.min, **default, **item.default_request}
    return change(item, default=default, default_request=request)


def container_bounds(ranges: Iterable[LimitRange]) -> dict[str, LimitRangeBounds]:
    """Resource → bounds for containers; a resource nobody speaks of is not in it."""
    found: dict[str, LimitRangeBounds] = {}
    for limit_range in ranges:
        own: dict[str, LimitRangeBounds] = {}
        # Within one LimitRange the last item's default counts, among several the first LimitRange's (measured).
        for item in reversed([defaulted(item) for item in limit_range.spec.limits]):
            if item.type == "Container":
                _add(own, item, limit_range.metadata.name)
        for resource, bounds in own.items():
            found[resource] = _merged(found.get(resource, LimitRangeBounds()), bounds)
    return found


def _add(found: dict[str, LimitRangeBounds], item: LimitRangeItem, by: str) -> None:
    named = item.default, item.default_request, item.min, item.max, item.max_limit_request_ratio
    for resource in {name for part in named for name in part}:
        bounds = LimitRangeBounds(
            default=_said(item.default, resource, by),
            default_request=_said(item.default_request, resource, by),
            min=_said(item.min, resource, by),
            max=_said(item.max, resource, by),
            ratio=_said(item.max_limit_request_ratio, resource, by),
        )
        found[resource] = _merged(found.get(resource, LimitRangeBounds()), bounds)


def _merged(a: LimitRangeBounds, b: LimitRangeBounds) -> LimitRangeBounds:
    """Both together; where only one can count (a default), `a`."""
    return LimitRangeBounds(
        default=a.default or b.default,
        default_request=a.default_request or b.default_request,
        min=_tighter(a.min, b.min, most=True),
        max=_tighter(a.max, b.max, most=False),
        ratio=_tighter(a.ratio, b.ratio, most=False),
    )


def _said(written: ResourceList, resource: str, by: str) -> ResourceBound | None:
    return ResourceBound(written[resource], by) if resource in written else None


def _tighter(a: ResourceBound | None, b: ResourceBound | None, *, most: bool) -> ResourceBound | None:
    if a is None or b is None:
        return a or b
    later = quantity.compare(b.value, a.value)
    return b if (later > 0 if most else later < 0) else a


def breaks_pod_bounds(ranges: Iterable[LimitRange], spec: PodSpec, resource: str) -> str | None:
    """The LimitRange whose Pod item these containers break together in one resource; None: none does.

    (`minConstraint`, `maxConstraint`, `limitRequestRatioConstraint` of the LimitRanger plugin, on the sums.)
    """
    bounding = [
        (item, limit_range.metadata.name)
        for limit_range in ranges
        for item in limit_range.spec.limits
        if item.type == "Pod" and any(resource in said for said in (item.min, item.max, item.max_limit_request_ratio))
    ]
    if not bounding:
        return None
    request = requests_without_overhead(spec, only=resource).get(resource)
    limit = limits_without_overhead(spec, only=resource).get(resource)
    return next((name for item, name in bounding if _broken(item, resource, request, limit)), None)


def _broken(item: LimitRangeItem, resource: str, request: int | None, limit: int | None) -> bool:
    low, high, ratio = item.min.get(resource), item.max.get(resource), item.max_limit_request_ratio.get(resource)
    return (
        (low is not None and below_min(quantity.scheduler_value(resource, low), request, limit) is not None)
        or (high is not None and above_max(quantity.scheduler_value(resource, high), request, limit) is not None)
        or (ratio is not None and above_ratio(quantity.milli(ratio), request, limit) is not None)
    )


Breach = Literal["unspecified", "request", "limit"]
"""What breaks a bound: that the value it is about is not there, the request, or the limit."""


def below_min(least: int, request: int | None, limit: int | None) -> Breach | None:
    """(`minConstraint`) All three in the same unit."""
    if request is None:
        return "unspecified"
    if request < least:
        return "request"
    return "limit" if limit is not None and limit < least else None


def above_max(most: int, request: int | None, limit: int | None) -> Breach | None:
    """(`maxConstraint`)"""
    if limit is None:
        return "unspecified"
    if limit > most:
        return "limit"
    return "request" if request is not None and request > most else None


def above_ratio(most_thousandths: int, request: int | None, limit: int | None) -> Breach | None:
    """(`limitRequestRatioConstraint`) "request": there is none, or of nothing; "unspecified": the same of the limit;
    "limit": it is too large for the request."""
    if not request:
        return "request"
    return "unspecified" if not limit else ("limit" if ratio_of(request, limit) * 1000 > most_thousandths else None)


def ratio_of(request: int, limit: int) -> float:
    """The server divides as floating point, too: 1.5 of 1.5 must come out the same way."""
    return limit / request


def counts_limit(quotas: Iterable[ResourceQuota], pod: Pod, resource: str) -> str | None:
    """The name of a quota that counts this resource's limits for this pod; None where no quota does."""
    for quota in quotas:
        if f"limits.{resource}" in quota.spec.hard and quota_covers(quota, pod):
            return quota.metadata.name
    return None


def counts_by_qos(quotas: Iterable[ResourceQuota]) -> str | None:
    """The name of a quota that tells BestEffort pods from others; None where no quota does."""
    for quota in quotas:
        scopes = {*quota.spec.scopes, *(e.scope_name for e in quota.spec.scope_selector.match_expressions)}
        if scopes & {"BestEffort", "NotBestEffort"}:
            return quota.metadata.name
    return None


_DEMANDED = tuple(sorted(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory")))
"""A quota of these makes every container name them; of others it does not."""


def unmet_quota(quotas: Iterable[ResourceQuota], pod: Pod) -> str | None:
    """The name of a quota that refuses the pod because a container does not name what it counts; None: none does."""
    unmet = (q for q in quotas if any(unnamed(hard_of(q), pod.spec)) and quota_covers(q, pod))
    return next((quota.metadata.name for quota in unmet), None)


def hard_of(quota: ResourceQuota) -> ResourceList:
    """As its controller confirmed it; as it is written where there is no status, as in a file."""
    return quota.status.hard or quota.spec.hard


def unnamed(counted: Collection[str], spec: PodSpec) -> Iterator[tuple[str, list[str]]]:
    """What a quota of this makes every container name, and the containers that do not.

    (`Constraints` of the ResourceQuota plugin's pod evaluator; pod-level resources free the containers from it.)
    """
    if any(map(is_pod_level, (*requests_of(spec.resources), *limits_of(spec.resources)))):
        return
    for demand in _DEMANDED:
        if demand in counted:
            side, _, name = demand.rpartition(".")
            read = limits_of if side == "limits" else requests_of
            lacking = sorted(c.name for c in all_containers(spec) if name not in read(c.resources))
            if lacking:
                yield demand, lacking


def quota_covers(quota: ResourceQuota, pod: Pod) -> bool:
    """Do all scopes of the quota match the pod? No scopes: every pod."""
    scopes = [ScopedRequirement(scope_name=name, operator="Exists") for name in quota.spec.scopes]
    return all(_in_scope(scope, pod) for scope in (*scopes, *quota.spec.scope_selector.match_expressions))


def _in_scope(scope: ScopedRequirement, pod: Pod) -> bool:
    match scope.scope_name:
        case "BestEffort":
            return qos(pod.spec) is QoS.BEST_EFFORT
        case "NotBestEffort":
            return qos(pod.spec) is not QoS.BEST_EFFORT
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "PriorityClass":
            return _class_in(scope, get(pod.spec.priority_class_name, ""))
        case "CrossNamespacePodAffinity":
            return _crosses(pod)
    return True


def _class_in(scope: ScopedRequirement, name: str) -> bool:
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return not name
    return bool(name)


def _crosses(pod: Pod) -> bool:
    affinity = get(pod.spec.affinity, None)
    if affinity is None:
        return False
    for part in (get(affinity.pod_affinity, None), get(affinity.pod_anti_affinity, None)):
        terms = (*part.required, *(p.pod_affinity_term for p in part.preferred)) if part else ()
        if any(term.namespaces or get(term.namespace_selector, None) is not None for term in terms):
            return True
    return False
