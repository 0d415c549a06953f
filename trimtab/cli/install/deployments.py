"""What is the same in every pod of ours: no right that is not used, and a place apart from its twin.

The webhook's process in the cluster: two replicas that never leave together, with no right they don't use.

The processes behind a Lease: one works, its twin waits. None does anything to a cluster without being told to: the
watchdog's brake needs a policy, the compactor a pool whose ConfigMap says `mode: act`, and what the recommender
publishes counts where a policy goes by usage.

What stands around every process: a drain takes one replica at a time, and nobody connects but to its one port.

Outward nothing is forbidden: where the API server and Prometheus are is nobody's guess.
"""

from collections.abc import Iterator
from typing import Any

from trimtab.cli.install.names import (
    COMPACTOR_SIGNING,
    CONFIGURATION,
    PROCESSES,
    SECRET,
    WEBHOOK,
    WEBHOOK_SIGNING,
    InstallValues,
    Manifest,
    account,
    labels,
    manifest,
)
from trimtab.runtime.environment import variable
from trimtab.runtime.settings import Settings

_USER = 65532
RESTRICTED: Manifest = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip


def deployment(process: str, values: InstallValues, *, replicas: int, spec: Manifest) -> Manifest:
    """`spec` is laid over the pod's; its containers are restricted here."""
    containers = [{**container, "securityContext": RESTRICTED} for container in spec["containers"]]
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": labels(process)},
        # A new replica is ready before an old one goes.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": labels(process)},
            "spec": {**_pod(process), **spec, "containers": containers},
        },
    }
    return manifest("apps/v1", "Deployment", account(process), values, component=process, spec=body)


def job(process: str, values: InstallValues, *, container: Manifest, **spec: Any) -> Manifest:
    """Once, under the same restrictions; `spec` is the Job's own."""
    pod = {
        **_restricted(process),
        "restartPolicy": "Never",
        "containers": [{**container, "securityContext": RESTRICTED}],
    }
    body = {**spec, "template": {"metadata": {"labels": labels(process)}, "spec": pod}}
    return manifest("batch/v1", "Job", account(process), values, component=process, spec=body)


def _pod(process: str) -> Manifest:
    spread = [_spread(process, "kubernetes.io/hostname"), _spread(process, "topology.kubernetes.io/zone")]
    return {**_restricted(process), "topologySpreadConstraints": spread}


def _restricted(process: str) -> Manifest:
    return {
        "serviceAccountName": account(process),
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # What the kubelet would say of every Service is nothing we ask for.
        "enableServiceLinks": False,
    }  # fmt: skip


def _spread(process: str, key: str) -> dict[str, Any]:
    return {
        "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels(process)},
    }  # fmt: skip


def probe(path: str, port: str, scheme: str, **more: int) -> Manifest:
    """An HTTP probe; `more` are its numbers."""
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, "timeoutSeconds": 2, **more}


def variables(found: dict[str, str]) -> list[Manifest]:
    """An environment as a container has it."""
    return [{"name": name, "value": value} for name, value in found.items()]


CERTS = "/var/run/trimtab/certs"
CALLERS = "/var/run/trimtab/callers"
"""Where `TRIMTAB_WEBHOOK_CLIENT_CA_FILE` may lead: authorities that sign API servers' own certificates."""
GRACE = 40
"""Seconds from the stop signal to the kill: more than TRIMTAB_WEBHOOK_GRACEFUL_TIMEOUT_SECONDS, or reviews are lost."""


def serving(values: InstallValues) -> Iterator[Manifest]:
    """The Secrets first: whoever serves needs them."""
    if values.cert_manager:
        yield from _issued(values)
    else:
        # Without data: the replicas fill it, and whoever applies this again takes nothing away.
        yield manifest("v1", "Secret", SECRET, values, component="webhook", type="Opaque")
    yield manifest("v1", "Secret", WEBHOOK_SIGNING, values, component="webhook", type="Opaque")
    yield _service(values)
    yield _deployment(values)


def _issued(values: InstallValues) -> Iterator[Manifest]:
    name = f"{WEBHOOK}.{values.namespace}.svc"
    yield manifest("cert-manager.io/v1", "Issuer", WEBHOOK, values, component="webhook", spec={"selfSigned": {}})
    spec = {
        "secretName": SECRET, "dnsNames": [name, f"{name}.cluster.local"], "privateKey": {"algorithm": "ECDSA"},
        "issuerRef": {"kind": "Issuer", "name": WEBHOOK},
    }  # fmt: skip
    yield manifest("cert-manager.io/v1", "Certificate", WEBHOOK, values, component="webhook", spec=spec)


def _service(values: InstallValues) -> Manifest:
    port = {"name": "https", "port": values.service_port, "targetPort": "https", "protocol": "TCP"}
    spec = {"selector": labels("webhook"), "ports": [port]}
    return manifest("v1", "Service", WEBHOOK, values, component="webhook", spec=spec)


