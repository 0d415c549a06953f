"""What does a namespace demand of every container: LimitRange bounds, and limits that a ResourceQuota counts?"""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, change, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.cluster.api.rules import LimitRange, LimitRangeItem, ResourceQuota, ScopedRequirement
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import (
    POD_LEVEL,
    QoS,
    all_containers,
    limits_of,
    limits_without_overhead,
    qos,
    requests_of,
    requests_without_overhead,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A value and the object that says it."""

    value: Written
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the LimitRanges of a namespace say together about one resource of a container; None: nothing."""

    default: Said | None = None
    """The limit a container without one is given."""
    default_request: Said | None = None
    min: Said | None = None
    """The largest of the minima."""
    max: Said | None = None
    """The smallest of the maxima."""
    ratio: Said | None = None
    """The smallest limit:request ratio allowed."""

    @property
    def limit_comes_back(self) -> Said | None:
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


def container_bounds(ranges: Iterable[LimitRange]) -> dict[str, Bounds]:
    """Resource → bounds for containers; a resource nobody speaks of is not in it."""
    found: dict[str, Bounds] = {}
    for limit_range in ranges:
        own: dict[str, Bounds] = {}
        # Within one LimitRange the last item's default counts, among several the first LimitRange's (measured).
        for item in reversed([defaulted(item) for item in limit_range.spec.limits]):
            if item.type == "Container":
                _add(own, item, limit_range.metadata.name)
        for resource, bounds in own.items():
            found[resource] = _merged(found.get(resource, Bounds()), bounds)
    return found


def _add(found: dict[str, Bounds], item: LimitRangeItem, by: str) -> None:
    named = item.default, item.default_request, item.min, item.max, item.max_limit_request_ratio
    for resource in {name for part in named for name in part}:
        bounds = Bounds(
            default=_said(item.default, resource, by),
            default_request=_said(item.default_request, resource, by),
            min=_said(item.min, resource, by),
            max=_said(item.max, resource, by),
            ratio=_said(item.max_limit_request_ratio, resource, by),
        )
        found[resource] = _merged(found.get(resource, Bounds()), bounds)


def _merged(a: Bounds, b: Bounds) -> Bounds:
    """Both together; where only one can count (a default), `a`."""
    return Bounds(
        default=a.default or b.default,
        default_request=a.default_request or b.default_request,
        min=_tighter(a.min, b.min, most=True),
        max=_tighter(a.max, b.max, most=False),
        ratio=_tighter(a.ratio, b.ratio, most=False),
    )


def _said(written: ResourceList, resource: str, by: str) -> Said | None:
    return Said(written[resource], by) if resource in written else None


def _tighter(a: Said | None, b: Said | None, *, most: bool) -> Said | None:
    if a is None or b is None:
        return a or b
    later = quantity.compare(b.value, a.value)
    return b if (later > 0 if most else later < 0) else a


def breaks_pod_bounds(ranges: Iterable[LimitRange], spec: PodSpec, resource: str) -> str | None:
    """The LimitRange whose Pod item these containers break together in one resource; None: none does.

    (`minConstraint`, `maxConstraint`, `limitRequestRatioConstraint` of the LimitRanger plugin, on the sums.)
    """
    request = requests_without_overhead(spec).get(resource)
    limit = limits_without_overhead(spec).get(resource)
    for limit_range in ranges:
        for item in limit_range.spec.limits:
            if item.type == "Pod" and _broken(item, resource, request, limit):
                return limit_range.metadata.name
    return None


def _broken(item: LimitRangeItem, resource: str, request: int | None, limit: int | None) -> bool:
    low, high = item.min.get(resource), item.max.get(resource)
    ratio = item.max_limit_request_ratio.get(resource)
    if low is not None:
        least = quantity.of(resource, low)
        if request is None or request < least or (limit is not None and limit < least):
            return True
    if high is not None:
        most = quantity.of(resource, high)
        if limit is None or limit > most or (request is not None and request > most):
            return True
    return ratio is not None and (not request or not limit or limit * quantity.NANO > request * quantity.parse(ratio))


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


_DEMANDED = tuple(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory"))


def unmet_quota(quotas: Iterable[ResourceQuota], pod: Pod) -> str | None:
    """The name of a quota that refuses the pod because a container does not name what it counts; None: none does.

    (`Constraints` of the ResourceQuota plugin's pod evaluator; pod-level resources free the containers from it.)
    """
    if any(name in side(pod.spec.resources) for side in (requests_of, limits_of) for name in POD_LEVEL):
        return None
    for quota in quotas:
        demanded = [name for name in _DEMANDED if name in quota.spec.hard or name in quota.status.hard]
        if demanded and quota_covers(quota, pod) and any(_lacks(c, demanded) for c in all_containers(pod.spec)):
            return quota.metadata.name
    return None


def _lacks(container: Container, demanded: Iterable[str]) -> bool:
    for demand in demanded:
        side, _, name = demand.rpartition(".")
        named = limits_of(container.resources) if side == "limits" else requests_of(container.resources)
        if name not in named:
            return True
    return False


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
