"""Finds values in one policy that are valid but hardly what the author meant.

Examples are a quantity without its unit, a kind that no controller has, and requirements that no node can satisfy
together. They are reported as findings, and the policy is loaded nevertheless.
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.config_error import suggest_name
from trimtab.cluster.reason import Code, Reason
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    request_rules,
)
from trimtab.policy.affinity_conflicts import find_contradiction
from trimtab.policy.conditions import Conditions, NamespaceMatch
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import PodPolicy

ODD_AMOUNT = Code(
    "unusual-amount",
    "An amount is far from what any container requests, so its unit is probably missing or wrong.",
    "Write memory with Mi or Gi, and cpu in cores or with m: 128Mi, 500m, 2.",
)
ODD_BOUND = Code(
    "ineffective-bound",
    "One of two amounts in a rule has no effect because of the other amount.",
    "Raise `otherwise` to at least `min`, or lower `min`.",
)
NEVER_MEANS = Code(
    "never-matches",
    "No pod can ever meet the policy's `match`.",
    "Write the kinds of owners as Kubernetes does (for example Deployment), and exclude fewer pods than the "
    "policy includes.",
)
NO_NAMESPACE_NAME = Code(
    "not-a-namespace-name",
    "A name in the policy's `match` cannot be the name of a namespace, so it matches none.",
    "Correct the name: lowercase letters, digits and `-`, at most 63 characters. In a pattern, `*` matches any "
    "characters.",
)
NO_SUCH_NODE = Code(
    "no-node-can-match",
    "No node can have all the labels that the policy requires of a node.",
    "Remove one of the requirements. To allow several values of one label, list them in one `in`.",
)
WEIGHT_UNREAD = Code(
    "weight-without-effect",
    "A weight has an effect only in an entry of `prefer`.",
    "Remove the weight, or move the entry from `require` to `prefer`.",
)

WORD_UNREAD = Code(
    "field-without-effect",
    "A field of the policy has no effect in combination with the other fields.",
    "Remove the field, or set the field that uses it.",
)
REPLACES_NOTHING = Code(
    "otherwise-replaces-nothing",
    "The rule computes the request from usage, so its `otherwise` is given only to containers without a request. With "
    "`when: always`, only the usage replaces a request that a container already has.",
    "For a fixed number, write `from: policy`. If the request should follow the usage, do nothing.",
)
EVERY_CONTAINER = Code(
    "resource-for-every-container",
    "Every container of the pods gets the extended resource, so a pod with three containers takes three times the "
    "amount.",
    "Name the containers, either in `match.containers`, or in `names`, `roles` or `images` under "
    "`requests.containers`.",
)

KINDS = (
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "Rollout",
)
_MIN_MEMORY = quantity.scheduler_value("memory", "1Mi")
# More than the largest machine that cloud providers rent out.
_MAX_AMOUNTS = {
    "cpu": quantity.scheduler_value("cpu", "448"),
    "memory": quantity.scheduler_value("memory", "32Ti"),
    "ephemeral-storage": quantity.scheduler_value("memory", "256Ti"),
}
_MAX_NUMBER = 2**63
_MIN_ODD_CORES = 100
"""From so many cores on, a request that a policy sets is taken for a forgotten `m`."""
_IN_BYTES = ("memory", "ephemeral-storage")
# A week. A node with such a pod is practically never drained.
_MAX_SECONDS = 7 * 86400


def find_odd_fields(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each unusual value in one policy, without regard to other policies or the cluster."""
    yield from _check_requests(policy)
    yield from _check_match_amounts(policy)
    yield from _check_sizes(policy)
    yield from _check_match(policy)
    if policy.spec.actions.placement is not None:
        yield from _check_placement(policy.spec.actions.placement)


def _check_requests(policy: PodPolicy) -> Iterator[Reason]:
    requests = policy.spec.actions.requests
    if requests is None:
        return
    every: list[tuple[str, RequestsAction | ContainerRequests]] = [("requests", requests)]
    every += [(f"requests.containers[{n}]", rules) for n, rules in enumerate(requests.containers)]
    for where, rules in every:
        for resource, rule in request_rules(rules):
            yield from _check_amounts(f"{where}.{resource}", resource, rule)
        if rules.extended and not _selects_some_containers(policy, rules):
            names = ", ".join(rules.extended)
            yield EVERY_CONTAINER(f"{where}.extended gives {names} to every container of a pod, including its sidecars")


