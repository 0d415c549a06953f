"""The compiled policies of a cluster, as the checks judge them, and their conversion from API objects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.policy.compiled_annotation import POLICY_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicyState:
    """A MutatingAdmissionPolicy that `trimtab policies compile` gave."""

    name: str
    is_bound: bool
    """Whether a binding names it: without one the API server does not evaluate it."""


def decode_compiled_policies(
    policies: Iterable[Mapping[str, Any]], bindings: Iterable[Mapping[str, Any]]
) -> tuple[CompiledPolicyState, ...]:
    """Returns the policies that carry the label of compiled ones, by name."""
    bound_names = {(binding.get("spec") or {}).get("policyName", "") for binding in bindings}
    names = sorted(
        policy["metadata"]["name"] for policy in policies if POLICY_LABEL in (policy["metadata"].get("labels") or {})
    )
    return tuple(CompiledPolicyState(name=name, is_bound=name in bound_names) for name in names)
