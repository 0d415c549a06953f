"""Reads a container's recorded usage, and explains a request that is computed from it: where the number comes from, and
what lowers the confidence in it."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import CHANGED, GROWS, PODS_DIFFER, RARE_PEAKS, Percentiles, remaining_signs
from trimtab.cluster.timestamps import format_timestamp
from trimtab.policy import reasons
from trimtab.policy.pod_context import ContainerRef, PodContext


def describe_origin(resource: str, usage: Percentiles) -> str:
    """Returns a phrase that explains the adaptive request, such as "P98 of recent days, since P95 was passed on 3 of 9
    days"."""
    # `bound` names what set the adaptive number instead of the percentile (see `sizing/adaptive_bounds.py`).
    if usage.bound == "last-day":
        return "the usage of the last 24 hours"
    if usage.bound == "largest-pod":
        return f"the usage of the largest pods, such as {usage.pod}"
    if usage.bound == "oom-kill":
        return describe_oom_kill(usage)
    if usage.bound == "three-times":
        return "three times the largest usage"
    days = f"{usage.record} day{'' if usage.record == 1 else 's'}"
    if usage.share is None or usage.share < 1:
        share = usage.share or 0.0
        peaks = "recent peaks" if resource == "memory" else "recent days"
        since = f", because P95 was exceeded on {usage.passed} of {days}" if usage.passed and share > 0.95 else ""
        return f"P{share * 100:.3g} of {peaks}{since}"
    headroom = _headroom(resource, usage)
    exceeded = (
        f", because the usage on {usage.passed} of {days} exceeded that of the days before" if usage.passed else ""
    )
    return f"the largest {'peak' if resource == 'memory' else 'usage'} of {days}{headroom}{exceeded}"


def _headroom(resource: str, usage: Percentiles) -> str:
    if usage.max is None or usage.request is None:
        return ""
    largest, request = (quantity.scheduler_value(resource, amount) for amount in (usage.max, usage.request))
    extra = request / largest - 1 if largest else 0.0
    return f" plus {extra:.0%}" if extra >= 0.005 else ""


def describe_oom_kill(usage: Percentiles) -> str:
    """Returns a phrase that explains the request of a container after an OOM kill."""
    times = "once" if usage.kills == 1 else format_count(usage.kills, "time")
    when = f", last on {format_timestamp(usage.killed)[:10]}" if usage.killed is not None else ""
    return f"the least that the container needs after it was killed because it ran out of memory ({times}{when})"


def find_doubts(resource: str, usage: Percentiles, amount: int) -> Iterator[Reason]:
    """Yields a reason for everything that lowers the confidence in a request of this amount. Kinds of doubt that only a
    newer version of Trimtab knows are skipped."""
    for sign in remaining_signs(resource, usage, amount):
        if sign == CHANGED:
            yield reasons.CHANGED_RECENTLY(f"the {resource} usage of the last day differs from that of the days before")
        elif sign == GROWS:
            yield reasons.GROWS(f"the {resource} usage grew on nearly every day of the last week")
        elif sign == PODS_DIFFER:
            yield reasons.PODS_DIFFER(_pods_differ(resource, usage))
        elif sign == RARE_PEAKS:
            largest = f" of {usage.max}" if usage.max is not None else ""
            yield reasons.RARE_PEAKS(
                f"the largest peak{largest} is above the request, because such peaks are rare or days ago"
            )


def _pods_differ(resource: str, usage: Percentiles) -> str:
    amount: Written = usage.pod_use if usage.pod_use is not None else "far more"
    return (
        f"pod {usage.pod} uses {amount} of {resource} on average, far more than the other pods and more than the "
        "request"
    )


def find_recorded_usage(pod_context: PodContext, container: ContainerRef, resource: str) -> Percentiles | None:
    """Returns the usage that is recorded for the topmost owner with any usage, however old it is, or None if there is
    none."""
    for _, usage in pod_context.usage_of(container.container.name):
        percentiles = None if isinstance(usage, NotYet) else usage.percentiles_of(resource)
        if percentiles is not None:
            return percentiles
    return None
