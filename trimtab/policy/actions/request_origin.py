"""Determines the number of a request: from recorded usage, from the policy, as a share of a limit, or as a share of
what the author wrote."""

from decimal import Decimal

import msgspec

from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.recommendation import LOWERING_CONFIDENCE, ContainerUsage, Percentiles, confidence_at
from trimtab.cluster.resources import limits_of
from trimtab.cluster.timestamps import format_timestamp as written_at
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.request_fields import RequestRule, ResourceRequestRule
from trimtab.policy.cluster_facts import Derived
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.recorded_usage import describe_oom_kill, describe_origin, find_doubts


def share_of_request(rule: RequestRule, resource: str, share_base: Written) -> int:
    """Returns the rule's share of the author's request, rounded up to the rule's step."""
    if rule.percent == 100:
        return quantity.scheduler_value(resource, share_base)
    step = _rounding_step(rule, resource)
    return -(-quantity.scheduler_value(resource, share_base) * rule.percent // (100 * step)) * step


class RequestOrigin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A number for a request, with the reason that explains where it comes from."""

    amount: int
    """The number in the scheduler's unit."""
    reason: Reason
    confidence: float | None = None
    """The confidence of the recommendation, or None if it has none, or if the number does not come from a
    recommendation."""
    is_recommended: bool = False
    is_young: bool = False
    """Whether less than a day of usage is known. The number may then add a missing request, or raise one that is below
    the usage, but it lowers none."""
    used: int = 0
    """The P95 of the recorded usage, in the scheduler's unit; 0 if the number does not come from usage."""
    bounded: tuple[str, Reason] | None = None
    """The amount after the rule's own `min`, `max` and rounding, as text, and the reason for it. None if either depends
    on the pod."""


def find_origin(
    rule: RequestRule,
    pod_context: PodContext,
    container: ContainerRef,
    resource: str,
    share_base: Written | None,
    vpa: autoscalers.VpaConstraints | None,
) -> RequestOrigin | Reason | None:
    """Returns the number that the rule gives for a container. Returns a Reason if there is no usage and the rule has no
    default, and None if the rule gives nothing."""
    if rule.from_ == "limit":
        limit = limits_of(container.container.resources).get(resource)
        return None if limit is None else _share_of_limit(rule, resource, limit)
    if isinstance(rule, ResourceRequestRule) and rule.from_ == "usage":
        # A workload of many owners (CronJob, Job) has its history at the topmost one.
        usage = _find_usage(pod_context, container.container.name, resource, rule.max_age)
        if isinstance(usage, ContainerUsage):
            origin = (
                _USAGE_ORIGINS.value_for(usage).find(rule, resource)
                if vpa is None
                else _origin_from_usage(rule, resource, usage, vpa)
            )
            # Where the author wrote a request, the confidence is checked later, together with the value.
            if share_base is not None or _has_confidence(origin, rule.min_confidence):
                return origin
            usage = NotYet(
                reason=reasons.LOW_CONFIDENCE(f"the recommendation has a confidence of only {origin.confidence:.0%}"),
                have=f"{origin.confidence:.2f}",
                need=f"a confidence of {rule.min_confidence:g}",
            )
        if share_base is not None or rule.otherwise is None:
            return usage.reason
        sentence = f"{usage.reason}; until then the policy says {rule.otherwise}"
        return RequestOrigin(
            amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.FROM_DEFAULT(sentence)
        )
    if rule.from_ == "request" and share_base is not None:
        if rule.percent == 100:
            reason = reasons.POLICY_SAYS(f"the container itself requests {share_base}")
        else:
            reason = reasons.FROM_REQUEST(f"{rule.percent}% of {share_base}, the container's own request")
        return RequestOrigin(amount=share_of_request(rule, resource, share_base), reason=reason)
    if rule.otherwise is None:
        return None
    sentence = f"the policy says {rule.otherwise}"
    return RequestOrigin(
        amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.POLICY_SAYS(sentence)
    )


def find_recorded_origin(
    rule: ResourceRequestRule, pod_context: PodContext, name: str, resource: str
) -> RequestOrigin | NotYet:
    """Returns the number that the rule selects from the usage that is recorded under this name (see
    `whole_pods.name_whole_pod`), or NotYet if there is none that is valid."""
    usage = _find_usage(pod_context, name, resource, rule.max_age)
    return usage if isinstance(usage, NotYet) else _USAGE_ORIGINS.value_for(usage).find(rule, resource)


def _find_usage(pod_context: PodContext, container: str, resource: str, max_age: int | None) -> ContainerUsage | NotYet:
    """Returns the recorded usage of the topmost owner that has any. Returns NotYet if none has, or if that usage
    stopped being valid before the owner was created."""
    not_yet: NotYet | None = None
    for owner, usage in pod_context.usage_of(container):
        if isinstance(usage, NotYet):
            not_yet = not_yet or usage
        elif usage.percentiles_of(resource) is not None:
            return _find_ended(pod_context, owner, usage, max_age) or usage
    if not_yet is not None:
        return not_yet
    sentence = f"no usage is known of container {container}"
    return NotYet(reason=reasons.FROM_DEFAULT(sentence), have="no history", need="a day of usage")


def _find_ended(pod_context: PodContext, owner: OwnerKey, usage: ContainerUsage, max_age: int | None) -> NotYet | None:
    """Returns NotYet if the recommendation stopped being valid before its owner was created, otherwise None. An owner
    that is older keeps the requests that its pods have got, so that reaching a date does not change the requests of a
    whole cluster. An owner of unknown age counts as older."""
    end = usage.validity_end(max_age)
    if end is None:
        return None
    created = pod_context.facts.created.get(owner)
    # An owner without a known creation time keeps what it has: that is the smaller surprise.
    if created is None or created <= end:
        return None
    owner_name = f"{owner.kind} {pod_context.namespace}/{owner.name}"
    sentence = (
        f"the recommendation for {owner_name} ended on {written_at(end)[:10]}, before this {owner.kind} was created"
    )
    return NotYet(reason=reasons.RECOMMENDATION_ENDED(sentence), have="an ended recommendation", need="newer usage")


def _has_confidence(origin: RequestOrigin, min_confidence: float | None) -> bool:
    return min_confidence is None or origin.confidence is None or origin.confidence >= min_confidence


def find_doubt(
    rule: ResourceRequestRule, resource: str, origin: RequestOrigin, own: Written | None, value: str
) -> Reason | None:
    """Returns why a recommendation is not certain enough to replace the container's own request, or None if it is
    certain enough.

    A policy's `minConfidence` also holds for raising a request: when the webhook is called a second time, the current
    request is the policy's own `otherwise`.
    """
    if own is not None and origin.is_young and origin.used <= quantity.scheduler_value(resource, own):
        return reasons.YOUNG_HISTORY(f"the container requests {own}, but less than a day of its usage is known")
    min_confidence = LOWERING_CONFIDENCE if rule.min_confidence is None else rule.min_confidence
    if own is None or not origin.is_recommended or _has_confidence(origin, min_confidence):
        return None
    if rule.min_confidence is None and quantity.scheduler_value(resource, value) >= quantity.scheduler_value(
        resource, own
    ):
        return None
    return reasons.LOW_CONFIDENCE(
        f"{origin.reason}; to replace the present request {own}, a confidence of {min_confidence:g} is needed"
    )


def _origin_from_usage(
    rule: ResourceRequestRule, resource: str, usage: ContainerUsage, vpa: autoscalers.VpaConstraints | None
) -> RequestOrigin:
    """Returns the number that the rule selects from the usage, with the sentence that explains it."""
    percentiles = usage.percentiles_of(resource)
    assert percentiles is not None
    is_first = vpa is not None and vpa.can_correct and rule.under_vpa == "p5"
    number = (
        _UsageNumber(quantity.scheduler_value(resource, percentiles.p5), f"P5{_peaks_suffix(resource)}")
        if is_first
        else _static_number(rule, resource, percentiles)
    )
    # The confidence belongs to this very amount: a larger request is more certain to be enough.
    confidence, history = confidence_at(resource, percentiles, number.amount, usage.confidence_of(resource)), ""
    if usage.days is not None:
        history += f" over {usage.days:g} days"
    if usage.last_sample_at is not None:
        history += f" up to {written_at(usage.last_sample_at)[:10]}"
    if confidence is not None and confidence < 1:
        history += f" (confidence {confidence:.0%})"
    vpa_note = ""
    if vpa is not None:
        vpa_note = (
            f", and VPA {vpa.name} adjusts the request later"
            if vpa.can_correct
            else f"; VPA {vpa.name} does not adjust the request later: {vpa.uncorrected}"
        )
    value = quantity.format_quantity(resource, number.amount)
    doubt_notes = (
        "" if is_first else "".join(f"; {doubt}" for doubt in find_doubts(resource, percentiles, number.amount))
    )
    reason = number.code(f"{number.origin}{history} is {value}{vpa_note}{doubt_notes}")
    return RequestOrigin(
        amount=number.amount,
        reason=reason,
        confidence=confidence,
        is_recommended=True,
        is_young=percentiles.young,
        used=quantity.scheduler_value(resource, percentiles.p95),
    )


_RuleKey = tuple[int, str]
"""The id of a rule, and the resource for which the rule is evaluated."""


class _UsageOrigins:
    """The numbers that the rules of all policies select from one container's usage. Each is computed once, and not
    again for each pod of the workload."""

    def __init__(self, usage: ContainerUsage) -> None:
        self._usage = usage
        self._cache: dict[_RuleKey, tuple[ResourceRequestRule, RequestOrigin]] = {}

    def find(self, rule: ResourceRequestRule, resource: str) -> RequestOrigin:
        """Returns the number that the rule selects for a pod that no VPA manages."""
        entry = self._cache.get((id(rule), resource))
        # The entry holds the rule itself, so that no other rule gets its id.
        if entry is not None:
            return entry[1]
        origin = _origin_from_usage(rule, resource, self._usage, None)
        if rule.min_percent is None and rule.max_percent is None:
            bounded = limit_to_bounds(rule, resource, origin.amount, origin.reason)
            origin = msgspec.structs.replace(origin, bounded=bounded)
        # Policies that are replaced leave entries behind.
        if len(self._cache) >= _MAX_RULES:
            self._cache.clear()
        self._cache[id(rule), resource] = rule, origin
        return origin


_MAX_RULES = 64
_MAX_USAGES = 4096
_USAGE_ORIGINS = Derived(_UsageOrigins, _MAX_USAGES)


class _UsageNumber(msgspec.Struct, frozen=True, gc=False):
    """A number from recorded usage in the scheduler's unit, with its name for messages."""

    amount: int
    origin: str
    code: Code = reasons.FROM_USAGE


def _static_number(rule: ResourceRequestRule, resource: str, usage: Percentiles) -> _UsageNumber:
    """Returns the number that the policy's rule selects, or P95 if the rule is `adaptive` and the recommender has
    published no adaptive number. After an OOM kill, the number is at least what the container has needed since then."""
    parsed_rule = usage_rule.parse(rule.rule)
    headroom = f" plus {parsed_rule.headroom_percent}%" if parsed_rule.headroom_percent else ""
    if parsed_rule.percentile is None and usage.request is not None:
        code = reasons.OOM_KILLED if usage.bound == "oom-kill" else reasons.FROM_USAGE
        number = _UsageNumber(quantity.scheduler_value(resource, usage.request), describe_origin(resource, usage), code)
    else:
        percentile = Decimal(95) if parsed_rule.percentile is None else parsed_rule.percentile
        recorded = usage.amount_at(percentile)
        name = "the largest" if percentile == 100 else f"P{percentile.normalize():f}"
        # A percentile that this recommendation does not hold: it was published by an older version.
        if recorded is None:
            name, recorded = "P95", usage.p95
        number = _UsageNumber(quantity.scheduler_value(resource, recorded), f"{name}{_peaks_suffix(resource)}")
    number = _UsageNumber(parsed_rule.with_headroom(number.amount), number.origin + headroom, number.code)
    bounds = [(usage.floor, describe_oom_kill(usage), reasons.OOM_KILLED)]
    if rule.pods == "largest":
        bounds.append((usage.pod_use, f"the average usage of pod {usage.pod}", reasons.FROM_USAGE))
    # The largest of these floors gives the reason.
    for amount, description, code in bounds:
        if amount is not None and quantity.scheduler_value(resource, amount) > number.amount:
            number = _UsageNumber(quantity.scheduler_value(resource, amount), description, code)
    return number


def _peaks_suffix(resource: str) -> str:
    return " of peaks" if resource == "memory" else ""


def _share_of_limit(rule: RequestRule, resource: str, limit: Written) -> RequestOrigin:
    """Returns the rule's share of the container's limit, rounded down to the rule's step."""
    step = _rounding_step(rule, resource)
    exact = quantity.scheduler_value(resource, limit) * rule.percent // 100
    # A share below one step is not rounded down to zero.
    amount = max(exact // step * step, min(step, exact), 1)
    return RequestOrigin(amount=amount, reason=reasons.FROM_LIMIT(f"{rule.percent}% of the limit {limit}"))


def limit_to_bounds(
    rule: RequestRule, resource: str, amount: int, reason: Reason, share_base: Written | None = None
) -> tuple[str, Reason]:
    """Returns the amount within the policy's bounds, and the reason for the last bound that changed it.

    `share_base` is the author's request, of which `minPercent` and `maxPercent` are shares.
    """
    step = _rounding_step(rule, resource)
    rounded = amount if rule.from_ in ("limit", "request") else -(-amount // step) * step
    if isinstance(rule, ResourceRequestRule) and share_base is not None:
        rounded, reason = _within_percentages(rule, resource, rounded, reason, share_base)
    minimum = quantity.scheduler_value(resource, rule.min) if rule.min else 1
    maximum = quantity.scheduler_value(resource, rule.max) if rule.max else None
    if rounded < minimum:
        rounded, reason = minimum, reasons.REQUEST_RAISED(f"{reason}; the policy's min is {rule.min or 1}")
    if maximum is not None and rounded > maximum:
        rounded, reason = maximum, reasons.REQUEST_CAPPED(f"{reason}; the policy's max is {rule.max}")
    return quantity.format_quantity(resource, rounded), reason


def _within_percentages(
    rule: ResourceRequestRule, resource: str, amount: int, reason: Reason, share_base: Written
) -> tuple[int, Reason]:
    """Returns the amount, raised to `minPercent` or lowered to `maxPercent` of the author's request, and the reason.
    Both bounds are rounded towards that request."""
    whole = quantity.scheduler_value(resource, share_base)
    if rule.min_percent is not None and amount < (minimum := -(-whole * rule.min_percent // 100)):
        return minimum, reasons.REQUEST_RAISED(
            f"{reason}; the policy's minPercent is {rule.min_percent}% of {share_base}"
        )
    if rule.max_percent is not None and amount > (maximum := max(1, whole * rule.max_percent // 100)):
        return maximum, reasons.REQUEST_CAPPED(
            f"{reason}; the policy's maxPercent is {rule.max_percent}% of {share_base}"
        )
    return amount, reason


def _rounding_step(rule: RequestRule, resource: str) -> int:
    """Returns the rounding step in the scheduler's unit: 1m of cpu and 1Mi of memory, unless the rule sets another."""
    return quantity.scheduler_value(resource, rule.round) if rule.round else (1 if resource == "cpu" else 1 << 20)
