"""The Deployment, Service, Secrets, PodDisruptionBudget and NetworkPolicy of each process.

Every pod meets the restricted Pod Security Standard, and its replicas are spread over nodes and zones. The webhook has
two replicas. Each other process has two as well, of which one holds the Lease and works while the other waits. None of
them changes a cluster by default: the watchdog's brake needs a policy, the compactor a pool with `mode: act`, and a
recommendation is used only by a policy that sizes by usage.

A PodDisruptionBudget lets a drain evict one replica at a time, and a NetworkPolicy admits connections only to the
process's port. Egress is not restricted: the addresses of the API server and of Prometheus are not known.
"""

from collections.abc import Iterator
from typing import Any

from trimtab.installation.names import (
    CERTIFICATE_SECRET,
    COMPACTOR_SIGNING,
    CONFIGURATION_NAME,
    PROCESSES,
    WEBHOOK_NAME,
    WEBHOOK_SIGNING,
    InstallValues,
    Manifest,
    account_name,
    build_manifest,
    component_labels,
)
from trimtab.runtime.environment import variable_name
from trimtab.runtime.settings import Settings

_USER = 65532
RESTRICTED: Manifest = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
INTENDED_LIMIT = {
    "trimtab.dev/lint-ignore": "L36 the limit is far above the measured use "
    "(docs/explanation/what-our-processes-need.md), so a process that exceeds it probably leaks"
}
"""The annotation with the reason for the memory limits, without which `trimtab lint` warns of them."""


def render_deployment(process: str, values: InstallValues, *, replicas: int, spec: Manifest) -> Manifest:
    """Returns a Deployment of the process with restricted containers. `spec` overrides fields of the pod's spec."""
    containers = [{**container, "securityContext": RESTRICTED} for container in spec["containers"]]
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": component_labels(process)},
        # A new replica is ready before an old one is deleted.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": component_labels(process)},
            "spec": {**_pod_spec(process), **spec, "containers": containers},
        },
    }
    return build_manifest(
        "apps/v1", "Deployment", account_name(process), values, component=process, annotations=INTENDED_LIMIT, spec=body
    )


def render_job(process: str, values: InstallValues, *, container: Manifest, **spec: Any) -> Manifest:
    """Returns a Job whose containers are restricted like those of a Deployment. `spec` has more fields of the Job's
    spec."""
    pod = {
        **_restricted_pod_spec(process),
        "restartPolicy": "Never",
        "containers": [{**container, "securityContext": RESTRICTED}],
    }
    body = {**spec, "template": {"metadata": {"labels": component_labels(process)}, "spec": pod}}
    return build_manifest(
        "batch/v1", "Job", account_name(process), values, component=process, annotations=INTENDED_LIMIT, spec=body
    )


def _pod_spec(process: str) -> Manifest:
    spread = [
        _spread_constraint(process, "kubernetes.io/hostname"),
        _spread_constraint(process, "topology.kubernetes.io/zone"),
    ]
    return {**_restricted_pod_spec(process), "topologySpreadConstraints": spread}


def _restricted_pod_spec(process: str) -> Manifest:
    return {
        "serviceAccountName": account_name(process),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # No process reads the variables that the kubelet sets for every Service of the namespace.
        "enableServiceLinks": False,
    }


def _spread_constraint(process: str, key: str) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": component_labels(process)},
    }


def render_probe(path: str, port: str, scheme: str, **more: int) -> Manifest:
    """Returns an HTTP probe; `more` has further fields, such as periodSeconds."""
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, "timeoutSeconds": 2, **more}


def render_variables(texts: dict[str, str]) -> list[Manifest]:
    """Returns the variables in the form of a container's `env`."""
    return [{"name": name, "value": value} for name, value in texts.items()]


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
        yield from render_certificate(values, WEBHOOK_NAME, CERTIFICATE_SECRET, "webhook")
    else:
        # Without data: the replicas fill it, and another server-side apply leaves their fields alone.
        yield build_manifest("v1", "Secret", CERTIFICATE_SECRET, values, component="webhook", type="Opaque")
    yield build_manifest("v1", "Secret", WEBHOOK_SIGNING, values, component="webhook", type="Opaque")
    yield _render_service(values)
    yield _render_webhook_deployment(values)


def render_certificate(values: InstallValues, name: str, secret: str, component: str) -> Iterator[Manifest]:
    """Yields cert-manager's Issuer and Certificate for the Service called `name`."""
    full = f"{name}.{values.namespace}.svc"
    yield build_manifest("cert-manager.io/v1", "Issuer", name, values, component=component, spec={"selfSigned": {}})
    spec = {
        "secretName": secret,
        "dnsNames": [full, f"{full}.cluster.local"],
        "privateKey": {"algorithm": "ECDSA"},
        "issuerRef": {"kind": "Issuer", "name": name},
    }
    yield build_manifest("cert-manager.io/v1", "Certificate", name, values, component=component, spec=spec)


def _render_service(values: InstallValues) -> Manifest:
    port = {"name": "https", "port": values.service_port, "targetPort": "https", "protocol": "TCP"}
    spec = {"selector": component_labels("webhook"), "ports": [port]}
    return build_manifest("v1", "Service", WEBHOOK_NAME, values, component="webhook", spec=spec)


