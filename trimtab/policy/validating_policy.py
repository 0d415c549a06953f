"""Compiles a policy to a ValidatingAdmissionPolicy that refuses pods without a required action, even while the webhook
is down.

It matches the same pods as the policy, and is evaluated only when pods are created. If the policy has a part that CEL
cannot express, nothing is compiled and the part is named: a policy that is only nearly the same would refuse other
pods.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.policy.actions.limits import LimitsAction, limit_rules
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.cel import (
    ADMISSION_API,
    Manifest,
    NotExpressible,
    build_selector,
    cel_regex,
    cel_string,
    image_matches,
)
from trimtab.policy.compiled_annotation import POLICY_LABEL
from trimtab.policy.conditions import Conditions, Containers, NamespaceMatch
from trimtab.policy.pod_context import DEFAULT_SETTINGS, MIRROR, OPT_OUT
from trimtab.policy.podpolicy import PodPolicy
from trimtab.policy.required_action_rules import required_actions

_ALL_CONTAINERS = "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """The manifests for one policy, or the reason why there are none."""

    policy: str
    manifests: tuple[Manifest, ...] = ()
    problem: str = ""


def compile_validating_policy(policy: PodPolicy, *, enforce: bool = False) -> CompiledValidation:
    """Returns the ValidatingAdmissionPolicy and its binding, or a problem if CEL cannot express the policy."""
    try:
        return CompiledValidation(policy.name, (_build_policy(policy), _build_binding(policy.name, enforce)))
    except NotExpressible as error:
        return CompiledValidation(policy.name, problem=str(error))


def _build_metadata(policy: str) -> Manifest:
    """Returns the metadata of the compiled policy, with the label by which the `trimtab` command finds, lists and
    removes it."""
    return {"name": _object_name(policy), "labels": {"app.kubernetes.io/managed-by": "trimtab", POLICY_LABEL: policy}}


def _object_name(policy: str) -> str:
    return f"trimtab-requires-{policy}"


def _build_binding(policy: str, enforce: bool) -> Manifest:
    # Deny cannot be combined with Warn (ValidatingAdmissionPolicyBinding, validationActions).
    actions = ["Deny"] if enforce else ["Warn", "Audit"]
    return {
        "apiVersion": ADMISSION_API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": _build_metadata(policy),
        "spec": {"policyName": _object_name(policy), "validationActions": actions},
    }


def _build_policy(policy: PodPolicy) -> Manifest:
    spec = policy.spec
    if not spec.enabled or spec.mode != "apply":
        raise NotExpressible("spec.mode: only a policy with `mode: apply` denies pods")
    # A rollout needs a hash, and CEL of the API server has no hash function.
    if spec.rollout < 100:
        raise NotExpressible("spec.rollout: CEL cannot select the owners of a rollout; set it to 100%")
    # UPDATE is left out: of an existing pod no required field may change, so a denial would only block unrelated
    # updates.
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints: Manifest = {"resourceRules": [rule]}
    namespaces, selector = spec.match.namespaces or NamespaceMatch(), spec.match.pod_selector
    if namespaces.selector is not None:
        constraints["namespaceSelector"] = build_selector(namespaces.selector)
    if selector is not None:
        constraints["objectSelector"] = build_selector(selector)
    named = dict(enumerate(_match_conditions(policy)))
    conditions = [{"name": f"condition-{number}", "expression": text} for number, text in named.items()]
    validations = [
        {
            "expression": _allow_opted_out(policy, text),
            "message": f"{policy.name} requires {field} of the pod, but the pod lacks it. `trimtab explain required` "
            "says what to do",
        }
        for field, text in _field_expressions(policy)
    ]
    return {
        "apiVersion": ADMISSION_API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": _build_metadata(policy.name),
        "spec": {
            # This policy replaces the webhook while that is down, so an expression that fails denies the pod.
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": conditions,
            "validations": validations,
        },
    }


def _allow_opted_out(policy: PodPolicy, expression: str) -> str:
    """Returns the expression, extended so that it is also true for pods of namespaces that have opted out. A match
    condition could not do this, because only validations can read the namespace's labels."""
    if policy.spec.opt_out == "nobody":
        return expression
    labels, key = "namespaceObject.metadata.labels", cel_string(OPT_OUT)
    # The same words as in `pod_context`: setting the key alone is a yes.
    says_no = f'{labels}[{key}].lowerAscii() in ["false", "no", "off", "0"]'
    return f"(has({labels}) && {key} in {labels} && !({says_no})) || ({expression})"


