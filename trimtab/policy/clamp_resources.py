"""Brings the requests and limits that policies propose within all bounds that hold for them.

Above all, the pod must stay valid even if the webhook is not called a second time. So a limit stays if a LimitRange
would set it again, or if a LimitRange or a quota demands one; and a request is never above a limit that exists or may
be set again.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from trimtab.cluster import quantity
from trimtab.cluster.limit_ranges import (
    LimitRangeBounds,
    RequestBound,
    held_limit,
    request_ceilings,
    request_floors,
    round_down,
)
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resource_quotas import quota_counting_limit
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, requests_of
from trimtab.policy import autoscalers, reasons
from trimtab.policy.changed_annotation import is_defaulted
from trimtab.policy.field_owners import may_be_applied
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.recorded_usage import find_recorded_usage
from trimtab.policy.write_resources import ClampedResource, write_clamped_resources

_NO_BOUNDS = LimitRangeBounds()
# Policies name few factors, and every container is multiplied by each of them.
_factor = lru_cache(maxsize=256)(Fraction)


class _ContainerResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One resource of one container: what the author wrote, what policies propose, and the bounds for it."""

    subject: PodContext
    place: ContainerRef
    resource: str
    bounds: LimitRangeBounds
    request: ResourceRequest | None
    limit: ResourceRequest | None
    written_request: Written | None
    written_limit: Written | None
    vpa: autoscalers.VpaConstraints | None

    @property
    def request_name(self) -> str:
        return f"{self.place.name}.requests.{self.resource}"

    @property
    def limit_name(self) -> str:
        return f"{self.place.name}.limits.{self.resource}"


def clamp_resources(pod_changes: PodChanges) -> None:
    """Clamps the requests and limits that the policies propose, and writes them into the containers of the pod."""
    # Sorted by the position of the container, so that reasons and patches have the same order every time.
    keys = sorted({**pod_changes.requests, **pod_changes.limits}, key=lambda k: (k[0].part, k[0].index, k[1]))
    if not keys or _leaves_pod_level(pod_changes):
        return
    subject = pod_changes.pod_context
    bounds, vpa_constraints = (
        subject.facts.bounds.get(subject.namespace, {}),
        subject.compute_once(autoscalers.index_vpa_constraints),
    )
    resources = [
        _ContainerResource(
            subject=subject,
            place=key[0],
            resource=key[1],
            bounds=bounds.get(key[1], _NO_BOUNDS),
            request=pod_changes.requests.get(key),
            limit=pod_changes.limits.get(key),
            written_request=requests_of(key[0].container.resources).get(key[1]),
            written_limit=limits_of(key[0].container.resources).get(key[1]),
            vpa=vpa_constraints.constraints_for(*key),
        )
        for key in keys
    ]
    steps, obstacles, clamped = _drop_steps(pod_changes), _Obstacles(pod_changes), []
    for state in resources:
        for step in steps:
            state = step(pod_changes, state)
        clamped.append(_clamp(pod_changes, state, obstacles))
    write_clamped_resources(pod_changes, clamped)


_DropStep = Callable[[PodChanges, _ContainerResource], _ContainerResource]


def _drop_steps(changes: PodChanges) -> list[_DropStep]:
    """Returns the functions that may drop a proposed value of this pod, in the order in which they must run: values
    that may not change are dropped first, so that the check for circular limits only sees requests that will really be
    set."""
    steps: list[_DropStep] = []
    if may_be_applied(changes.pod_context):
        steps.append(_drop_applied_values)
    if changes.pod_context.qos is QoS.GUARANTEED:
        steps.append(_drop_unasked_qos_changes)
    if changes.shares:
        steps.append(_drop_circular_limit)
    return steps


def _leaves_pod_level(changes: PodChanges) -> bool:
    """Returns whether the pod has pod-level resources. Its containers are then left alone, because the sum of their
    requests must not exceed the pod's (KEP-2837)."""
    pod_resources = changes.pod_context.pod.spec.resources
    if not any(name in side(pod_resources) for side in (requests_of, limits_of) for name in POD_LEVEL):
        return False
    # What an earlier call of the webhook has set for the pod is no news.
    if any(f"resources.requests.{name}" in changes.applied_before for name in POD_LEVEL):
        return True
    reason = reasons.POD_LEVEL_RESOURCES("the pod sets resources for all its containers together")
    for wanted in (*changes.requests.values(), *changes.limits.values()):
        changes.leave_unchanged("resources", reason, policy=wanted.policy)
    return True


