"""Compiles a policy to a MutatingAdmissionPolicy and its binding, or says which field cannot be compiled and why.

The compiled policy matches the same pods as the policy, and changes them under the same conditions. The API server
evaluates policies in no fixed order, so "the first policy decides a field" cannot be compiled: `find_conflicts` names
the pairs of policies for which this matters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.request_parameters import PARAMETERS_LABEL, PARAMETERS_NAME, name_own_parameters
from trimtab.policy.all_actions import iterate_actions, read_terms
from trimtab.policy.cel import ADMISSION_API, Manifest, NotExpressible, cel_string, has_entry, join_all
from trimtab.policy.cel_patches import AmountPatch, PatchPart, operation, pointer, prepare_parents
from trimtab.policy.cel_pod import ANNOTATIONS
from trimtab.policy.compiled.amount_variables import (
    PARAMETER_VARIABLES,
    AmountVariables,
    ParameterPlace,
    amount_variables,
)
from trimtab.policy.compiled.match_conditions import MatchExpressions, build_match
from trimtab.policy.compiled_annotation import COMPILED_PREFIX, POLICY_LABEL
from trimtab.policy.conditions import Conditions
from trimtab.policy.podpolicy import PodPolicy

API_VERSION = ADMISSION_API
NAME_PREFIX = "trimtab-"


@dataclass(frozen=True, slots=True)
class CompiledMutation:
    """The manifests for one policy, or the reason why there are none."""

    policy: str
    manifests: tuple[Manifest, ...] = ()
    problem: str = ""
    """The field that cannot be compiled, and why; empty if the policy was compiled."""
    note: str = ""
    """Something that the user should know about a policy that was compiled."""


def compile_mutating_policy(
    policy: PodPolicy,
    others: Sequence[PodPolicy] = (),
    *,
    with_parameters: bool = False,
    parameters_namespace: str = "",
) -> CompiledMutation:
    """Returns the MutatingAdmissionPolicy for a policy, and its binding.

    `others` are the policies of the same set: where one of them says `keep` for a limit, this policy excludes its pods.
    With `with_parameters`, requests may come from the namespace's ConfigMap `trimtab-requests`; with
    `parameters_namespace`, from the ConfigMap `trimtab-requests.NAMESPACE` in that namespace of Trimtab.
    """
    try:
        return _compile(policy, others, ParameterPlace(with_parameters, parameters_namespace))
    except NotExpressible as error:
        return CompiledMutation(policy.name, problem=str(error))


def _compile(policy: PodPolicy, others: Sequence[PodPolicy], place: ParameterPlace) -> CompiledMutation:
    spec = policy.spec
    if not spec.enabled or spec.mode != "apply":
        raise NotExpressible("spec.mode: only a policy with `mode: apply` changes pods")
    # A rollout needs a hash, and CEL of the API server has no hash function.
    if spec.rollout < 100:
        raise NotExpressible("spec.rollout: CEL cannot select the owners of a rollout; set it to 100%")
    match = build_match(policy, knows_autoscalers=place.are_read)
    plain, amounts = _compile_actions(policy)
    resources = amount_variables(amounts, policy.spec.match, place)
    parts = (*plain, *resources.parts)
    if not parts:
        return CompiledMutation(
            policy.name,
            note="the policy makes no change of its own, but prevents policies of lower priority from changing "
            "its fields",
        )
    runtime_class = "".join(part.runtime_class for part in parts)
    reads_parameters = bool(amounts) or _asks_for_autoscalers(policy)
    if runtime_class and reads_parameters:
        raise NotExpressible(
            "spec.actions.runtimeClass: the parameter of the compiled policy is the RuntimeClass, so the usage "
            "cannot be a parameter as well"
        )
    if amounts:
        match = _without_kept(policy, others, match, place.are_read)
    if reads_parameters and place.own_namespace:
        # First and cheap: the API server evaluates the policy once for the parameters of each namespace.
        is_its_own = (
            f"params != null && params.metadata.name == {cel_string(name_own_parameters(''))} + request.namespace"
        )
        match = replace(match, conditions=(is_its_own, *match.conditions))
    parameter = _parameter(runtime_class, reads_parameters, place.own_namespace)
    return CompiledMutation(policy.name, tuple(_manifests(policy, match, parts, resources, parameter)))


def _compile_actions(policy: PodPolicy) -> tuple[list[PatchPart], list[AmountPatch]]:
    terms = read_terms(policy)
    compiled = [part for action, one in iterate_actions(policy.spec.actions) for part in action.compile(one, terms)]
    plain = [part for part in compiled if isinstance(part, PatchPart)]
    return plain, [part for part in compiled if isinstance(part, AmountPatch)]


def _asks_for_autoscalers(policy: PodPolicy) -> bool:
    match: tuple[Conditions, ...] = (policy.spec.match, *policy.spec.match.exclude)
    return any(conditions.vpa is not None or conditions.hpa is not None for conditions in match)


def _without_kept(
    policy: PodPolicy, others: Sequence[PodPolicy], match: MatchExpressions, with_parameters: bool
) -> MatchExpressions:
    """Returns the match without the pods whose limit an earlier policy keeps, if this policy would change that
    limit."""
    limits = policy.spec.actions.limits
    if limits is None:
        return match
    conditions, guards = list(match.conditions), list(match.guards)
    for other in others:
        kept = other.spec.actions.limits
        is_earlier = other.decision_order < policy.decision_order and other.spec.enabled and other.spec.mode == "apply"
        fields = ("cpu", "memory", "ephemeral_storage")
        if (
            kept is None
            or not is_earlier
            or not any(
                getattr(kept, field) == "keep" and getattr(limits, field) not in (None, "keep") for field in fields
            )
        ):
            continue
        if other.spec.match.namespaces is not None and other.spec.match.namespaces.selector is not None:
            raise NotExpressible(
                f"spec.actions.limits: the policy {other.name} keeps the limit in namespaces that a selector selects"
            )
        of_other = build_match(other, knows_autoscalers=with_parameters)
        if other.spec.match.pod_selector is not None:
            raise NotExpressible(
                f"spec.actions.limits: the policy {other.name} keeps the limit of pods that a selector selects"
            )
        texts = [*of_other.conditions, *of_other.guards]
        (guards if of_other.guards else conditions).append(f"!({join_all(texts)})")
    return MatchExpressions(match.constraints, tuple(conditions), tuple(guards))


def _manifests(
    policy: PodPolicy,
    match: MatchExpressions,
    parts: Sequence[PatchPart],
    resources: AmountVariables,
    parameter: tuple[Manifest, Manifest],
) -> Iterator[Manifest]:
    name = f"{NAME_PREFIX}{policy.name}"
    metadata: Manifest = {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "trimtab", POLICY_LABEL: policy.name},
    }
    conditions = list(match.conditions)
    # Where nothing is left to change the pod need not be encoded and patched, which costs more than everything else.
    if not any(part.reads_late for part in parts):
        conditions.append(" || ".join(f"({part.test})" for part in parts))
    kind, param = parameter
    yield {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Ignore",
            # A plugin or another policy may change the pod after this one, as with the webhook.
            "reinvocationPolicy": "IfNeeded",
            **({"paramKind": kind} if kind else {}),
            "matchConstraints": match.constraints,
            "matchConditions": [
                {"name": f"condition-{number}", "expression": text} for number, text in enumerate(conditions)
            ],
            "variables": [
                {"name": variable, "expression": text}
                for variable, text in _variables(match, parts, resources, reads="ConfigMap" in kind.values()).items()
            ],
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(policy.name, _with_variables(parts))}}
            ],
        },
    }
    yield {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name, **({"paramRef": param} if param else {})},
    }


def _parameter(runtime_class: str, reads: bool, own_namespace: str) -> tuple[Manifest, Manifest]:
    """Returns `paramKind` of the policy and `paramRef` of its binding; both are empty if there are no parameters."""
    allow = {"parameterNotFoundAction": "Allow"}
    if runtime_class:
        return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}, {"name": runtime_class, **allow}
    if not reads:
        return {}, {}
    # Without a namespace in the reference it is the pod's own.
    selected = {"namespace": own_namespace, "selector": {"matchLabels": {PARAMETERS_LABEL: "v1"}}}
    return {"apiVersion": "v1", "kind": "ConfigMap"}, {
        **(selected if own_namespace else {"name": PARAMETERS_NAME}),
        **allow,
    }


def _variables(
    match: MatchExpressions, parts: Sequence[PatchPart], resources: AmountVariables, *, reads: bool
) -> dict[str, str]:
    """Returns the variables (name → CEL expression), sorted so that each one reads only variables before it."""
    notes = " + ".join(f"({part.test} ? [string({part.note})] : [])" for part in _with_variables(parts))
    return {
        **(PARAMETER_VARIABLES if reads else {}),
        "selected": join_all(match.guards),
        **resources.variables,
        **{f"part{number}": f"variables.selected && ({part.test})" for number, part in enumerate(parts)},
        "changes": notes,
    }


def _with_variables(parts: Sequence[PatchPart]) -> list[PatchPart]:
    """Returns the parts with each test replaced by a variable, which is evaluated only once."""
    return [replace(part, test=f"variables.part{number}") for number, part in enumerate(parts)]


def _patch(policy: str, parts: Sequence[PatchPart]) -> str:
    """Returns a CEL expression for the list of all JSON patch operations, including the one that writes the annotation
    with the changes."""
    key = f"{COMPILED_PREFIX}{policy}"
    text = "variables.changes.join(' ')"
    earlier = f"({has_entry(ANNOTATIONS, key)} ? {ANNOTATIONS}[{cel_string(key)}] + ' ' + {text} : {text})"
    marker = operation("add", pointer("metadata", "annotations", key), earlier)
    operations = " + ".join(f"({part.test} ? {part.operations} : [])" for part in parts)
    return f"variables.changes.size() == 0 ? [] : {prepare_parents(parts)} + {operations} + [{marker}]"


def find_conflicts(policies: Sequence[PodPolicy]) -> tuple[str, ...]:
    """Returns a sentence for each pair of policies that decide the same field, because the API server evaluates them in
    any order."""
    conflicts = []
    for index, first in enumerate(policies):
        for second in policies[index + 1 :]:
            shared = sorted(_decided_fields(first) & _decided_fields(second))
            if shared:
                conflicts.append(
                    f"the policies {first.name} and {second.name} both decide {', '.join(shared)}, and the API "
                    "server applies them in no fixed order"
                )
    return tuple(conflicts)


def _decided_fields(policy: PodPolicy) -> frozenset[str]:
    """Returns the names of the fields that the policy decides and that only the first of several policies may
    decide."""
    actions = (one for one in iterate_actions(policy.spec.actions) if one[0].order_matters)
    return frozenset(field for action, settings in actions for field, _ in action.list_values(settings))
