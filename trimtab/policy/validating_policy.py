"""A ValidatingAdmissionPolicy that refuses the pods a required action is missing from, while the webhook is down, too.

It has the same match and is asked about CREATE only. What its language (CEL) cannot say is refused by name: a policy
that is nearly the same would deny other pods.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.policy.actions.limits import LimitsAction, limit_rules
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.pod_context import DEFAULT_TERMS, MIRROR, OPT_OUT
from trimtab.policy.podpolicy import Conditions, Containers, NamespaceMatch, PodPolicy, PolicyLabelSelector
from trimtab.policy.required_action_rules import required_actions

Manifest = dict[str, Any]

_API = "admissionregistration.k8s.io/v1"
_ALL_CONTAINERS = "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"


class NotExpressible(ValueError):
    """A part of the policy that CEL cannot say; the text names the field and why."""


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """The manifests of one policy, or why there are none."""

    policy: str
    manifests: tuple[Manifest, ...] = ()
    problem: str = ""


def validating(policy: PodPolicy, *, enforce: bool = False) -> CompiledValidation:
    """The ValidatingAdmissionPolicy and its Binding; with a problem instead where CEL cannot say it."""
    try:
        return CompiledValidation(policy.name, (_policy(policy), _binding(policy.name, enforce)))
    except NotExpressible as error:
        return CompiledValidation(policy.name, problem=str(error))


def _name(policy: str) -> str:
    return f"trimtab-requires-{policy}"


def _binding(policy: str, enforce: bool) -> Manifest:
    actions = ["Deny"] if enforce else ["Warn", "Audit"]
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _name(policy)},
        "spec": {"policyName": _name(policy), "validationActions": actions},
    }


def _policy(policy: PodPolicy) -> Manifest:
    spec = policy.spec
    if not spec.enabled or spec.mode != "apply":
        raise NotExpressible("spec.mode: only a policy in mode `apply` denies pods")
    if spec.rollout < 100:
        raise NotExpressible("spec.rollout: CEL cannot draw the owners that a rollout means; raise it to 100%")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints: Manifest = {"resourceRules": [rule]}
    namespaces, selector = spec.match.namespaces or NamespaceMatch(), spec.match.pod_selector
    if namespaces.selector is not None:
        constraints["namespaceSelector"] = _selector(namespaces.selector)
    if selector is not None:
        constraints["objectSelector"] = _selector(selector)
    named = dict(enumerate(_conditions(policy)))
    conditions = [{"name": f"condition-{number}", "expression": text} for number, text in named.items()]
    validations = [
        {
            "expression": _unless_opted_out(policy, text),
            "message": f"{policy.name} requires {field} of the pod, and the pod lacks it",
        }
        for field, text in _validations(policy)
    ]
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _name(policy.name)},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": conditions,
            "validations": validations,
        },
    }


def _selector(selector: PolicyLabelSelector) -> Manifest:
    found: Manifest = {}
    if selector.match_labels:
        found["matchLabels"] = dict(selector.match_labels)
    if selector.match_expressions:
        found["matchExpressions"] = [
            {"key": e.key, "operator": e.operator, **({"values": list(e.values)} if e.values else {})}
            for e in selector.match_expressions
        ]
    return found


def _text(value: str) -> str:
    """A string literal of CEL."""
    return json.dumps(value)


def _unless_opted_out(policy: PodPolicy, said: str) -> str:
    """Only a validation knows the namespace's labels; a match condition does not."""
    if policy.spec.opt_out == "nobody":
        return said
    labels, key = "namespaceObject.metadata.labels", _text(OPT_OUT)
    says_no = f'{labels}[{key}].lowerAscii() in ["false", "no", "off", "0"]'
    return f"(has({labels}) && {key} in {labels} && !({says_no})) || ({said})"


