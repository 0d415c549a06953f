"""Translates a policy's `match`, its opt-outs, and the rules for pods that no policy changes, to conditions for the API
server.

Match conditions are cheap: if one is false, the pod is neither encoded nor patched. But they can read neither the
namespace's labels nor variables, so conditions that need those become guards, which are evaluated with the patch.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.kinds import groups_of
from trimtab.cluster.owner import HASH_LABELS
from trimtab.policy.cel import (
    Manifest,
    NotExpressible,
    build_selector,
    cel_list,
    cel_regex,
    cel_string,
    has_entry,
    image_matches,
    join_all,
    selector_expression,
)
from trimtab.policy.cel_pod import (
    ALL_CONTAINERS,
    ANNOTATIONS,
    LABELS,
    NAMESPACE_LABELS,
    controller_expression,
    is_of_kind,
)
from trimtab.policy.compiled.amounts import pod_amount_expression, quantity_number
from trimtab.policy.conditions import AmountCondition, Conditions, Containers, NamespaceMatch
from trimtab.policy.match import means_any_group, names_critical
from trimtab.policy.pod_context import CRITICAL, DEFAULT_SETTINGS, MIRROR, OPT_OUT
from trimtab.policy.podpolicy import PodPolicy
from trimtab.policy.required_action_rules import required_actions
from trimtab.policy.shell_regex import shell_regex

_UNKNOWN_KINDS = ("CronJob",)
"""Kinds of controllers above a Job. They cannot be matched, because nothing in a pod names its CronJob."""


@dataclass(frozen=True, slots=True)
class MatchExpressions:
    """Which pods a policy matches, as expressions for the API server. All of them must be true."""

    constraints: Manifest
    """The value of `spec.matchConstraints`."""
    conditions: tuple[str, ...]
    """CEL expressions that read only the admission request and the object."""
    guards: tuple[str, ...]
    """CEL expressions that also read the namespace's labels or the parameters."""


def build_match(policy: PodPolicy, *, knows_autoscalers: bool) -> MatchExpressions:
    """Returns the expressions for the match of a policy. Raises NotExpressible with the name of the field.

    `knows_autoscalers` says whether the parameters name the workloads that autoscalers act on.
    """
    match = policy.spec.match
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints: Manifest = {"resourceRules": [rule]}
    namespaces = match.namespaces or NamespaceMatch()
    if namespaces.selector is not None:
        constraints["namespaceSelector"] = build_selector(namespaces.selector)
    if match.pod_selector is not None:
        constraints["objectSelector"] = build_selector(match.pod_selector)
    conditions, guards = list(_left_alone(policy)), list(_opted_out_namespace(policy))
    translated = [*_conditions(match, "spec.match", knows_autoscalers)]
    for index, excluded in enumerate(match.exclude):
        where = f"spec.match.exclude[{index}]"
        parts = [
            *_conditions(excluded, where, knows_autoscalers),
            *((selector_expression(s, LABELS), False) for s in (excluded.pod_selector,) if s is not None),
            *_excluded_selector(excluded),
        ]
        if parts:
            translated.append((f"!({join_all(text for text, _ in parts)})", any(late for _, late in parts)))
    conditions += [text for text, is_late in translated if not is_late]
    guards += [text for text, is_late in translated if is_late]
    return MatchExpressions(constraints, tuple(conditions), tuple(guards))


def _left_alone(policy: PodPolicy) -> Iterator[str]:
    """Yields the expressions that every policy has: not for system namespaces, mirror pods, critical pods, or pods that
    have opted out."""
    protected = sorted({*DEFAULT_SETTINGS.system_namespaces, DEFAULT_SETTINGS.own_namespace})
    yield f"!(request.namespace in {cel_list(protected)})"
    yield f"!({has_entry(ANNOTATIONS, MIRROR)})"
    if not required_actions(policy.spec.actions):
        critical = [name for name in CRITICAL if name not in names_critical(policy)]
        spec = "object.spec.priorityClassName"
        yield f"!has({spec}) || !({spec} in {cel_list(critical)})"
    if policy.spec.opt_out == "pod":
        yield f"!({_opted_out_pod()})"


