"""Requests and limits together: what do all bounds leave of what the policies want?

One invariant above all: the pod stays valid if our second call never comes. So a limit that a LimitRange would put
back, or that it or a quota demands, stays; and a request is never above a limit that is there or may come back.
"""

from fractions import Fraction
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from trimtab.cluster import quantity
from trimtab.cluster.limit_ranges import LimitRangeBounds, counts_limit
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, requests_of
from trimtab.policy import autoscalers, reasons
from trimtab.policy.changed_annotation import is_defaulted
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.recorded_usage import find_recorded_usage
from trimtab.policy.write_resources import ClampedResource, write_clamped_resources

_NO_BOUNDS = LimitRangeBounds()
_factor = lru_cache(maxsize=256)(Fraction)
"""Policies name few, and every container meets each of them."""


class _ContainerResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One resource of one container: what is written, what is wanted, what bounds it."""

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


def clamp_resources(draft: PodChanges) -> None:
    """Turn the wants of all policies into the containers of the draft's pod."""
    keys = sorted({**draft.requests, **draft.limits}, key=lambda k: (k[0].part, k[0].index, k[1]))
    if not keys or _pod_level(draft):
        return
    subject = draft.subject
    bounds, sizes = subject.facts.bounds.get(subject.namespace, {}), subject.once(autoscalers.index_vpa_constraints)
    cells = [
        _ContainerResource(
            subject=subject, place=key[0], resource=key[1], bounds=bounds.get(key[1], _NO_BOUNDS),
            request=draft.requests.get(key), limit=draft.limits.get(key),
            written_request=requests_of(key[0].container.resources).get(key[1]),
            written_limit=limits_of(key[0].container.resources).get(key[1]), vpa=sizes.of(*key),
        )
        for key in keys
    ]  # fmt: skip
    obstacles = _Obstacles(draft)
    write_clamped_resources(
        draft,
        [_settled(draft, _straight(draft, _guarded(draft, _as_applied(draft, cell))), obstacles) for cell in cells],
    )


def _pod_level(draft: PodChanges) -> bool:
    """Pod-level resources own the pod's size: the containers below them are left alone (KEP-2837, sum rule)."""
    whole = draft.subject.pod.spec.resources
    if not any(name in side(whole) for side in (requests_of, limits_of) for name in POD_LEVEL):
        return False
    reason = reasons.POD_LEVEL_RESOURCES("the pod sets resources for all its containers together")
    for want in (*draft.requests.values(), *draft.limits.values()):
        draft.leave_unchanged("resources", reason, policy=want.policy)
    return True


def _as_applied(draft: PodChanges, cell: _ContainerResource) -> _ContainerResource:
    """What its author wrote stays in a pod that may be applied again: of a pod that exists, neither may change."""
    request, limit = cell.request, cell.limit
    if (
        request is not None
        and cell.written_request is not None
        and draft.must_stay_applied(cell.request_name, request.policy)
    ):
        cell = replace(cell, request=None)
    if limit is not None and cell.written_limit is not None and draft.must_stay_applied(cell.limit_name, limit.policy):
        cell = replace(cell, limit=None)
    return cell


def _guarded(draft: PodChanges, cell: _ContainerResource) -> _ContainerResource:
    """A Guaranteed pod keeps its class of service unless the policy says `guaranteed: change`."""
    if cell.subject.qos is not QoS.GUARANTEED or cell.resource not in POD_LEVEL:  # only these make the class
        return cell
    reason = reasons.GUARANTEED_LEFT_ALONE("the pod is Guaranteed, and the policy does not say `guaranteed: change`")
    if cell.request is not None and not cell.request.changes_guaranteed:
        draft.leave_unchanged(cell.request_name, reason, policy=cell.request.policy)
        cell = replace(cell, request=None)
    if cell.limit is not None and not cell.limit.changes_guaranteed:
        draft.leave_unchanged(cell.limit_name, reason, policy=cell.limit.policy)
        cell = replace(cell, limit=None)
    return cell