def _conditions(policy: PodPolicy) -> Iterator[str]:
    """Who is meant, as expressions that must all hold."""
    spared = sorted({*DEFAULT_TERMS.system_namespaces, DEFAULT_TERMS.own_namespace})
    yield f"!(request.namespace in [{', '.join(map(_text, spared))}])"
    mirror = f"{_text(MIRROR)} in object.metadata.annotations"
    yield f"!has(object.metadata.annotations) || !({mirror})"
    yield from _given(policy.spec.match, "spec.match")
    for index, excluded in enumerate(policy.spec.match.exclude):
        where = f"spec.match.exclude[{index}]"
        if excluded.pod_selector is not None or (excluded.namespaces and excluded.namespaces.selector):
            raise NotExpressible(
                f"{where}: a label selector can only be said of what is meant, not of what is left out"
            )
        said = " && ".join(f"({text})" for text in _given(excluded, where))
        if said:
            yield f"!({said})"


def _given(given: Conditions, where: str) -> Iterator[str]:
    for field in Conditions.__dataclass_fields__:
        if field not in _SAYABLE and getattr(given, field):
            raise NotExpressible(f"{where}.{to_camel(field)}: it is not known, or no more the same, when CEL is asked")
    namespaces = given.namespaces
    if namespaces is not None and namespaces.include:
        yield f"request.namespace.matches({_pattern(namespaces.include)})"
    if namespaces is not None and namespaces.exclude:
        yield f"!request.namespace.matches({_pattern(namespaces.exclude)})"
    for key, value in sorted((given.pod_labels or {}).items()):
        labels = "object.metadata.labels"
        yield f"has({labels}) && {_text(key)} in {labels} && {labels}[{_text(key)}].matches({_pattern((value,))})"
    if given.containers is not None:
        yield _has_container(given.containers, f"{where}.containers")


_SAYABLE = frozenset({"namespaces", "pod_labels", "pod_selector", "containers"})


def _has_container(containers: Containers, where: str) -> str:
    if containers.roles:
        raise NotExpressible(f"{where}.roles: the roles of containers are Trimtab's own")
    if containers.requests:
        raise NotExpressible(f"{where}.requests: CEL cannot compare quantities as the scheduler counts them")
    parts = [f"c.name.matches({_pattern(containers.names)})"] if containers.names else []
    if containers.images:
        parts.append(f"c.image.matches({_images(containers.images, f'{where}.images')})")
    if containers.not_images:
        parts.append(f"!c.image.matches({_images(containers.not_images, f'{where}.notImages')})")
    return f"{_ALL_CONTAINERS}.exists(c, {' && '.join(parts) or 'true'})"


def _images(patterns: tuple[str, ...], where: str) -> str:
    """A pattern that begins with a registry's name means images as they are written; a short name has several forms."""
    for pattern in patterns:
        host, slash, _ = pattern.partition("/")
        if not slash or not _HOST.fullmatch(host) or host in ("docker.io", "index.docker.io"):
            raise NotExpressible(
                f"{where}: {pattern!r} does not begin with a registry, and short image names have two forms"
            )
    return _pattern(patterns)


_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?|localhost(:[0-9]+)?|[a-z0-9-]+:[0-9]+")


def _pattern(patterns: tuple[str, ...]) -> str:
    """Shell patterns as one literal of a regular expression (RE2)."""
    return _text(f"^({'|'.join(map(_regular, patterns))})$")


def _regular(pattern: str) -> str:
    """A shell pattern as `fnmatch` reads it."""
    out, at = "", 0
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "*":
            out += ".*"
        elif char == "?":
            out += "."
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inner, at = pattern[at:end].replace("\\", "\\\\"), end + 1
            out += f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
        else:
            out += re.escape(char)
    return out


