"""What RBAC cannot say about our own accounts, as ValidatingAdmissionPolicies that the API server enforces.

A right to create cannot name objects whose names depend on pools or shards, and no right knows fields. Each policy here
holds one account to its own work, so that a stolen token moves no other process.

When do API servers call us? For every pod that is created, and for our own documents; never so that we can block.

The caBundle is not here: the replicas keep it (or cert-manager does), and it has one writer only.
"""

from collections.abc import Iterator, Sequence

from trimtab.cli.install.names import CONFIGURATION, INJECT, WEBHOOK, InstallValues, Manifest, account, manifest
from trimtab.cluster.pool import LABEL as POOL
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.pool_state import LABEL as STATE
from trimtab.compaction.drain.pool_state import PREFIX as STATE_NAMES
from trimtab.compactor.pool_state_store import UNREADABLE_STATE_LABEL
from trimtab.compactor.soft_taint import LEAVING, RENAMED_LEAVING
from trimtab.policy.pod_context import DEFAULT_TERMS, MIRROR
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.recommender.sharded_configmaps import DAMAGED, RECOMMENDATION_NAMES, USAGE, USAGE_NAMES

_API = "admissionregistration.k8s.io"
_LABELS = "trimtab.dev/"
"""What our processes select ConfigMaps by begins with this."""

_SAME_BUT_BUNDLE = (
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


_SOFT = [LEAVING, RENAMED_LEAVING]
"""Keys of the taint that the compactor writes, the earlier one among them: it must be able to remove it."""


def account_policies(values: InstallValues) -> Iterator[Manifest]:
    """Each policy and then its binding; the webhook's only where the webhook keeps the caBundle itself."""
    if not values.cert_manager:
        yield from _cabundle()
    yield from _config_maps("compactor", [STATE_NAMES], [STATE, UNREADABLE_STATE_LABEL])
    yield from _nodes()
    names = [f"{RECOMMENDATION_NAMES}-", f"{USAGE_NAMES}-"]
    yield from _config_maps("recommender", names, [RECOMMENDATIONS, USAGE, DAMAGED])


def _cabundle() -> Iterator[Manifest]:
    """The webhook changes the caBundle, and not when, where and for what it is called."""
    rule = {
        "apiGroups": [_API], "apiVersions": ["v1"], "operations": ["UPDATE"], "resourceNames": [CONFIGURATION],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    }  # fmt: skip
    message = "this account may change nothing of a webhook configuration but the caBundle"
    yield from _policy("webhook", "cabundle", rule, _of_any_namespace("webhook"), [(_SAME_BUT_BUNDLE, message)])


def _nodes() -> Iterator[Manifest]:
    """The compactor cordons, annotates and taints softly. A hard taint would evict without asking any budget."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    message = f"this account may cordon a node, write {CORDONED_BY_US} on it, and taint it softly with {LEAVING}"
    checks = [
        f"{_taints('object')} == {_taints('oldObject')}",
        f"!has(object.spec.taints) || object.spec.taints.all(t, !(t.key in {_SOFT}) || t.effect == 'PreferNoSchedule')",
        f"{_map('object', 'labels')} == {_map('oldObject', 'labels')}",
        f"{_map('object', 'annotations')}.all(key, key == '{CORDONED_BY_US}' || "
        f"(key in {_map('oldObject', 'annotations')} && "
        "object.metadata.annotations[key] == oldObject.metadata.annotations[key]))",
        f"{_map('oldObject', 'annotations')}.all(key, key == '{CORDONED_BY_US}' || "
        f"key in {_map('object', 'annotations')})",
        "has(object.metadata.finalizers) == has(oldObject.metadata.finalizers) && "
        "(!has(object.metadata.finalizers) || object.metadata.finalizers == oldObject.metadata.finalizers)",
    ]
    user = _of_any_namespace("compactor")
    yield from _policy("compactor", "nodes", rule, user, [(check, message) for check in checks])


def _taints(of: str) -> str:
    """CEL: the taints that are not ours, in order. The time at which each was added is nobody's decision."""
    found = f"(has({of}.spec.taints) ? {of}.spec.taints : [])"
    told = "t.key + '=' + (has(t.value) ? t.value : '') + ':' + t.effect"
    return f"{found}.filter(t, !(t.key in {_SOFT})).map(t, {told})"


def _map(of: str, field: str) -> str:
    """CEL: labels or annotations, empty where there are none."""
    return f"(has({of}.metadata.{field}) ? {of}.metadata.{field} : {{}})"


def _of_any_namespace(process: str) -> str:
    """CEL: the account by its name. What it writes is the cluster's, so the request names no namespace."""
    return f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{account(process)}$')"


def _config_maps(process: str, prefixes: Sequence[str], labels: Sequence[str]) -> Iterator[Manifest]:
    """The account writes ConfigMaps of these names, with none of our labels but these. RBAC says in which namespace."""
    rule = {
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["configmaps"], "scope": "Namespaced",
    }  # fmt: skip
    user = f"request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':{account(process)}'"
    named = " || ".join(f"request.name.startsWith('{prefix}')" for prefix in prefixes)
    allowed = ", ".join(f"'{label}'" for label in labels)
    labelled = (
        "request.operation == 'DELETE' || !has(object.metadata.labels) || "
        f"object.metadata.labels.all(key, !key.startsWith('{_LABELS}') || key in [{allowed}])"
    )
    validations = [
        (named, f"this account may write only ConfigMaps whose name begins with {' or '.join(prefixes)}"),
        (labelled, f"of the labels {_LABELS}… this account may write only {' and '.join(labels)}"),
    ]
    yield from _policy(process, "configmaps", rule, user, validations)


def _policy(
    process: str, about: str, rule: Manifest, user: str, validations: Sequence[tuple[str, str]]
) -> Iterator[Manifest]:
    """A write that the policy cannot judge is refused: nobody but this account meets the policy."""
    name = f"{account(process)}-{about}"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "the-account-itself", "expression": user}],
        "validations": [{"expression": expression, "message": message} for expression, message in validations],
    }
    yield manifest(f"{_API}/v1", "ValidatingAdmissionPolicy", name, component=process, spec=spec)
    binding = {"policyName": name, "validationActions": ["Deny"]}
    yield manifest(f"{_API}/v1", "ValidatingAdmissionPolicyBinding", name, component=process, spec=binding)