def _straight(draft: PodChanges, cell: _ContainerResource) -> _ContainerResource:
    """A limit that follows the request stays where that request is a share of the limit."""
    want = cell.limit
    share = draft.shares.get((cell.place, cell.resource))
    if want is None or want.factor is None or share is None:
        return cell
    # All of the limit, and exactly the request, agree with each other: that settles.
    if _factor(want.factor) * share.percent == 100 and not share.bounded:
        return cell
    reason = reasons.CIRCULAR(f"{share.policy} makes the request a share of this limit")
    draft.leave_unchanged(cell.limit_name, reason, loud=True, policy=want.policy)
    return replace(cell, limit=None)


def _settled(draft: PodChanges, cell: _ContainerResource, obstacles: "_Obstacles") -> ClampedResource:
    standing = _standing_limit(draft, cell, obstacles)
    request, request_reason = _request(draft, cell, standing)
    limit = _limit(draft, cell, standing, request)
    if cell.resource == "memory" and limit is not None and limit == cell.written_limit:
        _report_below_peak(draft, cell, limit)
    return ClampedResource(
        place=cell.place,
        resource=cell.resource,
        request=request,
        limit=limit,
        request_want=cell.request and replace(cell.request, reason=request_reason or cell.request.reason),
        limit_want=cell.limit,
    )


def _standing_limit(draft: PodChanges, cell: _ContainerResource, obstacles: "_Obstacles") -> Written | None:
    """The limit that will stand whatever the request becomes; None: there is none, or it follows the request."""
    if cell.limit is None:
        back = cell.bounds.default
        return cell.written_limit if cell.written_limit is not None or back is None else back.value
    if cell.limit.factor is not None:
        return None
    obstacle = obstacles.obstacle_for(cell)
    if obstacle is None:
        return None
    draft.leave_unchanged(cell.limit_name, obstacle, loud=True, policy=cell.limit.policy)
    return cell.written_limit


class _Obstacles:
    """Why the limits of a resource cannot be removed. It is the same for all containers of a pod, so it is looked for
    once: a quota's scopes are asked about the whole pod."""

    def __init__(self, draft: PodChanges) -> None:
        self._draft = draft
        self._known: dict[str, Reason | None] = {}

    def obstacle_for(self, cell: _ContainerResource) -> Reason | None:
        """None: they can."""
        if cell.resource not in self._known:
            self._known[cell.resource] = _obstacle(self._draft, cell)
        return self._known[cell.resource]


def _obstacle(draft: PodChanges, cell: _ContainerResource) -> Reason | None:
    """Why the limit cannot be removed; None: it can."""
    facts, resource = cell.subject.facts, cell.resource
    if not {"LimitRange", "ResourceQuota"} <= facts.known:
        return reasons.FACTS_MISSING("LimitRanges and ResourceQuotas are not listed yet")
    back = cell.bounds.limit_comes_back
    if back is not None:
        return reasons.LIMIT_RANGE_KEEPS_LIMIT(f"LimitRange {back.by} brings a {resource} limit back, or demands one")
    whole = _bounds_pods(cell)
    if whole is not None:
        return reasons.LIMIT_RANGE_KEEPS_LIMIT(f"LimitRange {whole} bounds the {resource} limits of the whole pod")
    # The pod as decided so far: another PriorityClass may bring it under another quota.
    quota = counts_limit(facts.quotas.get(cell.subject.namespace, ()), draft.changed_pod, resource)
    return reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {quota} counts limits.{resource}") if quota else None


def _bounds_pods(cell: _ContainerResource) -> str | None:
    """The LimitRange whose Pod item needs every container to have a limit of this resource."""
    for limit_range in cell.subject.facts.limit_ranges.get(cell.subject.namespace, ()):
        for item in limit_range.spec.limits:
            if item.type == "Pod" and (cell.resource in item.max or cell.resource in item.max_limit_request_ratio):
                return limit_range.metadata.name
    return None