def _match_conditions(policy: PodPolicy) -> Iterator[str]:
    """Yields the conditions on the pod as CEL expressions, all of which must be true."""
    protected = sorted({*DEFAULT_SETTINGS.system_namespaces, DEFAULT_SETTINGS.own_namespace})
    yield f"!(request.namespace in [{', '.join(map(cel_string, protected))}])"
    mirror = f"{cel_string(MIRROR)} in object.metadata.annotations"
    yield f"!has(object.metadata.annotations) || !({mirror})"
    # Match conditions are ANDed, as the conditions of a policy are.
    yield from _condition_expressions(policy.spec.match, "spec.match")
    for index, excluded in enumerate(policy.spec.match.exclude):
        where = f"spec.match.exclude[{index}]"
        if excluded.pod_selector is not None or (excluded.namespaces and excluded.namespaces.selector):
            raise NotExpressible(f"{where}: in CEL, a label selector can only select pods, not exclude them")
        excluded_pods = " && ".join(f"({text})" for text in _condition_expressions(excluded, where))
        if excluded_pods:
            yield f"!({excluded_pods})"


def _condition_expressions(conditions: Conditions, where: str) -> Iterator[str]:
    for field in Conditions.__dataclass_fields__:
        if field not in _EXPRESSIBLE and getattr(conditions, field):
            # The API server evaluates validating policies after all webhooks, on the pod as they changed it.
            raise NotExpressible(f"{where}.{to_camel(field)}: CEL cannot read this field as Trimtab does")
    namespaces = conditions.namespaces
    if namespaces is not None and namespaces.include:
        yield f"request.namespace.matches({cel_regex(namespaces.include)})"
    if namespaces is not None and namespaces.exclude:
        yield f"!request.namespace.matches({cel_regex(namespaces.exclude)})"
    for key, value in sorted((conditions.pod_labels or {}).items()):
        labels = "object.metadata.labels"
        name = cel_string(key)
        yield f"has({labels}) && {name} in {labels} && {labels}[{name}].matches({cel_regex((value,))})"
    if conditions.containers is not None:
        yield _container_expression(conditions.containers, f"{where}.containers")


_EXPRESSIBLE = frozenset({"namespaces", "pod_labels", "pod_selector", "containers"})


def _container_expression(containers: Containers, where: str) -> str:
    if containers.roles:
        raise NotExpressible(f"{where}.roles: CEL does not know the roles of containers")
    if containers.requests:
        # CEL's quantity library compares exact amounts, and the scheduler rounds them up.
        raise NotExpressible(f"{where}.requests: CEL cannot compare quantities as the scheduler counts them")
    parts = [f"c.name.matches({cel_regex(containers.names)})"] if containers.names else []
    if containers.images:
        parts.append(image_matches(containers.images))
    if containers.not_images:
        parts.append(f"!{image_matches(containers.not_images)}")
    return f"{_ALL_CONTAINERS}.exists(c, {' && '.join(parts) or 'true'})"