_REGISTRATION = "admissionregistration.k8s.io/v1"

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The API server's own label of each namespace: its name."""

PODS, POLICIES, POOLS = "pods.trimtab.dev", "podpolicies.trimtab.dev", "pools.trimtab.dev"


def calling(values: InstallValues) -> Iterator[Manifest]:
    """Applied last, removed first: from then on, and up to then, API servers call us."""
    annotations = {INJECT: f"{values.namespace}/{WEBHOOK}"} if values.cert_manager else None
    for kind, webhooks in (
        ("ValidatingWebhookConfiguration", [_policies(values), _pools(values)]),
        ("MutatingWebhookConfiguration", [_pods(values)]),
    ):
        yield manifest(
            _REGISTRATION, kind, CONFIGURATION, component="webhook", annotations=annotations, webhooks=webhooks
        )


def _pods(values: InstallValues) -> Manifest:
    excluded = sorted(DEFAULT_TERMS.system_namespaces | {values.namespace})
    mirror = f"!has(object.metadata.annotations) || !('{MIRROR}' in object.metadata.annotations)"
    return {
        **_common(PODS, "/mutate", values),
        "reinvocationPolicy": "IfNeeded",
        "rules": [_rule("", "v1", "pods", "CREATE", scope="Namespaced")],
        # Pods that opted out are sent, too: each policy says whether its pods may.
        "namespaceSelector": {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": excluded}]},
        # A static pod's mirror must stay what the kubelet wrote.
        "matchConditions": [{"name": "not-a-mirror-pod", "expression": mirror}],
    }


def _policies(values: InstallValues) -> Manifest:
    rule = _rule(GROUP, "*", PLURAL, "CREATE", "UPDATE", scope="Cluster")
    return {**_common(POLICIES, "/validate", values), "rules": [rule]}


def _pools(values: InstallValues) -> Manifest:
    return {
        **_common(POOLS, "/validate", values),
        "rules": [_rule("", "v1", "configmaps", "CREATE", "UPDATE", scope="Namespaced")],
        # Pools count in our namespace only: a label in any other one must not make us work.
        "namespaceSelector": {
            "matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": [values.namespace]}]
        },
        "objectSelector": {"matchExpressions": [{"key": POOL, "operator": "Exists"}]},
    }


def _common(name: str, path: str, values: InstallValues) -> Manifest:
    service = {"name": WEBHOOK, "namespace": values.namespace, "path": path, "port": values.service_port}
    return {
        "name": name,
        "clientConfig": {"service": service},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # Fail open: a cluster must be able to start, and to heal, without us.
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": values.timeout,
    }


def _rule(group: str, version: str, resource: str, *operations: str, scope: str) -> Manifest:
    return {
        "apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": list(operations),
        "scope": scope,
    }  # fmt: skip