def _selects_some_containers(policy: PodPolicy, rules: "RequestsAction | ContainerRequests") -> bool:
    """Returns whether the rules select only some of a pod's containers."""
    has_patterns = isinstance(rules, ContainerRequests) and (rules.names or rules.roles or rules.images)
    return bool(has_patterns) or policy.spec.match.containers is not None


def _check_amounts(where: str, resource: str, rule: RequestRule) -> Iterator[Reason]:
    yield from _check_quantities(where, resource, [(word, getattr(rule, word)) for word in ("otherwise", "min", "max")])
    # Valid, because `min` wins; but then `otherwise` has no effect.
    if rule.otherwise and rule.min and quantity.compare_quantities(rule.otherwise, rule.min) < 0:
        yield ODD_BOUND(
            f"{where}.otherwise is {rule.otherwise}, which is below min {rule.min}, so the request becomes {rule.min}"
        )
    # Without any other field of a usage rule, a fixed number was probably meant. `usage` is the default of `from`.
    if rule.otherwise and rule == ResourceRequestRule(otherwise=rule.otherwise, when="always"):
        yield REPLACES_NOTHING(
            f"{where}: `otherwise: {rule.otherwise}` never replaces a request that a container already has; for a "
            "fixed number write `from: policy`"
        )
    if rule.percent != 100 and rule.from_ not in ("limit", "request"):
        yield WORD_UNREAD(f"{where}.percent has an effect only with `from: limit` and `from: request`")


def _check_quantities(where: str, resource: str, amounts: Iterable[tuple[str, str | None]]) -> Iterator[Reason]:
    for word, amount in amounts:
        odd = "" if amount is None else _describe_odd_amount(resource, amount, is_set=word in ("otherwise", "min"))
        if odd:
            yield ODD_AMOUNT(f"{where}.{word} is {amount}, which is {odd}")


def _describe_odd_amount(resource: str, amount: str, *, is_set: bool) -> str:
    """Returns what is wrong with an implausible amount, with the amount that was probably meant, or an empty string if
    the amount is plausible.

    `is_set`: the policy gives this request to containers; otherwise the amount is only a bound, which may be large.
    """
    number = quantity.scheduler_value(resource, amount)
    is_large_request = resource == "cpu" and is_set and number >= _MIN_ODD_CORES * 1000
    if is_large_request or number > _MAX_AMOUNTS.get(resource, _MAX_NUMBER):
        text = f"{number // 1000} cores" if resource == "cpu" else f"{number} bytes"
        return text + _suggest_unit(amount, "m" if resource == "cpu" else "")
    # The usual mistake: 128 for 128Mi, or 128m, which is a fraction of a byte.
    if resource in _IN_BYTES and quantity.parse(amount) < _MIN_MEMORY * quantity.NANO_PER_UNIT:
        text = "less than 1 byte" if quantity.parse(amount) < quantity.NANO_PER_UNIT else f"{number} bytes"
        return text + _suggest_unit(amount, "Mi")
    return ""


def _suggest_unit(amount: str, unit: str) -> str:
    """Returns `: did you mean …?` with the same number in the usual unit; empty for an amount with another unit."""
    number = str(amount).strip().removesuffix("m")
    return f": did you mean {number}{unit}?" if unit and number.isdecimal() else ""


