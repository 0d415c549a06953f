"""Requests and limits together: what do all bounds leave of what the policies want?

One invariant above all: the pod stays valid if our second call never comes. So a limit that a LimitRange would put
back, or that it or a quota demands, stays; and a request is never above a limit that is there or may come back.
"""

from fractions import Fraction

import msgspec
from msgspec.structs import replace

from trimtab.cluster import quantity
from trimtab.cluster.limits import Bounds, counts_limit
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, requests_of
from trimtab.policy import reasons, vpa
from trimtab.policy.draft import Draft, Want
from trimtab.policy.rewrite import Settled, rewrite
from trimtab.policy.subject import Place, Subject

_NO_BOUNDS = Bounds()


class _Cell(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One resource of one container: what is written, what is wanted, what bounds it."""

    subject: Subject
    place: Place
    resource: str
    bounds: Bounds
    request: Want | None
    limit: Want | None
    vpa: vpa.Sizing | None

    @property
    def written_request(self) -> Written | None:
        return requests_of(self.place.container.resources).get(self.resource)

    @property
    def written_limit(self) -> Written | None:
        return limits_of(self.place.container.resources).get(self.resource)

    @property
    def request_name(self) -> str:
        return f"{self.place.name}.requests.{self.resource}"

    @property
    def limit_name(self) -> str:
        return f"{self.place.name}.limits.{self.resource}"


def settle(draft: Draft) -> None:
    """Turn the wants of all policies into the containers of the draft's pod."""
    keys = sorted({**draft.requests, **draft.limits}, key=lambda k: (k[0].part, k[0].index, k[1]))
    if not keys or _pod_level(draft):
        return
    subject = draft.subject
    bounds, manager = subject.facts.bounds.get(subject.namespace, {}), subject.once(vpa.of)
    cells = [
        _Cell(
            subject=subject, place=place, resource=resource, bounds=bounds.get(resource, _NO_BOUNDS),
            request=draft.requests.get((place, resource)), limit=draft.limits.get((place, resource)),
            vpa=vpa.sizing(manager, subject, place, resource),
        )
        for place, resource in keys
    ]  # fmt: skip
    rewrite(draft, [_settled(draft, _straight(draft, _guarded(draft, _as_applied(draft, cell)))) for cell in cells])


def _pod_level(draft: Draft) -> bool:
    """Pod-level resources own the pod's size: the containers below them are left alone (KEP-2837, sum rule)."""
    whole = draft.subject.pod.spec.resources
    if not any(name in side(whole) for side in (requests_of, limits_of) for name in POD_LEVEL):
        return False
    reason = reasons.POD_LEVEL_RESOURCES("the pod sets resources for all its containers together")
    for want in (*draft.requests.values(), *draft.limits.values()):
        draft.leave("resources", reason, policy=want.policy)
    return True


def _as_applied(draft: Draft, cell: _Cell) -> _Cell:
    """What its author wrote stays in a pod that may be applied again: of a pod that exists, neither may change."""
    request, limit = cell.request, cell.limit
    if (
        request is not None
        and cell.written_request is not None
        and draft.stays_applied(cell.request_name, request.policy)
    ):
        cell = replace(cell, request=None)
    if limit is not None and cell.written_limit is not None and draft.stays_applied(cell.limit_name, limit.policy):
        cell = replace(cell, limit=None)
    return cell


def _guarded(draft: Draft, cell: _Cell) -> _Cell:
    """A Guaranteed pod keeps its class of service unless the policy says `guaranteed: change`."""
    if cell.subject.qos is not QoS.GUARANTEED:
        return cell
    reason = reasons.GUARANTEED_LEFT_ALONE("the pod is Guaranteed, and the policy does not say `guaranteed: change`")
    if cell.request is not None and not cell.request.changes_guaranteed:
        draft.leave(cell.request_name, reason, policy=cell.request.policy)
        cell = replace(cell, request=None)
    if cell.limit is not None and not cell.limit.changes_guaranteed:
        draft.leave(cell.limit_name, reason, policy=cell.limit.policy)
        cell = replace(cell, limit=None)
    return cell


def _straight(draft: Draft, cell: _Cell) -> _Cell:
    """A limit that follows the request stays where that request is a share of the limit."""
    want = cell.limit
    share = draft.shares.get((cell.place, cell.resource))
    if want is None or want.factor is None or share is None:
        return cell
    # All of the limit, and exactly the request, agree with each other: that settles.
    if Fraction(want.factor) * share.percent == 100 and not share.bounded:
        return cell
    reason = reasons.CIRCULAR(f"{share.policy} makes the request a share of this limit")
    draft.leave(cell.limit_name, reason, loud=True, policy=want.policy)
    return replace(cell, limit=None)


def _settled(draft: Draft, cell: _Cell) -> Settled:
    standing = _standing_limit(draft, cell)
    request, request_reason = _request(draft, cell, standing)
    limit = _limit(cell, standing, request)
    return Settled(
        place=cell.place,
        resource=cell.resource,
        request=request,
        limit=limit,
        request_want=cell.request and replace(cell.request, reason=request_reason or cell.request.reason),
        limit_want=cell.limit,
    )


def _standing_limit(draft: Draft, cell: _Cell) -> Written | None:
    """The limit that will stand whatever the request becomes; None: there is none, or it follows the request."""
    if cell.limit is None:
        back = cell.bounds.default
        return cell.written_limit if cell.written_limit is not None or back is None else back.value
    if cell.limit.factor is not None:
        return None
    obstacle = _obstacle(draft, cell)
    if obstacle is None:
        return None
    draft.leave(cell.limit_name, obstacle, loud=True, policy=cell.limit.policy)
    return cell.written_limit


def _obstacle(draft: Draft, cell: _Cell) -> Reason | None:
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
    quota = counts_limit(facts.quotas.get(cell.subject.namespace, ()), draft.pod, resource)
    return reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {quota} counts limits.{resource}") if quota else None


def _bounds_pods(cell: _Cell) -> str | None:
    """The LimitRange whose Pod item needs every container to have a limit of this resource."""
    for limit_range in cell.subject.facts.limit_ranges.get(cell.subject.namespace, ()):
        for item in limit_range.spec.limits:
            if item.type == "Pod" and (cell.resource in item.max or cell.resource in item.max_limit_request_ratio):
                return limit_range.metadata.name
    return None


def _request(draft: Draft, cell: _Cell, standing: Written | None) -> tuple[Written | None, Reason | None]:
    """The request that will stand, and the last bound that moved it."""
    want = cell.request
    if want is None or want.value is None:
        return _unwanted_request(cell, standing), None
    sizing = cell.vpa
    if sizing is not None and sizing.keeps_ratio and standing is not None:
        reason = reasons.VPA_RATIO(f"VPA {sizing.name} keeps the limit:request ratio, and the limit {standing} stays")
        draft.leave(cell.request_name, reason, loud=True, policy=want.policy)
        return cell.written_request, None
    number, moved = quantity.of(cell.resource, want.value), None
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
        draft.leave(cell.request_name, reason, loud=True, policy=want.policy)
        return cell.written_request, None
    return quantity.write(cell.resource, number), moved


def _unwanted_request(cell: _Cell, standing: Written | None) -> Written | None:
    """A request that only stood because its limit did (API defaulting) is written out before the limit goes."""
    if cell.written_request is None and cell.limit is not None and cell.limit.factor is None and standing is None:
        return cell.written_limit
    return cell.written_request


def _floors(cell: _Cell, standing: Written | None) -> list[tuple[int, str]]:
    found = []
    sizing = cell.vpa
    if sizing is not None:
        found.append((sizing.floor, f"VPA {sizing.name} would evict below"))
    low, ratio = cell.bounds.min, cell.bounds.ratio
    if ratio is not None and standing is not None:
        least = -(-quantity.parse(standing) * quantity.NANO // quantity.parse(ratio.value))
        found.append((_up(cell, least), f"LimitRange {ratio.by} ratio asks for"))
    if low is not None:
        found.append((quantity.of(cell.resource, low.value), f"LimitRange {low.by} min is"))
    return found


def _ceilings(cell: _Cell, standing: Written | None) -> list[tuple[int, str]]:
    found = []
    sizing, high = cell.vpa, cell.bounds.max
    largest = cell.subject.facts.largest_node.get(cell.resource)
    if largest:
        found.append((largest, "the largest node holds"))
    if sizing is not None and sizing.ceiling is not None:
        found.append((sizing.ceiling, f"VPA {sizing.name} maxAllowed is"))
    if high is not None:
        found.append((_down(cell, high.value), f"LimitRange {high.by} max is"))
    if standing is not None:
        found.append((_down(cell, standing), "the limit is"))
    return found


def _limit(cell: _Cell, standing: Written | None, request: Written | None) -> Written | None:
    """The limit that will stand."""
    want = cell.limit
    if want is None:
        return cell.written_limit
    if want.factor is None:
        return standing
    if request is None:
        return cell.written_limit
    ratio = cell.bounds.ratio
    factor = Fraction(want.factor)
    if ratio is not None:
        factor = min(factor, Fraction(quantity.parse(ratio.value), quantity.NANO))
    number = int(quantity.of(cell.resource, request) * factor)
    if cell.bounds.max is not None:
        number = min(number, _down(cell, cell.bounds.max.value))
    # A limit that only repeats the request repeats its very text, so that nothing is rounded apart.
    return request if number <= quantity.of(cell.resource, request) else quantity.write(cell.resource, number)


def _down(cell: _Cell, written: Written) -> int:
    """The scheduler's number, rounded down: what may not be passed."""
    return quantity.parse(written) // (10**6 if cell.resource == "cpu" else quantity.NANO)


def _up(cell: _Cell, nano: int) -> int:
    return -(-nano // (10**6 if cell.resource == "cpu" else quantity.NANO))


def _text(cell: _Cell, number: int) -> str:
    return quantity.write(cell.resource, number)
