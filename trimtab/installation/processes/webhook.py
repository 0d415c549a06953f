"""The webhook's permissions, its Service and Deployment, and the webhook configurations.

API servers call the webhook for every pod that is created and for Trimtab's own documents, and ignore its failures. The
caBundle is not rendered: either the replicas or cert-manager write it, so that it has only one writer.
"""

from collections.abc import Iterator

from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.cluster.processes import WEBHOOK
from trimtab.installation.access_rule import (
    AUTOSCALER,
    FACT_CONDITIONS,
    FACT_PURPOSES,
    FACTS,
    FOR_AUTOSCALER,
    FOR_CERTIFICATE,
    FOR_RECOMMENDATIONS,
    FOR_SIGNING_KEY,
    RECOMMENDATIONS,
    Rule,
)
from trimtab.installation.deployments import render_certificate, render_deployment, render_probe, render_variables
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import (
    CERTIFICATE_SECRET,
    CONFIGURATION_NAME,
    INJECT,
    WEBHOOK_NAME,
    InstallValues,
    Manifest,
    build_manifest,
    component_labels,
)
from trimtab.installation.permitted_changes import EachEntry
from trimtab.installation.write_policy import restrict_ca_bundle, restrict_secrets
from trimtab.policy.pod_context import DEFAULT_SETTINGS, MIRROR
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.runtime.settings import Settings

_NAME = WEBHOOK.name
_CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def webhook_environment(values: InstallValues) -> dict[str, str]:
    """Returns the webhook's settings that differ from their defaults; the defaults are for a local run."""
    own = {
        "TRIMTAB_WEBHOOK_LISTEN": f"0.0.0.0:{values.port}",
        "TRIMTAB_WEBHOOK_CERTS_FOLDER": CERTS,
        "TRIMTAB_WEBHOOK_CLUSTER": "live",
        "TRIMTAB_NAMESPACE": values.namespace,
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        "TRIMTAB_WEBHOOK_GRACEFUL_TIMEOUT_SECONDS": f"{Settings().graceful_timeout_seconds:g}",
        "TRIMTAB_LOG_FORMAT": "json",
    }
    if not values.cert_manager:
        own |= {
            "TRIMTAB_WEBHOOK_CERTS_SECRET": CERTIFICATE_SECRET,
            "TRIMTAB_WEBHOOK_SERVICE_NAME": WEBHOOK_NAME,
            "TRIMTAB_WEBHOOK_CONFIGURATION_NAME": CONFIGURATION_NAME,
        }
    return own


PROCESS = InstalledProcess(
    name=_NAME,
    cluster_rules=(
        *FACTS,
        AUTOSCALER,
        Rule(
            "admissionregistration.k8s.io",
            _CONFIGURATIONS,
            ("get", "update"),
            (CONFIGURATION_NAME,),
            is_for_certificate=True,
        ),
    ),
    namespace_rules=(
        RECOMMENDATIONS,
        Rule("", ("secrets",), ("get", "update"), (WEBHOOK.signing_secret,)),
        Rule("", ("secrets",), ("get", "update"), (CERTIFICATE_SECRET,), is_for_certificate=True),
    ),
    conditions=FACT_CONDITIONS,
    cluster_purposes={**FACT_PURPOSES, "configmaps": FOR_AUTOSCALER},
    namespace_purposes={"configmaps": FOR_RECOMMENDATIONS, "secrets": FOR_SIGNING_KEY},
    object_purposes={
        CERTIFICATE_SECRET: FOR_CERTIFICATE,
        CONFIGURATION_NAME: "to write the caBundle with which API servers trust the webhook",
    },
    write_policies=(
        restrict_ca_bundle(
            _NAME,
            group="admissionregistration.k8s.io",
            kinds=_CONFIGURATIONS,
            name=CONFIGURATION_NAME,
            field=("webhooks", EachEntry("name"), "clientConfig", "caBundle"),
            what="change the caBundle of a webhook configuration",
        ),
        restrict_secrets(_NAME, WEBHOOK.signing_secret, CERTIFICATE_SECRET),
    ),
    environment=webhook_environment,
)

CERTS = "/var/run/trimtab/certs"
CALLERS = "/var/run/trimtab/callers"
"""The folder with the certificate authorities that sign the client certificates of API servers.

`TRIMTAB_WEBHOOK_CLIENT_CA_FILE` may name a file in this folder."""
WEBHOOK_GRACE_SECONDS = 40
"""The webhook's terminationGracePeriodSeconds: longer than TRIMTAB_WEBHOOK_GRACEFUL_TIMEOUT_SECONDS, so that the
kubelet does not kill the process while it stops."""


def render_webhook(values: InstallValues) -> Iterator[Manifest]:
    """Yields the webhook's Secrets, its Service and its Deployment."""
    if values.cert_manager:
        yield from render_certificate(values, WEBHOOK_NAME, CERTIFICATE_SECRET, _NAME)
    else:
        # Without data: the replicas fill it, and another server-side apply leaves their fields alone.
        yield build_manifest("v1", "Secret", CERTIFICATE_SECRET, values, component=_NAME, type="Opaque")
    yield build_manifest("v1", "Secret", WEBHOOK.signing_secret, values, component=_NAME, type="Opaque")
    port = {"name": "https", "port": values.service_port, "targetPort": "https", "protocol": "TCP"}
    spec = {"selector": component_labels(_NAME), "ports": [port]}
    yield build_manifest("v1", "Service", WEBHOOK_NAME, values, component=_NAME, spec=spec)
    yield _render_webhook_deployment(values)


def _render_webhook_deployment(values: InstallValues) -> Manifest:
    volume: Manifest = {"name": "certs", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    if values.cert_manager:
        volume = {"name": "certs", "secret": {"secretName": CERTIFICATE_SECRET, "defaultMode": 0o440}}
    spec = {
        "terminationGracePeriodSeconds": WEBHOOK_GRACE_SECONDS,
        "containers": [_webhook_container(values)],
        "volumes": [volume, _CALLERS],
    }
    return render_deployment(_NAME, values, replicas=values.replicas, spec=spec)


def _webhook_container(values: InstallValues) -> Manifest:
    return {
        "name": _NAME,
        "image": values.image,
        "args": [_NAME],
        "env": render_variables(webhook_environment(values)),
        "ports": [{"name": "https", "containerPort": values.port, "protocol": "TCP"}],
        "readinessProbe": _https_probe("/readyz", periodSeconds=2, failureThreshold=2),
        "livenessProbe": _https_probe("/healthz", periodSeconds=10, failureThreshold=6),
        # A first certificate may have to be issued and written to both configurations before the server listens.
        "startupProbe": _https_probe("/healthz", periodSeconds=2, failureThreshold=60),
        # No CPU limit: a throttled webhook stalls every pod that is created.
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "certs", "mountPath": CERTS, **({"readOnly": True} if values.cert_manager else {})},
            {"name": "callers", "mountPath": CALLERS, "readOnly": True},
        ],
    }


_CALLERS: Manifest = {"name": "callers", "configMap": {"name": "trimtab-callers", "optional": True}}
"""The volume for the folder `CALLERS`, from an optional ConfigMap. Without the ConfigMap the folder is empty.

So a user can create the ConfigMap without a change of the Deployment."""


def _https_probe(path: str, **more: int) -> Manifest:
    return render_probe(path, "https", "HTTPS", **more)


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
            _REGISTRATION, kind, CONFIGURATION_NAME, component=_NAME, annotations=annotations, webhooks=webhooks
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