def _validations(policy: PodPolicy) -> Iterator[tuple[str, str]]:
    """Field → what must hold of the pod, for each required action."""
    actions, required = policy.spec.actions, required_actions(policy.spec.actions)
    for name in required:
        settings, word = getattr(actions, name), to_camel(name)
        match name:
            case "runtime_class" | "priority_class":
                field = f"{word}Name"
                yield field, f"has(object.spec.{field}) && object.spec.{field} == {_text(settings.name)}"
            case "labels" | "annotations":
                if name == "labels" and settings.from_namespace:
                    raise NotExpressible("spec.actions.labels.fromNamespace: it is the namespace's to say")
                if name == "labels" and settings.from_pod:
                    raise NotExpressible("spec.actions.labels.fromPod: CEL sees the pod as it is stored, not who chose")
                for key, value in sorted((settings.add or {}).items()):
                    at = f"object.metadata.{name}"
                    yield f"{name}[{key}]", f"has({at}) && {_text(key)} in {at} && {at}[{_text(key)}] == {_text(value)}"
            case "placement":
                yield from _placement(settings)
            case "topology_spread":
                at = "object.spec.topologySpreadConstraints"
                for spread in settings.constraints:
                    key = spread.topology_key
                    yield f"{word}[{key}]", f"has({at}) && {at}.exists(c, c.topologyKey == {_text(key)})"
            case "scheduler_name":
                yield "schedulerName", f"object.spec.schedulerName == {_text(settings.name)}"
            case "termination_grace_period":
                at = "object.spec.terminationGracePeriodSeconds"
                bounds = ((">=", settings.min_seconds), ("<=", settings.max_seconds))
                said = " && ".join(f"{at} {sign} {bound}" for sign, bound in bounds if bound is not None)
                yield "terminationGracePeriodSeconds", f"has({at}) && {said}"
            case "limits":
                yield from _limits(policy, settings)
            case _:
                raise NotExpressible(f"spec.actions.{word}: what it comes to depends on more than the pod")


def _placement(settings: PlacementAction) -> Iterator[tuple[str, str]]:
    if settings.prefer or settings.tolerate:
        field = "prefer" if settings.prefer else "tolerate"
        raise NotExpressible(
            f"spec.actions.placement.{field}: CEL cannot say what covers it; require it in a policy apart"
        )
    if settings.require_any:
        raise NotExpressible("spec.actions.placement.requireAny: CEL cannot say how groups and the pod's terms combine")
    if any(label.in_namespace_label for label in settings.require):
        raise NotExpressible("spec.actions.placement.require: inNamespaceLabel is the namespace's to say")
    if any(label.in_pod_label for label in settings.require):
        raise NotExpressible("spec.actions.placement.require: inPodLabel is the pod's to say")
    at = "object.spec.nodeSelector"
    for key, value in sorted((settings.node_selector or {}).items()):
        said = f"has({at}) && {_text(key)} in {at} && {at}[{_text(key)}] == {_text(value)}"
        yield f"nodeSelector[{key}]", said
    terms = "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for label in settings.require:
        known = "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && " + f"has({terms})"
        inside = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {_expression(label.requirement)})"
        yield (
            f"nodeAffinity.required[{label.label}]",
            f"{known} && {terms}.nodeSelectorTerms.all(t, {inside})",
        )


def _expression(requirement: SelectorRequirement) -> str:
    values = f"[{', '.join(map(_text, requirement.values))}]"
    listed = f" && has(e.values) && e.values == {values}" if requirement.values else ""
    return f"e.key == {_text(requirement.key)} && e.operator == {_text(requirement.operator)}{listed}"


def _limits(policy: PodPolicy, settings: LimitsAction) -> Iterator[tuple[str, str]]:
    if policy.spec.match.containers is not None:
        raise NotExpressible("spec.actions.limits: with `match.containers` it means only some containers")
    for resource, rule in limit_rules(settings):
        if rule == "keep":
            raise NotExpressible(f"spec.actions.limits.{resource}: CEL does not know what the limit was before")
        there = f"has(c.resources) && has(c.resources.limits) && {_text(resource)} in c.resources.limits"
        said = f"!({there})" if rule == "remove" else there
        yield f"limits.{resource}", f"{_ALL_CONTAINERS}.all(c, {said})"
