"""What should this container ask for?

From usage (P95 where the request is static, P5 where a VPA takes over), from the policy, or a share of its limit;
bounded by the policy here, by everything else in `policy/clamp_resources.py`.
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
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext, means
from trimtab.policy.recorded_usage import doubts, killed, origin
from trimtab.policy.write_resources import written_request


def propose(settings: RequestsAction, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """One want per container and resource that this policy is the first to decide."""
    requests = draft.subject.once(_PodRequests)
    for place in places:
        rules = _rules(settings, place)
        if rules.cpu is not None:
            _propose(rules.cpu, draft, requests.of(draft.subject, place, "cpu"))
        if rules.memory is not None:
            _propose(rules.memory, draft, requests.of(draft.subject, place, "memory"))
        if rules.ephemeral_storage is not None:
            _propose(rules.ephemeral_storage, draft, requests.of(draft.subject, place, "ephemeral-storage"))
        if rules.extended:
            propose_extended(rules.extended, draft, place)


def unmet(settings: RequestsAction, result: PodBeforeAndAfter) -> str | None:
    """The first request that is missing, or was to be replaced and was not; what a VPA decides is no lack."""
    for place in result.places:
        rules, written = _rules(settings, place), requests_of(place.container.resources)
        for resource, rule in rules_of(rules):
            name = f"{place.name}.requests.{resource}"
            if _is_unmet(rule, written.get(resource), result.left.get(name)):
                return name
        for resource in rules.extended or {}:
            if resource not in written:
                return f"{place.name}.requests.{resource}"
    return None


def _is_unmet(rule: RequestRule, written: Written | None, why: Reason | None) -> bool:
    """`why`: why the request was left as it is; None: it was not."""
    if why is not None and why.code in (reasons.VPA_DECIDES, reasons.VPA_BOOSTS):
        return False
    if rule.from_ == "request" and (written is not None or rule.otherwise is None):
        is_whole = rule.percent == 100 or why is None
        return written is not None and not (is_whole and not _is_outside(rule, written))
    return written is None or (rule.when == "always" and why is not None)


def _is_outside(rule: RequestRule, written: Written) -> bool:
    below = rule.min is not None and quantity.compare(written, rule.min) < 0
    return below or (rule.max is not None and quantity.compare(written, rule.max) > 0)


def _rules(settings: RequestsAction, place: ContainerRef) -> RequestsAction | ContainerRequests:
    """The first that means the container."""
    for special in settings.containers:
        if means(special.names, special.roles, special.images, place):
            return special
    return settings


class _Request(msgspec.Struct, frozen=True, gc=False):
    """One request of a pod as it came, whatever policies say of it."""

    place: ContainerRef
    resource: str
    name: str
    written: Written | None
    own: Written | None
    """What its author wrote: without what a LimitRange filled in."""
    stays: Reason | None
    """Why no policy gives another one: a VPA boosts it, or its webhook wrote it."""
    sizing: autoscalers.VpaConstraints | None


class _PodRequests:
    """The requests of one pod; each is looked at once, however many policies ask. It does not lead back to the subject
    that keeps it."""

    def __init__(self, subject: PodContext) -> None:
        self._sizes = subject.once(autoscalers.sizings)
        self._is_annotated = autoscalers.is_sized_by_others(subject) or LIMIT_RANGER in subject.annotations
        self._known: dict[tuple[ContainerRef, str], _Request] = {}

    def of(self, subject: PodContext, place: ContainerRef, resource: str) -> _Request:
        """The request of one container of the subject's pod for one resource."""
        found = self._known.get((place, resource))
        if found is None:
            found = self._known[place, resource] = self._read(subject, place, resource)
        return found

    def _read(self, subject: PodContext, place: ContainerRef, resource: str) -> _Request:
        written, name = requests_of(place.container.resources).get(resource), f"{place.name}.requests.{resource}"
        sizing = self._sizes.of(place, resource)
        if not self._is_annotated:  # only its author has written requests
            return _Request(place, resource, name, written, written, None, sizing)
        is_filled_in = written is not None and is_defaulted(subject, place, "request", resource)
        return _Request(
            place, resource, name, written, None if is_filled_in else written,
            _kept_by_vpa(subject, place, resource, written), sizing,
        )  # fmt: skip