def _drop_applied_values(changes: PodChanges, resource_state: _ContainerResource) -> _ContainerResource:
    """Drops proposed values that would replace what the author wrote, if the pod itself may be applied again: the API
    server does not let the requests and limits of an existing pod change."""
    request, limit = resource_state.request, resource_state.limit
    if (
        request is not None
        and resource_state.written_request is not None
        and changes.must_stay_applied(resource_state.request_name, request.policy)
    ):
        resource_state = replace(resource_state, request=None)
    if (
        limit is not None
        and resource_state.written_limit is not None
        and changes.must_stay_applied(resource_state.limit_name, limit.policy)
    ):
        resource_state = replace(resource_state, limit=None)
    return resource_state


def _drop_unasked_qos_changes(changes: PodChanges, resource_state: _ContainerResource) -> _ContainerResource:
    """Drops proposed changes that would end a pod's Guaranteed class, unless the policy has `guaranteed: change`."""
    # Only cpu and memory determine the class (pkg/apis/core/helper/qos/qos.go, `supportedQoSComputeResources`).
    if resource_state.resource not in POD_LEVEL:
        return resource_state
    reason = reasons.GUARANTEED_LEFT_ALONE(
        "the pod has the QoS class Guaranteed, and the policy does not set `guaranteed: change`"
    )
    if resource_state.request is not None and not resource_state.request.changes_guaranteed:
        changes.leave_unchanged(resource_state.request_name, reason, policy=resource_state.request.policy)
        resource_state = replace(resource_state, request=None)
    if resource_state.limit is not None and not resource_state.limit.changes_guaranteed:
        changes.leave_unchanged(resource_state.limit_name, reason, policy=resource_state.limit.policy)
        resource_state = replace(resource_state, limit=None)
    return resource_state


def _drop_circular_limit(changes: PodChanges, resource_state: _ContainerResource) -> _ContainerResource:
    """Drops a limit that follows the request, if the request is a share of that limit."""
    wanted_limit = resource_state.limit
    share = changes.shares.get((resource_state.place, resource_state.resource))
    if wanted_limit is None or wanted_limit.factor is None or share is None:
        return resource_state
    # A request of 100% of the limit and a limit of once the request agree with each other: both stay.
    if _factor(wanted_limit.factor) * share.percent == 100 and not share.bounded:
        return resource_state
    reason = reasons.CIRCULAR(
        f"policy {share.policy} computes the request as a share of this limit, so the limit cannot follow the request"
    )
    changes.leave_unchanged(resource_state.limit_name, reason, loud=True, policy=wanted_limit.policy)
    return replace(resource_state, limit=None)


def _clamp(changes: PodChanges, resource_state: _ContainerResource, obstacles: "_Obstacles") -> ClampedResource:
    """Clamps the request and the limit of one resource of one container."""
    fixed_limit = _fixed_limit(changes, resource_state, obstacles)
    request, request_reason = _clamp_request(changes, resource_state, fixed_limit)
    limit = _clamp_limit(changes, resource_state, fixed_limit, request)
    if resource_state.resource == "memory" and limit is not None and limit == resource_state.written_limit:
        _report_below_peak(changes, resource_state, limit)
    request_want = resource_state.request
    if request_want is not None and request_reason is not None:
        request_want = replace(request_want, reason=request_reason)
    return ClampedResource(
        place=resource_state.place,
        resource=resource_state.resource,
        request=request,
        limit=limit,
        request_want=request_want,
        limit_want=resource_state.limit,
    )


def _fixed_limit(changes: PodChanges, resource_state: _ContainerResource, obstacles: "_Obstacles") -> Written | None:
    """Returns the limit that will hold whatever the request becomes. None if there will be no limit, or if it follows
    the request."""
    if resource_state.limit is None:
        return held_limit(resource_state.bounds, resource_state.written_limit)
    if resource_state.limit.factor is not None:
        return None
    obstacle = obstacles.obstacle_for(resource_state)
    if obstacle is None:
        return None
    changes.leave_unchanged(resource_state.limit_name, obstacle, loud=True, policy=resource_state.limit.policy)
    return resource_state.written_limit


