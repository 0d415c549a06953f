"""The smallest and the largest request of a container in its namespace: what LimitRanges require, and the limit that
will hold.

Policies, recommendations and rules about VPAs use the same bounds, so that none of them writes a request with which the
API server refuses the pod. Amounts are in the scheduler's unit: millicores of cpu, whole units of anything else.
"""

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.limit_ranges import LimitRangeBounds
from trimtab.cluster.quantity import Written


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
    floors = list[RequestBound]()
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
    ceilings = list[RequestBound]()
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
