"""What the LimitRanges of a namespace demand: their bounds for containers and for whole pods, and the smallest and the
largest request of a container that follow from these bounds and from the limit that will hold.

Policies, recommendations and rules about VPAs use the same bounds, so that none of them writes a request with which the
API server refuses the pod. Amounts are in the scheduler's unit: millicores of cpu, whole units of anything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange, LimitRangeItem
from trimtab.cluster.api.meta import ResourceList, change
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import limits_without_overhead, requests_without_overhead


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


class RequestBound(msgspec.Struct, frozen=True, gc=False):
    """A bound of a request. It is a msgspec struct for speed, because each review builds several."""

    amount: int
    phrase: str
    """What sets the bound, as a clause before the amount: "LimitRange small allows at most"."""
    is_enforced: bool = True
    """Whether the API server refuses a pod outside of the bound."""


def held_limit(bounds: LimitRangeBounds, written: Written | None) -> Written | None:
    """Returns the limit that a container has as long as nothing changes it: the one that is written, otherwise the
    default of a LimitRange; None if there is neither."""
    return written if written is not None or bounds.default is None else bounds.default.value


def request_floors(resource: str, bounds: LimitRangeBounds, limit: Written | None) -> tuple[RequestBound, ...]:
    """Returns the lower bounds of a request that LimitRanges set. `limit`: the limit that holds whatever the request
    becomes; None if there is none, or if it follows the request."""
    floors: list[RequestBound] = []
    minimum, ratio = bounds.min, bounds.ratio
    if ratio is not None and limit is not None:
        amount = least_for_ratio(resource, limit, ratio.value)
        floors.append(RequestBound(amount, f"the limit:request ratio of LimitRange {ratio.by} requires at least"))
    if minimum is not None:
        amount = quantity.scheduler_value(resource, minimum.value)
        floors.append(RequestBound(amount, f"LimitRange {minimum.by} requires at least"))
    return tuple(floors)


def request_ceilings(
    resource: str, bounds: LimitRangeBounds, limit: Written | None, *, is_added: bool = False
) -> tuple[RequestBound, ...]:
    """Returns the upper bounds of a request: the maximum of LimitRanges, then the limit that holds. `is_added`: whether
    it is the default limit of a LimitRange."""
    ceilings: list[RequestBound] = []
    if bounds.max is not None:
        amount = round_down(resource, bounds.max.value)
        ceilings.append(RequestBound(amount, f"LimitRange {bounds.max.by} allows at most"))
    if limit is not None:
        by = f"the limit that LimitRange {bounds.default.by} adds is" if is_added and bounds.default else "the limit is"
        ceilings.append(RequestBound(round_down(resource, limit), by))
    return tuple(ceilings)


def least_for_ratio(resource: str, limit: Written, ratio: Written) -> int:
    """Returns the smallest request for which the limit divided by the request is at most the ratio."""
    nano = -(-quantity.parse(limit) * quantity.NANO_PER_UNIT // quantity.parse(ratio))
    return -(-nano // _nano_per_step(resource))


def round_down(resource: str, amount: Written) -> int:
    """Returns the amount in the scheduler's unit, rounded down, for use as an upper bound."""
    return quantity.parse(amount) // _nano_per_step(resource)


def _nano_per_step(resource: str) -> int:
    # Amounts are parsed in nano units; the scheduler counts cpu in millicores and everything else in whole units.
    return 10**6 if resource == "cpu" else quantity.NANO_PER_UNIT