def _field_expressions(policy: PodPolicy) -> Iterator[tuple[str, str]]:
    """Yields (field, CEL expression that must be true for the pod) for each required action."""
    actions, required = policy.spec.actions, required_actions(policy.spec.actions)
    for name in required:
        settings, word = getattr(actions, name), to_camel(name)
        match name:
            case "runtime_class" | "priority_class":
                field = f"{word}Name"
                yield field, f"has(object.spec.{field}) && object.spec.{field} == {cel_string(settings.name)}"
            case "labels" | "annotations":
                if name == "labels" and settings.from_namespace:
                    raise NotExpressible(
                        "spec.actions.labels.fromNamespace: the value depends on the namespace, which CEL does not read"
                    )
                if name == "labels" and settings.from_pod:
                    raise NotExpressible(
                        "spec.actions.labels.fromPod: the value depends on the pod as it was submitted, but CEL "
                        "reads only the stored pod"
                    )
                for key, value in sorted((settings.add or {}).items()):
                    at = f"object.metadata.{name}"
                    yield (
                        f"{name}[{key}]",
                        f"has({at}) && {cel_string(key)} in {at} && {at}[{cel_string(key)}] == {cel_string(value)}",
                    )
            case "placement":
                yield from _placement_expressions(settings)
            case "topology_spread":
                at = "object.spec.topologySpreadConstraints"
                for spread in settings.constraints:
                    key = spread.topology_key
                    yield f"{word}[{key}]", f"has({at}) && {at}.exists(c, c.topologyKey == {cel_string(key)})"
            case "scheduler_name":
                yield "schedulerName", f"object.spec.schedulerName == {cel_string(settings.name)}"
            case "termination_grace_period":
                at = "object.spec.terminationGracePeriodSeconds"
                bounds = ((">=", settings.min_seconds), ("<=", settings.max_seconds))
                comparisons = " && ".join(f"{at} {sign} {bound}" for sign, bound in bounds if bound is not None)
                yield "terminationGracePeriodSeconds", f"has({at}) && {comparisons}"
            case "limits":
                yield from _limit_expressions(policy, settings)
            case _:
                raise NotExpressible(
                    f"spec.actions.{word}: the result depends on more than the pod, which is all that CEL reads"
                )


def _placement_expressions(settings: PlacementAction) -> Iterator[tuple[str, str]]:
    if settings.prefer or settings.tolerate:
        field = "prefer" if settings.prefer else "tolerate"
        raise NotExpressible(
            f"spec.actions.placement.{field}: CEL cannot check this field; use a separate policy for `require`"
        )
    if settings.require_any:
        raise NotExpressible(
            "spec.actions.placement.requireAny: CEL cannot combine its groups with the node affinity terms that the "
            "pod already has"
        )
    if any(label.in_namespace_label for label in settings.require):
        raise NotExpressible(
            "spec.actions.placement.require: the value of inNamespaceLabel depends on the namespace, which CEL "
            "does not read"
        )
    if any(label.in_pod_label for label in settings.require):
        raise NotExpressible(
            "spec.actions.placement.require: the value of inPodLabel depends on the pod as it was submitted"
        )
    node_selector = "object.spec.nodeSelector"
    for key, value in sorted((settings.node_selector or {}).items()):
        name = cel_string(key)
        expression = (
            f"has({node_selector}) && {name} in {node_selector} && {node_selector}[{name}] == {cel_string(value)}"
        )
        yield f"nodeSelector[{key}]", expression
    terms = "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for label in settings.require:
        has_affinity = "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && " + f"has({terms})"
        required = _requirement_expression(label.selector_requirement)
        has_requirement = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {required})"
        yield (
            f"nodeAffinity.required[{label.label}]",
            f"{has_affinity} && {terms}.nodeSelectorTerms.all(t, {has_requirement})",
        )


def _requirement_expression(requirement: SelectorRequirement) -> str:
    values = f"[{', '.join(map(cel_string, requirement.values))}]"
    listed = f" && has(e.values) && e.values == {values}" if requirement.values else ""
    return f"e.key == {cel_string(requirement.key)} && e.operator == {cel_string(requirement.operator)}{listed}"


def _limit_expressions(policy: PodPolicy, settings: LimitsAction) -> Iterator[tuple[str, str]]:
    if policy.spec.match.containers is not None:
        raise NotExpressible(
            "spec.actions.limits: with `match.containers` this action applies only to some containers, which CEL "
            "cannot check"
        )
    for resource, rule in limit_rules(settings):
        if rule == "keep":
            raise NotExpressible(f"spec.actions.limits.{resource}: CEL does not know the former limit")
        has_limit = f"has(c.resources) && has(c.resources.limits) && {cel_string(resource)} in c.resources.limits"
        expression = f"!({has_limit})" if rule == "remove" else has_limit
        yield f"limits.{resource}", f"{_ALL_CONTAINERS}.all(c, {expression})"
