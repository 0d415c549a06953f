"""Compiles the requests action to CEL: the new value per container, from the policy or from the namespace's parameters.

A request is added only to a container that has neither a request nor a limit of that resource, and replaced only by one
below the limit, so it cannot exceed a limit. A change that a LimitRange or a quota could refuse is only made if the
parameters say that the namespace has neither.
"""

from collections.abc import Iterator
from typing import Literal

from trimtab.cluster import quantity, usage_rule
from trimtab.policy.actions.action import PolicyTerms
from trimtab.policy.actions.request_fields import RequestRule, RequestsAction, ResourceRequestRule, request_rules
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.cel_patches import AmountPatch
from trimtab.policy.compiled.amounts import (
    UNBOUNDED,
    UNTIL,
    amount_text,
    clamp_to_rule,
    format_number,
    has_amount,
    needs_bounds,
    number_of,
)


def compile_requests(settings: RequestsAction, terms: PolicyTerms) -> Iterator[AmountPatch]:
    """Yields the new requests, and for extended resources the limits equal to them. Raises NotExpressible with the name
    of the field."""
    if any(rule.from_ == "usage" for _, rule in request_rules(settings)):
        problem = "spec.actions.requests: a pod does not contain its usage; see the option --params usage"
    else:
        problem = needs_bounds("limits" if "limits" in terms.settings_by_action else "requests")

    def amount(side: Literal["requests", "limits"], resource: str, text: str, *, only_own: str = "") -> AmountPatch:
        return AmountPatch(
            side=side,
            resource=resource,
            text=text,
            problem_without_parameters=problem,
            problem_in_tenant_namespace=only_own,
        )

    if settings.containers:
        raise NotExpressible(
            "spec.actions.requests.containers: rules for single containers are not supported; use separate policies"
        )
    for resource, rule in request_rules(settings):
        where = f"spec.actions.requests.{resource}"
        if rule.round is not None:
            raise NotExpressible(f"{where}.round: CEL can write amounts only in whole millicores and Mi")
        if rule.from_ == "request":
            yield amount("requests", resource, _bounded_request(rule, resource, where, terms))
            continue
        if rule.when == "always" and rule.from_ == "limit":
            raise NotExpressible(
                f"{where}.from: CEL cannot distinguish a share of the limit from the API server's copy of the limit"
            )
        missing = f"!({has_amount('c', 'requests', resource)}) && !({has_amount('c', 'limits', resource)})"
        # A pod of class BestEffort would become Burstable, which a quota may count.
        quality = "true" if resource not in ("cpu", "memory") else f"(!variables.bestEffort || {UNBOUNDED})"
        if resource not in ("cpu", "memory"):
            # A quota counts ephemeral storage of pods that ask for it, and lets others in.
            quality = UNBOUNDED
        value = _usage_text(rule, resource, where) if rule.from_ == "usage" else _otherwise_text(rule, resource)
        text = f"({missing} && {quality} ? {value} : '')"
        if rule.when == "missing":
            yield amount("requests", resource, text)
            continue
        only_own = (
            f"{where}.when: `always` replaces the author's value, and a tenant may remove the parameters in its "
            "namespace; see the option --params-namespace"
        )
        yield amount(
            "requests",
            resource,
            f"({has_amount('c', 'requests', resource)} ? {_replacement(rule, resource, where, terms)} : {text})",
            only_own=only_own if rule.from_ == "usage" else "",
        )
    for resource, pieces in sorted((settings.extended or {}).items()):
        absent = f"!({has_amount('c', 'requests', resource)}) && !({has_amount('c', 'limits', resource)})"
        text = f"({absent} && {UNBOUNDED} ? '{pieces}' : '')"
        yield amount("requests", resource, text)
        yield amount("limits", resource, text)


