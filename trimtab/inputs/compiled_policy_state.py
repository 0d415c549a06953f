"""The compiled policies of a cluster, as the checks read them, and their conversion from API objects."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.policy.compiled_annotation import POLICY_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicyState:
    """The state of an admission policy that `trimtab policies compile` generated."""

    name: str
    is_bound: bool
    """Whether a binding names the policy: without a binding the API server does not evaluate it."""
    policy: str = ""
    """The name of the PodPolicy from which this admission policy was compiled."""
    is_denying: bool = False
    """Whether a binding of the policy denies invalid pods. Only a validating policy can deny pods."""


def read_compiled_policies(
    list_objects: Callable[[str], Iterable[dict[str, Any]]], kind: str
) -> tuple[CompiledPolicyState, ...] | None:
    """Returns the compiled policies of this kind, sorted by name; None if the API server does not serve the kind.

    `list_objects` yields all objects of a kind. Its other errors (KubeFault) are raised."""
    from trimtab.kube.errors import NotFound

    try:
        # tuple: lists are requested while they are iterated over.
        policies, bindings = tuple(list_objects(kind)), tuple(list_objects(f"{kind}Binding"))
    except NotFound:
        return None
    return decode_compiled_policies(policies, bindings)


def decode_compiled_policies(
    policies: Iterable[Mapping[str, Any]], bindings: Iterable[Mapping[str, Any]]
) -> tuple[CompiledPolicyState, ...]:
    """Returns those of the policies that have the label of compiled policies, sorted by name."""
    specs = [binding.get("spec") or {} for binding in bindings]
    bound_names = {spec.get("policyName", "") for spec in specs}
    denying_names = {spec.get("policyName", "") for spec in specs if "Deny" in (spec.get("validationActions") or ())}
    sources = {
        policy["metadata"]["name"]: policy["metadata"]["labels"][POLICY_LABEL]
        for policy in policies
        if POLICY_LABEL in (policy["metadata"].get("labels") or {})
    }
    return tuple(
        CompiledPolicyState(name=name, is_bound=name in bound_names, policy=source, is_denying=name in denying_names)
        for name, source in sorted(sources.items())
    )