def _kept_by_vpa(subject: PodContext, place: ContainerRef, resource: str, written: Written | None) -> Reason | None:
    """Why what a VPA gave stays as it is."""
    if autoscalers.boosts(subject, place, resource):
        return reasons.VPA_BOOSTS(f"the VPA boosts {place.container.name} while it starts")
    if written is not None and autoscalers.has_written(subject, place, resource):
        return reasons.VPA_DECIDES(f"a VPA wrote the {resource} request of {place.container.name}")
    return None


def _propose(rule: RequestRule, draft: PodChanges, request: _Request) -> None:
    place, resource, name, own = request.place, request.resource, request.name, request.own
    origin = rule.from_
    if origin == "limit" and (rule.when == "always" or not draft.decided_by_another(name)):
        # With `always` it will be the share once the limit is written down, whoever filled the gap before.
        bounded = bool(rule.min or rule.max or rule.round)
        draft.shares.setdefault((place, resource), RequestToLimitRatio(draft.policy, rule.percent, bounded))
    if request.stays is not None:
        draft.leave(name, request.stays)
        return
    # What nothing is known of, also where it was written down before: by an earlier call, or into a manifest.
    if (
        origin == "usage"
        and rule.otherwise is not None
        and (own is None or name in draft.applied_before or quantity.same(own, rule.otherwise))
    ):
        draft.guesses[place, resource] = None
    sizing = request.sizing
    if sizing is not None and sizing.target is not None:
        _propose_target(rule, draft, place, own, sizing, resource)
        return
    wrote = None
    if own is not None:
        if rule.when == "missing" and origin != "request":
            if not draft.silent:
                draft.leave(name, reasons.ALREADY_SET(f"the container asks for {own} itself"))
            draft.yielding[place, resource] = (*draft.yielding.get((place, resource), ()), rule)
            return
        wrote = _wrote(rule, draft.subject, name, own)
        if origin == "request" and _is_as_asked(rule, resource, own, wrote):
            draft.decide_first(name, str(own))  # so that what this policy wrote once is not another one's the next time
            return
        if draft.yielding and _has_given(draft, place, resource, own, sizing):
            draft.leave(name, reasons.ALREADY_SET(f"the container asks for {own}, as a policy before this one gives"))
            return
    found = _found(rule, draft.subject, place, resource, wrote, sizing)
    if isinstance(found, Reason):
        draft.leave(name, found)
        return
    if found is None:
        if origin == "request":
            draft.bounds[place, resource] = (*draft.bounds.get((place, resource), ()), rule)
        return
    written = request.written
    if written is not None and own is None and not found.is_recommended and rule.when == "missing":
        sentence = f"a LimitRange gave {written}, and the policy has no recommendation"
        draft.leave(name, reasons.LIMIT_RANGE_DEFAULT(sentence))
        return
    value, reason = _bounded(rule, resource, found.amount, found.reason, wrote)
    for earlier in draft.bounds.get((place, resource), ()) if draft.bounds else ():
        value, reason = _bounded(earlier, resource, quantity.scheduler_value(resource, value), reason)
    doubt = _doubt(rule, resource, found, own, value) if isinstance(rule, ResourceRequestRule) else None
    if doubt is not None:
        draft.leave(name, doubt)
        return
    if draft.decide_first(name, value):
        draft.requests[place, resource] = ResourceRequest(
            place=place, resource=resource, value=value, policy=draft.policy, reason=reason,
            changes_guaranteed=draft.changes_guaranteed,
            wrote=wrote if wrote is not None and _is_share(rule) else None,
        )  # fmt: skip


def _is_share(rule: RequestRule) -> bool:
    """Does what the rule gives depend on what is written, so that it would be another one the next time?"""
    if rule.from_ == "request":
        return rule.percent < 100
    if rule.from_ != "usage":
        return False
    return isinstance(rule, ResourceRequestRule) and (rule.min_percent is not None or rule.max_percent is not None)


def _wrote(rule: RequestRule, subject: PodContext, name: str, own: Written) -> Written:
    """What a share is a share of: what was written before an earlier share was made of it."""
    return written_request(subject, name, own) if _is_share(rule) else own


