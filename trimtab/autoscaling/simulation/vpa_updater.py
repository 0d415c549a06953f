"""When the VPA's updater acts on a pod, and what the VPA's webhook sets (updater/priority, utils/vpa, VPA 1.6).

Amounts are in the scheduler's units: millicores and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from trimtab.histogram.vpa_estimators import RecommenderFlags, VpaEstimate

Amounts = Mapping[str, int]
"""Resource → amount."""


@dataclass(frozen=True, slots=True)
class ContainerEstimate:
    """The requests of one container and the recommendations for it, by resource. A resource may have no request."""

    requests: Amounts
    estimates: Mapping[str, VpaEstimate]


@dataclass(frozen=True, slots=True)
class UpdatePriority:
    """How far a pod is from its recommendation (the updater's GetUpdatePriority)."""

    difference: float
    """The sum over resources of |recommended - requested| / requested."""
    is_outside: bool
    """Whether a request is missing or is outside its bounds."""
    is_scale_up: bool
    """Whether the recommendation for any resource is above the request."""


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
    difference = fsum(
        abs(requested.get(resource, 0) - amount) / max(requested.get(resource, 0), 1)
        for resource, amount in recommended.items()
    )
    return UpdatePriority(difference=difference, is_outside=is_outside, is_scale_up=is_scale_up)


def is_update_due(priority: UpdatePriority, age_seconds: float, flags: RecommenderFlags) -> bool:
    """Returns whether the updater acts on a pod: at once if a request is outside its bounds; otherwise if the pod is
    old and its target differs by at least the threshold."""
    if priority.difference == 0:
        return False
    return priority.is_outside or (
        age_seconds >= flags.eviction_lifetime_seconds and priority.difference >= flags.pod_update_threshold
    )


def count_evictable_pods(replicas: int, flags: RecommenderFlags) -> int:
    """Returns how many pods of a workload may be evicted in one round, if all of its pods run; 0 if there are fewer
    than the minimum of replicas.

    At least replicas - trunc(replicas * tolerance) pods stay. If the tolerance allows no eviction, one pod may still be
    evicted.
    """
    if replicas < flags.min_replicas:
        return 0
    return max(1, int(replicas * flags.eviction_tolerance))


def scale_limit(
    limit: int | None, request: int | None, recommended: int, default_limit: int | None = None
) -> int | None:
    """Returns the limit that a VPA with RequestsAndLimits sets when a container's request becomes `recommended`; None
    if the container has no limit.

    The ratio of limit to request stays the same. `default_limit` is the default limit of a LimitRange."""
    original = default_limit if limit is None else limit
    if original is None or recommended == 0:
        return None
    if request is None or request == 0 or request == original:
        return recommended
    return original * recommended // request
