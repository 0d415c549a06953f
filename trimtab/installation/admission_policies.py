"""ValidatingAdmissionPolicies that restrict Trimtab's accounts.

Each policy restricts one account to its own work, so that a stolen token cannot affect another process.
"""

from collections.abc import Iterable, Iterator, Sequence

from trimtab.cluster.processes import account_name
from trimtab.installation.names import InstallValues, Manifest, build_manifest
from trimtab.installation.permitted_changes import created_cel, unchanged_cel
from trimtab.installation.write_policy import CREATE, UPDATE, Place, WritePolicy

_API = "admissionregistration.k8s.io"


def render_write_policies(policies: Iterable[WritePolicy], values: InstallValues) -> Iterator[Manifest]:
    """Yields these policies and their bindings, without those that are not needed with cert-manager."""
    for policy in policies:
        if not (policy.is_for_certificate and values.cert_manager):
            yield from _render_write_policy(policy)


def _render_write_policy(policy: WritePolicy) -> Iterator[Manifest]:
    rule: Manifest = {
        "apiGroups": [policy.group],
        "apiVersions": [policy.version],
        "operations": list(policy.operations),
        "resources": list(policy.resources),
        "scope": "Namespaced" if policy.is_namespaced else "Cluster",
    }
    if policy.names:
        rule["resourceNames"] = list(policy.names)
    checks = [(condition.expression, condition.message) for condition in policy.conditions]
    for operation, expression in (
        (UPDATE, unchanged_cel(policy.may_change)),
        (CREATE, created_cel(policy.may_set or policy.may_change)),
    ):
        if operation in policy.operations:
            other = "" if len(policy.operations) == 1 else f"request.operation != '{operation}' || "
            checks.append((other + expression, policy.message))
    applies = [
        account_cel(policy.process),
        *([policy.place] if policy.place is not Place.EVERYWHERE else []),
        *([f"request.name != '{policy.excluded_name}'"] if policy.excluded_name else []),
    ]
    yield from render_policy(policy.process, policy.subject, rule, " && ".join(applies), checks)


def account_cel(process: str) -> str:
    """Returns a CEL expression that matches the account by name, in any namespace: requests for cluster-scoped objects
    have no namespace."""
    return f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{account_name(process)}$')"


def render_policy(
    process: str,
    subject: str,
    rule: Manifest,
    user: str,
    validations: Sequence[tuple[str, str]],
    *,
    condition: str = "the-account-itself",
) -> Iterator[Manifest]:
    """Yields a ValidatingAdmissionPolicy and its binding. If the policy cannot evaluate a write, the write is refused.

    `user`: a CEL expression that is true for the clients to whose writes the policy applies. `condition`: the name of
    this expression in the policy.
    """
    name = f"{account_name(process)}-{subject}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": condition, "expression": user}],
        "validations": [{"expression": expression, "message": message} for expression, message in validations],
    }
    yield build_manifest(f"{_API}/v1", "ValidatingAdmissionPolicy", name, component=process, spec=spec)
    binding = {"policyName": name, "validationActions": ["Deny"]}
    yield build_manifest(f"{_API}/v1", "ValidatingAdmissionPolicyBinding", name, component=process, spec=binding)