def _bounded_request(rule: RequestRule, resource: str, where: str, terms: PolicyTerms) -> str:
    if rule.percent < 100:
        raise NotExpressible(
            f"{where}.percent: a share must be computed only once, but a compiled policy cannot record the "
            "author's request"
        )
    number = number_of(amount_text("c", "requests", resource), resource)
    guards = [UNBOUNDED, "!variables.applied", "!(variables.owner in variables.vpas)"]
    if not terms.changes_guaranteed:
        guards.append("!variables.guaranteed")
    steps = ["''"]
    if rule.max is not None:
        limit = quantity.scheduler_value(resource, rule.max)
        steps.insert(0, f"{number} > {limit} ? {_literal(resource, limit)} : ")
    if rule.min is not None:
        least = quantity.scheduler_value(resource, rule.min)
        below = f"!({has_amount('c', 'limits', resource)}) && {number} < {least}"
        steps.insert(0, f"{below} ? {_literal(resource, least)} : ")
    missing = _otherwise_text(rule, resource) if rule.otherwise is not None else "''"
    present = f"({has_amount('c', 'requests', resource)} ? ({''.join(steps)}) : {missing})"
    return f"({' && '.join(guards)} ? {present} : '')"


def _replacement(rule: RequestRule, resource: str, where: str, terms: PolicyTerms) -> str:
    """Returns a CEL expression for the request that replaces the container's own; empty if that stays."""
    guards = [UNBOUNDED, "!variables.applied", "!(variables.owner in variables.vpas)"]
    if not terms.changes_guaranteed:
        guards.append("!variables.guaranteed")
    number = number_of(amount_text("c", "requests", resource), resource)
    # A request at the limit might make the pod Guaranteed.
    limit = number_of(amount_text("c", "limits", resource), resource)
    is_below = f"(!({has_amount('c', 'limits', resource)}) || n < {limit})"
    if isinstance(rule, ResourceRequestRule) and rule.from_ == "usage":
        entry, usage_amount, bounded = _usage_parts(rule, resource, where)
        parsed = usage_rule.parse(rule.rule)
        name = "adaptive" if parsed.percentile is None else _percentile_name(parsed.percentile)
        # As the webhook: what is not certain lowers nothing, and less than a day of usage raises only what is below it.
        is_sure = f"(e.find(' {resource}[.]sure=[a-z0-9,]*') + ',').matches('[=,]{name},')"
        is_young = f"e.contains(' {resource}.young=1')"
        p95 = _find_amount(f"{resource}.p95")
        is_used = f"{p95} != '' && int({p95}.trim().substring({len(resource) + 5})) > x"
        may = f"n < x ? {is_sure} : n > x && (!{is_young} || ({is_used}))"
        value = (
            f"[{bounded}].map(n, [{number}].map(x, ({may}) && {is_below} ? {format_number('n', resource)} : '')[0])[0]"
        )
        text = f"[{entry}].map(e, {_is_valid_entry(usage_amount)} ? {value} : '')[0]"
    else:
        amount = _otherwise_number(rule, resource)
        text = f"[{amount}].map(n, n != {number} && {is_below} ? {_literal(resource, amount)} : '')[0]"
    return f"({' && '.join(guards)} ? {text} : '')"


def _literal(resource: str, number: int) -> str:
    return cel_string(quantity.format_quantity(resource, number))


def _otherwise_text(rule: RequestRule, resource: str) -> str:
    """Returns a CEL literal with the rule's `otherwise`, within the rule's own bounds; an empty text if there is
    none."""
    return "''" if rule.otherwise is None else _literal(resource, _otherwise_number(rule, resource))