class _Obstacles:
    """Why the limits of a pod's resources cannot be removed. The answer is the same for all containers of the pod and
    is computed once per resource, because the scopes of quotas are tested against the whole pod."""

    def __init__(self, changes: PodChanges) -> None:
        self._draft = changes
        self._reasons: dict[str, Reason | None] = {}

    def obstacle_for(self, resource_state: _ContainerResource) -> Reason | None:
        """Returns why the limit of this resource cannot be removed, or None if it can."""
        if resource_state.resource not in self._reasons:
            self._reasons[resource_state.resource] = _find_obstacle(self._draft, resource_state)
        return self._reasons[resource_state.resource]


def _find_obstacle(changes: PodChanges, resource_state: _ContainerResource) -> Reason | None:
    """Returns why the limit cannot be removed, or None if it can."""
    facts, resource = resource_state.subject.facts, resource_state.resource
    if not {"LimitRange", "ResourceQuota"} <= facts.listed_kinds:
        return reasons.FACTS_MISSING("LimitRanges and ResourceQuotas have not been read yet")
    bound = resource_state.bounds.limit_restored_by
    if bound is not None:
        sentence = f"LimitRange {bound.by} would set a {resource} limit again, or requires a limit"
        return reasons.LIMIT_RANGE_KEEPS_LIMIT(sentence)
    limit_range = _limit_range_for_pods(resource_state)
    if limit_range is not None:
        return reasons.LIMIT_RANGE_KEEPS_LIMIT(
            f"LimitRange {limit_range} bounds the {resource} limits of the whole pod"
        )
    # The pod as decided so far: another PriorityClass may bring it under another quota.
    quota = quota_counting_limit(facts.quotas.get(resource_state.subject.namespace, ()), changes.changed_pod, resource)
    return reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {quota} counts limits.{resource}") if quota else None


def _limit_range_for_pods(resource_state: _ContainerResource) -> str | None:
    """Returns the name of a LimitRange whose bounds for whole pods require every container to have a limit of this
    resource, or None if there is none."""
    # LimitRanger adds up the containers for an item of type Pod, and a container without a limit fails the check
    # (plugin/pkg/admission/limitranger/admission.go).
    for limit_range in resource_state.subject.facts.limit_ranges.get(resource_state.subject.namespace, ()):
        for item in limit_range.spec.limits:
            if item.type == "Pod" and (
                resource_state.resource in item.max or resource_state.resource in item.max_limit_request_ratio
            ):
                return limit_range.metadata.name
    return None


def _clamp_request(
    changes: PodChanges, state: _ContainerResource, fixed_limit: Written | None
) -> tuple[Written | None, Reason | None]:
    """Returns the request within all bounds, and the reason for the last bound that changed it; both None if there is
    no request."""
    wanted = state.request
    if wanted is None or wanted.value is None:
        return _unchanged_request(state, fixed_limit), None
    vpa = state.vpa
    # The VPA would multiply the limit by its target divided by the request: a smaller request means a larger limit.
    if vpa is not None and vpa.keeps_ratio and fixed_limit is not None:
        reason = reasons.VPA_RATIO(
            f"VPA {vpa.name} keeps the ratio of limit to request, and the limit {fixed_limit} is not changed"
        )
        changes.leave_unchanged(state.request_name, reason, loud=True, policy=wanted.policy)
        return state.written_request, None
    number = quantity.scheduler_value(state.resource, wanted.value)
    bound_reason = None
    floors, ceilings = _request_floors(state, fixed_limit), _request_ceilings(state, fixed_limit)
    for floor in floors:
        if number < floor.amount:
            number = floor.amount
            bound_reason = reasons.REQUEST_RAISED(f"{wanted.reason}; {floor.phrase} {_format(state, number)}")
    # Ceilings after floors: a request above its limit or above the largest node is worse than one below a minimum.
    for ceiling in ceilings:
        if number > ceiling.amount:
            number = ceiling.amount
            bound_reason = reasons.REQUEST_CAPPED(f"{wanted.reason}; {ceiling.phrase} {_format(state, number)}")
    # A policy's wish is not worth a refused pod.
    if number <= 0 or any(floor.is_enforced and number < floor.amount for floor in floors):
        reason = reasons.LIMIT_RANGE_REFUSES(f"no {state.resource} request satisfies both the LimitRange and the limit")
        changes.leave_unchanged(state.request_name, reason, loud=True, policy=wanted.policy)
        return state.written_request, None
    return quantity.format_quantity(state.resource, number), bound_reason


