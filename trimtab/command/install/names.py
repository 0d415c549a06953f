"""What everything is called, and the few words all manifests begin with."""

from collections.abc import Mapping
from typing import Any

from trimtab.command.install.values import Values

Manifest = dict[str, Any]

CONFIGURATION = "trimtab"
"""Both webhook configurations. It sorts before `vpa-webhook-config`, which spares a second call; nothing needs it."""
WEBHOOK, SECRET = "trimtab-webhook", "trimtab-webhook-tls"
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
    values: Values | None = None,
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