def _otherwise_number(rule: RequestRule, resource: str) -> int:
    """Returns the rule's `otherwise`, which must be set, within the rule's own bounds."""
    assert rule.otherwise is not None
    number = quantity.scheduler_value(resource, rule.otherwise)
    step = 1 if resource == "cpu" else 1 << 20
    rounded = number if rule.from_ in ("limit", "request") else -(-number // step) * step
    return clamp_to_rule(rule, resource, rounded)


def _usage_text(rule: RequestRule, resource: str, where: str) -> str:
    """Returns a CEL expression for the request that is computed from the parameters. It takes the number that the
    policy's rule selects, checks it, and limits it to the rule's bounds."""
    assert isinstance(rule, ResourceRequestRule)
    entry, usage_amount, bounded = _usage_parts(rule, resource, where)
    sized = f"[{bounded}].map(n, {format_number('n', resource)})[0]"
    otherwise = _otherwise_text(rule, resource)
    value = f"[{entry}].map(e, {_is_valid_entry(usage_amount)} ? {sized} : {otherwise})[0]"
    # Whatever a VPA manages is left to it: its own number is not in the parameters.
    return f"(variables.rules != '' && !(variables.owner in variables.vpas) ? {value} : '')"


def _is_valid_entry(usage_amount: str) -> str:
    """Returns a CEL expression that is true if the entry `e` is not too old and has the amount."""
    return f"e.matches('{UNTIL}') && variables.now < e.substring(6, 26) && {usage_amount} != ''"


def _usage_parts(rule: ResourceRequestRule, resource: str, where: str) -> tuple[str, str, str]:
    """Returns CEL expressions for the container's entry in the parameters; for the amount in the entry `e` that the
    policy's rule selects, as text; and for that amount within the rule's bounds, as a number. Raises NotExpressible."""
    for field, is_set in (
        ("minConfidence", rule.min_confidence is not None),
        ("maxAge", rule.max_age is not None),
        ("pods", rule.pods != "typical"),
        ("minPercent", rule.min_percent is not None),
        ("maxPercent", rule.max_percent is not None),
    ):
        if is_set:
            raise NotExpressible(
                f"{where}.{field}: the parameters of the policy do not contain the value to compare with"
            )
    parsed = usage_rule.parse(rule.rule)
    name = resource if parsed.percentile is None else f"{resource}.{_percentile_name(parsed.percentile)}"
    # Sixteen digits at most: more would be no number of bytes, and would overflow below.
    usage_amount = _find_amount(name)
    number = f"int({usage_amount}.trim().substring({len(name) + 1}))"
    head = parsed.headroom_percent or 0
    with_head = f"(({number} * {100 + head} + 99) / 100)" if head else number
    least_known = _find_amount(f"{resource}.floor")
    floor = f"({least_known} == '' ? 0 : int({least_known}.trim().substring({len(resource) + 7})))"
    largest = f"[{with_head}, {floor}].max()" if resource == "memory" else with_head
    stepped = f"(({largest} + 1048575) / 1048576 * 1048576)" if resource == "memory" else largest
    least = quantity.scheduler_value(resource, rule.min) if rule.min else 1
    bounded = f"[{stepped}, {least}].max()"
    if rule.max is not None:
        bounded = f"[{bounded}, {quantity.scheduler_value(resource, rule.max)}].min()"
    key = "variables.owner + '.' + c.name"
    entry = f"(variables.owner != '' && ({key}) in variables.data ? variables.data[{key}] : '')"
    return entry, usage_amount, bounded


def _percentile_name(percentile: object) -> str:
    name = f"{percentile:f}".rstrip("0").rstrip(".") if "." in f"{percentile:f}" else f"{percentile:f}"
    return "max" if name == "100" else f"p{name}"


def _find_amount(name: str) -> str:
    return f"e.find({cel_string(' ' + name.replace('.', '[.]') + '=[0-9]{1,15}( |$)')})"


def compiled_storage_request(terms: PolicyTerms) -> int:
    """Returns the bytes of ephemeral storage that the policy gives to a container without a request; 0 if it gives
    none."""
    settings: RequestsAction | None = terms.settings_by_action.get("requests")
    rule = None if settings is None else settings.ephemeral_storage
    if rule is None or rule.otherwise is None or rule.from_ != "policy":
        return 0
    step = 1 << 20
    amount = -(-quantity.scheduler_value("ephemeral-storage", rule.otherwise) // step) * step
    return clamp_to_rule(rule, "ephemeral-storage", amount)
