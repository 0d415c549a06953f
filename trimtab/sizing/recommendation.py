"""Usage as the recommendations that others read."""

from math import ceil, inf

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import LASTS_SECONDS, ContainerUsage, Percentiles
from trimtab.cluster.timestamps import Seconds
from trimtab.sizing.statistics import UsageStatistics

MI = 1 << 20


def usage(
    cpu: UsageStatistics | NotYet,
    memory: UsageStatistics | NotYet,
    *,
    now: Seconds | None = None,
    last: Seconds | None = None,
) -> ContainerUsage | None:
    """What is published of one container; None while neither resource is known well enough. `now`: the moment of
    computing; `last`: of the newest sample, from which on the recommendation lasts for two weeks."""
    known = [seen for seen in (cpu, memory) if isinstance(seen, UsageStatistics)]
    if not known:
        return None
    return ContainerUsage(
        cpu=_percentiles(cpu), memory=_percentiles(memory), days=max(seen.days for seen in known),
        samples=max(seen.samples for seen in known), confidence=min(seen.confidence for seen in known),
        computed_at=now, last_sample_at=last,
        ends_at=None if last is None else last + LASTS_SECONDS,
    )  # fmt: skip


def percentiles(seen: UsageStatistics) -> Percentiles:
    """What is published of one resource of one container."""
    resource, found = seen.resource, seen.adaptive
    p5, p50, p90, p95, p99, most = (
        _written(resource, value) for value in (seen.p5, seen.p50, seen.p90, seen.p95, seen.p99, seen.max)
    )
    plain = Percentiles(
        p5=p5, p50=p50, p90=p90, p95=p95, p99=p99, max=most, confidence=seen.confidence, young=seen.young
    )
    if found is None:
        return plain
    return msgspec.structs.replace(
        plain, request=_written(resource, found.amount), share=round(found.share, 4), passed=found.passed,
        record=found.record, bound=found.bound, floor=_written(resource, found.floor) if found.floor else None,
        kills=found.kills, killed=found.killed, signs=found.doubts, pod=found.pod,
        pod_use=_written(resource, found.pod_use) if found.pod else None,
    )  # fmt: skip


def _percentiles(seen: UsageStatistics | NotYet) -> Percentiles | None:
    return None if isinstance(seen, NotYet) else percentiles(seen)


def _written(resource: str, value: float) -> str:
    """Rounded up, at least 1m or 1Mi: a request of nothing is no request."""
    if resource == "cpu":
        return quantity.cpu(max(1, ceil(value * 1000 - 1e-6)))
    return quantity.memory(max(1, ceil(value / MI - 1e-6)) * MI)


TOLERANCE = 0.05
"""By how much a percentile must have changed to be written again. A request within a twentieth is the same request."""
DAYS_MORE = 1.0
"""Days of history by which what is told of it may be behind."""
SECONDS_OLDER = 86400
"""By how much the published date of the last sample may be behind: a fourteenth of how long a recommendation lasts."""
CONFIDENCE_APART = 0.2
"""By how much the confidence must have changed to be written again."""


def change(before: ContainerUsage | None, after: ContainerUsage, tolerance: float = TOLERANCE) -> float:
    """How much differs, for deciding what is written first: 0 where nothing is worth a write, below 1 where only dates,
    history or confidence differ, else 1 plus the largest relative change of what leads to requests; infinite where
    something became known."""
    if before is None:
        return inf
    found = max(_apart(r, before.of(r), after.of(r), tolerance) for r in ("cpu", "memory"))
    if found:
        return found
    aged = (
        abs((after.days or 0) - (before.days or 0)) >= DAYS_MORE
        or (after.last_sample_at or 0) - (before.last_sample_at or 0) >= SECONDS_OLDER
    )
    return 0.5 if aged or any(_said_otherwise(before, after, r) for r in ("cpu", "memory")) else 0.0


def _apart(resource: str, before: Percentiles | None, after: Percentiles | None, tolerance: float) -> float:
    """Of those that lead to requests; the others are told along with them."""
    if before is None or after is None:
        return 0.0 if before is after else inf
    if before.young is not after.young:
        return inf
    pairs = [(getattr(before, name), getattr(after, name)) for name in _LEADING]
    if any((old is None) is not (new is None) for old, new in pairs):
        return inf
    found = max(_relative(resource, old, new) for old, new in pairs if old is not None)
    return 1 + found if found > tolerance else 0.0


_LEADING = ("p5", "p95", "request", "floor")


def _relative(resource: str, old: Written, new: Written) -> float:
    """By how much the amount changed, as a share of what it was."""
    before, after = quantity.scheduler_value(resource, old), quantity.scheduler_value(resource, new)
    return abs(after - before) / max(before, 1)


def _said_otherwise(before: ContainerUsage, after: ContainerUsage, resource: str) -> bool:
    old, new = before.of(resource), after.of(resource)
    if old is None or new is None:
        return False
    apart = abs((after.confidence_of(resource) or 0) - (before.confidence_of(resource) or 0))
    return apart >= CONFIDENCE_APART or old.signs != new.signs
