"""What a ResourceQuota says of a pod: whether it counts the pod, which requests and limits the pod must set because the
quota counts them, and whether there is room for one more pod."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from trimtab.cluster.api.core import ResourceQuota, ScopedRequirement
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.quantity import NotAQuantity, scheduler_value
from trimtab.cluster.resources import QoS, all_containers, is_pod_level, limits_of, qos_class, requests_of


def effective_hard(quota: ResourceQuota) -> ResourceList:
    """Returns the amounts that the quota allows: the amounts in the status, which the controller has confirmed, or the
    amounts in the spec if there is no status (as in a file)."""
    return quota.status.hard or quota.spec.hard


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
            name = value_or(pod.spec.priority_class_name, "")
            match scope.operator:
                case "In":
                    return name in scope.values
                case "NotIn":
                    return name not in scope.values
                case "DoesNotExist":
                    return not name
            return bool(name)
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_affinity(pod)
    return True


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


_PODS = ("pods", "count/pods")
_LIMITS = "limits."


def quota_without_room(quotas: Iterable[ResourceQuota], requests_of_pods: Collection[Mapping[str, int]]) -> str | None:
    """Returns the name of a ResourceQuota that rejects so many more pods together, or None if it is not certain that
    one does. `requests_of_pods`: the requests of each pod in the scheduler's units.

    A quota with scopes is left out, because it may not count the pod. The limits of the pod are not known here: a quota
    that counts limits rejects it for certain only if the quota has no room at all, because such a pod must have limits.
    """
    for quota in quotas:
        if (
            not quota.spec.scopes
            and not quota.spec.scope_selector.match_expressions
            and _is_full(quota, requests_of_pods)
        ):
            return quota.metadata.name
    return None


def _is_full(quota: ResourceQuota, requests_of_pods: Collection[Mapping[str, int]]) -> bool:
    used = quota.status.used
    for name, hard in effective_hard(quota).items():
        resource = name.removeprefix("requests.").removeprefix(_LIMITS)
        counts_pods = name in _PODS or name.startswith(_LIMITS)
        added = len(requests_of_pods) if counts_pods else sum(one.get(resource, 0) for one in requests_of_pods)
        if not added or name not in used:
            continue
        try:
            room = scheduler_value(resource, hard) - scheduler_value(resource, used[name])
        except NotAQuantity:
            continue
        if added > room:
            return True
    return False
