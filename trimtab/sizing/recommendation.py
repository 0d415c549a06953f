"""Converts usage statistics to the published form, and measures how much two published forms differ."""

from math import ceil, inf

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import VALIDITY_SECONDS, ContainerUsage, Percentiles
from trimtab.cluster.timestamps import Seconds
from trimtab.sizing.statistics import UsageStatistics

MI = 1 << 20


def build_container_usage(
    cpu: UsageStatistics | NotYet,
    memory: UsageStatistics | NotYet,
    *,
    now: Seconds | None = None,
    last: Seconds | None = None,
) -> ContainerUsage | None:
    """Returns the published usage of one container, or None if there is too little history of both resources. `now` is
    the time of the computation, and `last` that of the newest sample; the recommendation is valid for two weeks after
    `last`."""
    statistics = [one for one in (cpu, memory) if isinstance(one, UsageStatistics)]
    if not statistics:
        return None
    return ContainerUsage(
        cpu=_percentiles_or_none(cpu),
        memory=_percentiles_or_none(memory),
        days=max(one.observed_days for one in statistics),
        samples=max(one.samples for one in statistics),
        confidence=min(one.confidence for one in statistics),
        computed_at=now,
        last_sample_at=last,
        ends_at=None if last is None else last + VALIDITY_SECONDS,
    )


def build_percentiles(statistics: UsageStatistics) -> Percentiles:
    """Returns the published statistics of one resource of one container."""
    resource, request = statistics.resource, statistics.adaptive
    p5, p50, p90, p95, p99, maximum = (
        _format_amount(resource, value)
        for value in (statistics.p5, statistics.p50, statistics.p90, statistics.p95, statistics.p99, statistics.max)
    )
    plain = Percentiles(
        p5=p5,
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=maximum,
        confidence=statistics.confidence,
        young=statistics.is_young,
    )
    if request is None:
        return plain
    return msgspec.structs.replace(
        plain,
        request=_format_amount(resource, request.amount),
        share=round(request.share, 4),
        passed=request.days_exceeded,
        record=request.days_compared,
        bound=request.bound,
        floor=_format_amount(resource, request.floor) if request.floor else None,
        kills=request.kills,
        killed=request.last_kill,
        signs=request.doubts,
        pod=request.pod,
        pod_use=_format_amount(resource, request.pod_use) if request.pod else None,
    )


def _percentiles_or_none(statistics: UsageStatistics | NotYet) -> Percentiles | None:
    return None if isinstance(statistics, NotYet) else build_percentiles(statistics)


def _format_amount(resource: str, value: float) -> str:
    """Returns the amount as a quantity, rounded up, at least 1m or 1Mi, because a request of zero is no request."""
    if resource == "cpu":
        return quantity.format_cpu(max(1, ceil(value * 1000 - 1e-6)))
    return quantity.format_memory(max(1, ceil(value / MI - 1e-6)) * MI)


DEFAULT_TOLERANCE = 0.05
"""The relative change of a percentile above which it is published again: requests that differ by a twentieth count as
the same."""
MAX_DAYS_BEHIND = 1.0
"""By how many days the published length of the history may be out of date."""
MAX_SECONDS_BEHIND = 86400
"""By how many seconds the published time of the last sample may be out of date: a fourteenth of a recommendation's
validity."""
MIN_CONFIDENCE_CHANGE = 0.2
"""The change of the confidence from which on it is published again."""


def measure_change(before: ContainerUsage | None, after: ContainerUsage, tolerance: float = DEFAULT_TOLERANCE) -> float:
    """Returns how much two published forms differ. Containers with a larger difference are written first.

    - 0: nothing needs to be written;
    - below 1: only dates, history or confidence differ;
    - 1 plus the largest relative change of an amount that leads to a request;
    - infinite: the usage was not published before, or an amount is new."""
    if before is None:
        return inf
    amount_change = max(
        _amount_change(resource, before.percentiles_of(resource), after.percentiles_of(resource), tolerance)
        for resource in ("cpu", "memory")
    )
    if amount_change:
        return amount_change
    aged = (
        abs((after.days or 0) - (before.days or 0)) >= MAX_DAYS_BEHIND
        or (after.last_sample_at or 0) - (before.last_sample_at or 0) >= MAX_SECONDS_BEHIND
    )
    return 0.5 if aged or any(_confidence_changed(before, after, resource) for resource in ("cpu", "memory")) else 0.0


def _amount_change(resource: str, before: Percentiles | None, after: Percentiles | None, tolerance: float) -> float:
    """Returns 1 plus the largest relative change of the amounts that lead to requests, or 0 if the change is within the
    tolerance. Other amounts are written together with these, and are not compared."""
    if before is None or after is None:
        return 0.0 if before is after else inf
    # A young recommendation lowers no request, so a change of this flag is always written.
    if before.young is not after.young:
        return inf
    pairs = [(getattr(before, name), getattr(after, name)) for name in _REQUEST_FIELDS]
    if any((old is None) is not (new is None) for old, new in pairs):
        return inf
    largest = max(_relative_change(resource, old, new) for old, new in pairs if old is not None)
    return 1 + largest if largest > tolerance else 0.0


_REQUEST_FIELDS = ("p5", "p95", "request", "floor")


def _relative_change(resource: str, old: Written, new: Written) -> float:
    """Returns the change of an amount as a share of its previous value."""
    before, after = quantity.scheduler_value(resource, old), quantity.scheduler_value(resource, new)
    return abs(after - before) / max(before, 1)


def _confidence_changed(before: ContainerUsage, after: ContainerUsage, resource: str) -> bool:
    old, new = before.percentiles_of(resource), after.percentiles_of(resource)
    if old is None or new is None:
        return False
    difference = abs((after.confidence_of(resource) or 0) - (before.confidence_of(resource) or 0))
    return difference >= MIN_CONFIDENCE_CHANGE or old.signs != new.signs
