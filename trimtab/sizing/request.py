"""The recommended request of a container, within everything that bounds it.

The steps are, in this order: other controllers that decide (a VPA that recommends, an HPA that scales by the request);
whether there is enough history; the rule's amount, rounded up (or else a VPA's recommendation); lower bounds; upper
bounds, the limit last. Every step that changes the amount adds a reason.

`ADAPTIVE` is the rule for a workload whose requests nothing else corrects (see `adaptive`), `P5` the one for a workload
that a VPA takes over, and `P95` an amount that anyone can compute without Trimtab.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.limit_ranges import RequestBound
from trimtab.cluster.reason import NotYet, Reason, format_shortage
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.cluster.resources import QoS, Role
from trimtab.cluster.usage_rule import ADAPTIVE as ADAPTIVE
from trimtab.cluster.usage_rule import UsageRule
from trimtab.policy.autoscalers import VpaConstraints
from trimtab.policy.reasons import (
    FROM_USAGE,
    GUARANTEED_LEFT_ALONE,
    LIMIT_RANGE_REFUSES,
    OOM_KILLED,
    REQUEST_CAPPED,
    REQUEST_RAISED,
    VPA_DECIDES,
    VPA_RATIO,
    YOUNG_HISTORY,
)
from trimtab.policy.recorded_usage import describe_oom_kill, describe_origin, find_doubts
from trimtab.sizing import reasons
from trimtab.sizing.adaptive_bounds import OOM_KILL
from trimtab.sizing.recommendation import build_percentiles
from trimtab.sizing.statistics import UsageStatistics

P5 = UsageRule(Decimal(5))
P95 = UsageRule(Decimal(95))


def compute_amount(rule: UsageRule, statistics: UsageStatistics) -> float:
    """Returns the amount that a rule selects from the usage, in cores or bytes, not rounded. If the rule's percentile
    is not a published one, the statistics must have been computed with it."""
    headroom = 1 + rule.headroom_percent / 100
    if rule.percentile is None:
        return (statistics.p95 if statistics.adaptive is None else statistics.adaptive.amount) * headroom
    return statistics.percentile_at(rule.percentile) * headroom


def describe_rule(rule: UsageRule, statistics: UsageStatistics) -> str:
    """Returns a description of the rule's percentile and of the usage from which it is computed: "P95 over 14 days",
    "P99 of peaks plus 15% over 14 days"."""
    share = (
        "P95"
        if rule.percentile is None
        else rule.percentile_name.capitalize()
        if rule.percentile < 100
        else "the largest"
    )
    of_what = {"cpu": "", "memory": " of peaks"} if share != "the largest" else {"cpu": " use", "memory": " peak"}
    headroom = f" plus {rule.headroom_percent}%" if rule.headroom_percent else ""
    return f"{share}{of_what[statistics.resource]}{headroom} over {statistics.span_text}"


MAX_IGNORED_SHARE = 0.1
"""A request that is above the recommendation by at most this share is not changed."""
ROUNDING_STEP = {"cpu": 1, "memory": 1 << 20}
"""Resource → the step to which amounts are rounded up: one millicore, one mebibyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """A HorizontalPodAutoscaler whose target is a share of this resource's request."""

    name: str
    target: int | None
    """The target in percent, or None if the HPA has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentResources:
    """The current request and limit of one resource of a container, and what else affects them. Amounts are millicores
    or bytes, as the scheduler counts them."""

    resource: str
    request: int | None
    limit: int | None
    role: Role = Role.MAIN
    qos: QoS = QoS.BURSTABLE
    replicas: int = 1
    vpa: VpaConstraints | None = None
    """The VPA that sets this resource's request, or None if there is none."""
    vpa_down: str = ""
    """The name of a VPA that would set the request if its webhook could act; empty if there is none."""
    hpa: Hpa | None = None
    advice: VpaRecommendation | None = None
    """A VPA's recommendation, which is used if there is too little usage; None if there is none."""
    most: int | None = None
    """The largest request of this container with which the pod fits on a node that it may use, after DaemonSets and the
    pod's other containers; None if unknown."""
    floors: tuple[RequestBound, ...] = ()
    """The lower bounds of the request that LimitRanges set."""
    ceilings: tuple[RequestBound, ...] = ()
    """The upper bounds of the request that LimitRanges set; for a pod that is not Guaranteed, a limit that a LimitRange
    adds is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSettings:
    """The settings of the installation, or of the user who runs the command."""

    rule: UsageRule = ADAPTIVE
    """The rule for workloads that no VPA takes over."""
    memory_rule: UsageRule | None = None
    """The rule for memory, if it differs from `rule`."""
    min_cpu: int = 10
    """The smallest cpu request in millicores; below it, the scheduler's own rounding matters more."""
    min_memory: int = 16 << 20
    """The smallest memory request in bytes; below it, the container runtime alone needs more."""
    allow_hpa: bool = False
    guaranteed: bool = False
    """Whether Guaranteed pods are changed too: request and limit together."""
    cover_largest_pod: bool = False
    """Whether the request is at least the average usage of a pod that uses far more than the others (`pods: largest` in
    policies)."""

    def rule_of(self, resource: str) -> UsageRule:
        """Returns the rule of one resource."""
        return self.memory_rule if resource == "memory" and self.memory_rule is not None else self.rule

    def extra_percentiles(self, resource: str) -> tuple[Decimal, ...]:
        """Returns the percentiles that must be computed from the usage, in addition to the fixed ones."""
        percentile = self.rule_of(resource).percentile
        return () if percentile is None else (percentile,)

    def min_request(self, resource: str) -> int:
        """Returns the smallest request of a resource, in millicores or bytes."""
        return self.min_cpu if resource == "cpu" else self.min_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A request, and the limit that changes with it."""

    request: int
    limit: int | None
    """The proposed limit; None: the limit is not changed."""
    reasons: tuple[Reason, ...]
    """Where the request comes from, followed by everything that changed it."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Says that nothing is proposed, and why."""

    reason: Reason


