"""Computes the requests of containers: from usage (P95 where the request is static, P5 where a VPA takes over), from
the policy, or as a share of the container's limit or request.

The policy's own bounds apply here, all other bounds in `policy/clamp_resources.py`.
"""

from decimal import Decimal

import msgspec

from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.owner import Owner
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, confidence_at
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.timestamps import written as written_at
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.extended_resources import propose_extended
from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    rules_of,
)
from trimtab.policy.changed_annotation import LIMIT_RANGER, is_defaulted
from trimtab.policy.pod_changes import PodChanges, RequestToLimitRatio, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext, matches_container
from trimtab.policy.recorded_usage import doubts, killed, origin
from trimtab.policy.write_resources import find_written_request


def propose_changes(settings: RequestsAction, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Wants one request per container and resource that this policy is the first to decide."""
    requests = draft.subject.once(_PodRequests)
    for place in places:
        rules = _rules_for(settings, place)
        if rules.cpu is not None:
            _propose_request(rules.cpu, draft, requests.request_for(draft.subject, place, "cpu"))
        if rules.memory is not None:
            _propose_request(rules.memory, draft, requests.request_for(draft.subject, place, "memory"))
        if rules.ephemeral_storage is not None:
            _propose_request(
                rules.ephemeral_storage, draft, requests.request_for(draft.subject, place, "ephemeral-storage")
            )
        if rules.extended:
            propose_extended(rules.extended, draft, place)


def find_unmet_field(settings: RequestsAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first request that is missing, or was to be replaced and was not. A request that a VPA decides counts
    as met."""
    for place in result.places:
        rules, requests = _rules_for(settings, place), requests_of(place.container.resources)
        for resource, rule in rules_of(rules):
            name = f"{place.name}.requests.{resource}"
            if _is_unmet(rule, requests.get(resource), result.kept_reasons.get(name)):
                return name
        for resource in rules.extended or {}:
            if resource not in requests:
                return f"{place.name}.requests.{resource}"
    return None


def _is_unmet(rule: RequestRule, current: Written | None, kept_reason: Reason | None) -> bool:
    """Returns whether a request is not as its rule demands.

    kept_reason: why the policy left the request as it was; None: it did not.
    """
    if kept_reason is not None and kept_reason.code in (reasons.VPA_DECIDES, reasons.VPA_BOOSTS):
        return False
    if rule.from_ == "request" and (current is not None or rule.otherwise is None):
        is_whole = rule.percent == 100 or kept_reason is None
        return current is not None and not (is_whole and not _is_outside(rule, current))
    return current is None or (rule.when == "always" and kept_reason is not None)


def _is_outside(rule: RequestRule, amount: Written) -> bool:
    is_below = rule.min is not None and quantity.compare(amount, rule.min) < 0
    return is_below or (rule.max is not None and quantity.compare(amount, rule.max) > 0)


def _rules_for(settings: RequestsAction, place: ContainerRef) -> RequestsAction | ContainerRequests:
    """Returns the first special rules that select the container, or else the general ones."""
    for special in settings.containers:
        if matches_container(special.names, special.roles, special.images, place):
            return special
    return settings


class _ContainerRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a pod as the webhook received it, independent of any policy."""

    place: ContainerRef
    resource: str
    name: str
    written: Written | None
    own: Written | None
    """What the pod's author wrote: None where a LimitRange filled in the request."""
    stays: Reason | None
    """Why no policy changes the request: a VPA boosts it, or its webhook wrote it."""
    sizing: autoscalers.VpaConstraints | None


class _PodRequests:
    """The requests of one pod. Each is read once, however many policies need it. The pod's context caches this object,
    so it holds no reference back to the context."""

    def __init__(self, subject: PodContext) -> None:
        self._vpa_constraints = subject.once(autoscalers.index_vpa_constraints)
        # LimitRanger and the VPA's webhook leave annotations; without theirs the request is the author's own.
        self._has_other_writers = autoscalers.is_sized_by_others(subject) or LIMIT_RANGER in subject.annotations
        self._cache: dict[tuple[ContainerRef, str], _ContainerRequest] = {}

    def request_for(self, subject: PodContext, place: ContainerRef, resource: str) -> _ContainerRequest:
        """Returns the request of one container of the pod for one resource."""
        request = self._cache.get((place, resource))
        if request is None:
            request = self._cache[place, resource] = self._read(subject, place, resource)
        return request

    def _read(self, subject: PodContext, place: ContainerRef, resource: str) -> _ContainerRequest:
        current, name = requests_of(place.container.resources).get(resource), f"{place.name}.requests.{resource}"
        sizing = self._vpa_constraints.of(place, resource)
        if not self._has_other_writers:
            return _ContainerRequest(place, resource, name, current, current, None, sizing)
        is_filled_in = current is not None and is_defaulted(subject, place, "request", resource)
        return _ContainerRequest(
            place, resource, name, current, None if is_filled_in else current,
            _vpa_reason(subject, place, resource, current), sizing,
        )  # fmt: skip


def _vpa_reason(subject: PodContext, place: ContainerRef, resource: str, current: Written | None) -> Reason | None:
    """Returns why a request that a VPA set stays as it is; None: no VPA set it."""
    if autoscalers.is_boosting_cpu(subject, place, resource):
        return reasons.VPA_BOOSTS(f"the VPA boosts {place.container.name} while it starts")
    if current is not None and autoscalers.has_vpa_written(subject, place, resource):
        return reasons.VPA_DECIDES(f"a VPA wrote the {resource} request of {place.container.name}")
    return None


def _propose_request(rule: RequestRule, draft: PodChanges, request: _ContainerRequest) -> None:
    """Wants the request of one container and resource, or records why it stays."""
    place, resource, name, own = request.place, request.resource, request.name, request.own
    source = rule.from_
    # A limit that follows its request while the request follows the limit has no value: see `clamp_resources`.
    if source == "limit" and (rule.when == "always" or not draft.is_decided_by_another(name)):
        # With `always` the request will be the share of the limit at the next admission, whatever filled it in before.
        bounded = bool(rule.min or rule.max or rule.round)
        draft.shares.setdefault((place, resource), RequestToLimitRatio(draft.policy, rule.percent, bounded))
    # The share above is recorded all the same: a limit must not follow a request that may become a share of it.
    if request.stays is not None:
        draft.leave_unchanged(name, request.stays)
        return
    # The default of a policy counts as a guess also where it is written in the pod already: by an earlier call of the
    # webhook, or because the manifest was copied from a cluster.
    if (
        source == "usage"
        and rule.otherwise is not None
        and (own is None or name in draft.applied_before or quantity.same(own, rule.otherwise))
    ):
        draft.guesses[place, resource] = None
    vpa = request.sizing
    # The VPA's webhook writes its own target whatever the policy says, so the policy gives the same number.
    if vpa is not None and vpa.target is not None:
        _propose_target(rule, draft, place, own, vpa, resource)
        return
    share_base = None
    if own is not None:
        if rule.when == "missing" and source != "request":
            if not draft.silent:
                draft.leave_unchanged(name, reasons.ALREADY_SET(f"the container asks for {own} itself"))
            # Remembered, because a later policy may find this very request and must see that it is this policy's.
            draft.yielding[place, resource] = (*draft.yielding.get((place, resource), ()), rule)
            return
        share_base = _share_base(rule, draft.subject, name, own)
        if source == "request" and _is_already_applied(rule, resource, own, share_base):
            # At the second call the request is what this policy made of it; the field must stay this policy's.
            draft.decide_first(name, str(own))
            return
        if draft.yielding and _is_given_by_earlier_policy(draft, place, resource, own, vpa):
            draft.leave_unchanged(
                name, reasons.ALREADY_SET(f"the container asks for {own}, as a policy before this one gives")
            )
            return
    request_origin = _find_origin(rule, draft.subject, place, resource, share_base, vpa)
    if isinstance(request_origin, Reason):
        draft.leave_unchanged(name, request_origin)
        return
    if request_origin is None:
        if source == "request":
            draft.bounds[place, resource] = (*draft.bounds.get((place, resource), ()), rule)
        return
    current = request.written
    if current is not None and own is None and not request_origin.is_recommended and rule.when == "missing":
        sentence = f"a LimitRange gave {current}, and the policy has no recommendation"
        draft.leave_unchanged(name, reasons.LIMIT_RANGE_DEFAULT(sentence))
        return
    value, reason = _within_bounds(rule, resource, request_origin.amount, request_origin.reason, share_base)
    # Bounds of a policy with an earlier turn hold for the value as well: its author wants them whatever gives the
    # request.
    for earlier_rule in draft.bounds.get((place, resource), ()) if draft.bounds else ():
        value, reason = _within_bounds(earlier_rule, resource, quantity.scheduler_value(resource, value), reason)
    doubt = _find_doubt(rule, resource, request_origin, own, value) if isinstance(rule, ResourceRequestRule) else None
    if doubt is not None:
        draft.leave_unchanged(name, doubt)
        return
    # The last step, so that a policy that gives nothing leaves the field to the next one.
    if draft.decide_first(name, value):
        draft.requests[place, resource] = ResourceRequest(
            place=place, resource=resource, value=value, policy=draft.policy, reason=reason,
            changes_guaranteed=draft.changes_guaranteed,
            wrote=share_base if share_base is not None and _is_share(rule) else None,
        )  # fmt: skip


def _is_share(rule: RequestRule) -> bool:
    """Returns whether the result depends on the current request, so that applying the rule a second time would change
    it again."""
    if rule.from_ == "request":
        # 100% of the request is the request: applying it again changes nothing.
        return rule.percent < 100
    if rule.from_ != "usage":
        return False
    return isinstance(rule, ResourceRequestRule) and (rule.min_percent is not None or rule.max_percent is not None)


def _share_base(rule: RequestRule, subject: PodContext, name: str, own: Written) -> Written:
    """Returns what a share is computed from: what the author wrote, before an earlier share was made of it."""
    return find_written_request(subject, name, own) if _is_share(rule) else own


def _is_already_applied(rule: RequestRule, resource: str, own: Written, share_base: Written) -> bool:
    """Returns whether the request already is what the rule makes of the author's value."""
    if rule.percent == 100:
        return not _is_outside(rule, own)
    amount = _share_of_request(rule, resource, share_base)
    return quantity.same(own, _within_bounds(rule, resource, amount, _NO_REASON)[0])


def _share_of_request(rule: RequestRule, resource: str, share_base: Written) -> int:
    """Returns the share of the author's value, rounded up to the rule's step."""
    if rule.percent == 100:
        return quantity.scheduler_value(resource, share_base)
    step = _rounding_step(rule, resource)
    return -(-quantity.scheduler_value(resource, share_base) * rule.percent // (100 * step)) * step


_NO_REASON = reasons.POLICY_SAYS("")


def _is_given_by_earlier_policy(
    draft: PodChanges, place: ContainerRef, resource: str, own: Written, vpa: autoscalers.VpaConstraints | None
) -> bool:
    """Returns whether this request is what an earlier policy would have given, had the author written none. Then it
    counts as that policy's: a manifest copied from a cluster is admitted again without a change."""
    return any(
        isinstance(origin := _find_origin(rule, draft.subject, place, resource, None, vpa), _RequestOrigin)
        and quantity.same(own, _within_bounds(rule, resource, origin.amount, origin.reason)[0])
        for rule in draft.yielding.get((place, resource), ())
    )


def _propose_target(
    rule: RequestRule,
    draft: PodChanges,
    place: ContainerRef,
    own: Written | None,
    vpa: autoscalers.VpaConstraints,
    resource: str,
) -> None:
    """Wants what the VPA's webhook would write, where the author wrote no request: that webhook may miss the pod."""
    field, name = f"{place.name}.requests.{resource}", vpa.name
    if own is not None:
        if rule.when == "always":
            draft.leave_unchanged(
                field, reasons.VPA_DECIDES(f"VPA {name} recommends {resource} for {place.container.name}")
            )
        return
    value = quantity.format_quantity(resource, vpa.target or 0)
    if draft.decide_first(field, value):
        draft.requests[place, resource] = ResourceRequest(
            place=place, resource=resource, value=value, policy=draft.policy,
            reason=reasons.VPA_TARGET(f"VPA {name} recommends {value}"), changes_guaranteed=draft.changes_guaranteed,
        )  # fmt: skip


class _RequestOrigin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A number for a request, and where it comes from."""

    amount: int
    """The scheduler's number."""
    reason: Reason
    confidence: float | None = None
    """The recommendation's confidence; None where it has none, and for every other origin."""
    is_recommended: bool = False
    is_young: bool = False
    """Less than a day of usage is known: the number may fill a missing request, or raise one that is below the use."""
    used: int = 0
    """P95 of the recorded use."""


# The confidence from which a recommendation may lower a request, where the policy sets no other one.
LOWERING_CONFIDENCE = 0.5


def _find_origin(
    rule: RequestRule,
    subject: PodContext,
    place: ContainerRef,
    resource: str,
    share_base: Written | None,
    vpa: autoscalers.VpaConstraints | None,
) -> _RequestOrigin | Reason | None:
    """Returns the number that the rule gives; a Reason where there is no usage and the rule has no default; None where
    the rule gives nothing."""
    if rule.from_ == "limit":
        limit = limits_of(place.container.resources).get(resource)
        return None if limit is None else _share_of_limit(rule, resource, limit)
    if isinstance(rule, ResourceRequestRule) and rule.from_ == "usage":
        # A workload of many owners (CronJob, Job) has its history at the topmost one.
        usage = _find_usage(subject, place, resource, rule.max_age)
        if isinstance(usage, ContainerUsage):
            origin = _origin_from_usage(rule, resource, usage, vpa)
            # Where the author wrote a request, the confidence is checked later, together with the value.
            if share_base is not None or _has_confidence(origin, rule.min_confidence):
                return origin
            usage = NotYet(
                reason=reasons.LOW_CONFIDENCE(f"the recommendation has a confidence of {origin.confidence:.0%} only"),
                have=f"{origin.confidence:.2f}", need=f"a confidence of {rule.min_confidence:g}",
            )  # fmt: skip
        if share_base is not None or rule.otherwise is None:
            return usage.reason
        sentence = f"{usage.reason}; the policy says {rule.otherwise}"
        return _RequestOrigin(
            amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.FROM_DEFAULT(sentence)
        )
    if rule.from_ == "request" and share_base is not None:
        if rule.percent == 100:
            reason = reasons.POLICY_SAYS(f"the container asks for {share_base} itself")
        else:
            reason = reasons.FROM_REQUEST(f"{rule.percent}% of {share_base}, which the container asks for")
        return _RequestOrigin(amount=_share_of_request(rule, resource, share_base), reason=reason)
    if rule.otherwise is None:
        return None
    sentence = f"the policy says {rule.otherwise}"
    return _RequestOrigin(
        amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.POLICY_SAYS(sentence)
    )


def _find_usage(
    subject: PodContext, place: ContainerRef, resource: str, max_age: int | None
) -> ContainerUsage | NotYet:
    """Returns the recorded usage of the topmost owner that has any; NotYet where none has, or where it ended before
    that owner was created."""
    not_yet: NotYet | None = None
    for owner, usage in subject.usage_of(place.container.name):
        if isinstance(usage, NotYet):
            not_yet = not_yet or usage
        elif usage.of(resource) is not None:
            return _find_ended(subject, owner, usage, max_age) or usage
    if not_yet is not None:
        return not_yet
    sentence = f"no usage is known of container {place.container.name}"
    return NotYet(reason=reasons.FROM_DEFAULT(sentence), have="no history", need="a day of usage")


def _find_ended(subject: PodContext, owner: Owner, usage: ContainerUsage, max_age: int | None) -> NotYet | None:
    """Returns NotYet where the recommendation ended before its owner was created. An owner that existed before the end
    keeps what its pods got, so that no date changes the requests of a whole cluster; so does an owner whose age is not
    known."""
    end, created = usage.end(max_age), subject.facts.created.get((subject.namespace, owner.kind, owner.name))
    # An owner without a known creation time keeps what it has: that is the smaller surprise.
    if end is None or created is None or created <= end:
        return None
    owner_name = f"{owner.kind} {subject.namespace}/{owner.name}"
    sentence = f"the recommendation for {owner_name} ended on {written_at(end)[:10]}, before the {owner.kind} was made"
    return NotYet(reason=reasons.RECOMMENDATION_ENDED(sentence), have="an ended recommendation", need="newer usage")


def _has_confidence(origin: _RequestOrigin, min_confidence: float | None) -> bool:
    return min_confidence is None or origin.confidence is None or origin.confidence >= min_confidence


def _find_doubt(
    rule: ResourceRequestRule, resource: str, origin: _RequestOrigin, own: Written | None, value: str
) -> Reason | None:
    """Returns why a recommendation is not certain enough to replace what the container asks for; None where it is.

    A policy's `minConfidence` counts for raises, too: the second call of the webhook gets the policy's own `otherwise`
    as the current request.
    """
    if own is not None and origin.is_young and origin.used <= quantity.scheduler_value(resource, own):
        return reasons.YOUNG_HISTORY(f"the container asks for {own}, and less than a day of its use is known")
    min_confidence = LOWERING_CONFIDENCE if rule.min_confidence is None else rule.min_confidence
    if own is None or not origin.is_recommended or _has_confidence(origin, min_confidence):
        return None
    if rule.min_confidence is None and quantity.scheduler_value(resource, value) >= quantity.scheduler_value(
        resource, own
    ):
        return None
    return reasons.LOW_CONFIDENCE(f"{origin.reason}; a confidence of {min_confidence:g} is needed to replace {own}")


def _origin_from_usage(
    rule: ResourceRequestRule, resource: str, usage: ContainerUsage, vpa: autoscalers.VpaConstraints | None
) -> _RequestOrigin:
    """Returns the number that follows from usage, with the sentence that explains it."""
    percentiles = usage.of(resource)
    assert percentiles is not None
    is_first = vpa is not None and vpa.corrects and rule.under_vpa == "p5"
    number = _first_number(resource, percentiles) if is_first else _static_number(rule, resource, percentiles)
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
        vpa_note = f", VPA {vpa.name} takes over" if vpa.corrects else f"; of VPA {vpa.name}: {vpa.uncorrected}"
    value = quantity.format_quantity(resource, number.amount)
    doubt_notes = "" if is_first else "".join(f"; {doubt}" for doubt in doubts(resource, percentiles, number.amount))
    reason = number.code(f"{number.origin}{history} is {value}{vpa_note}{doubt_notes}")
    return _RequestOrigin(
        amount=number.amount, reason=reason, confidence=confidence, is_recommended=True, is_young=percentiles.young,
        used=quantity.scheduler_value(resource, percentiles.p95),
    )  # fmt: skip


class _UsageNumber(msgspec.Struct, frozen=True, gc=False):
    """A number of recorded use, in the scheduler's units, and its name for people."""

    amount: int
    origin: str
    code: Code = reasons.FROM_USAGE


def _first_number(resource: str, usage: Percentiles) -> _UsageNumber:
    return _UsageNumber(quantity.scheduler_value(resource, usage.p5), f"P5{_peaks_suffix(resource)}")


def _static_number(rule: ResourceRequestRule, resource: str, usage: Percentiles) -> _UsageNumber:
    """Returns the number that the policy's rule selects, or P95 where the recommender published no adaptive number. It
    is never below what a container needs that was killed because it ran out of memory."""
    parsed_rule = usage_rule.parse(rule.rule)
    headroom = f" and {parsed_rule.headroom_percent}%" if parsed_rule.headroom_percent else ""
    if parsed_rule.percentile is None and usage.request is not None:
        code = reasons.OOM_KILLED if usage.bound == "oom-kill" else reasons.FROM_USAGE
        number = _UsageNumber(quantity.scheduler_value(resource, usage.request), origin(resource, usage), code)
    else:
        percentile = Decimal(95) if parsed_rule.percentile is None else parsed_rule.percentile
        recorded = usage.of(percentile)
        name = "the largest" if percentile == 100 else f"P{percentile.normalize():f}"
        # A percentile that this recommendation does not hold: it was published by an older version.
        if recorded is None:
            name, recorded = "P95", usage.p95
        number = _UsageNumber(quantity.scheduler_value(resource, recorded), f"{name}{_peaks_suffix(resource)}")
    number = _UsageNumber(parsed_rule.with_headroom(number.amount), number.origin + headroom, number.code)
    bounds = [(usage.floor, killed(usage), reasons.OOM_KILLED)]
    if rule.pods == "largest":
        bounds.append((usage.pod_use, f"what pod {usage.pod} uses on average", reasons.FROM_USAGE))
    # The largest of these floors gives the reason.
    for amount, description, code in bounds:
        if amount is not None and quantity.scheduler_value(resource, amount) > number.amount:
            number = _UsageNumber(quantity.scheduler_value(resource, amount), description, code)
    return number


def _peaks_suffix(resource: str) -> str:
    return " of peaks" if resource == "memory" else ""


def _share_of_limit(rule: RequestRule, resource: str, limit: Written) -> _RequestOrigin:
    """Returns the share of the container's limit, rounded down to the rule's step."""
    step = _rounding_step(rule, resource)
    exact = quantity.scheduler_value(resource, limit) * rule.percent // 100
    # A share below one step is not rounded down to zero.
    amount = max(exact // step * step, min(step, exact), 1)
    return _RequestOrigin(amount=amount, reason=reasons.FROM_LIMIT(f"{rule.percent}% of the limit {limit}"))


def _within_bounds(
    rule: RequestRule, resource: str, amount: int, reason: Reason, share_base: Written | None = None
) -> tuple[str, Reason]:
    """Returns the amount within the policy's bounds, and the reason for the last bound that changed it.

    share_base: what shares of the author's request are computed from.
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
    """Brings the amount between `minPercent` and `maxPercent` of the author's request. Both are rounded towards that
    request."""
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
    """Returns the rounding step: 1m of cpu and 1Mi of memory unless the rule sets it."""
    return quantity.scheduler_value(resource, rule.round) if rule.round else (1 if resource == "cpu" else 1 << 20)