def _unchanged_request(resource_state: _ContainerResource, fixed_limit: Written | None) -> Written | None:
    """Returns the request of a container if no policy changes it. If the request exists only because the API server
    copied the limit, it is returned too, so that it remains when the limit is removed."""
    if (
        resource_state.written_request is None
        and resource_state.limit is not None
        and resource_state.limit.factor is None
        and fixed_limit is None
    ):
        return resource_state.written_limit
    return resource_state.written_request


def _request_floors(resource_state: _ContainerResource, fixed_limit: Written | None) -> tuple[RequestBound, ...]:
    """Returns all lower bounds of the request."""
    vpa = resource_state.vpa
    if vpa is None and resource_state.bounds is _NO_BOUNDS:  # nearly every pod
        return ()
    floors = request_floors(resource_state.resource, resource_state.bounds, fixed_limit)
    if vpa is None:
        return floors
    return _floor_of_vpa(vpa.floor, vpa.name), *floors


def _request_ceilings(resource_state: _ContainerResource, fixed_limit: Written | None) -> list[RequestBound]:
    """Returns all upper bounds of the request."""
    ceilings: list[RequestBound] = []
    vpa, largest = resource_state.vpa, resource_state.subject.facts.largest_node.get(resource_state.resource)
    # A device is not capped: a container that asks for four of them cannot work with two.
    if largest and "/" not in resource_state.resource:
        ceilings.append(_capacity_of_node(largest))
    if vpa is not None and vpa.ceiling is not None:
        ceilings.append(_ceiling_of_vpa(vpa.ceiling, vpa.name))
    if fixed_limit is not None or resource_state.bounds is not _NO_BOUNDS:
        is_added = resource_state.written_limit is None
        ceilings += request_ceilings(resource_state.resource, resource_state.bounds, fixed_limit, is_added=is_added)
    return ceilings


# A VPA gives all containers without a policy of their own the same bounds, and nodes have few sizes.
@lru_cache(maxsize=256)
def _floor_of_vpa(amount: int, name: str) -> RequestBound:
    return RequestBound(amount, f"VPA {name} would not leave the request below", is_enforced=False)


@lru_cache(maxsize=256)
def _ceiling_of_vpa(amount: int, name: str) -> RequestBound:
    return RequestBound(amount, f"VPA {name} allows at most", is_enforced=False)


@lru_cache(maxsize=64)
def _capacity_of_node(amount: int) -> RequestBound:
    return RequestBound(amount, "the capacity of the largest node is", is_enforced=False)


def _clamp_limit(
    changes: PodChanges, resource_state: _ContainerResource, fixed_limit: Written | None, request: Written | None
) -> Written | None:
    """Returns the limit within all bounds, or None if there is no limit."""
    limit = _wanted_limit(resource_state, fixed_limit, request)
    if resource_state.limit is None or resource_state.limit.factor is None or limit is None:
        return limit
    if resource_state.resource == "memory":
        return _limit_above_peak(changes, resource_state, limit)
    return (
        _limit_not_lowered(changes, resource_state, limit) if resource_state.resource == "ephemeral-storage" else limit
    )


# Percent above the greatest use that is known: a memory limit at or below that use kills the container.
PEAK_HEADROOM_PERCENT = 15