def _check_match_amounts(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each implausible amount in the conditions on pods and containers."""
    match = policy.spec.match
    for where, conditions in (("match", match), *((f"match.exclude[{n}]", c) for n, c in enumerate(match.exclude))):
        of_containers = conditions.containers.requests if conditions.containers is not None else None
        for inner, amounts in ((where, conditions.requests), (f"{where}.containers", of_containers)):
            for resource, amount in (amounts or {}).items():
                bounds = (("atLeast", amount.at_least), ("below", amount.below))
                yield from _check_quantities(f"{inner}.requests[{resource}]", resource, bounds)


def _check_sizes(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each implausible size or duration of the actions other than requests."""
    actions = policy.spec.actions
    if actions.empty_dirs is not None:
        yield from _check_quantities("emptyDirs", "ephemeral-storage", [("sizeLimit", actions.empty_dirs.size_limit)])
    period = actions.termination_grace_period
    if period is not None:
        for word, seconds in (("minSeconds", period.min_seconds), ("maxSeconds", period.max_seconds)):
            if seconds is not None and seconds > _MAX_SECONDS:
                days = seconds // 86400
                yield ODD_AMOUNT(
                    f"terminationGracePeriod.{word} is {seconds} s, which is {days} days; a drain of the pod's "
                    "node waits that long"
                )


def _check_match(policy: PodPolicy) -> Iterator[Reason]:
    match = policy.spec.match
    for conditions in (match, *match.exclude):
        for owner in conditions.owners:
            kind = owner.partition("/")[0]
            suggestion = _suggest_kind(kind)
            if suggestion:
                yield NEVER_MEANS(f"a pod has no owner of the kind {kind}: did you mean {suggestion}?")
    if any(_has_equal_conditions(conditions, match) for conditions in match.exclude):
        yield NEVER_MEANS("`match` excludes everything that it includes")
    for conditions in (match, *match.exclude):
        yield from _check_namespace_names(conditions.namespaces or NamespaceMatch())
    namespaces = match.namespaces or NamespaceMatch()
    for name in namespaces.include:
        if any(_pattern_covers(pattern, name) for pattern in namespaces.exclude):
            yield NEVER_MEANS(f"namespace {name} is included, but also excluded by {', '.join(namespaces.exclude)}")
        # An installation may set other namespaces; these are the defaults.
        elif name in DEFAULT_SETTINGS.system_namespaces:
            yield NEVER_MEANS(f"pods of namespace {name} are never changed")


def _check_namespace_names(namespaces: NamespaceMatch) -> Iterator[Reason]:
    for name in (*namespaces.include, *namespaces.exclude):
        if _can_match_namespace(name):
            continue
        plain = name.lower().replace("_", "-")
        suggestion = f": did you mean {plain}?" if plain != name and _can_match_namespace(plain) else ""
        yield NO_NAMESPACE_NAME(f"{name} cannot be the name of a namespace{suggestion}")


def _can_match_namespace(pattern: str) -> bool:
    """Returns whether a namespace's name, which is a DNS label, can match the pattern."""
    # A wildcard can match a letter, so it suffices to check the characters around it.
    example = _WILDCARD.sub("a", pattern)
    return len(example) - pattern.count("*") <= _MAX_NAME_LENGTH and _DNS_LABEL.fullmatch(example) is not None


_WILDCARD = re.compile(r"[*?]|\[!?\]?[^]]*\]")
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MAX_NAME_LENGTH = 63


def _suggest_kind(kind: str) -> str:
    """Returns the kind that the author most likely meant. Empty for a pattern, and for a word that may be the name of a
    custom kind."""
    if not kind or set(kind) & set("*?[") or kind in KINDS:
        return ""
    # Kinds are CamelCase and singular: `deployment` and `Deployments` are the common mistakes.
    plain = kind.lower()
    match = next((name for name in KINDS if plain in (name.lower(), f"{name.lower()}s")), "")
    if match or kind[0].isupper():
        return match
    return (
        suggest_name(kind.capitalize(), KINDS).removeprefix("did you mean ").strip("?'") or "a kind such as Deployment"
    )


def _pattern_covers(pattern: str, name: str) -> bool:
    """Returns whether every text that `name` (a name or a pattern) matches is known to match the pattern as well.

    Only the two patterns are compared, so False may mean that it is not known."""
    return pattern == name or fnmatchcase(name, pattern)


def _has_equal_conditions(excluded: Conditions, match: Conditions) -> bool:
    names = Conditions.__dataclass_fields__
    set_fields = [name for name in names if getattr(excluded, name) != getattr(_EVERY_POD, name)]
    return bool(set_fields) and all(getattr(excluded, name) == getattr(match, name) for name in set_fields)


_EVERY_POD = Conditions()


def _check_placement(placement: PlacementAction) -> Iterator[Reason]:
    needed = [
        SelectorRequirement(key=k, operator="In", values=(v,)) for k, v in (placement.node_selector or {}).items()
    ]
    needed += [label.selector_requirement for label in placement.require]
    impossible = find_contradiction(PodSpec(), needed)
    if impossible:
        yield NO_SUCH_NODE(impossible)
    for group in placement.require_any if not impossible else ():
        impossible = find_contradiction(PodSpec(), [*needed, *(label.selector_requirement for label in group)])
        if impossible:
            yield NO_SUCH_NODE(f"one group of requireAny cannot be met: {impossible}")
    for word, labels in (("require", placement.require), *(("requireAny", group) for group in placement.require_any)):
        for label in labels:
            if label.weight is not None:
                yield WEIGHT_UNREAD(
                    f"placement.{word} for {label.label} has a weight ({label.weight}), which has no effect"
                )