def propose_request(
    current: CurrentResources, statistics: UsageStatistics | NotYet, settings: SizingSettings | None = None
) -> Proposal | Unchanged | NotYet:
    """Returns the request that the usage leads to; Unchanged if the current one should stay; NotYet if there is too
    little history."""
    settings = settings or SizingSettings()
    reason, limit_too_small = _reason_to_leave(current, settings), _short_limit(current, statistics)
    if reason is not None:
        return Unchanged(
            limit_too_small if limit_too_small is not None and reason.code == GUARANTEED_LEFT_ALONE else reason
        )
    if isinstance(statistics, NotYet) and current.advice is None:
        return statistics
    if isinstance(statistics, NotYet) or (statistics.is_young and current.advice is not None):
        target, proposal_reasons = _amount_from_vpa(current, current.advice, statistics)
    else:
        target, proposal_reasons = _amount_from_usage(current, statistics, settings)
    # Whether the limit would be below the largest usage. The request of a Guaranteed container is also its limit, and
    # a container is killed when its memory exceeds its limit.
    if isinstance(statistics, UsageStatistics) and (
        current.qos is QoS.GUARANTEED
        and current.resource == "memory"
        and round_up_amount("memory", statistics.max) > target
    ):
        target = round_up_amount("memory", statistics.max)
        proposal_reasons.append(
            REQUEST_RAISED(
                f"the container used up to {_format(current, target)}, and its limit changes together with the request"
            )
        )
    for bounded, reason in _apply_bounds(current, settings, target):
        target = bounded
        proposal_reasons.append(reason)
    unmet = next((floor for floor in current.floors if target < floor.amount), None)
    if unmet is not None:
        return Unchanged(
            LIMIT_RANGE_REFUSES(f"{unmet.phrase} {_format(current, unmet.amount)}, but {proposal_reasons[-1].sentence}")
        )
    # The limit of a Guaranteed pod rises with its request, so it cannot be too small.
    if limit_too_small is not None and current.qos is not QoS.GUARANTEED:
        if target == current.request:
            return Unchanged(limit_too_small)
        proposal_reasons.append(limit_too_small)
    return _weigh_change(current, settings, statistics, target, proposal_reasons)


