"""What is the same in every pod of ours: no right that is not used, and a place apart from its twin."""

from typing import Any

from trimtab.command.install.names import Manifest, account, labels, manifest
from trimtab.command.install.values import Values

_USER = 65532
RESTRICTED: Manifest = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip


def deployment(process: str, values: Values, *, replicas: int, spec: Manifest) -> Manifest:
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


def job(process: str, values: Values, *, container: Manifest, **spec: Any) -> Manifest:
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
