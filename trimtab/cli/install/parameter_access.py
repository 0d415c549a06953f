"""Access to the parameters of compiled policies: a Role for each namespace that opted in, and policies that guard the
ConfigMap's name.

The ConfigMap `trimtab-requests` is in a tenant's namespace, and compiled policies read requests from it. RBAC restricts
the recommender to the namespaces of the installation's values. One ValidatingAdmissionPolicy lets no other account
create or change a ConfigMap of that name; another one restricts the recommender to that name outside Trimtab's
namespace.
"""

from collections.abc import Iterator
from dataclasses import replace

from trimtab.cli.install.names import InstallValues, Manifest, account_name, build_manifest
from trimtab.cluster.request_parameters import PARAMETERS_NAME
from trimtab.machines.expander_map import MAP_NAME

_API = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
ROLE_NAME = "trimtab-recommender-parameters"
GUARD_NAMES = ("trimtab-requests-writer", "trimtab-recommender-parameters")
"""The names of the policy that guards the ConfigMap's name, and of the policy that restricts the recommender's
account."""
RULES: tuple[Manifest, ...] = (
    # Server-side apply creates what does not exist. `create` cannot be restricted to a name: a policy does that.
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"], "resourceNames": [PARAMETERS_NAME]},
    {"apiGroups": [""], "resources": ["limitranges", "resourcequotas"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling.k8s.io"], "resources": ["verticalpodautoscalers"], "verbs": ["list"]},
)


def render_parameter_access(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policies that guard the ConfigMap's name, and a Role with its binding for each namespace in
    `parameter_namespaces`.

    Yields nothing if there is no such namespace."""
    if not values.parameter_namespaces:
        return
    yield from _guards(values)
    account = {"kind": "ServiceAccount", "name": account_name("recommender"), "namespace": values.namespace}
    for namespace in values.parameter_namespaces:
        there = replace(values, namespace=namespace)
        yield build_manifest(_RBAC, "Role", ROLE_NAME, there, component="recommender", rules=list(RULES))
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE_NAME}
        yield build_manifest(
            _RBAC, "RoleBinding", ROLE_NAME, there, component="recommender", roleRef=ref, subjects=[account]
        )


def _guards(values: InstallValues) -> Iterator[Manifest]:
    user = f"system:serviceaccount:{values.namespace}:{account_name('recommender')}"
    is_recommender = f"request.userInfo.username == '{user}'"
    is_parameters = f"object.metadata.name == '{PARAMETERS_NAME}'"
    elsewhere = f"{is_recommender} && request.namespace != '{values.namespace}'"
    # Its Role restricts it to this name there (see `demotion_access`).
    is_priority_map = f"request.namespace == '{values.autoscaler_namespace}' && object.metadata.name == '{MAP_NAME}'"
    may_write = f"{is_parameters} || ({is_priority_map})" if values.demote_groups else is_parameters
    yield from _guard(GUARD_NAMES[0], is_parameters, is_recommender, (
        f"only {account_name('recommender')} may write ConfigMap {PARAMETERS_NAME}, because policies read "
        "requests from this ConfigMap"
    ))  # fmt: skip
    yield from _guard(GUARD_NAMES[1], elsewhere, may_write, (
        f"in namespaces other than {values.namespace} this account may write only ConfigMap {PARAMETERS_NAME}"
    ))  # fmt: skip


def _guard(name: str, condition: str, expression: str, message: str) -> Iterator[Manifest]:
    rule = {
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"],
        "scope": "Namespaced",
    }  # fmt: skip
    spec = {
        # It matches one name or one account, so a write that it cannot evaluate is refused.
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "what-it-guards", "expression": condition}],
        "validations": [{"expression": expression, "message": message}],
    }
    yield build_manifest(_API, "ValidatingAdmissionPolicy", name, component="recommender", spec=spec)
    binding = {"policyName": name, "validationActions": ["Deny"]}
    yield build_manifest(_API, "ValidatingAdmissionPolicyBinding", name, component="recommender", spec=binding)
