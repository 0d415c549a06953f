"""Compiles a policy to a ValidatingAdmissionPolicy that refuses pods without a required action, even while the webhook
is down.

It matches the same pods as the policy, and is evaluated only when pods are created. If the policy has a part that CEL
cannot express, nothing is compiled and the part is named: a policy that is only nearly the same would refuse other
pods.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from trimtab.policy.all_actions import iterate_actions, read_terms
from trimtab.policy.cel import (
    ADMISSION_API,
    Manifest,
    NotExpressible,
    build_selector,
    cel_regex,
    cel_string,
    image_matches,
)
from trimtab.policy.cel_pod import ALL_CONTAINERS
from trimtab.policy.compiled_annotation import POLICY_LABEL
from trimtab.policy.conditions import Conditions, Containers, NamespaceMatch
from trimtab.policy.pod_context import DEFAULT_SETTINGS, MIRROR, OPT_OUT
from trimtab.policy.podpolicy import PodPolicy


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """The manifests for one policy, or the reason why there are none."""

    policy: str
    manifests: tuple[Manifest, ...] = ()
    problem: str = ""


def compile_validating_policy(policy: PodPolicy, *, enforce: bool = False) -> CompiledValidation:
    """Returns the ValidatingAdmissionPolicy and its binding, or a problem if CEL cannot express the policy."""
    try:
        actions = ["Deny"] if enforce else ["Warn", "Audit"]
        return CompiledValidation(
            policy.name,
            (
                _build_policy(policy),
                {
                    "apiVersion": ADMISSION_API,
                    "kind": "ValidatingAdmissionPolicyBinding",
                    "metadata": _build_metadata(policy.name),
                    "spec": {"policyName": _object_name(policy.name), "validationActions": actions},
                },
            ),
        )
    except NotExpressible as error:
        return CompiledValidation(policy.name, problem=str(error))


def _build_metadata(policy: str) -> Manifest:
    """Returns the metadata of the compiled policy, with the label by which the `trimtab` command finds, lists and
    removes it."""
    return {"name": _object_name(policy), "labels": {"app.kubernetes.io/managed-by": "trimtab", POLICY_LABEL: policy}}


def _object_name(policy: str) -> str:
    return f"trimtab-requires-{policy}"


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
    return f"{ALL_CONTAINERS}.exists(c, {' && '.join(parts) or 'true'})"


def _field_expressions(policy: PodPolicy) -> Iterator[tuple[str, str]]:
    """Yields (field, CEL expression that must be true for the pod) for each required action."""
    terms = read_terms(policy)
    required = [one for one in iterate_actions(policy.spec.actions) if one[1].required]
    for action, settings in required:
        yield from action.require(settings, terms)