def _amount_from_usage(
    current: CurrentResources, statistics: UsageStatistics, settings: SizingSettings
) -> tuple[int, list[Reason]]:
    """Returns the rule's amount after everything that raised it, with reasons: where the amount comes from, what raised
    it, and doubts about it."""
    vpa_corrects = current.vpa is not None and current.vpa.can_correct
    resource = current.resource
    rule = P5 if vpa_corrects else settings.rule_of(resource)
    target = round_up_amount(resource, compute_amount(rule, statistics))
    adaptive, published, vpa = statistics.adaptive, build_percentiles(statistics), ""
    if current.vpa is not None:
        vpa = (
            f", and VPA {current.vpa.name} adjusts the request later"
            if vpa_corrects
            else f"; VPA {current.vpa.name} does not adjust the request later: {current.vpa.uncorrected}"
        )
    if adaptive is None or rule.percentile is not None:
        proposal_reasons = [
            FROM_USAGE(f"{_capitalize(describe_rule(rule, statistics))} is {_format(current, target)}{vpa}")
        ]
    else:
        code = OOM_KILLED if adaptive.bound == OOM_KILL else FROM_USAGE
        headroom = f" plus {rule.headroom_percent}%" if rule.headroom_percent else ""
        text = f"{_capitalize(describe_origin(resource, published))}{headroom}, from {statistics.span_text} of usage"
        proposal_reasons = [code(f"{text}, is {_format(current, target)}{vpa}")]
    if (
        adaptive is not None
        and not vpa_corrects
        and adaptive.floor
        and round_up_amount(resource, adaptive.floor) > target
    ):
        target = round_up_amount(resource, adaptive.floor)
        proposal_reasons.append(OOM_KILLED(f"{describe_oom_kill(published)} is {_format(current, target)}"))
    if (
        settings.cover_largest_pod
        and adaptive is not None
        and not vpa_corrects
        and round_up_amount(resource, adaptive.pod_use) > target
    ):
        target = round_up_amount(resource, adaptive.pod_use)
        proposal_reasons.append(FROM_USAGE(f"the average usage of pod {adaptive.pod} is {_format(current, target)}"))
    if not vpa_corrects:
        proposal_reasons += find_doubts(resource, published, target)
    if statistics.is_young:
        proposal_reasons.append(
            YOUNG_HISTORY(f"the {resource} history of the container is only {statistics.span_text}")
        )
    return target, proposal_reasons


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


def _amount_from_vpa(
    current: CurrentResources, advice: VpaRecommendation | None, statistics: UsageStatistics | NotYet
) -> tuple[int, list[Reason]]:
    """Returns the amount that a VPA recommends, and the reason."""
    assert advice is not None
    history = (
        format_shortage(statistics.have, statistics.need)
        if isinstance(statistics, NotYet)
        else f"{statistics.span_text} of a day"
    )
    target = round_up_amount(current.resource, advice.target / 1000 if current.resource == "cpu" else advice.target)
    sentence = (
        f"VPA {advice.vpa} recommends {_format(current, target)}, the 90th percentile of its usage with a "
        f"margin; history: {history}"
    )
    return target, [reasons.FROM_VPA(sentence)]


def _reason_to_leave(current: CurrentResources, settings: SizingSettings) -> Reason | None:
    """Returns why the request is left to another controller or follows from the container's role; None if the usage
    decides."""
    if current.role is Role.INIT:
        return reasons.INIT_CONTAINER("an init container ends before the other containers begin")
    if current.vpa is not None and current.vpa.has_recommendation:
        return VPA_DECIDES(f"VPA {current.vpa.name} already recommends the {current.resource} request")
    if current.vpa is not None and current.vpa.keeps_ratio and current.limit is not None:
        return VPA_RATIO(f"VPA {current.vpa.name} would multiply the limit of {_format(current, current.limit)}")
    if current.qos is QoS.GUARANTEED and not settings.guaranteed:
        return GUARANTEED_LEFT_ALONE("the pod is Guaranteed, so its request and limit can only change together")
    if current.hpa is not None and not settings.allow_hpa:
        return reasons.HPA_COUNTS(
            f"HPA {current.hpa.name} scales by {_format_target(current.hpa)} of the {current.resource} request"
        )
    return None


def _short_limit(current: CurrentResources, statistics: UsageStatistics | NotYet) -> Reason | None:
    """Returns a reason if no request would help, because the container was OOM-killed and its limit is below what it
    needs; otherwise None."""
    if current.limit is None or isinstance(statistics, NotYet) or statistics.adaptive is None:
        return None
    needed = round_up_amount(current.resource, statistics.adaptive.floor)
    if needed <= current.limit:
        return None
    need = f"{_capitalize(describe_oom_kill(build_percentiles(statistics)))} is {_format(current, needed)}"
    return reasons.LIMIT_TOO_SMALL(f"{need}, but its limit is {_format(current, current.limit)}")


