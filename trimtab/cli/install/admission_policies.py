"""ValidatingAdmissionPolicies that restrict Trimtab's accounts, and the webhook configurations.

RBAC cannot restrict `create` to objects whose names depend on pools or shards, and has no rules for fields. Each policy
restricts one account to its own work, so that a stolen token cannot affect another process.

API servers call the webhook for every pod that is created and for Trimtab's own documents, and ignore its failures. The
caBundle is not rendered: either the replicas or cert-manager write it, so that it has only one writer.
"""

from collections.abc import Iterator, Sequence

from trimtab.cli.install.names import (
    CONFIGURATION_NAME,
    INJECT,
    WEBHOOK_NAME,
    InstallValues,
    Manifest,
    account_name,
    build_manifest,
)
from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.cluster.recommendation import RECOMMENDATIONS_LABEL as RECOMMENDATIONS
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.pool_state import NAME_PREFIX as STATE_NAMES
from trimtab.compaction.drain.pool_state import STATE_LABEL as STATE
from trimtab.compaction.pool_status import PLURAL as POOL_STATUSES
from trimtab.compactor.pool_state_store import UNREADABLE_STATE_LABEL
from trimtab.compactor.soft_taint import LEAVING, RESERVED, SOFT_TAINTS
from trimtab.policy.pod_context import DEFAULT_SETTINGS, MIRROR
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.recommender.reservations import HISTORY_LABEL, HISTORY_PREFIX, RESERVATIONS_NAME
from trimtab.recommender.sharded_configmaps import DAMAGED_LABEL, RECOMMENDATION_NAMES, USAGE_LABEL, USAGE_NAMES

COMPACTOR_ACCOUNT = account_name("compactor")
_API = "admissionregistration.k8s.io"
_LABELS = "trimtab.dev/"
"""The prefix of the labels by which Trimtab's processes select ConfigMaps."""

_SAME_EXCEPT_CA_BUNDLE = (
    "object.webhooks.size() == oldObject.webhooks.size() && "
    "object.webhooks.all(now, oldObject.webhooks.exists(was, "
    "was.name == now.name && was.rules == now.rules && was.failurePolicy == now.failurePolicy && "
    "was.namespaceSelector == now.namespaceSelector && was.objectSelector == now.objectSelector && "
    "was.timeoutSeconds == now.timeoutSeconds && !has(now.clientConfig.url) && "
    "has(was.clientConfig.service) && has(now.clientConfig.service) && "
    "was.clientConfig.service == now.clientConfig.service && "
    "has(was.matchConditions) == has(now.matchConditions) && "
    "(!has(now.matchConditions) || was.matchConditions == now.matchConditions)))"
)


def render_account_policies(values: InstallValues) -> Iterator[Manifest]:
    """Yields the policy of each account, and the policy's binding; the webhook has a policy only if it writes the
    caBundle itself."""
    if not values.cert_manager:
        yield from _ca_bundle_policy()
    yield from _config_map_policy("compactor", [STATE_NAMES], [STATE, UNREADABLE_STATE_LABEL])
    yield from _node_policy()
    yield from _pool_status_policy()
    names = [f"{RECOMMENDATION_NAMES}-", f"{USAGE_NAMES}-", RESERVATIONS_NAME, f"{HISTORY_PREFIX}-"]
    labels = [RECOMMENDATIONS, USAGE_LABEL, DAMAGED_LABEL, RESERVATIONS_LABEL, HISTORY_LABEL]
    yield from _config_map_policy("recommender", names, labels)


def _ca_bundle_policy() -> Iterator[Manifest]:
    """Yields the policy that restricts the webhook's account: in a webhook configuration, it may change only the
    caBundle."""
    rule = {
        "apiGroups": [_API], "apiVersions": ["v1"], "operations": ["UPDATE"], "resourceNames": [CONFIGURATION_NAME],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    }  # fmt: skip
    message = "this account may change only the caBundle of a webhook configuration"
    yield from render_policy("webhook", "cabundle", rule, account_cel("webhook"), [(_SAME_EXCEPT_CA_BUNDLE, message)])


_SOFT_TAINTS = [*SOFT_TAINTS]
"""The keys of the compactor's soft taints. The compactor must also be able to remove the taint with the former key."""


