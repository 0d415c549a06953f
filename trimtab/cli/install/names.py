"""What everything is called, and the few words all manifests begin with.

What can be chosen about an installation, and why the default is what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.cluster_autoscaler import NAME, NAMESPACE
from trimtab.cluster.signature import secret_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallValues:
    """One installation. Whatever renders manifests (this command, a chart, a kustomize base) takes these."""

    namespace: str = "trimtab-system"
    """Ours alone: its pods are never changed, and its annotation `trimtab.dev/paused` stops all changes."""

    image: str = "trimtab:0.1.0"
    """What every process runs."""

    replicas: int = 2
    """Of the webhook. One serves thousands of reviews a second; two survive a node."""

    timeout: int = 3
    """Seconds an API server waits for us before it lets the pod through unchanged; 2 or 3."""

    cert_manager: bool = False
    """cert-manager issues the pair and keeps the caBundle; else the replicas do both by themselves."""

    scale_namespaces: tuple[str, ...] = ()
    """Where the compactor may scale Deployments: it gives a workload of one replica a second one while its pod moves.
    None by default: a right to scale is a right to scale to zero."""

    autoscaler_namespace: str = NAMESPACE
    """Where the cluster autoscaler writes its status: its own flag `--namespace`."""

    autoscaler_status: str = NAME
    """The ConfigMap of that status: its flag `--status-config-map-name`. The compactor may read no other one of
    anybody else."""

    service_port: int = 443
    """Port of the Service."""

    port: int = 8443
    """Port of the process."""


Manifest = dict[str, Any]

CONFIGURATION = "trimtab"
"""Both webhook configurations. It sorts before `vpa-webhook-config`, which spares a second call; nothing needs it."""
WEBHOOK, SECRET = "trimtab-webhook", "trimtab-webhook-tls"
WEBHOOK_SIGNING, COMPACTOR_SIGNING = secret_of("webhook"), secret_of("compactor")
"""Secrets of signing keys, one for each process that reads back what others may write, too. Not the serving pair's
Secret: cert-manager may own that one."""
PROCESSES = ("webhook", "watchdog", "compactor", "recommender")
INJECT = "cert-manager.io/inject-ca-from"


def labels(component: str = "") -> dict[str, str]:
    """On everything of ours: `trimtab install --remove` finds nothing by them, people do."""
    found = {"app.kubernetes.io/name": "trimtab", "app.kubernetes.io/managed-by": "trimtab"}
    return {**found, "app.kubernetes.io/component": component} if component else found


def account(process: str) -> str:
    return f"trimtab-{process}"


def manifest(
    api_version: str,
    kind: str,
    name: str,
    values: InstallValues | None = None,
    *,
    component: str = "",
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> Manifest:
    """Namespaced where `values` are given."""
    meta: Manifest = {"name": name}
    if values is not None:
        meta["namespace"] = values.namespace
    meta["labels"] = labels(component)
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}
