"""The requests action as one object: in words, for lint, and compiled to CEL."""

from collections.abc import Iterable, Iterator
from dataclasses import fields

from pydantic.alias_generators import to_camel

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.policy.actions import reasons as lint_reasons
from trimtab.policy.actions.action import (
    MISSING,
    WRITTEN,
    Action,
    FieldValues,
    PolicyTerms,
    ValueDifference,
    no_missing_objects,
    not_in_cel,
)
from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    request_rules,
)
from trimtab.policy.actions.requests import find_unmet_field, propose_changes
from trimtab.policy.cel_patches import AmountPatch
from trimtab.policy.conditions import can_meet_patterns
from trimtab.policy.odd_amounts import find_odd_amounts


def _describe(settings: RequestsAction) -> Iterator[str]:
    yield from _container_request_phrases(settings, "")
    for special in settings.containers:
        means = ", ".join((*special.names, *special.roles, *special.images)) or "every container"
        yield from _container_request_phrases(special, f" of {means}")


def _container_request_phrases(settings: RequestsAction | ContainerRequests, container_suffix: str) -> Iterator[str]:
    for resource, rule in request_rules(settings):
        yield f"sets the {resource} request{container_suffix}: {_describe_rule(rule)}"
    for resource, count in (settings.extended or {}).items():
        yield (
            f"sets {resource}{container_suffix} to {count}, as request and limit, if the container has no "
            "request for it"
        )


def _describe_rule(rule: RequestRule) -> str:
    source = {
        "usage": "from the usage of the container",
        "policy": str(rule.otherwise),
        "limit": f"{rule.percent}% of the limit",
        "request": "its own request" if rule.percent == 100 else f"{rule.percent}% of its own request",
    }[rule.from_]
    parts = [source]
    if rule.from_ == "usage" and rule.otherwise:
        only_missing = " if the container has no request" if rule.when == "always" else ""
        parts.append(f"{rule.otherwise} until usage is known{only_missing}")
    bounds = [f"{word} {value}" for word, value in (("at least", rule.min), ("at most", rule.max)) if value]
    if isinstance(rule, ResourceRequestRule):
        shares = (("at least", rule.min_percent), ("at most", rule.max_percent))
        bounds += [f"{word} {share}% of its own request" for word, share in shares if share is not None]
    if rule.from_ == "request":
        return ", ".join([*parts, *bounds])
    if rule.when == "missing":
        condition = "only if the container has no request"
    else:
        condition = "replaces the container's own request" + (" once usage is known" if rule.from_ == "usage" else "")
    return ", ".join([*parts, *bounds, condition])


def _list_values(settings: RequestsAction) -> FieldValues:
    for resource, rule in request_rules(settings):
        yield f"requests.{resource}", _format_rule(rule)
    for name, pieces in (settings.extended or {}).items():
        yield f"requests.{name}", str(pieces)


def _list_decided(settings: RequestsAction) -> dict[str, int] | None:
    rules = dict(request_rules(settings))
    # A rule with usage leaves a container as it is where the use is not known.
    if settings.containers or settings.extended or any(rule.from_ != "policy" for rule in rules.values()):
        return None
    reach = {"always": WRITTEN, "missing": MISSING}
    return {f"requests.{resource}": reach[rule.when] for resource, rule in rules.items()}


def _list_match_fields(settings: RequestsAction) -> tuple[str, ...]:
    return ("requests",)


def _compare(own: RequestsAction, other: RequestsAction) -> Iterator[ValueDifference]:
    """Yields the resources for which a rule for single containers differs from a rule of the other action. Only rules
    that can apply to the same container are compared."""
    for a, b in ((x, y) for x in (None, *own.containers) for y in (None, *other.containers)):
        if (a is None and b is None) or not _can_share_container(a, b):
            continue
        own_rules = dict(request_rules(own if a is None else a))
        other_rules = dict(request_rules(other if b is None else b))
        for resource in own_rules.keys() & other_rules.keys():
            texts = _format_rule(own_rules[resource]), _format_rule(other_rules[resource])
            if texts[0] != texts[1]:
                yield ValueDifference(f"requests.{resource} of {_describe_containers(a or b)}", *texts)


