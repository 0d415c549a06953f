"""ValidatingAdmissionPolicies that restrict Trimtab's accounts, and the webhook configurations.

Each policy restricts one account to its own work, so that a stolen token cannot affect another process
(`write_policies` says what each account may change).

API servers call the webhook for every pod that is created and for Trimtab's own documents, and ignore its failures. The
caBundle is not rendered: either the replicas or cert-manager write it, so that it has only one writer.
"""

from collections.abc import Iterable, Iterator, Sequence

from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.compaction.pool_status import PLURAL as POOL_STATUSES
from trimtab.installation.names import (
    CONFIGURATION_NAME,
    INJECT,
    WEBHOOK_NAME,
    InstallValues,
    Manifest,
    account_name,
    build_manifest,
)
from trimtab.installation.permitted_changes import created_cel, unchanged_cel
from trimtab.installation.write_policies import CREATE, UNINSTALL_POLICIES, UPDATE, WRITE_POLICIES, Place, WritePolicy
from trimtab.policy.pod_context import DEFAULT_SETTINGS, MIRROR
from trimtab.policy.schema import GROUP, PLURAL

COMPACTOR_ACCOUNT = account_name("compactor")
_API = "admissionregistration.k8s.io"


def render_account_policies(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policies of each account, and their bindings; the webhook's account has a policy on its caBundle only
    if it writes the caBundle itself."""
    yield from render_write_policies(WRITE_POLICIES, values)
    yield from _pool_status_policy()


def render_uninstall_policies(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policies of the account of Helm's uninstall hook, which only the chart installs."""
    yield from render_write_policies(UNINSTALL_POLICIES, values)


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


def _pool_status_policy() -> Iterator[Manifest]:
    """Yields the policy that lets only the compactor of a PoolStatus's own namespace create or update the PoolStatus.

    Deleting a PoolStatus is not restricted. Anyone may send an update that changes nothing, because stored objects are
    migrated by such updates.
    """
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [POOL_STATUSES, f"{POOL_STATUSES}/*"],
        "scope": "Namespaced",
    }
    account = f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{COMPACTOR_ACCOUNT}'"
    same = " && ".join(
        f"has(object.{name}) == has(oldObject.{name}) && (!has(object.{name}) || object.{name} == oldObject.{name})"
        for name in ("pool", "status")
    )
    message = "only the compactor of this namespace writes a PoolStatus; the settings of a pool are in its ConfigMap"
    yield from render_policy(
        "compactor",
        POOL_STATUSES,
        rule,
        f"!({account})",
        [(f"request.operation == 'UPDATE' && {same}", message)],
        condition="not-the-compactor",
    )


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


_REGISTRATION = "admissionregistration.k8s.io/v1"

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that the API server sets on each namespace; its value is the namespace's name."""

PODS, POLICIES, POOLS = "pods.trimtab.dev", "podpolicies.trimtab.dev", "pools.trimtab.dev"


def render_webhook_configurations(values: InstallValues) -> Iterator[Manifest]:
    """Yields both webhook configurations. As long as they exist, API servers call the webhook."""
    annotations = {INJECT: f"{values.namespace}/{WEBHOOK_NAME}"} if values.cert_manager else None
    for kind, webhooks in (
        ("ValidatingWebhookConfiguration", [_policy_webhook(values), _pool_webhook(values)]),
        ("MutatingWebhookConfiguration", [_pod_webhook(values)]),
    ):
        yield build_manifest(
            _REGISTRATION, kind, CONFIGURATION_NAME, component="webhook", annotations=annotations, webhooks=webhooks
        )


def _pod_webhook(values: InstallValues) -> Manifest:
    excluded = sorted(DEFAULT_SETTINGS.system_namespaces | {values.namespace})
    mirror = f"!has(object.metadata.annotations) || !('{MIRROR}' in object.metadata.annotations)"
    return {
        **_common_fields(PODS, "/mutate", values),
        "reinvocationPolicy": "IfNeeded",
        "rules": [_webhook_rule("", "v1", "pods", "CREATE", scope="Namespaced")],
        # Pods that opt out are sent, too: each policy has a field that says whether its pods may opt out.
        "namespaceSelector": {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": excluded}]},
        # A mirror pod only shows a static pod, which the kubelet runs from a file: a change of it would have no effect.
        "matchConditions": [{"name": "not-a-mirror-pod", "expression": mirror}],
    }


def _policy_webhook(values: InstallValues) -> Manifest:
    rule = _webhook_rule(GROUP, "*", PLURAL, "CREATE", "UPDATE", scope="Cluster")
    return {**_common_fields(POLICIES, "/validate", values), "rules": [rule]}


def _pool_webhook(values: InstallValues) -> Manifest:
    return {
        **_common_fields(POOLS, "/validate", values),
        "rules": [_webhook_rule("", "v1", "configmaps", "CREATE", "UPDATE", scope="Namespaced")],
        # Pools count in Trimtab's namespace only: a label in another namespace must not cause calls.
        "namespaceSelector": {
            "matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": [values.namespace]}]
        },
        "objectSelector": {"matchExpressions": [{"key": POOL, "operator": "Exists"}]},
    }


def _common_fields(name: str, path: str, values: InstallValues) -> Manifest:
    service = {"name": WEBHOOK_NAME, "namespace": values.namespace, "path": path, "port": values.service_port}
    return {
        "name": name,
        "clientConfig": {"service": service},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # Fail open: a cluster must be able to start, and to recover, without the webhook.
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": values.timeout,
    }


def _webhook_rule(group: str, version: str, resource: str, *operations: str, scope: str) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
        "operations": list(operations),
        "scope": scope,
    }