def _is_as_asked(rule: RequestRule, resource: str, own: Written, wrote: Written) -> bool:
    """Is the request what the rule makes of what was written?"""
    if rule.percent == 100:
        return not _is_outside(rule, own)
    amount = _part(rule, resource, wrote)
    return quantity.same(own, _bounded(rule, resource, amount, _NO_REASON)[0])


def _part(rule: RequestRule, resource: str, wrote: Written) -> int:
    """The share of what was written, rounded up to the rule's step."""
    if rule.percent == 100:
        return quantity.scheduler_value(resource, wrote)
    step = _step(rule, resource)
    return -(-quantity.scheduler_value(resource, wrote) * rule.percent // (100 * step)) * step


_NO_REASON = reasons.POLICY_SAYS("")


def _has_given(
    draft: PodChanges, place: ContainerRef, resource: str, own: Written, sizing: autoscalers.VpaConstraints | None
) -> bool:
    """Is this request what an earlier policy would have given, had none been written? Then it counts as that policy's:
    a manifest that was admitted once, and is admitted again with what it was given, stays as it is."""
    return any(
        isinstance(found := _found(rule, draft.subject, place, resource, None, sizing), _Origin)
        and quantity.same(own, _bounded(rule, resource, found.amount, found.reason)[0])
        for rule in draft.yielding.get((place, resource), ())
    )


def _propose_target(
    rule: RequestRule,
    draft: PodChanges,
    place: ContainerRef,
    own: Written | None,
    sizing: autoscalers.VpaConstraints,
    resource: str,
) -> None:
    """What the VPA's webhook would write, where the author wrote no request: that webhook may miss the pod."""
    field, name = f"{place.name}.requests.{resource}", sizing.name
    if own is not None:
        if rule.when == "always":
            draft.leave(field, reasons.VPA_DECIDES(f"VPA {name} recommends {resource} for {place.container.name}"))
        return
    value = quantity.format_quantity(resource, sizing.target or 0)
    if draft.decide_first(field, value):
        draft.requests[place, resource] = ResourceRequest(
            place=place, resource=resource, value=value, policy=draft.policy,
            reason=reasons.VPA_TARGET(f"VPA {name} recommends {value}"), changes_guaranteed=draft.changes_guaranteed,
        )  # fmt: skip


class _Origin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A number for a request, and where it is from."""

    amount: int
    """The scheduler's number."""
    reason: Reason
    confidence: float | None = None
    """Of a recommendation; None where it tells none, and of everything else."""
    is_recommended: bool = False
    is_young: bool = False
    """Less than a day is known: it may fill a missing request, or raise one that is below what was used."""
    used: int = 0
    """P95 of what was used."""


LOWERING_CONFIDENCE = 0.5
"""From which on a recommendation may lower a request, where the policy demands nothing else."""


def _found(
    rule: RequestRule,
    subject: PodContext,
    place: ContainerRef,
    resource: str,
    written: Written | None,
    sizing: autoscalers.VpaConstraints | None,
) -> _Origin | Reason | None:
    """The reason where nothing is known and the rule has no default; None where it has nothing to say."""
    if rule.from_ == "limit":
        limit = limits_of(place.container.resources).get(resource)
        return None if limit is None else _share(rule, resource, limit)
    if isinstance(rule, ResourceRequestRule) and rule.from_ == "usage":
        usage = _usage(subject, place, resource, rule.max_age)
        if isinstance(usage, ContainerUsage):
            found = _percentile(rule, resource, usage, sizing)
            if written is not None or _is_sure(found, rule.min_confidence):
                return found
            usage = NotYet(
                reason=reasons.LOW_CONFIDENCE(f"the recommendation is sure to {found.confidence:.0%} only"),
                have=f"{found.confidence:.2f}", need=f"a confidence of {rule.min_confidence:g}",
            )  # fmt: skip
        if written is not None or rule.otherwise is None:
            return usage.reason
        sentence = f"{usage.reason}; the policy says {rule.otherwise}"
        return _Origin(amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.FROM_DEFAULT(sentence))
    if rule.from_ == "request" and written is not None:
        if rule.percent == 100:
            reason = reasons.POLICY_SAYS(f"the container asks for {written} itself")
        else:
            reason = reasons.FROM_REQUEST(f"{rule.percent}% of {written}, which the container asks for")
        return _Origin(amount=_part(rule, resource, written), reason=reason)
    if rule.otherwise is None:
        return None
    sentence = f"the policy says {rule.otherwise}"
    return _Origin(amount=quantity.scheduler_value(resource, rule.otherwise), reason=reasons.POLICY_SAYS(sentence))


def _usage(subject: PodContext, place: ContainerRef, resource: str, max_age: int | None) -> ContainerUsage | NotYet:
    """What the topmost owner that usage is known of was seen to use; NotYet where there is none, or it had ended
    before that owner was made."""
    answer: NotYet | None = None
    for owner, usage in subject.usage_of(place.container.name):
        if isinstance(usage, NotYet):
            answer = answer or usage
        elif usage.of(resource) is not None:
            return _ended(subject, owner, usage, max_age) or usage
    if answer is not None:
        return answer
    sentence = f"no usage is known of container {place.container.name}"
    return NotYet(reason=reasons.FROM_DEFAULT(sentence), have="no history", need="a day of usage")


def _ended(subject: PodContext, owner: Owner, usage: ContainerUsage, max_age: int | None) -> NotYet | None:
    """NotYet where the recommendation ended before its owner was made. An owner that stood before the end keeps what
    its pods were given, so that no day changes the requests of a whole cluster; so does one whose age is not known."""
    end, created = usage.end(max_age), subject.facts.created.get((subject.namespace, owner.kind, owner.name))
    if end is None or created is None or created <= end:
        return None
    whose = f"{owner.kind} {subject.namespace}/{owner.name}"
    sentence = f"the recommendation for {whose} ended on {written_at(end)[:10]}, before the {owner.kind} was made"
    return NotYet(reason=reasons.RECOMMENDATION_ENDED(sentence), have="an ended recommendation", need="newer usage")


def _is_sure(found: _Origin, least: float | None) -> bool:
    return least is None or found.confidence is None or found.confidence >= least


def _doubt(
    rule: ResourceRequestRule, resource: str, found: _Origin, written: Written | None, value: str
) -> Reason | None:
    """Why a recommendation is not sure enough to replace what the container asks for; None where it is.

    A policy's `minConfidence` counts for raises, too: the second call of a webhook sees the policy's own `otherwise`.
    """
    if written is not None and found.is_young and found.used <= quantity.scheduler_value(resource, written):
        return reasons.YOUNG_HISTORY(f"the container asks for {written}, and less than a day of its use is known")
    least = LOWERING_CONFIDENCE if rule.min_confidence is None else rule.min_confidence
    if written is None or not found.is_recommended or _is_sure(found, least):
        return None
    if rule.min_confidence is None and quantity.scheduler_value(resource, value) >= quantity.scheduler_value(
        resource, written
    ):
        return None
    return reasons.LOW_CONFIDENCE(f"{found.reason}; to replace {written} a confidence of {least:g} is needed")


def _percentile(
    rule: ResourceRequestRule, resource: str, usage: ContainerUsage, sizing: autoscalers.VpaConstraints | None
) -> _Origin:
    percentiles = usage.of(resource)
    assert percentiles is not None
    is_first = sizing is not None and sizing.corrects and rule.under_vpa == "p5"
    number = _first(resource, percentiles) if is_first else _static(rule, resource, percentiles)
    confidence, history = confidence_at(resource, percentiles, number.amount, usage.confidence_of(resource)), ""
    if usage.days is not None:
        history += f" over {usage.days:g} days"
    if usage.last_sample_at is not None:
        history += f" up to {written_at(usage.last_sample_at)[:10]}"
    if confidence is not None and confidence < 1:
        history += f" (sure to {confidence:.0%})"
    why = ""
    if sizing is not None:
        why = f", VPA {sizing.name} takes over" if sizing.corrects else f"; of VPA {sizing.name}: {sizing.uncorrected}"
    value = quantity.format_quantity(resource, number.amount)
    doubtful = "" if is_first else "".join(f"; {doubt}" for doubt in doubts(resource, percentiles, number.amount))
    reason = number.code(f"{number.origin}{history} is {value}{why}{doubtful}")
    return _Origin(
        amount=number.amount, reason=reason, confidence=confidence, is_recommended=True, is_young=percentiles.young,
        used=quantity.scheduler_value(resource, percentiles.p95),
    )  # fmt: skip


class _Number(msgspec.Struct, frozen=True, gc=False):
    """A number of what was used, as the scheduler counts, and what people call it."""

    amount: int
    origin: str
    code: Code = reasons.FROM_USAGE


def _first(resource: str, usage: Percentiles) -> _Number:
    return _Number(quantity.scheduler_value(resource, usage.p5), f"P5{_of_peaks(resource)}")


def _static(rule: ResourceRequestRule, resource: str, usage: Percentiles) -> _Number:
    """By the policy's rule; by P95 where the recommender gave no answer of its own. Never below what a container needs
    that was killed for want of memory."""
    asked = usage_rule.parse(rule.rule)
    more = f" and {asked.headroom_percent}%" if asked.headroom_percent else ""
    if asked.percentile is None and usage.request is not None:
        code = reasons.OOM_KILLED if usage.bound == "oom-kill" else reasons.FROM_USAGE
        found = _Number(quantity.scheduler_value(resource, usage.request), origin(resource, usage), code)
    else:
        percentile = Decimal(95) if asked.percentile is None else asked.percentile
        written = usage.of(percentile)
        name = "the largest" if percentile == 100 else f"P{percentile.normalize():f}"
        if written is None:
            name, written = "P95", usage.p95
        found = _Number(quantity.scheduler_value(resource, written), f"{name}{_of_peaks(resource)}")
    found = _Number(asked.with_headroom(found.amount), found.origin + more, found.code)
    bounds = [(usage.floor, killed(usage), reasons.OOM_KILLED)]
    if rule.pods == "largest":
        bounds.append((usage.pod_use, f"what pod {usage.pod} uses on average", reasons.FROM_USAGE))
    for amount, what, code in bounds:
        if amount is not None and quantity.scheduler_value(resource, amount) > found.amount:
            found = _Number(quantity.scheduler_value(resource, amount), what, code)
    return found


def _of_peaks(resource: str) -> str:
    return " of peaks" if resource == "memory" else ""


def _share(rule: RequestRule, resource: str, limit: Written) -> _Origin:
    step = _step(rule, resource)
    part = quantity.scheduler_value(resource, limit) * rule.percent // 100
    number = max(part // step * step, min(step, part), 1)
    return _Origin(amount=number, reason=reasons.FROM_LIMIT(f"{rule.percent}% of the limit {limit}"))


def _bounded(
    rule: RequestRule, resource: str, number: int, reason: Reason, wrote: Written | None = None
) -> tuple[str, Reason]:
    """The amount within what the rule allows. wrote: what shares of the written request are taken of."""
    step = _step(rule, resource)
    rounded = number if rule.from_ in ("limit", "request") else -(-number // step) * step
    if isinstance(rule, ResourceRequestRule) and wrote is not None:
        rounded, reason = _within_shares(rule, resource, rounded, reason, wrote)
    least = quantity.scheduler_value(resource, rule.min) if rule.min else 1
    most = quantity.scheduler_value(resource, rule.max) if rule.max else None
    if rounded < least:
        rounded, reason = least, reasons.REQUEST_RAISED(f"{reason}; the policy's min is {rule.min or 1}")
    if most is not None and rounded > most:
        rounded, reason = most, reasons.REQUEST_CAPPED(f"{reason}; the policy's max is {rule.max}")
    return quantity.format_quantity(resource, rounded), reason


def _within_shares(
    rule: ResourceRequestRule, resource: str, number: int, reason: Reason, wrote: Written
) -> tuple[int, Reason]:
    """Between `minPercent` and `maxPercent` of what was written, which are rounded towards it."""
    whole = quantity.scheduler_value(resource, wrote)
    if rule.min_percent is not None and number < (least := -(-whole * rule.min_percent // 100)):
        return least, reasons.REQUEST_RAISED(f"{reason}; the policy's minPercent is {rule.min_percent}% of {wrote}")
    if rule.max_percent is not None and number > (most := max(1, whole * rule.max_percent // 100)):
        return most, reasons.REQUEST_CAPPED(f"{reason}; the policy's maxPercent is {rule.max_percent}% of {wrote}")
    return number, reason


def _step(rule: RequestRule, resource: str) -> int:
    """1m of cpu and 1Mi of memory unless the rule says otherwise; usage below that is kept as it is."""
    return quantity.scheduler_value(resource, rule.round) if rule.round else (1 if resource == "cpu" else 1 << 20)
