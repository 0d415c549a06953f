"""The admission policy that ties the author of a DrainOrder to the user who creates it, and whether it is in force.

The compactor has more rights than the authors of orders. What it may do for an author is what the author may do
(SubjectAccessReviews), so the name of the author must not be a claim. The API server knows who creates an object and
does not store it; the policy makes it compare `spec.by` and `spec.groups` with it. The compactor accepts an order only
if the policy and its binding have exactly this content, and had it before the order was created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.compaction.order.order_object import GROUP, PLURAL

SUBJECT = "drainorders"
POLICY_NAME = f"trimtab-compactor-{SUBJECT}"
"""The name of the policy and of its binding."""
MATCH_CONDITION = ("every-client", "true")
"""The name and the expression of the condition under which the policy applies."""
MARGIN_SECONDS = 5
"""How long after a policy was written an API server may still decide without it. An API server reads policies every
second."""
RULE: Mapping[str, Any] = {
    "apiGroups": [GROUP],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE"],
    "resources": [PLURAL, f"{PLURAL}/*"],
    "scope": "Namespaced",
}
_ACCOUNT = "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':trimtab-compactor'"
_SAME_STATUS = (
    "has(object.status) == has(oldObject.status) && (!has(object.status) || object.status == oldObject.status)"
)
VALIDATIONS: Sequence[tuple[str, str]] = (
    (
        "request.operation != 'CREATE' || object.spec.by == request.userInfo.username",
        "spec.by must be the name of the user who creates the DrainOrder (`kubectl auth whoami`)",
    ),
    (
        "request.operation != 'CREATE' || !has(object.spec.groups) || "
        "object.spec.groups.all(g, has(request.userInfo.groups) && g in request.userInfo.groups)",
        "spec.groups may only have groups of the user who creates the DrainOrder (`kubectl auth whoami`)",
    ),
    ("request.operation != 'UPDATE' || object.spec == oldObject.spec", "the spec of a DrainOrder cannot be changed"),
    (
        f"request.operation != 'UPDATE' || {_ACCOUNT} || ({_SAME_STATUS})",
        "only the compactor of this namespace writes the status of a DrainOrder",
    ),
)
"""(expression in CEL, message if it is false)."""


def policy_problem(policy: Mapping[str, Any] | None, binding: Mapping[str, Any] | None) -> str:
    """Returns why these objects do not tie authors to users, as part of a sentence; empty if they do.

    policy, binding: the objects as the API server has them; None if there is none. What the API server adds by default
    is permitted; anything else that differs from what an installation writes is not."""
    if policy is None:
        return f"the ValidatingAdmissionPolicy {POLICY_NAME} does not exist"
    if binding is None:
        return f"the ValidatingAdmissionPolicyBinding {POLICY_NAME} does not exist"
    name, expression = MATCH_CONDITION
    expected = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [RULE]},
        "matchConditions": [{"name": name, "expression": expression}],
        "validations": [{"expression": text, "message": message} for text, message in VALIDATIONS],
    }
    if _without_defaults(policy.get("spec")) != expected:
        return f"the ValidatingAdmissionPolicy {POLICY_NAME} differs from that of an installation"
    if _without_defaults(binding.get("spec")) != {"policyName": POLICY_NAME, "validationActions": ["Deny"]}:
        return f"the ValidatingAdmissionPolicyBinding {POLICY_NAME} differs from that of an installation"
    return ""


def _without_defaults(spec: Any) -> Any:
    """Returns the spec without what an API server adds, and without fields that are empty."""
    if not isinstance(spec, dict):
        return spec
    spec = {key: value for key, value in spec.items() if value not in ({}, [], None)}
    constraints = spec.get("matchConstraints")
    if isinstance(constraints, dict):
        constraints = {key: value for key, value in constraints.items() if value not in ({}, [], None)}
        if constraints.get("matchPolicy") == "Equivalent":
            del constraints["matchPolicy"]
        spec["matchConstraints"] = constraints
    return spec


def in_force_since(policy: Mapping[str, Any], binding: Mapping[str, Any]) -> Seconds | None:
    """Returns since when both objects are as they are: the last time at which a client wrote one of them; None if that
    is not known. A write of the status does not count."""
    times: list[Seconds | None] = []
    for item in (policy, binding):
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        times.append(parse_timestamp(metadata.get("creationTimestamp")))
        entries = metadata.get("managedFields")
        times.extend(
            parse_timestamp(entry.get("time"))
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and not entry.get("subresource")
        )
    return None if None in times else max(time for time in times if time is not None)
