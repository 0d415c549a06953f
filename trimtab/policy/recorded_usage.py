"""Why the adaptive rule asks for so much: one sentence from a published recommendation, and its doubts.

What is known of a container's use, whoever of its owners it is known of?
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import CHANGED, GROWS, PODS_DIFFER, RARE_PEAKS, Percentiles, remaining
from trimtab.cluster.timestamps import written
from trimtab.policy import reasons
from trimtab.policy.pod_context import ContainerRef, PodContext


def origin(resource: str, usage: Percentiles) -> str:
    """What the adaptive request is, such as "P98 of recent days, since P95 was passed on 3 of 9 days"."""
    if usage.bound == "last-day":
        return "what the last 24 hours used"
    if usage.bound == "largest-pod":
        return f"what the largest pods use, such as {usage.pod}"
    if usage.bound == "oom-kill":
        return killed(usage)
    if usage.bound == "three-times":
        return "three times the largest use"
    days = f"{usage.record} day{'' if usage.record == 1 else 's'}"
    if usage.share is None or usage.share < 1:
        share = usage.share or 0.0
        peaks = "recent peaks" if resource == "memory" else "recent days"
        since = f", since P95 was passed on {usage.passed} of {days}" if usage.passed and share > 0.95 else ""
        return f"P{share * 100:.3g} of {peaks}{since}"
    more = _headroom(resource, usage)
    above = f", since {usage.passed} of {days} went beyond the days before" if usage.passed else ""
    return f"the largest {'peak' if resource == 'memory' else 'use'} of {days}{more}{above}"


def _headroom(resource: str, usage: Percentiles) -> str:
    if usage.max is None or usage.request is None:
        return ""
    most, request = (quantity.scheduler_value(resource, amount) for amount in (usage.max, usage.request))
    share = request / most - 1 if most else 0.0
    return f" and {share:.0%}" if share >= 0.005 else ""


def killed(usage: Percentiles) -> str:
    """What a container needs that was killed for want of memory."""
    times = "once" if usage.kills == 1 else f"{usage.kills} times"
    when = f", last on {written(usage.killed)[:10]}" if usage.killed is not None else ""
    return f"what it needs at least after it was killed for want of memory ({times}{when})"


def doubts(resource: str, usage: Percentiles, amount: int) -> Iterator[Reason]:
    """What lowers the confidence of a request of this amount; a sign of a newer version is left out."""
    for sign in remaining(resource, usage, amount):
        if sign == CHANGED:
            yield reasons.CHANGED_RECENTLY(f"the last day's use of {resource} is unlike that of the days before")
        elif sign == GROWS:
            yield reasons.GROWS(f"the use of {resource} grew on nearly every day of the last week")
        elif sign == PODS_DIFFER:
            yield reasons.PODS_DIFFER(_pods_differ(resource, usage))
        elif sign == RARE_PEAKS:
            most = f" of {usage.max}" if usage.max is not None else ""
            yield reasons.RARE_PEAKS(f"the largest peak{most} is not covered: it is rare, or days ago")


def _pods_differ(resource: str, usage: Percentiles) -> str:
    amount: Written = usage.pod_use if usage.pod_use is not None else "far more"
    return f"pod {usage.pod} uses {amount} of {resource} on average, far more than the other pods, and is not covered"


def find_recorded_usage(subject: PodContext, place: ContainerRef, resource: str) -> Percentiles | None:
    """Of the topmost owner of which it is known, however old; None where it is known of none."""
    for _, usage in subject.usage_of(place.container.name):
        percentiles = None if isinstance(usage, NotYet) else usage.of(resource)
        if percentiles is not None:
            return percentiles
    return None
