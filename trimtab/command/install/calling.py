"""When do API servers call us? For every pod that is created, and for our own documents; never so that we can block.

The caBundle is not here: the replicas keep it (or cert-manager does), and it has one writer only.
"""

from collections.abc import Iterator

from trimtab.cluster.pool import LABEL as POOL
from trimtab.command.install.names import CONFIGURATION, INJECT, WEBHOOK, Manifest, manifest
from trimtab.command.install.values import Values
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.policy.subject import DEFAULT_TERMS, MIRROR, OPT_OUT

_REGISTRATION = "admissionregistration.k8s.io/v1"

PODS, POLICIES, POOLS = "pods.trimtab.dev", "podpolicies.trimtab.dev", "pools.trimtab.dev"


def calling(values: Values) -> Iterator[Manifest]:
    """Applied last, removed first: from then on, and up to then, API servers call us."""
    annotations = {INJECT: f"{values.namespace}/{WEBHOOK}"} if values.cert_manager else None
    for kind, webhooks in (
        ("ValidatingWebhookConfiguration", [_policies(values), _pools(values)]),
        ("MutatingWebhookConfiguration", [_pods(values)]),
    ):
        yield manifest(
            _REGISTRATION, kind, CONFIGURATION, component="webhook", annotations=annotations, webhooks=webhooks
        )


def _pods(values: Values) -> Manifest:
    excluded = sorted(DEFAULT_TERMS.system_namespaces | {values.namespace})
    mirror = f"!has(object.metadata.annotations) || !('{MIRROR}' in object.metadata.annotations)"
    return {
        **_common(PODS, "/mutate", values),
        "reinvocationPolicy": "IfNeeded",
        "rules": [_rule("", "v1", "pods", "CREATE", scope="Namespaced")],
        # The way out has to work while we don't: namespaces and pods that opted out are not even sent.
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded},
                {"key": OPT_OUT, "operator": "NotIn", "values": ["true"]},
            ]
        },
        "objectSelector": {"matchExpressions": [{"key": OPT_OUT, "operator": "NotIn", "values": ["true"]}]},
        # A static pod's mirror must stay what the kubelet wrote.
        "matchConditions": [{"name": "not-a-mirror-pod", "expression": mirror}],
    }


def _policies(values: Values) -> Manifest:
    rule = _rule(GROUP, "*", PLURAL, "CREATE", "UPDATE", scope="Cluster")
    return {**_common(POLICIES, "/validate", values), "rules": [rule]}


def _pools(values: Values) -> Manifest:
    return {
        **_common(POOLS, "/validate", values),
        "rules": [_rule("", "v1", "configmaps", "CREATE", "UPDATE", scope="Namespaced")],
        "objectSelector": {"matchExpressions": [{"key": POOL, "operator": "Exists"}]},
    }


def _common(name: str, path: str, values: Values) -> Manifest:
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