def _can_share_container(a: ContainerRequests | None, b: ContainerRequests | None) -> bool:
    """Returns whether both rules can apply to the same container; None stands for the rule for all containers."""
    if a is None or b is None:
        return True
    return (
        can_meet_patterns(a.names, b.names)
        and can_meet_patterns(a.images, b.images)
        and (not a.roles or not b.roles or bool(set(a.roles) & set(b.roles)))
    )


def _describe_containers(rule: ContainerRequests | None) -> str:
    """Returns the containers of a rule, as in "containers proxy, istio-*"."""
    words = [*rule.names, *rule.roles, *rule.images] if rule is not None else []
    return f"containers {', '.join(words)}" if words else "all containers"


def _format_rule(rule: RequestRule) -> str:
    """Returns the settings of a rule that differ from their defaults."""
    defaults = {field.name: field.default for field in fields(rule)}
    settings = [
        f"{to_camel(name.strip('_'))}: {getattr(rule, name)}"
        for name in defaults
        if getattr(rule, name) != defaults[name]
    ]
    return "{" + ", ".join(settings) + "}"


def _find_odd(settings: RequestsAction, terms: PolicyTerms) -> Iterator[Reason]:
    every: list[tuple[str, RequestsAction | ContainerRequests]] = [("requests", settings)]
    every += [(f"requests.containers[{n}]", rules) for n, rules in enumerate(settings.containers)]
    for where, rules in every:
        for resource, rule in request_rules(rules):
            yield from _check_amounts(f"{where}.{resource}", resource, rule)
        if rules.extended and not _selects_some_containers(terms, rules):
            names = ", ".join(rules.extended)
            yield lint_reasons.EVERY_CONTAINER(
                f"{where}.extended gives {names} to every container of a pod, including its sidecars"
            )


def _selects_some_containers(terms: PolicyTerms, rules: RequestsAction | ContainerRequests) -> bool:
    """Returns whether the rules select only some of a pod's containers."""
    has_patterns = isinstance(rules, ContainerRequests) and (rules.names or rules.roles or rules.images)
    return bool(has_patterns) or terms.match.containers is not None


def _check_amounts(where: str, resource: str, rule: RequestRule) -> Iterator[Reason]:
    yield from find_odd_amounts(where, resource, [(word, getattr(rule, word)) for word in ("otherwise", "min", "max")])
    # Valid, because `min` wins; but then `otherwise` has no effect.
    if rule.otherwise and rule.min and quantity.compare_quantities(rule.otherwise, rule.min) < 0:
        yield lint_reasons.ODD_BOUND(
            f"{where}.otherwise is {rule.otherwise}, which is below min {rule.min}, so the request becomes {rule.min}"
        )
    # Without any other field of a usage rule, a fixed number was probably meant. `usage` is the default of `from`.
    if rule.otherwise and rule == ResourceRequestRule(otherwise=rule.otherwise, when="always"):
        yield lint_reasons.REPLACES_NOTHING(
            f"{where}: `otherwise: {rule.otherwise}` never replaces a request that a container already has; for a "
            "fixed number write `from: policy`"
        )
    if rule.percent != 100 and rule.from_ not in ("limit", "request"):
        yield lint_reasons.WORD_UNREAD(f"{where}.percent has an effect only with `from: limit` and `from: request`")


def _compile(settings: RequestsAction, terms: PolicyTerms) -> Iterable[AmountPatch]:
    # Only a compiler needs it: commands that compile nothing start without.
    from trimtab.policy.actions.requests_in_cel import compile_requests

    return compile_requests(settings, terms)


def _list_differences(settings: RequestsAction) -> Iterator[str]:
    rules = [rule for _, rule in request_rules(settings)]
    yield "namespace-rules"
    if rules:
        yield from ("managed-by-vpa", "largest-node")
    if any(rule.when == "always" for rule in rules):
        yield "limit-reached"
    if any(rule.when == "always" or rule.from_ == "request" for rule in rules):
        yield "applied"
    if any(rule.from_ == "usage" for rule in rules):
        yield "job-of-a-cron-job"


ACTION = Action(
    name="requests",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=_compare,
    list_decided=_list_decided,
    list_match_fields=_list_match_fields,
    find_odd=_find_odd,
    find_missing=no_missing_objects,
    compile=_compile,
    require=not_in_cel("requests"),
    order_matters=True,
    affects=frozenset({"nodes", "quotas"}),
    list_differences=_list_differences,
)