def _deployment(values: InstallValues) -> Manifest:
    volume: Manifest = {"name": "certs", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    if values.cert_manager:
        volume = {"name": "certs", "secret": {"secretName": SECRET, "defaultMode": 0o440}}
    spec = {"terminationGracePeriodSeconds": GRACE, "containers": [_container(values)], "volumes": [volume, _CALLERS]}
    return deployment("webhook", values, replicas=values.replicas, spec=spec)


def _container(values: InstallValues) -> Manifest:
    return {
        "name": "webhook",
        "image": values.image,
        "args": ["webhook"],
        "env": variables(environment(values)),
        "ports": [{"name": "https", "containerPort": values.port, "protocol": "TCP"}],
        "readinessProbe": _probe("/readyz", periodSeconds=2, failureThreshold=2),
        "livenessProbe": _probe("/healthz", periodSeconds=10, failureThreshold=6),
        # The first pair may have to be made and told to both configurations before anything listens.
        "startupProbe": _probe("/healthz", periodSeconds=2, failureThreshold=60),
        # No CPU limit: a throttled webhook stalls every pod that is created.
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [
            {"name": "certs", "mountPath": CERTS, **({"readOnly": True} if values.cert_manager else {})},
            {"name": "callers", "mountPath": CALLERS, "readOnly": True},
        ],
    }


_CALLERS: Manifest = {"name": "callers", "configMap": {"name": "trimtab-callers", "optional": True}}
"""An empty folder, unless somebody makes that ConfigMap: then nothing else has to be mounted."""


def environment(values: InstallValues) -> dict[str, str]:
    """The process's settings: those whose default is for a laptop."""
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
            "TRIMTAB_WEBHOOK_CERTS_SECRET": SECRET, "TRIMTAB_WEBHOOK_SERVICE_NAME": WEBHOOK,
            "TRIMTAB_WEBHOOK_CONFIGURATION_NAME": CONFIGURATION,
        }  # fmt: skip
    return own


def _probe(path: str, **more: int) -> Manifest:
    return probe(path, "https", "HTTPS", **more)


WORKERS = ("watchdog", "compactor", "recommender")
REPLICAS = 2
PORT = 9090
PROCESS_GRACE = {"watchdog": 30, "compactor": 60, "recommender": 60}
"""Seconds from the stop signal to the kill: a compactor writes its books, a recommender its checkpoints."""


LOG_IN = "/var/run/trimtab/prometheus"
"""Where the recommender's `TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE` and `_CA_FILE` may lead."""
_MOUNTED: dict[str, Manifest] = {
    "recommender": {"volumeMounts": [{"name": "prometheus", "mountPath": LOG_IN, "readOnly": True}]},
}
_VOLUMES: dict[str, Manifest] = {
    # An empty folder, unless somebody makes that Secret: then nothing else has to be mounted.
    "recommender": {"volumes": [
        {"name": "prometheus", "secret": {"secretName": "trimtab-prometheus", "defaultMode": 0o440, "optional": True}},
    ]},
}  # fmt: skip


def working(values: InstallValues) -> Iterator[Manifest]:
    """The compactor's Secret first, without data: the process fills it, and applying again takes nothing away."""
    yield manifest("v1", "Secret", COMPACTOR_SIGNING, values, component="compactor", type="Opaque")
    for process in WORKERS:
        containers = [_process_container(process, values)]
        spec = {
            "terminationGracePeriodSeconds": PROCESS_GRACE[process], "containers": containers,
            **_VOLUMES.get(process, {}),
        }  # fmt: skip
        yield deployment(process, values, replicas=REPLICAS, spec=spec)


def process_environment(process: str, values: InstallValues) -> dict[str, str]:
    """The settings of a process whose default is for a laptop, or which its rights have to agree with."""
    compactor = {
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        "TRIMTAB_COMPACTOR_SCALE_NAMESPACES": ":".join(values.scale_namespaces),
    }
    return {
        variable(process, "listen"): f"0.0.0.0:{PORT}", "TRIMTAB_NAMESPACE": values.namespace,
        "TRIMTAB_LOG_FORMAT": "json",
        **(compactor if process == "compactor" else {}),
    }  # fmt: skip


def _process_container(process: str, values: InstallValues) -> Manifest:
    return {
        "name": process,
        "image": values.image,
        "args": [process],
        "env": variables(process_environment(process, values)),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": probe("/readyz", "http", "HTTP", periodSeconds=5),
        "livenessProbe": probe("/healthz", "http", "HTTP", periodSeconds=10, failureThreshold=6),
        # They hold every pod of the cluster: about half a gigabyte for a hundred thousand.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        **_MOUNTED.get(process, {}),
    }


def guards(values: InstallValues) -> Iterator[Manifest]:
    for process in PROCESSES:
        chosen = {"matchLabels": labels(process)}
        budget = {"maxUnavailable": 1, "selector": chosen}
        yield manifest("policy/v1", "PodDisruptionBudget", account(process), values, component=process, spec=budget)
        yield manifest(
            "networking.k8s.io/v1", "NetworkPolicy", account(process), values, component=process,
            spec={"podSelector": chosen, "policyTypes": ["Ingress"], "ingress": [{"ports": [_port(process)]}]},
        )  # fmt: skip


def _port(process: str) -> Manifest:
    """By name. From anywhere: API servers and kubelets come from addresses that no selector knows."""
    return {"protocol": "TCP", "port": "https" if process == "webhook" else "http"}
