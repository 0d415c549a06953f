"""All manifests in the order of their application: dependencies first, the webhook configurations last."""

from trimtab.cli.install.admission_policies import render_account_policies, render_webhook_configurations
from trimtab.cli.install.deployments import render_guards, render_webhook, render_workers
from trimtab.cli.install.names import InstallValues, Manifest, component_labels
from trimtab.cli.install.rbac import render_accounts
from trimtab.policy.schema import build_crd

KEPT = ("Namespace", "CustomResourceDefinition")
"""Kinds that --remove keeps without --everything: their deletion deletes all policies, pools and other objects
there."""


def render_manifests(values: InstallValues) -> tuple[Manifest, ...]:
    """Return all manifests in the order of their application; they are removed in reverse."""
    return (
        render_namespace(values),
        build_crd(),
        *render_accounts(values),
        *render_account_policies(values),
        *render_guards(values),
        *render_webhook(values),
        *render_workers(values),
        *render_webhook_configurations(values),
    )


def render_namespace(values: InstallValues) -> Manifest:
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    metadata = {"name": values.namespace, "labels": {**component_labels(), **restricted}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