def _node_policy() -> Iterator[Manifest]:
    """Restrict the compactor to cordons, its annotation and its soft taints.

    A NoExecute taint would evict pods without regard to PodDisruptionBudgets.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    message = (
        f"this account may only cordon a node, write {CORDONED_BY_US} on it, and give it the soft taint {LEAVING} or"
        f" {RESERVED}"
    )
    checks = [
        f"{_other_taints_cel('object')} == {_other_taints_cel('oldObject')}",
        f"!has(object.spec.taints) || "
        f"object.spec.taints.all(t, !(t.key in {_SOFT_TAINTS}) || t.effect == 'PreferNoSchedule')",
        f"{_map_cel('object', 'labels')} == {_map_cel('oldObject', 'labels')}",
        f"{_map_cel('object', 'annotations')}.all(key, key == '{CORDONED_BY_US}' || "
        f"(key in {_map_cel('oldObject', 'annotations')} && "
        "object.metadata.annotations[key] == oldObject.metadata.annotations[key]))",
        f"{_map_cel('oldObject', 'annotations')}.all(key, key == '{CORDONED_BY_US}' || "
        f"key in {_map_cel('object', 'annotations')})",
        "has(object.metadata.finalizers) == has(oldObject.metadata.finalizers) && "
        "(!has(object.metadata.finalizers) || object.metadata.finalizers == oldObject.metadata.finalizers)",
    ]
    user = account_cel("compactor")
    yield from render_policy("compactor", "nodes", rule, user, [(check, message) for check in checks])


def _pool_status_policy() -> Iterator[Manifest]:
    """Yields the policy that lets only the compactor of a PoolStatus's own namespace create or update the PoolStatus.

    Deleting a PoolStatus is not restricted. Anyone may send an update that changes nothing, because stored objects are
    migrated by such updates.
    """
    rule = {
        "apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": [POOL_STATUSES, f"{POOL_STATUSES}/*"], "scope": "Namespaced",
    }  # fmt: skip
    account = f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{COMPACTOR_ACCOUNT}'"
    same = " && ".join(
        f"has(object.{name}) == has(oldObject.{name}) && (!has(object.{name}) || object.{name} == oldObject.{name})"
        for name in ("pool", "status")
    )
    message = "only the compactor of this namespace writes a PoolStatus; the settings of a pool are in its ConfigMap"
    yield from render_policy(
        "compactor", POOL_STATUSES, rule, f"!({account})",
        [(f"request.operation == 'UPDATE' && {same}", message)], condition="not-the-compactor",
    )  # fmt: skip


def _other_taints_cel(variable: str) -> str:
    """Returns a CEL expression for the node's taints, in order, without Trimtab's own.

    The field `timeAdded` is left out, because the API server sets it."""
    taints = f"(has({variable}.spec.taints) ? {variable}.spec.taints : [])"
    key = "t.key + '=' + (has(t.value) ? t.value : '') + ':' + t.effect"
    return f"{taints}.filter(t, !(t.key in {_SOFT_TAINTS})).map(t, {key})"


def _map_cel(variable: str, field: str) -> str:
    """Returns a CEL expression for the labels or annotations of an object: an empty map if there are none."""
    return f"(has({variable}.metadata.{field}) ? {variable}.metadata.{field} : {{}})"


def account_cel(process: str) -> str:
    """Returns a CEL expression that matches the account by name, in any namespace: requests for cluster-scoped objects
    have no namespace."""
    return f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{account_name(process)}$')"


def _config_map_policy(process: str, prefixes: Sequence[str], labels: Sequence[str]) -> Iterator[Manifest]:
    """Yields the policy that restricts which ConfigMaps the account may write.

    The ConfigMap's name must begin with one of `prefixes`, and of Trimtab's own labels it may have only `labels`. RBAC
    restricts the account to a namespace.
    """
    rule = {
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["configmaps"], "scope": "Namespaced",
    }  # fmt: skip
    user = f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{account_name(process)}'"
    name_rule = " || ".join(f"request.name.startsWith('{prefix}')" for prefix in prefixes)
    allowed_labels = ", ".join(f"'{label}'" for label in labels)
    label_rule = (
        "request.operation == 'DELETE' || !has(object.metadata.labels) || "
        f"object.metadata.labels.all(key, !key.startsWith('{_LABELS}') || key in [{allowed_labels}])"
    )
    validations = [
        (name_rule, f"this account may write only ConfigMaps whose name begins with {' or '.join(prefixes)}"),
        (label_rule, f"of the labels {_LABELS}… this account may write only {' and '.join(labels)}"),
    ]
    yield from render_policy(process, "configmaps", rule, user, validations)


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
        "apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": list(operations),
        "scope": scope,
    }  # fmt: skip