def _request(
    draft: PodChanges, cell: _ContainerResource, standing: Written | None
) -> tuple[Written | None, Reason | None]:
    """The request that will stand, and the last bound that moved it."""
    want = cell.request
    if want is None or want.value is None:
        return _unwanted_request(cell, standing), None
    sizing = cell.vpa
    if sizing is not None and sizing.keeps_ratio and standing is not None:
        reason = reasons.VPA_RATIO(f"VPA {sizing.name} keeps the limit:request ratio, and the limit {standing} stays")
        draft.leave_unchanged(cell.request_name, reason, loud=True, policy=want.policy)
        return cell.written_request, None
    number, moved = quantity.scheduler_value(cell.resource, want.value), None
    floors, ceilings = _floors(cell, standing), _ceilings(cell, standing)
    for least, says in floors:
        if number < least:
            number, moved = least, reasons.REQUEST_RAISED(f"{want.reason}; {says} {_text(cell, least)}")
    for most, says in ceilings:
        if number > most:
            number, moved = most, reasons.REQUEST_CAPPED(f"{want.reason}; {says} {_text(cell, most)}")
    hard = [least for least, says in floors if says.startswith("LimitRange")]
    if number <= 0 or any(number < least for least in hard):
        reason = reasons.LIMIT_RANGE_REFUSES(f"no {cell.resource} request meets LimitRange and limit together")
        draft.leave_unchanged(cell.request_name, reason, loud=True, policy=want.policy)
        return cell.written_request, None
    return quantity.format_quantity(cell.resource, number), moved


def _unwanted_request(cell: _ContainerResource, standing: Written | None) -> Written | None:
    """A request that only stood because its limit did (API defaulting) is written out before the limit goes."""
    if cell.written_request is None and cell.limit is not None and cell.limit.factor is None and standing is None:
        return cell.written_limit
    return cell.written_request