def _render_webhook_deployment(values: InstallValues) -> Manifest:
    volume: Manifest = {"name": "certs", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    if values.cert_manager:
        volume = {"name": "certs", "secret": {"secretName": CERTIFICATE_SECRET, "defaultMode": 0o440}}
    spec = {
        "terminationGracePeriodSeconds": WEBHOOK_GRACE_SECONDS,
        "containers": [_webhook_container(values)],
        "volumes": [volume, _CALLERS],
    }
    return render_deployment("webhook", values, replicas=values.replicas, spec=spec)


def _webhook_container(values: InstallValues) -> Manifest:
    return {
        "name": "webhook",
        "image": values.image,
        "args": ["webhook"],
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


def _https_probe(path: str, **more: int) -> Manifest:
    return render_probe(path, "https", "HTTPS", **more)


WORKERS = ("watchdog", "compactor", "recommender")
REPLICAS = 2
PORT = 9090
PROCESS_GRACE_SECONDS = {"watchdog": 30, "compactor": 60, "recommender": 60}
"""Process → terminationGracePeriodSeconds. When they stop, the compactor still writes the states of pools, and the
recommender its checkpoints."""


PROMETHEUS_LOGIN_PATH = "/var/run/trimtab/prometheus"
"""The folder of the files that the recommender's `TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE` and `_CA_FILE` may
name."""
_VOLUME_MOUNTS: dict[str, Manifest] = {
    "recommender": {"volumeMounts": [{"name": "prometheus", "mountPath": PROMETHEUS_LOGIN_PATH, "readOnly": True}]}
}
_VOLUMES: dict[str, Manifest] = {
    # An empty folder until the Secret is created, so that the Deployment needs no change for it.
    "recommender": {
        "volumes": [
            {
                "name": "prometheus",
                "secret": {"secretName": "trimtab-prometheus", "defaultMode": 0o440, "optional": True},
            }
        ]
    }
}


def render_workers(values: InstallValues) -> Iterator[Manifest]:
    """Yields the compactor's Secret, and the Deployments of the processes that hold a Lease.

    The Secret is rendered without data: the process writes the data, and a later server-side apply does not change it.
    """
    yield build_manifest("v1", "Secret", COMPACTOR_SIGNING, values, component="compactor", type="Opaque")
    for process in WORKERS:
        containers = [_process_container(process, values)]
        spec = {
            "terminationGracePeriodSeconds": PROCESS_GRACE_SECONDS[process],
            "containers": containers,
            **_VOLUMES.get(process, {}),
        }
        yield render_deployment(process, values, replicas=REPLICAS, spec=spec)


def process_environment(process: str, values: InstallValues) -> dict[str, str]:
    """Returns the process's settings that differ from their defaults, and the settings that must agree with its
    permissions."""
    compactor = {
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        "TRIMTAB_COMPACTOR_SCALE_NAMESPACES": ":".join(values.scale_namespaces),
    }
    return {
        variable_name(process, "listen"): f"0.0.0.0:{PORT}",
        "TRIMTAB_NAMESPACE": values.namespace,
        "TRIMTAB_LOG_FORMAT": "json",
        **(compactor if process == "compactor" else {}),
        **(_recommender_environment(values) if process == "recommender" else {}),
    }


def _recommender_environment(values: InstallValues) -> dict[str, str]:
    names = values.parameter_namespaces
    parameters = {variable_name("recommender", "parameter_namespaces"): ":".join(names)} if names else {}
    demotion = {
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        variable_name("recommender", "demote_groups"): "true",
    }
    return {**parameters, **(demotion if values.demote_groups else {})}


def _process_container(process: str, values: InstallValues) -> Manifest:
    return {
        "name": process,
        "image": values.image,
        "args": [process],
        "env": render_variables(process_environment(process, values)),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": render_probe("/readyz", "http", "HTTP", periodSeconds=5),
        "livenessProbe": render_probe("/healthz", "http", "HTTP", periodSeconds=10, failureThreshold=6),
        # Each holds every pod of the cluster in memory: about half a gigabyte for a hundred thousand.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        **_VOLUME_MOUNTS.get(process, {}),
    }


def render_guards(values: InstallValues) -> Iterator[Manifest]:
    """Yields the PodDisruptionBudget and the NetworkPolicy of each process."""
    for process in PROCESSES:
        selector = {"matchLabels": component_labels(process)}
        budget = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selector}
        yield build_manifest(
            "policy/v1", "PodDisruptionBudget", account_name(process), values, component=process, spec=budget
        )
        yield build_manifest(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            account_name(process),
            values,
            component=process,
            spec={
                "podSelector": selector,
                "policyTypes": ["Ingress"],
                "ingress": [{"ports": [_ingress_port(process)]}],
            },
        )


def _ingress_port(process: str) -> Manifest:
    """Returns the process's port by name, as a rule for ingress. Connections are admitted from everywhere, because no
    selector matches API servers and kubelets."""
    return {"protocol": "TCP", "port": "https" if process == "webhook" else "http"}
