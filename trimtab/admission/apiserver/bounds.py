"""Which bounds of a LimitRange item do these requests and limits break, in the server's words?

(`minConstraint`, `maxConstraint`, `limitRequestRatioConstraint` in plugin/pkg/admission/limitranger/admission.go,
1.36.) Complaints come in the order min, max, ratio, resources by name; the server's order within each is random.
"""

from collections.abc import Callable, Iterator

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList
from trimtab.cluster.api.rules import LimitRangeItem
from trimtab.cluster.quantity import Written

_Constraint = Callable[[str, str, Written, Written | None, Written | None], str | None]
_shown = quantity.canonical


def broken(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """One sentence per bound and resource that is broken."""
    checks: tuple[tuple[ResourceList, _Constraint], ...] = (
        (item.min, _min),
        (item.max, _max),
        (item.max_limit_request_ratio, _ratio),
    )
    for demanded, check in checks:
        for name in sorted(demanded):
            said = check(name, item.type, demanded[name], requests.get(name), limits.get(name))
            if said:
                yield said


def _min(name: str, kind: str, least: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"minimum {name} usage per {kind} is {_shown(least)}"
    if request is None:
        return f"{start}.  No request is specified"
    if _milli(request) < _milli(least):
        return f"{start}, but request is {_shown(request)}"
    if limit is not None and _milli(limit) < _milli(least):
        return f"{start}, but limit is {_shown(limit)}"
    return None


def _max(name: str, kind: str, most: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"maximum {name} usage per {kind} is {_shown(most)}"
    if limit is None:
        return f"{start}.  No limit is specified"
    if _milli(limit) > _milli(most):
        return f"{start}, but limit is {_shown(limit)}"
    if request is not None and _milli(request) > _milli(most):
        return f"{start}, but request is {_shown(request)}"
    return None


def _ratio(name: str, kind: str, most: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"{name} max limit to request ratio per {kind} is {_shown(most)}"
    asked, allowed = _milli(request or 0), _milli(limit or 0)
    if not asked:
        return f"{start}, but no request is specified or request is 0"
    if not allowed:
        return f"{start}, but no limit is specified or limit is 0"
    ratio = allowed / asked
    # The server divides as floating point too: 1.5 of 1.5 must come out the same way.
    return f"{start}, but provided ratio is {ratio:.6f}" if ratio * 1000 > _milli(most) else None


def _milli(written: Written) -> int:
    return quantity.milli(written)
