"""The amounts that a VPA's status has for one resource of one container: from usage, or those that it already has."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import ContainerPolicy, ContainerRecommendation
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.usage_rule import UsageRule
from trimtab.sizing.request import ROUNDING_STEP, SizingSettings, compute_amount
from trimtab.sizing.statistics import UsageStatistics
from trimtab.sizing.vpa.settings import bound_amount

FULL_HISTORY_DAYS = 8
"""The days of usage from which on Trimtab lowers an amount that the VPA already has. The VPA's own recommender keeps
eight days of memory peaks."""
_SMALLEST = SizingSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAmounts:
    """What a VPA's status says about one resource of one container, in millicores or bytes."""

    target: int
    lower: int
    upper: int
    uncapped: int
    """The target before the VPA's minAllowed and maxAllowed."""

    @property
    def all(self) -> tuple[int, int, int, int]:
        """The four amounts: target, lower bound, upper bound, uncapped target."""
        return self.target, self.lower, self.upper, self.uncapped


def amounts_from_usage(rule: UsageRule, statistics: UsageStatistics, oom_floor: float) -> ResourceAmounts:
    """Returns the amounts that follow from usage, without the bounds of the VPA's policy. `oom_floor` is the memory in
    bytes that the container needs at least after its OOM kills, or 0.

    The target is the amount of the rule, and at least that floor. Below the lower bound, and above the upper bound, the
    VPA's updater acts at once, however young the pod is; in between it waits for hours. The lower bound is the median
    usage and the upper bound the largest usage. Little confidence takes them further from the target: to nothing, and
    to twice the largest usage.
    """
    resource = statistics.resource
    target = max(_round_up(resource, compute_amount(rule, statistics)), _SMALLEST.min_request(resource))
    target = max(target, _round_up(resource, oom_floor) if oom_floor > 0 else 0)
    confidence = min(1.0, max(0.0, statistics.confidence))
    lower = min(target, _round_up(resource, statistics.p50 * confidence))
    upper = max(target, _round_up(resource, statistics.max * (2 - confidence)))
    return ResourceAmounts(target=target, lower=lower, upper=upper, uncapped=target)


def _round_up(resource: str, amount: float) -> int:
    """Returns an amount in cores or bytes as whole millicores or mebibytes, rounded up."""
    step = ROUNDING_STEP[resource]
    return ceil((amount * 1000 if resource == "cpu" else amount) / step - 1e-6) * step


def present_amounts(recommendation: ContainerRecommendation | None, resource: str) -> ResourceAmounts | None:
    """Returns the amounts that a VPA's status already has; None if it has no target, or an amount is not valid. A bound
    that is missing is the target."""
    if recommendation is None or resource not in recommendation.target:
        return None
    written = recommendation.target[resource]
    lists = (recommendation.lower_bound, recommendation.upper_bound, recommendation.uncapped_target)
    try:
        target, lower, upper, uncapped = (
            quantity.scheduler_value(resource, amount)
            for amount in (written, *(amounts.get(resource, written) for amounts in lists))
        )
    except NotAQuantity:
        return None
    return ResourceAmounts(target=target, lower=lower, upper=upper, uncapped=uncapped) if target > 0 else None


def is_full_history(statistics: UsageStatistics, window_days: int) -> bool:
    """Returns whether the history is long enough to lower an amount. It has usage on more than `FULL_HISTORY_DAYS`
    calendar days, of which the first and the last may be parts of days, or on every day of a shorter window."""
    return statistics.days_with_usage >= min(FULL_HISTORY_DAYS + 1, window_days)


def never_lower(after: ResourceAmounts, before: ResourceAmounts) -> ResourceAmounts:
    """Returns the amounts, none of which is below those before. The target before its bounds counts: a policy may have
    raised what the VPA had."""
    uncapped = max(after.uncapped, before.uncapped)
    return ResourceAmounts(
        target=max(after.target, uncapped),
        lower=after.lower,
        upper=max(after.upper, uncapped, before.upper),
        uncapped=uncapped,
    )


def within_policy(amounts: ResourceAmounts, policy: ContainerPolicy, resource: str) -> ResourceAmounts:
    """Returns the amounts within the VPA's policy; the uncapped target stays as it is."""
    target, lower, upper = (
        bound_amount(policy, resource, amount) for amount in (amounts.uncapped, amounts.lower, amounts.upper)
    )
    return ResourceAmounts(target=target, lower=lower, upper=upper, uncapped=amounts.uncapped)
