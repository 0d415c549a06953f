"""The Deployment, Secrets, PodDisruptionBudget and NetworkPolicy of each process.

Every pod meets the restricted Pod Security Standard, and its replicas are spread over nodes and zones. The webhook has
two replicas. Each other process has two as well, of which one holds the Lease and works while the other waits. None of
them changes a cluster by default: the watchdog's brake needs a policy, the compactor a pool with `mode: act`, and a
recommendation is used only by a policy that sizes by usage.

A PodDisruptionBudget lets a drain evict one replica at a time, and a NetworkPolicy admits connections only to the
process's port. Egress is not restricted: the addresses of the API server and of Prometheus are not known.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.cluster.processes import PROCESSES, ProcessDeclaration, account_name
from trimtab.installation.installed_process import InstalledProcess, WorkerDeployment
from trimtab.installation.names import InstallValues, Manifest, build_manifest, component_labels
from trimtab.runtime.environment import variable_name

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


def render_cron_job(process: str, values: InstallValues, *, container: Manifest, volumes: list[Manifest]) -> Manifest:
    """Returns a CronJob with a restricted container that begins at midnight (UTC) and runs for a day. The next Job ends
    one that still runs."""
    pod = {
        **_restricted_pod_spec(process),
        "restartPolicy": "OnFailure",
        "containers": [{**container, "securityContext": RESTRICTED}],
        "volumes": volumes,
    }
    job = {
        # Each restart of the container counts, and an API server may be away for hours.
        "backoffLimit": 100,
        "template": {"metadata": {"labels": component_labels(process)}, "spec": pod},
    }
    body = {
        "schedule": "0 0 * * *",
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Replace",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": job},
    }
    name = account_name(process)
    return build_manifest("batch/v1", "CronJob", name, values, component=process, annotations=INTENDED_LIMIT, spec=body)


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


REPLICAS = 2
PORT = 9090


def render_workers(processes: Iterable[InstalledProcess], values: InstallValues) -> Iterator[Manifest]:
    """Yields the Deployments of the processes that hold a Lease, after the Secrets for their signing keys.

    A Secret is rendered without data: the process writes the data, and a later server-side apply does not change it.
    """
    for declaration in PROCESSES:
        if declaration.has_lease and declaration.signs_annotations:
            secret = declaration.signing_secret
            yield build_manifest("v1", "Secret", secret, values, component=declaration.name, type="Opaque")
    for process in processes:
        worker = process.worker
        if worker is None:
            continue
        spec = {
            "terminationGracePeriodSeconds": worker.grace_seconds,
            "containers": [_worker_container(process, worker, values)],
            **({"volumes": list(worker.volumes)} if worker.volumes else {}),
        }
        yield render_deployment(process.name, values, replicas=REPLICAS, spec=spec)


def worker_environment(process: str, values: InstallValues) -> dict[str, str]:
    """Returns the settings that every process with a Lease needs; the defaults are for a local run."""
    return {
        variable_name(process, "listen"): f"0.0.0.0:{PORT}",
        "TRIMTAB_NAMESPACE": values.namespace,
        "TRIMTAB_LOG_FORMAT": "json",
    }


def _worker_container(process: InstalledProcess, worker: WorkerDeployment, values: InstallValues) -> Manifest:
    return {
        "name": process.name,
        "image": values.image,
        "args": [process.name],
        "env": render_variables(process.environment(values)),
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": render_probe("/readyz", "http", "HTTP", periodSeconds=5),
        "livenessProbe": render_probe("/healthz", "http", "HTTP", periodSeconds=10, failureThreshold=6),
        # Each holds every pod of the cluster in memory: about half a gigabyte for a hundred thousand.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        **({"volumeMounts": list(worker.volume_mounts)} if worker.volume_mounts else {}),
    }


def render_guards(process: ProcessDeclaration, values: InstallValues) -> Iterator[Manifest]:
    """Yields the PodDisruptionBudget and the NetworkPolicy of the process.

    Connections to its port are admitted from everywhere, because no selector matches API servers and kubelets.
    """
    name = process.name
    selector = {"matchLabels": component_labels(name)}
    budget = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selector}
    yield build_manifest("policy/v1", "PodDisruptionBudget", process.account, values, component=name, spec=budget)
    port = {"protocol": "TCP", "port": "https" if process.is_called_over_tls else "http"}
    network = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": [{"ports": [port]}]}
    yield build_manifest("networking.k8s.io/v1", "NetworkPolicy", process.account, values, component=name, spec=network)
