"""Compiles the requests and limits actions to CEL: the new values per container, from the policy or from the
namespace's parameters.

A request is only added to a container that has neither a request nor a limit of that resource, so it cannot exceed a
limit. A change that a LimitRange or a quota could refuse is only made if the parameters say that the namespace has
neither.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.request_parameters import NAMESPACE_KEY
from trimtab.policy.actions.limits import LimitsAction, limit_factor, limit_rules
from trimtab.policy.actions.request_fields import RequestRule, RequestsAction, ResourceRequestRule, request_rules
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.compiled.amounts import (
    amount_text,
    best_effort_expression,
    format_number,
    guaranteed_expression,
    has_amount,
    number_of,
)
from trimtab.policy.compiled.match_conditions import ALL_CONTAINERS, OWNER_KEY, container_test
from trimtab.policy.compiled.patch_parts import IS_APPLIED, PatchPart, operation
from trimtab.policy.compiled.runtime_expressions import runtime_reads
from trimtab.policy.compiled.windows_parts import IS_WINDOWS
from trimtab.policy.podpolicy import PodPolicy

PARTS = ("containers", "initContainers")
_MANAGED = "object.metadata.managedFields"
_UNTIL = "^until=20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z "
PARAMETER_VARIABLES = {
    "data": "params != null && has(params.data) ? params.data : {}",
    # CEL has no clock. The API server writes the time of the request into managedFields before it mutates.
    "now": f"has({_MANAGED}) && {_MANAGED}.exists(m, has(m.time)) ? "
    f"{_MANAGED}.filter(m, has(m.time)).map(m, string(m.time)).max() : '9999'",
    "owner": OWNER_KEY,
    "rules": f"'{NAMESPACE_KEY}' in variables.data ? variables.data['{NAMESPACE_KEY}'] : ''",
    "hpas": "variables.rules.find(' hpas=[^ ]*').replace(' hpas=', '').split(',').filter(n, n != '')",
    "vpas": "variables.rules.find(' vpas=[^ ]*').replace(' vpas=', '').split(',').filter(n, n != '')",
    "unbounded": "variables.rules.contains(' limitranges=0 quotas=0 ') && "
    f"variables.rules.matches('{_UNTIL}') && variables.now < variables.rules.substring(6, 26)",
}
"""The CEL variables of policies with parameters. Their text comes from a ConfigMap in a tenant's namespace, so it is
checked wherever it is used."""
UNBOUNDED = "variables.unbounded"
_ON_POD_LEVEL = " || ".join(
    has_amount("object.spec", side, r) for side in ("requests", "limits") for r in ("cpu", "memory")
)


@dataclass(frozen=True, slots=True)
class ResourceVariables:
    """CEL variables that compute, for each container, the text of a new request or limit; the text is empty if nothing
    is written."""

    variables: dict[str, str]
    parts: tuple[PatchPart, ...]
    needs_parameters: bool


def resource_parts(policy: PodPolicy, *, with_parameters: bool) -> ResourceVariables:
    """Returns the variables for both actions. Raises NotExpressible with the name of the field.

    `with_parameters` says whether the policy may read the namespace's ConfigMap `trimtab-requests`.
    """
    actions = policy.spec.actions
    values: dict[tuple[str, str], str] = {}
    needs = False
    if actions.requests is not None:
        for (side, resource), text, needed in _request_values(actions.requests, policy):
            values[side, resource], needs = text, needs or needed
    if actions.limits is not None:
        gives_sizes = actions.empty_dirs is not None and (
            not actions.empty_dirs.medium or "Memory" in actions.empty_dirs.medium
        )
        limit_values = _limit_values(actions.limits, actions.requests, sizes_memory_volumes=gives_sizes)
        for (side, resource), text, needed in limit_values:
            values[side, resource], needs = text, needs or needed
    if not values:
        return ResourceVariables({}, (), needs_parameters=False)
    if needs and not with_parameters:
        raise NotExpressible(_needed_for(policy))
    meant = policy.spec.match.containers
    test = container_test(meant, "spec.match.containers") if meant is not None else "true"
    variables = {
        "bestEffort": best_effort_expression(ALL_CONTAINERS),
        "guaranteed": guaranteed_expression(ALL_CONTAINERS),
        "podLevel": _ON_POD_LEVEL,
        "applied": IS_APPLIED,
    }
    if any("variables.windows" in text for text in values.values()):
        variables["windows"] = IS_WINDOWS
    names: dict[tuple[str, str], str] = {}
    for number, (key, text) in enumerate(values.items()):
        names[key] = f"amount{number}"
        for part in PARTS:
            path = f"object.spec.{part}"
            value = f"{path}.map(c, !variables.podLevel && {test} ? {text} : '')"
            variables[f"{names[key]}{part}"] = value if part == "containers" else f"has({path}) ? {value} : []"
    return ResourceVariables(variables, tuple(_container_parts(names)), needs_parameters=needs)


def _needed_for(policy: PodPolicy) -> str:
    actions = policy.spec.actions
    if actions.requests is not None and any(rule.from_ == "usage" for _, rule in request_rules(actions.requests)):
        return "spec.actions.requests: a pod does not contain its usage; see the option --params usage"
    where = "limits" if actions.limits is not None else "requests"
    return (
        f"spec.actions.{where}: a pod does not show whether a LimitRange or a quota would refuse it; see the "
        "option --params usage"
    )


_REMOVE = "'-'"
"""The text that stands for the removal of a limit. No quantity is written like this."""


def _request_values(settings: RequestsAction, policy: PodPolicy) -> Iterator[tuple[tuple[str, str], str, bool]]:
    if settings.containers:
        raise NotExpressible(
            "spec.actions.requests.containers: rules for single containers are not supported; use separate policies"
        )
    for resource, rule in request_rules(settings):
        where = f"spec.actions.requests.{resource}"
        if rule.round is not None:
            raise NotExpressible(f"{where}.round: CEL can write amounts only in whole millicores and Mi")
        if rule.from_ == "request":
            yield ("requests", resource), _bounded_request(rule, resource, where, policy), True
            continue
        if rule.when == "always":
            raise NotExpressible(
                f"{where}.when: `always` replaces the author's value, and a compiled policy cannot record that value"
            )
        missing = f"!({has_amount('c', 'requests', resource)}) && !({has_amount('c', 'limits', resource)})"
        # A pod of class BestEffort would become Burstable, which a quota may count.
        quality = "true" if resource not in ("cpu", "memory") else f"(!variables.bestEffort || {UNBOUNDED})"
        if resource not in ("cpu", "memory"):
            # A quota counts ephemeral storage of pods that ask for it, and lets others in.
            quality = UNBOUNDED
        value = _usage_text(rule, resource, where) if rule.from_ == "usage" else _otherwise_text(rule, resource)
        yield ("requests", resource), f"({missing} && {quality} ? {value} : '')", True
    for resource, pieces in sorted((settings.extended or {}).items()):
        absent = f"!({has_amount('c', 'requests', resource)}) && !({has_amount('c', 'limits', resource)})"
        text = f"({absent} && {UNBOUNDED} ? '{pieces}' : '')"
        yield ("requests", resource), text, True
        yield ("limits", resource), text, True


def _bounded_request(rule: RequestRule, resource: str, where: str, policy: PodPolicy) -> str:
    if rule.percent < 100:
        raise NotExpressible(
            f"{where}.percent: a share must be computed only once, but a compiled policy cannot record the "
            "author's request"
        )
    number = number_of(amount_text("c", "requests", resource), resource)
    guards = [UNBOUNDED, "!variables.applied", "!(variables.owner in variables.vpas)"]
    if policy.spec.guaranteed != "change":
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


def _literal(resource: str, number: int) -> str:
    return cel_string(quantity.format_quantity(resource, number))


def _clamp(rule: RequestRule, resource: str, number: int) -> int:
    low = quantity.scheduler_value(resource, rule.min) if rule.min else 1
    high = quantity.scheduler_value(resource, rule.max) if rule.max else None
    number = max(number, low)
    return number if high is None else min(number, high)


def _otherwise_text(rule: RequestRule, resource: str) -> str:
    """Returns a CEL literal with the rule's `otherwise`, within the rule's own bounds; an empty text if there is
    none."""
    if rule.otherwise is None:
        return "''"
    number = quantity.scheduler_value(resource, rule.otherwise)
    step = 1 if resource == "cpu" else 1 << 20
    rounded = number if rule.from_ in ("limit", "request") else -(-number // step) * step
    return _literal(resource, _clamp(rule, resource, rounded))


def _usage_text(rule: RequestRule, resource: str, where: str) -> str:
    """Returns a CEL expression for the request that is computed from the parameters. It takes the number that the
    policy's rule selects, checks it, and limits it to the rule's bounds."""
    assert isinstance(rule, ResourceRequestRule)
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
    otherwise = _otherwise_text(rule, resource)
    key = "variables.owner + '.' + c.name"
    entry = f"(variables.owner != '' && ({key}) in variables.data ? variables.data[{key}] : '')"
    is_valid = f"e.matches('{_UNTIL}') && variables.now < e.substring(6, 26)"
    text = format_number("n", resource)
    sized = f"[{bounded}].map(n, {text})[0]"
    value = f"[{entry}].map(e, {is_valid} && {usage_amount} != '' ? {sized} : {otherwise})[0]"
    # Whatever a VPA manages is left to it: its own number is not in the parameters.
    return f"(variables.rules != '' && !(variables.owner in variables.vpas) ? {value} : '')"


def _percentile_name(percentile: object) -> str:
    name = f"{percentile:f}".rstrip("0").rstrip(".") if "." in f"{percentile:f}" else f"{percentile:f}"
    return "max" if name == "100" else f"p{name}"


def _find_amount(name: str) -> str:
    return f"e.find({cel_string(' ' + name.replace('.', '[.]') + '=[0-9]{1,15}( |$)')})"


def _limit_values(
    settings: LimitsAction, requests: RequestsAction | None, *, sizes_memory_volumes: bool
) -> Iterator[tuple[tuple[str, str], str, bool]]:
    for resource, rule in limit_rules(settings):
        where = f"spec.actions.limits.{resource}"
        has_limit = has_amount("c", "limits", resource)
        if rule == "keep":
            continue
        if rule == "remove":
            if settings.unknown_runtime == "keep" and resource in ("cpu", "memory"):
                raise NotExpressible(
                    "spec.actions.limits.unknownRuntime: a compiled policy does not distinguish a runtime that reads "
                    "no limit from an unknown one"
                )
            # A request of zero next to the limit: without the limit the pod might be of class BestEffort.
            asked = f"quantity({amount_text('c', 'requests', resource)}).isGreaterThan(quantity('0'))"
            asks = f"{has_amount('c', 'requests', resource)} && {asked}"
            guards = [
                has_limit,
                UNBOUNDED,
                "!variables.applied",
                "!variables.guaranteed",
                *([] if settings.required or resource not in ("cpu", "memory") else ["!variables.windows"]),
                asks,
                f"!({_is_read(resource)})",
                *([f"!({_MEMORY_VOLUME})"] if resource == "memory" and not sizes_memory_volumes else []),
                f"!({runtime_reads(resource)})",
            ]
            yield ("limits", resource), f"({' && '.join(f'({g})' for g in guards)} ? {_REMOVE} : '')", True
            continue
        if resource != "ephemeral-storage":
            raise NotExpressible(
                f"{where}: a limit that follows the request needs the largest known usage, which CEL cannot read"
            )
        yield ("limits", resource), _following_limit(rule, resource, requests), True


def _following_limit(rule: str, resource: str, requests: RequestsAction | None) -> str:
    """Returns a CEL expression for the limit request × factor, which is never lower than the author's limit."""
    factor = Fraction(limit_factor(rule) or "1")
    given = requests.ephemeral_storage if requests is not None else None
    gap = 0
    if given is not None and given.otherwise is not None and given.from_ == "policy":
        step = 1 << 20
        gap = _clamp(given, resource, -(-quantity.scheduler_value(resource, given.otherwise) // step) * step)
    asked = number_of(amount_text("c", "requests", resource), resource)
    request = f"({has_amount('c', 'requests', resource)} ? {asked} : {gap})"
    wanted = f"{request} * {factor.numerator} / {factor.denominator}"
    limit = number_of(amount_text("c", "limits", resource), resource)
    is_lower = f"!({has_amount('c', 'limits', resource)}) || {limit} < {wanted}"
    guards = f"{UNBOUNDED} && !variables.applied && !({_is_read(resource)}) && {wanted} > 0 && ({is_lower})"
    return f"({guards} ? [{wanted}].map(n, {format_number('n', resource)})[0] : '')"


_MEMORY_VOLUME = (
    "has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.emptyDir) && has(v.emptyDir.medium) && "
    "v.emptyDir.medium == 'Memory' && !has(v.emptyDir.sizeLimit))"
)
"""A CEL expression that is true if the kubelet gives a volume in memory its size by the pod's memory limits."""


def _is_read(resource: str) -> str:
    """Returns a CEL expression that is true if a container or a volume reads this limit of the container `c` through
    the downward API."""
    name = cel_string(f"limits.{resource}")
    reference = ("has({0}.resourceFieldRef) && {0}.resourceFieldRef.resource == " + name).format
    other = "e.valueFrom.resourceFieldRef.containerName"
    own = f"(has({other}) && {other} != '' ? {other} : d.name) == c.name"
    reads = f"has(e.valueFrom) && {reference('e.valueFrom')} && {own}"
    env = f"{ALL_CONTAINERS}.exists(d, has(d.env) && d.env.exists(e, {reads}))"
    item = f"({reference('f')} && f.resourceFieldRef.containerName == c.name)"
    volumes = (
        f"has(object.spec.volumes) && object.spec.volumes.exists(v, (has(v.downwardAPI) && has(v.downwardAPI.items) && "
        f"v.downwardAPI.items.exists(f, {item})) || (has(v.projected) && has(v.projected.sources) && "
        f"v.projected.sources.exists(s, has(s.downwardAPI) && has(s.downwardAPI.items) && "
        f"s.downwardAPI.items.exists(f, {item}))))"
    )
    return f"({env}) || ({volumes})"


def _container_parts(names: dict[tuple[str, str], str]) -> Iterator[PatchPart]:
    """Yields one change for each list of containers (main and init): it writes all new amounts, and creates the maps
    that hold them."""
    for part in PARTS:
        amounts = {key: f"variables.{name}{part}" for key, name in names.items()}
        path = f"object.spec.{part}"
        test = " || ".join(f"{values}.exists(a, a != '')" for values in amounts.values())
        root = f"'/spec/{part}/' + string(i) + '/resources"
        pieces = [f"(has(c.resources) ? [] : [{operation('add', root + chr(39), '{}')}])"]
        for side in ("requests", "limits"):
            written = [values for (of, _), values in amounts.items() if of == side]
            adds = " || ".join(f"!({values}[i] in ['', {_REMOVE}])" for values in written)
            if written:
                create = operation("add", f"{root}/{side}'", "{}")
                pieces.append(f"(({adds}) && !(has(c.resources) && has(c.resources.{side})) ? [{create}] : [])")
        notes = []
        for (side, resource), values in amounts.items():
            target = f"{root}/{side}/{resource.replace('~', '~0').replace('/', '~1')}'"
            add, remove = operation("add", target, f"{values}[i]"), operation("remove", target)
            pieces.append(f"({values}[i] == '' ? [] : {values}[i] == {_REMOVE} ? [{remove}] : [{add}])")
            text = f"({values}[i] == {_REMOVE} ? 'removed' : {values}[i])"
            notes.append(f"({values}[i] == '' ? [] : ['{part}[' + c.name + '].{side}.{resource}=' + {text}])")
        any_of = " || ".join(f"{values}[i] != ''" for values in amounts.values())
        yield PatchPart(
            name=part,
            test=f"({test})",
            reads_late=True,
            operations=f"{path}.transformList(i, c, {any_of}, {' + '.join(pieces)}).flatten()",
            note=f"{path}.transformList(i, c, {any_of}, {' + '.join(notes)}).flatten().join(' ')",
        )