def _opted_out_pod() -> str:
    return " || ".join(f"({_says_yes(path)})" for path in (ANNOTATIONS, LABELS))


def _says_yes(path: str) -> str:
    # The same words as in `pod_context`: setting the key alone is a yes.
    no = f'{path}[{cel_string(OPT_OUT)}].lowerAscii() in ["false", "no", "off", "0"]'
    return f"{has_entry(path, OPT_OUT)} && !({no})"


def _opted_out_namespace(policy: PodPolicy) -> Iterator[str]:
    """If the policy allows an opt-out: yields the expression that is false for a namespace that has opted out. With
    `optOut: namespace` a pod that has opted out itself stays matched."""
    if policy.spec.opt_out == "pod":
        yield f"!({_says_yes(NAMESPACE_LABELS)})"
    elif policy.spec.opt_out == "namespace":
        # A pod that itself opts out counts as the one who does, and this policy does not let pods.
        yield f"!({_says_yes(NAMESPACE_LABELS)}) || ({_opted_out_pod()})"


def _excluded_selector(conditions: Conditions) -> Iterator[tuple[str, bool]]:
    selector = conditions.namespaces.selector if conditions.namespaces is not None else None
    if selector is not None:
        yield selector_expression(selector, NAMESPACE_LABELS), True


def _conditions(conditions: Conditions, where: str, knows_autoscalers: bool) -> Iterator[tuple[str, bool]]:
    """Yields (expression, whether it reads the namespace's labels or the parameters) for each condition that is set."""
    namespaces = conditions.namespaces
    if namespaces is not None and namespaces.include:
        yield f"request.namespace.matches({cel_regex(namespaces.include)})", False
    if namespaces is not None and namespaces.exclude:
        yield f"!request.namespace.matches({cel_regex(namespaces.exclude)})", False
    for path, wanted in ((LABELS, conditions.pod_labels), (ANNOTATIONS, conditions.annotations)):
        yield from ((text, False) for text in _entries(path, wanted or {}))
    for field, patterns in (
        ("runtimeClassName", conditions.runtime_classes),
        ("priorityClassName", conditions.priority_classes),
    ):
        if patterns:
            yield _named(f"object.spec.{field}", patterns), False
    if conditions.owners:
        yield _owned(conditions.owners, f"{where}.owners"), False
    if conditions.service_accounts:
        account = "object.spec.serviceAccountName"
        name = f'(has({account}) && {account} != "" ? {account} : "default")'
        yield f"{name}.matches({cel_regex(conditions.service_accounts)})", False
    for resource, amount in sorted((conditions.requests or {}).items()):
        yield _amount_in_range(pod_amount_expression(resource), resource, amount), False
    if conditions.containers is not None:
        yield f"{ALL_CONTAINERS}.exists(c, {container_test(conditions.containers, f'{where}.containers')})", False
    for field in ("vpa", "hpa"):
        word = getattr(conditions, field)
        if word is not None and not knows_autoscalers:
            raise NotExpressible(
                f"{where}.{field}: CEL cannot read this condition, because a pod does not name its autoscalers; "
                "see --params usage"
            )
        if word is not None:
            is_named = f"variables.owner != '' && variables.owner in variables.{field}s"
            yield (is_named if word in ("managed", "utilization") else f"!({is_named})"), True


def _entries(path: str, wanted: Mapping[str, str]) -> Iterator[str]:
    for key, pattern in sorted(wanted.items()):
        # A star means that the key exists; RE2's `.` would not match a value of several lines.
        value = "" if pattern == "*" else f" && {path}[{cel_string(key)}].matches({cel_regex((pattern,))})"
        yield f"{has_entry(path, key)}{value}"


