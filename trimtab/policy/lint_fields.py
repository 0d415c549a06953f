"""Finds conditions in the match of one policy that are valid but hardly what the author meant.

Examples are a quantity without its unit, and a kind that no controller has. They are reported as findings, and the
policy is loaded nevertheless. What is odd in an action, the action itself knows.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from trimtab.cluster.config_error import suggest_name
from trimtab.cluster.reason import Code, Reason
from trimtab.policy.conditions import Conditions, NamespaceMatch
from trimtab.policy.odd_amounts import find_odd_amounts
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import PodPolicy

NEVER_MEANS = Code(
    "never-matches",
    "No pod can ever meet the policy's `match`.",
    "Write the kinds of owners as Kubernetes does, and exclude fewer pods. A kind is for example Deployment; what "
    "the policy excludes must be less than what it includes.",
)
NO_NAMESPACE_NAME = Code(
    "not-a-namespace-name",
    "A name in the policy's `match` cannot be that of a namespace.",
    "Correct it: lowercase letters, digits and `-`, at most 63 characters. In a pattern, `*` matches any characters.",
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


def find_odd_conditions(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each unusual value in the match of one policy, without regard to other policies or the
    cluster."""
    yield from _check_match_amounts(policy)
    yield from _check_match(policy)


def _check_match_amounts(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each implausible amount in the conditions on pods and containers."""
    match = policy.spec.match
    for where, conditions in (("match", match), *((f"match.exclude[{n}]", c) for n, c in enumerate(match.exclude))):
        of_containers = conditions.containers.requests if conditions.containers is not None else None
        for inner, amounts in ((where, conditions.requests), (f"{where}.containers", of_containers)):
            for resource, amount in (amounts or {}).items():
                bounds = (("atLeast", amount.at_least), ("below", amount.below))
                yield from find_odd_amounts(f"{inner}.requests[{resource}]", resource, bounds)


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
        # Whether every text that `name` (a name or a pattern) matches is known to match the pattern as well. Only the
        # two patterns are compared, so False may mean that it is not known.
        if any(pattern == name or fnmatchcase(name, pattern) for pattern in namespaces.exclude):
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


def _has_equal_conditions(conditions: Conditions, match: Conditions) -> bool:
    names = Conditions.__dataclass_fields__
    set_fields = [name for name in names if getattr(conditions, name) != getattr(_EVERY_POD, name)]
    return bool(set_fields) and all(getattr(conditions, name) == getattr(match, name) for name in set_fields)


_EVERY_POD = Conditions()
