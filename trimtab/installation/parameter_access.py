"""Access to the parameters of compiled policies: a Role for each namespace that opted in, and a policy that guards the
ConfigMap's name.

The ConfigMap `trimtab-requests` is in a tenant's namespace, and compiled policies read requests from it. RBAC restricts
the recommender to the namespaces of the installation's values. A ValidatingAdmissionPolicy lets no other account create
or change a ConfigMap of that name; `write_policies` restricts the recommender to that name outside Trimtab's namespace.
"""

from collections.abc import Iterator
from dataclasses import replace

from trimtab.cluster.processes import account_name
from trimtab.cluster.request_parameters import PARAMETERS_NAME
from trimtab.installation.names import InstallValues, Manifest, build_manifest

_API = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
ROLE_NAME = "trimtab-recommender-parameters"
GUARD_NAME = "trimtab-requests-writer"
"""The name of the policy that guards the ConfigMap's name."""
RULES: tuple[Manifest, ...] = (
    # Server-side apply creates what does not exist. `create` cannot be restricted to a name: a policy does that.
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"], "resourceNames": [PARAMETERS_NAME]},
    {"apiGroups": [""], "resources": ["limitranges", "resourcequotas"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling.k8s.io"], "resources": ["verticalpodautoscalers"], "verbs": ["list"]},
)


def render_parameter_access(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the policy that guards the ConfigMap's name, and a Role with its binding for each namespace in
    `parameter_namespaces`.

    Yields nothing if there is no such namespace."""
    if not values.parameter_namespaces:
        return
    yield from _render_guard(process, values)
    account = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
    for namespace in values.parameter_namespaces:
        there = replace(values, namespace=namespace)
        yield build_manifest(_RBAC, "Role", ROLE_NAME, there, component=process, rules=list(RULES))
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE_NAME}
        yield build_manifest(_RBAC, "RoleBinding", ROLE_NAME, there, component=process, roleRef=ref, subjects=[account])


def _render_guard(process: str, values: InstallValues) -> Iterator[Manifest]:
    """Yields the policy that lets no account but the recommender's write ConfigMaps of this name."""
    user = f"system:serviceaccount:{values.namespace}:{account_name(process)}"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps"],
        "scope": "Namespaced",
    }
    message = (
        f"only {account_name(process)} may write ConfigMap {PARAMETERS_NAME}, because policies read "
        "requests from this ConfigMap"
    )
    spec = {
        # It matches one name, so a write that it cannot evaluate is refused.
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "what-it-guards", "expression": f"object.metadata.name == '{PARAMETERS_NAME}'"}],
        "validations": [{"expression": f"request.userInfo.username == '{user}'", "message": message}],
    }
    yield build_manifest(_API, "ValidatingAdmissionPolicy", GUARD_NAME, component=process, spec=spec)
    binding = {"policyName": GUARD_NAME, "validationActions": ["Deny"]}
    yield build_manifest(_API, "ValidatingAdmissionPolicyBinding", GUARD_NAME, component=process, spec=binding)