def _named(path: str, patterns: tuple[str, ...]) -> str:
    """Returns a CEL expression that is true if an optional name matches a pattern; the pattern `none` matches a pod
    without the name."""
    has_name = f'has({path}) && {path} != ""'
    matches = f"{has_name} && {path}.matches({cel_regex(patterns)})"
    return f"(!({has_name})) || ({matches})" if "none" in patterns else matches


def _owned(patterns: tuple[str, ...], where: str) -> str:
    """Returns a CEL expression that is true if one of the pod's owners matches: its controller, or the owner above that
    follows from the controller's name."""
    tests: list[str] = []
    full = [pattern if "/" in pattern else f"{pattern}/*" for pattern in patterns]
    for pattern in full:
        kind = pattern.partition("/")[0]
        if set(kind) & set("*?[") or kind in _UNKNOWN_KINDS:
            raise NotExpressible(
                f"{where}: {pattern!r} cannot be matched, because a pod names only its nearest controller"
            )
    direct = [pattern for pattern in full if not pattern.startswith("Pod/")]
    if direct:
        direct_owner = f"(o.apiVersion + ' ' + o.kind + '/' + o.name).matches({_owner_regex(direct)})"
        tests.append(controller_expression(direct_owner))
    for kind, label in HASH_LABELS.items():
        above = tuple(pattern for pattern in full if pattern.startswith(f"{kind}/"))
        if above:
            hash_ = f"{LABELS}[{cel_string(label)}]"
            name = f"o.name.substring(0, o.name.size() - {hash_}.size() - 1)"
            tests.append(
                controller_expression(
                    f"{is_of_kind('ReplicaSet')} && {has_entry(LABELS, label)} && {hash_} != '' && "
                    f"o.name.endsWith('-' + {hash_}) && ('{kind}/' + {name}).matches({cel_regex(above)})"
                )
            )
    bare = tuple(pattern for pattern in full if pattern.startswith("Pod/"))
    if bare:
        name = "(has(object.metadata.name) ? object.metadata.name : '')"
        tests.append(f"!({controller_expression('true')}) && ('Pod/' + {name}).matches({cel_regex(bare)})")
    return " || ".join(f"({test})" for test in tests)


def _owner_regex(patterns: Iterable[str]) -> str:
    """Returns a CEL string literal with a regular expression that matches an owner, written as `apps/v1
    Deployment/web`, if one of these patterns does."""
    parts = []
    for pattern in patterns:
        kind, _, name = pattern.partition("/")
        plain, _, group = kind.partition(".")
        groups = [group] if group else [] if means_any_group(kind) else groups_of(kind)
        version = "|".join(f"{re.escape(one)}/[^ ]*" if one else "[^/ ]*" for one in groups) or "[^ ]*"
        parts.append(f"({version}) {re.escape(plain)}/{shell_regex(name)}")
    return cel_string(f"^({'|'.join(parts)})$")


def container_test(containers: Containers, where: str) -> str:
    """Returns a CEL expression that is true if the policy selects the container `c`. Raises NotExpressible."""
    parts = [f"c.name.matches({cel_regex(containers.names)})"] if containers.names else []
    if containers.roles:
        raise NotExpressible(
            f"{where}.roles: CEL cannot read this condition, because a container does not state its role"
        )
    if containers.images:
        parts.append(image_matches(containers.images))
    if containers.not_images:
        parts.append(f"!{image_matches(containers.not_images)}")
    for resource, amount in sorted((containers.requests or {}).items()):
        parts.append(_amount_in_range(quantity_number("c", resource), resource, amount))
    return join_all(parts)


def _amount_in_range(number: str, resource: str, amount: AmountCondition) -> str:
    low = quantity.scheduler_value(resource, amount.at_least) if amount.at_least else 1 if amount.exists else None
    high = quantity.scheduler_value(resource, amount.below) if amount.below else 1 if amount.absent else None
    bounds = [f"{number} >= {low}" for low in (low,) if low is not None]
    return join_all([*bounds, *(f"{number} < {high}" for high in (high,) if high is not None)])