def _floors(cell: _ContainerResource, standing: Written | None) -> list[tuple[int, str]]:
    found = []
    sizing = cell.vpa
    if sizing is not None:
        found.append((sizing.floor, f"VPA {sizing.name} would not leave it below"))
    low, ratio = cell.bounds.min, cell.bounds.ratio
    if ratio is not None and standing is not None:
        least = -(-quantity.parse(standing) * quantity.NANO // quantity.parse(ratio.value))
        found.append((_up(cell, least), f"LimitRange {ratio.by} ratio asks for"))
    if low is not None:
        found.append((quantity.scheduler_value(cell.resource, low.value), f"LimitRange {low.by} min is"))
    return found


def _ceilings(cell: _ContainerResource, standing: Written | None) -> list[tuple[int, str]]:
    found = []
    sizing, high = cell.vpa, cell.bounds.max
    largest = cell.subject.facts.largest_node.get(cell.resource)
    if largest and "/" not in cell.resource:  # fewer pieces of a device than were asked for help nobody
        found.append((largest, "the largest node holds"))
    if sizing is not None and sizing.ceiling is not None:
        found.append((sizing.ceiling, f"VPA {sizing.name} maxAllowed is"))
    if high is not None:
        found.append((_down(cell, high.value), f"LimitRange {high.by} max is"))
    if standing is not None:
        found.append((_down(cell, standing), "the limit is"))
    return found


def _limit(
    draft: PodChanges, cell: _ContainerResource, standing: Written | None, request: Written | None
) -> Written | None:
    """The limit that will stand."""
    limit = _wanted_limit(cell, standing, request)
    if cell.limit is None or cell.limit.factor is None or limit is None:
        return limit
    if cell.resource == "memory":
        return _not_deadly(draft, cell, limit)
    return _not_lowered(draft, cell, limit) if cell.resource == "ephemeral-storage" else limit


PEAK_HEADROOM_PERCENT = 15
"""Percent above the greatest use that is known: a memory limit at or below it kills the container."""


def _not_deadly(draft: PodChanges, cell: _ContainerResource, limit: Written) -> Written | None:
    """A memory limit that follows a request, where it kills nothing that is known to live; the limit that is written
    where it might:

    - it is raised to the known peak and a headroom;
    - it follows no request that is a mere default: then nothing is known of what the container needs;
    - the author's own limit is never lowered. Where that is below the peak, it is told.
    """
    assert cell.limit is not None
    policy, written, number = cell.limit.policy, cell.written_limit, quantity.scheduler_value("memory", limit)
    usage = find_recorded_usage(cell.subject, cell.place, "memory")
    peak = None if usage is None or usage.max is None else quantity.scheduler_value("memory", usage.max)
    if peak is None and usage is None and (cell.place, "memory") in draft.guesses:
        reason = reasons.LIMIT_AFTER_DEFAULT("the request is a mere default, and no use of memory is known")
        draft.leave_unchanged(cell.limit_name, reason, loud=True, policy=policy)
        return written
    if usage is not None and peak is not None:
        least = -(-peak * (100 + PEAK_HEADROOM_PERCENT) // 100 // (1 << 20)) * (1 << 20)
        highest = None if cell.bounds.max is None else _down(cell, cell.bounds.max.value)
        if number < least and highest is not None and highest < least:
            reason = reasons.LIMIT_BELOW_PEAK(f"a LimitRange allows {_text(cell, highest)}, the peak is {usage.max}")
            draft.leave_unchanged(cell.limit_name, reason, loud=True, policy=policy)
            return written
        number = max(number, least)
    return _not_lowered(
        draft,
        cell,
        limit if number == quantity.scheduler_value("memory", limit) else quantity.format_quantity("memory", number),
    )


def _not_lowered(draft: PodChanges, cell: _ContainerResource, limit: Written) -> Written:
    """The limit, or the author's own where that is higher: what a container may use today it may use tomorrow."""
    assert cell.limit is not None
    written, number = cell.written_limit, quantity.scheduler_value(cell.resource, limit)
    if written is None or is_defaulted(cell.subject, cell.place, "limit", cell.resource):
        return limit
    if number >= quantity.scheduler_value(cell.resource, written):
        return limit
    if not draft.was_set_before(cell.limit_name, written):
        sentence = f"the limit {written} is the author's, and {_text(cell, number)} is less"
        draft.leave_unchanged(cell.limit_name, reasons.LIMIT_NOT_LOWERED(sentence), policy=cell.limit.policy)
    return written


def _report_below_peak(draft: PodChanges, cell: _ContainerResource, limit: Written) -> None:
    """The author's own limit stays; whoever reads reasons learns that it kills."""
    usage = find_recorded_usage(cell.subject, cell.place, "memory")
    if usage is None or usage.max is None or quantity.compare(usage.max, limit) <= 0:
        return
    want = cell.limit or cell.request
    reason = reasons.LIMIT_BELOW_PEAK(f"the limit is {limit}, and the container was seen to use {usage.max}")
    draft.leave_unchanged(cell.limit_name, reason, loud=True, policy=want.policy if want is not None else None)


def _wanted_limit(cell: _ContainerResource, standing: Written | None, request: Written | None) -> Written | None:
    """As the policy says it."""
    want = cell.limit
    if want is None:
        return cell.written_limit
    if want.factor is None:
        return standing
    if request is None:
        return cell.written_limit
    ratio = cell.bounds.ratio
    factor = _factor(want.factor)
    if ratio is not None:
        factor = min(factor, Fraction(quantity.parse(ratio.value), quantity.NANO))
    number = _times(quantity.scheduler_value(cell.resource, request), factor)
    if cell.bounds.max is not None:
        number = min(number, _down(cell, cell.bounds.max.value))
    # A limit that only repeats the request repeats its very text, so that nothing is rounded apart.
    return (
        request
        if number <= quantity.scheduler_value(cell.resource, request)
        else quantity.format_quantity(cell.resource, number)
    )


def _times(number: int, factor: Fraction) -> int:
    """The whole part of the product, in whole numbers alone: a product of fractions is reduced to lowest terms, which
    costs more than all the rest of a limit."""
    product = number * factor.numerator
    return product // factor.denominator if product >= 0 else -(-product // factor.denominator)


def _down(cell: _ContainerResource, written: Written) -> int:
    """The scheduler's number, rounded down: what may not be passed."""
    return quantity.parse(written) // (10**6 if cell.resource == "cpu" else quantity.NANO)


def _up(cell: _ContainerResource, nano: int) -> int:
    return -(-nano // (10**6 if cell.resource == "cpu" else quantity.NANO))


def _text(cell: _ContainerResource, number: int) -> str:
    return quantity.format_quantity(cell.resource, number)
