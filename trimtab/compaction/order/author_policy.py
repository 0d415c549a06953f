"""The admission policy that ties the author of a DrainOrder to the user who creates it, and whether it is in force.

The compactor has more rights than the authors of orders. What it may do for an author is what the author may do
(SubjectAccessReviews), so the name of the author must not be a claim. The API server knows who creates an object and
does not store it; the policy makes it compare `spec.by` and `spec.groups` with it. The compactor accepts an order only
if the policy and its binding have exactly this content, and had it since before the order was created.

An object does not say since when it has its content: who narrows a policy and restores it leaves only a higher
generation. A policy and a binding of the first generation have never changed. For all others, the compactor stores what
it has observed (`PolicySighting`): as long as uid and generation are the same, nothing has changed in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.compaction.drain.order_entry import PolicySighting
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
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": [PLURAL, f"{PLURAL}/*"],
    "scope": "Namespaced",
}
_ACCOUNT = "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':trimtab-compactor'"
_CONTROLLERS = (
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
)
"""The clients that delete objects because their namespace or their owner was deleted: the accounts of the two
controllers, or the name of the controller manager if it does not use an account for each
(kube-controller-manager, --use-service-account-credentials)."""
_MAY_RELEASE = (
    "oldObject.spec.by == request.userInfo.username || "
    f"request.userInfo.username in [{', '.join(repr(name) for name in _CONTROLLERS)}] || "
    "authorizer.group('').resource('nodes').check('patch').allowed()"
)
_SAME_STATUS = (
    "has(object.status) == has(oldObject.status) && (!has(object.status) || object.status == oldObject.status)"
)
_OWNERS = "metadata.ownerReferences"
_SAME_OWNERS = (
    f"has(object.{_OWNERS}) == has(oldObject.{_OWNERS}) && "
    f"(!has(object.{_OWNERS}) || object.{_OWNERS} == oldObject.{_OWNERS})"
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
    (
        f"request.operation != 'DELETE' || {_MAY_RELEASE}",
        "to delete a DrainOrder uncordons its nodes: only its author deletes it, or a user who may patch nodes",
    ),
    # The garbage collector deletes an object whose owners do not exist.
    (
        f"request.operation != 'UPDATE' || ({_SAME_OWNERS}) || {_MAY_RELEASE}",
        "only the author of a DrainOrder gives it another owner, or a user who may patch nodes",
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


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """The policy and its binding, as they were read from the API server. None: there is none."""

    policy: Mapping[str, Any] | None = None
    binding: Mapping[str, Any] | None = None

    @property
    def problem(self) -> str:
        """Why the two do not tie authors to users, as part of a sentence; empty if they do."""
        return policy_problem(self.policy, self.binding)

    @property
    def unchanged_since(self) -> Seconds | None:
        """Since when both objects have had their content, as they prove it themselves: since they were created, if
        both are in their first generation. None if one of them was changed, or does not say."""
        times = []
        for metadata in self._metadata():
            is_first = metadata.get("generation") == 1
            times.append(parse_timestamp(metadata.get("creationTimestamp")) if is_first else None)
        return None if None in times else max(time for time in times if time is not None)

    @property
    def sighting(self) -> PolicySighting | None:
        """The generations of the two; None if one of them does not say."""
        marks = []
        for metadata in self._metadata():
            uid, generation = metadata.get("uid"), metadata.get("generation")
            marks.append(f"{uid}/{generation}" if uid and generation else "")
        return PolicySighting(policy=marks[0], binding=marks[1]) if all(marks) else None

    def _metadata(self) -> list[Mapping[str, Any]]:
        items = [(item or {}).get("metadata") for item in (self.policy, self.binding)]
        return [metadata if isinstance(metadata, dict) else {} for metadata in items]