def _limit_above_peak(changes: PodChanges, state: _ContainerResource, limit: Written) -> Written | None:
    """Returns the memory limit that follows a request, changed so that it does not kill the container at its known
    usage:

    - it is raised to the known peak and headroom;
    - it does not follow a request that is only a default, because nothing is then known of what the container needs;
    - the author's own limit is never lowered. If that limit is below the peak, a reason says so.
    """
    assert state.limit is not None
    policy, author_limit, amount = state.limit.policy, state.written_limit, quantity.scheduler_value("memory", limit)
    usage = find_recorded_usage(state.subject, state.place, "memory")
    peak = None if usage is None or usage.max is None else quantity.scheduler_value("memory", usage.max)
    # Without any record a default may be far too small, and as a limit it kills.
    if peak is None and usage is None and (state.place, "memory") in changes.guesses:
        reason = reasons.LIMIT_AFTER_DEFAULT(
            "the request is only a default, and Trimtab knows no memory usage of the container"
        )
        changes.leave_unchanged(state.limit_name, reason, loud=True, policy=policy)
        return author_limit
    if usage is not None and peak is not None:
        # Whole MiB, rounded up: `-(-a // b)` divides and rounds up.
        lowest = -(-peak * (100 + PEAK_HEADROOM_PERCENT) // 100 // (1 << 20)) * (1 << 20)
        highest = None if state.bounds.max is None else round_down(state.resource, state.bounds.max.value)
        if amount < lowest and highest is not None and highest < lowest:
            reason = reasons.LIMIT_BELOW_PEAK(
                f"a LimitRange allows at most {_format(state, highest)}, but the container's peak is {usage.max}"
            )
            changes.leave_unchanged(state.limit_name, reason, loud=True, policy=policy)
            return author_limit
        amount = max(amount, lowest)
    return _limit_not_lowered(
        changes,
        state,
        limit if amount == quantity.scheduler_value("memory", limit) else quantity.format_quantity("memory", amount),
    )


def _limit_not_lowered(changes: PodChanges, state: _ContainerResource, limit: Written) -> Written:
    """Returns the larger of the limit and the author's own limit, because a container must be able to use as much as
    before."""
    assert state.limit is not None
    author_limit, amount = state.written_limit, quantity.scheduler_value(state.resource, limit)
    if author_limit is None or is_defaulted(state.subject, state.place, "limit", state.resource):
        return limit
    if amount >= quantity.scheduler_value(state.resource, author_limit):
        return limit
    # The second call sees the limit of the first one, which is not the author's.
    if not changes.was_set_before(state.limit_name, author_limit):
        sentence = f"the author set the limit {author_limit}, and the policy's limit {_format(state, amount)} is lower"
        changes.leave_unchanged(state.limit_name, reasons.LIMIT_NOT_LOWERED(sentence), policy=state.limit.policy)
    return author_limit


def _report_below_peak(changes: PodChanges, resource_state: _ContainerResource, limit: Written) -> None:
    """Records that the author's limit is below the known peak; the limit is not changed."""
    usage = find_recorded_usage(resource_state.subject, resource_state.place, "memory")
    if usage is None or usage.max is None or quantity.compare_quantities(usage.max, limit) <= 0:
        return
    wanted = resource_state.limit or resource_state.request
    reason = reasons.LIMIT_BELOW_PEAK(f"the limit is {limit}, but the container has used {usage.max}")
    changes.leave_unchanged(
        resource_state.limit_name, reason, loud=True, policy=wanted.policy if wanted is not None else None
    )


def _wanted_limit(
    resource_state: _ContainerResource, fixed_limit: Written | None, request: Written | None
) -> Written | None:
    """Returns the limit that the policy proposes, within the bounds of LimitRanges, or None for no limit."""
    wanted = resource_state.limit
    if wanted is None:
        return resource_state.written_limit
    if wanted.factor is None:
        return fixed_limit
    if request is None:
        return resource_state.written_limit
    ratio = resource_state.bounds.ratio
    factor = _factor(wanted.factor)
    if ratio is not None:
        # maxLimitRequestRatio of a LimitRange bounds limit divided by request.
        factor = min(factor, Fraction(quantity.parse(ratio.value), quantity.NANO_PER_UNIT))
    # The whole part of the product. It is computed with integers, because fractions are reduced to lowest terms at
    # each multiplication, which costs more time than everything else about a limit.
    product = quantity.scheduler_value(resource_state.resource, request) * factor.numerator
    amount = product // factor.denominator if product >= 0 else -(-product // factor.denominator)
    if resource_state.bounds.max is not None:
        amount = min(amount, round_down(resource_state.resource, resource_state.bounds.max.value))
    # A limit equal to the request repeats its text, so that rounding cannot make the two differ.
    return (
        request
        if amount <= quantity.scheduler_value(resource_state.resource, request)
        else quantity.format_quantity(resource_state.resource, amount)
    )


def _format(resource_state: _ContainerResource, number: int) -> str:
    return quantity.format_quantity(resource_state.resource, number)
