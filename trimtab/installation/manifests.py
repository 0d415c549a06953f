"""All manifests in the order of their application: dependencies first, the webhook configurations
and the APIService last."""

from trimtab.cluster.processes import PROCESSES
from trimtab.compaction.order.order_definition import build_drain_order_crd
from trimtab.compaction.pool_status import build_pool_status_crd
from trimtab.installation.deployments import render_guards, render_workers
from trimtab.installation.installed_processes import ALWAYS_INSTALLED, render_account_policies
from trimtab.installation.names import POLICIES_MODE, VPA_MODE, InstallValues, Manifest, component_labels
from trimtab.installation.processes.captures import render_captures
from trimtab.installation.processes.compactor import render_order_role
from trimtab.installation.processes.metrics_api import render_metrics_api
from trimtab.installation.processes.recommender import render_access_on_request
from trimtab.installation.processes.webhook import render_webhook, render_webhook_configurations
from trimtab.installation.rbac import render_accounts
from trimtab.policy.schema import build_crd

SERVING_VPAS = frozenset(process.name for process in PROCESSES if process.serves_vpas)
"""The components of an installation in mode `vpa`."""
KEPT = ("Namespace", "CustomResourceDefinition")
"""The kinds of objects that --remove keeps unless --everything is set. Their deletion would also delete all policies,
pools and other objects that they contain."""


def render_manifests(values: InstallValues) -> tuple[Manifest, ...]:
    """Returns all manifests in the order of their application; they are removed in reverse."""
    manifests = (
        render_namespace(values),
        build_crd(),
        build_pool_status_crd(),
        build_drain_order_crd(),
        *render_accounts(ALWAYS_INSTALLED, values),
        *render_account_policies(values),
        *render_order_role(values),
        *render_access_on_request(values),
        *(guard for process in PROCESSES if not process.is_optional for guard in render_guards(process, values)),
        *render_webhook(values),
        *render_workers(ALWAYS_INSTALLED, values),
        *(render_captures(values) if values.capture_claim else ()),
        *render_webhook_configurations(values),
        *(render_metrics_api(values) if values.metrics_api else ()),
    )
    return tuple(manifest for manifest in manifests if _is_in_mode(manifest, values))


def _is_in_mode(manifest: Manifest, values: InstallValues) -> bool:
    """Returns whether the manifest belongs to the installation's mode:

    - `vpa`: the namespace and the processes that serve VPAs, and nothing else;
    - `policies`: all but the webhook that changes pods, because it only validates documents;
    - `webhook` and `both`: everything.
    """
    kind, component = manifest["kind"], manifest["metadata"]["labels"].get("app.kubernetes.io/component")
    if values.mode == VPA_MODE:
        return kind == "Namespace" or component in SERVING_VPAS
    if values.mode == POLICIES_MODE:
        return bool(kind != "MutatingWebhookConfiguration")
    return True


def render_namespace(values: InstallValues) -> Manifest:
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    metadata = {"name": values.namespace, "labels": {**component_labels(), **restricted}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
