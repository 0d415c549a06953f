"""When the VPA's updater acts on a pod, and what its admission webhook writes (updater/priority, utils/vpa, VPA 1.6).

Amounts are the scheduler's numbers: millicores and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trimtab.histogram.vpa_estimators import RecommenderFlags, VpaEstimate

Amounts = Mapping[str, int]
"""Resource → amount."""


@dataclass(frozen=True, slots=True)
class ContainerEstimate:
    """The requests of one container, and what the recommender says, by resource. A resource may lack a request."""

    requests: Amounts
    estimates: Mapping[str, VpaEstimate]


@dataclass(frozen=True, slots=True)
class UpdatePriority:
    """How far a pod is from its recommendation (GetUpdatePriority)."""

    difference: float
    """The sum over resources of |recommended - requested| / requested."""
    is_outside: bool
    """Whether a request is outside of its bounds, or missing."""
    is_scale_up: bool
    """Whether any recommendation is above its request."""


def compute_update_priority(containers: Iterable[ContainerEstimate]) -> UpdatePriority:
    """Returns the priority of one pod."""
    requested: dict[str, int] = {}
    recommended: dict[str, int] = {}
    is_outside = is_scale_up = False
    for container in containers:
        for resource, estimate in container.estimates.items():
            recommended[resource] = recommended.get(resource, 0) + estimate.target
            request = container.requests.get(resource)
            if request is None:
                is_outside = is_scale_up = True
                continue
            requested[resource] = requested.get(resource, 0) + request
            is_scale_up = is_scale_up or estimate.target > request
            is_outside = is_outside or not estimate.lower_bound <= request <= estimate.upper_bound
    difference = sum(
        abs(requested.get(resource, 0) - amount) / max(requested.get(resource, 0), 1)
        for resource, amount in recommended.items()
    )
    return UpdatePriority(difference=difference, is_outside=is_outside, is_scale_up=is_scale_up)


def is_update_due(priority: UpdatePriority, age_seconds: float, flags: RecommenderFlags) -> bool:
    """Returns whether the updater acts on a pod: at once outside of the bounds; else on an old pod whose target differs
    by the threshold or more."""
    if priority.difference == 0:
        return False
    return priority.is_outside or (
        age_seconds >= flags.eviction_lifetime_seconds and priority.difference >= flags.pod_update_threshold
    )


def count_evictable_pods(replicas: int, flags: RecommenderFlags) -> int:
    """Returns how many pods of a workload, all of them running, may be evicted in one round; 0 below the minimum of
    replicas.

    More than replicas - trunc(replicas * tolerance) stay; with a tolerance that allows none, one may go.
    """
    if replicas < flags.min_replicas:
        return 0
    return max(1, int(replicas * flags.eviction_tolerance))


def effective_request(spec: int | None, status: int | None) -> int | None:
    """Returns the request that counts: the one that the pod's status reports (in-place resize), else that of its
    spec."""
    return spec if status is None else status


def scale_limit(
    limit: int | None, request: int | None, recommended: int, default_limit: int | None = None
) -> int | None:
    """Returns the limit of a container whose request becomes `recommended` (RequestsAndLimits): the ratio of limit and
    request stays, as the webhook sees them. None where there is no limit; `default_limit` is that of a LimitRange."""
    original = default_limit if limit is None else limit
    if original is None or recommended == 0:
        return None
    if request is None or request == 0 or request == original:
        return recommended
    return original * recommended // request


def cap_to_limits(estimates: Mapping[str, VpaEstimate], limits: Amounts) -> dict[str, VpaEstimate]:
    """Returns the recommendation of a container with controlledValues RequestsOnly: never above its limits."""
    return {
        resource: estimate if resource not in limits else replace(
            estimate, lower_bound=min(estimate.lower_bound, limits[resource]),
            target=min(estimate.target, limits[resource]), upper_bound=min(estimate.upper_bound, limits[resource]),
        )
        for resource, estimate in estimates.items()
    }  # fmt: skip


def cap_to_policy(estimate: VpaEstimate, min_allowed: int = 0, max_allowed: int | None = None) -> VpaEstimate:
    """Returns the recommendation within minAllowed and maxAllowed; the maximum counts where they contradict."""

    def cap(amount: int) -> int:
        raised = max(amount, min_allowed)
        return raised if max_allowed is None else min(raised, max_allowed)

    return VpaEstimate(cap(estimate.lower_bound), cap(estimate.target), cap(estimate.upper_bound))
