"""Usage as the recommendations that others read."""

from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.sizing.enough import Seen

MI = 1 << 20


def usage(cpu: Seen | NotYet, memory: Seen | NotYet) -> ContainerUsage | None:
    """What is published of one container; None while neither resource is known well enough."""
    known = [seen for seen in (cpu, memory) if isinstance(seen, Seen)]
    if not known:
        return None
    return ContainerUsage(
        cpu=_percentiles(cpu), memory=_percentiles(memory), days=max(seen.days for seen in known),
        samples=max(seen.samples for seen in known), confidence=min(seen.confidence for seen in known),
    )  # fmt: skip


def _percentiles(seen: Seen | NotYet) -> Percentiles | None:
    if isinstance(seen, NotYet):
        return None
    p5, p50, p95, most = (_written(seen.resource, value) for value in (seen.p5, seen.p50, seen.p95, seen.max))
    return Percentiles(p5=p5, p50=p50, p95=p95, max=most)


def _written(resource: str, value: float) -> str:
    """Rounded up, at least 1m or 1Mi: a request of nothing is no request."""
    if resource == "cpu":
        return quantity.cpu(max(1, ceil(value * 1000 - 1e-6)))
    return quantity.memory(max(1, ceil(value / MI - 1e-6)) * MI)


TOLERANCE = 0.05
"""By how much a percentile must have changed to be written again. A request within a twentieth is the same request."""
DAYS_MORE = 1.0
"""Days of history by which what is told of it may be behind."""


def differs(before: ContainerUsage | None, after: ContainerUsage, tolerance: float = TOLERANCE) -> bool:
    """Is it worth a write?"""
    if before is None or abs((after.days or 0) - (before.days or 0)) >= DAYS_MORE:
        return True
    return any(_differ(resource, before.of(resource), after.of(resource), tolerance) for resource in ("cpu", "memory"))


def _differ(resource: str, before: Percentiles | None, after: Percentiles | None, tolerance: float) -> bool:
    """Of those that lead to requests; the median and the maximum are told along with them."""
    if before is None or after is None:
        return before is not after
    pairs = ((before.p5, after.p5), (before.p95, after.p95))
    return any(_apart(quantity.of(resource, old), quantity.of(resource, new), tolerance) for old, new in pairs)


def _apart(old: int, new: int, tolerance: float) -> bool:
    return abs(new - old) > tolerance * max(old, 1)