def _apply_bounds(current: CurrentResources, settings: SizingSettings, target: int) -> Iterator[tuple[int, Reason]]:
    """Yields each bound that changes the amount, in order: lower bounds, then upper bounds, the limit last."""
    min_amount, vpa = settings.min_request(current.resource), current.vpa
    if target < min_amount:
        target = min_amount
        yield target, REQUEST_RAISED(f"the smallest request is {_format(current, min_amount)}")
    if vpa is not None and target < vpa.floor:
        target = vpa.floor
        yield target, REQUEST_RAISED(f"VPA {vpa.name} evicts pods whose request is below {_format(current, target)}")
    for floor in current.floors:
        if target < floor.amount:
            target = floor.amount
            yield target, REQUEST_RAISED(f"{floor.phrase} {_format(current, target)}")
    if vpa is not None and vpa.ceiling is not None and target > vpa.ceiling:
        target = vpa.ceiling
        yield target, REQUEST_CAPPED(f"VPA {vpa.name} allows at most {_format(current, target)}")
    if current.most is not None and target > current.most:
        target = current.most
        yield (
            target,
            reasons.OVER_NODE(
                f"no node that the pod may use has more than {_format(current, target)} free for the container"
            ),
        )
    if current.limit is not None and target > current.limit and current.qos is not QoS.GUARANTEED:
        target = current.limit
        yield target, REQUEST_CAPPED(f"the limit is {_format(current, target)}")
    for ceiling in current.ceilings:
        if target > ceiling.amount:
            target = ceiling.amount
            yield target, REQUEST_CAPPED(f"{ceiling.phrase} {_format(current, target)}")


def _weigh_change(
    current: CurrentResources,
    settings: SizingSettings,
    statistics: UsageStatistics | NotYet,
    target: int,
    proposal_reasons: list[Reason],
) -> Proposal | Unchanged:
    """Returns the proposal, or Unchanged if the change is too small. A raise is proposed however small it is. With a
    history shorter than a day, nothing is lowered, and only requests below the usage are raised."""
    if (
        current.request is not None
        and target <= current.request
        and current.request - target <= MAX_IGNORED_SHARE * current.request
    ):
        return Unchanged(
            reasons.AS_IT_IS(
                f"{'; '.join(map(str, proposal_reasons))}; the current request is {_format(current, current.request)}"
            )
        )
    if _is_too_young_to_change(current, statistics):
        return Unchanged(
            YOUNG_HISTORY(
                f"the current request is {_format(current, current.request or 0)}, but the history is shorter "
                "than a day"
            )
        )
    rule = settings.rule_of(current.resource)
    if current.vpa_down and proposal_reasons[0].code in (FROM_USAGE, OOM_KILLED) and rule != P5:
        instead = rule.percentile_name.upper() if rule.percentile is not None else "the static request"
        proposal_reasons.append(
            reasons.VPA_DOWN(
                f"the webhook of VPA {current.vpa_down} cannot change pods, so the request is {instead} instead "
                "of the 5th percentile"
            )
        )
    if current.hpa is not None:
        proposal_reasons.append(reasons.HPA_COUNTS(_hpa_consequence(current, current.hpa, target)))
    limit = target if current.qos is QoS.GUARANTEED else None
    return Proposal(request=target, limit=limit, reasons=tuple(proposal_reasons))


def _is_too_young_to_change(current: CurrentResources, statistics: UsageStatistics | NotYet) -> bool:
    """Returns whether there is less than a day of history and the current request covers the usage."""
    if (
        not isinstance(statistics, UsageStatistics)
        or not statistics.is_young
        or current.advice is not None
        or current.request is None
    ):
        return False
    return round_up_amount(current.resource, statistics.p95) <= current.request


def _hpa_consequence(current: CurrentResources, hpa: Hpa, target: int) -> str:
    """Returns a phrase that says what the HPA does with the new request at the same load."""
    if not current.request:
        return f"HPA {hpa.name} cannot scale without a request; with a request it scales by {_format_target(hpa)} of it"
    # The HPA holds usage / (replicas × request) at its target, so at the same load replicas × request is constant.
    replicas = max(1, ceil(current.replicas * current.request / target - 1e-9))
    change = f"{format_count(current.replicas, 'replica becomes', 'replicas become')} about {replicas}"
    return f"HPA {hpa.name} scales by {_format_target(hpa)} of the request: {change}"


def _format_target(hpa: Hpa) -> str:
    return "a share" if hpa.target is None else f"{hpa.target} %"


def round_up_amount(resource: str, value: float) -> int:
    """Returns the amount in whole millicores or mebibytes, rounded up. A floating-point error just above a step is
    ignored."""
    step = ROUNDING_STEP[resource]
    return ceil((value * 1000 if resource == "cpu" else value) / step - 1e-6) * step


def _format(current: CurrentResources, target: int) -> str:
    return quantity.format_quantity(current.resource, target)
