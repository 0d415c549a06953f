"""The names of an installation's objects, the values that a user can set with their defaults, and the common labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster import processes
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE

POLICIES_MODE = "policies"
"""The mode of an installation in which the API server changes pods by compiled policies, and no webhook does."""
VPA_MODE = "vpa"
"""The mode of an installation that consists of the recommender alone: a VPA changes pods by its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallValues:
    """The values of one installation, from which the command, the chart and the kustomize base render manifests."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace: its pods are never changed, and its annotation `trimtab.dev/paused` stops all
    changes."""

    image: str = "trimtab:0.1.0"
    """The image of every process."""

    replicas: int = 2
    """The number of replicas of the webhook. One replica handles thousands of reviews a second; with two replicas, the
    webhook survives the loss of a node."""

    timeout: int = 3
    """The seconds that an API server waits for the webhook before it admits the pod unchanged; 2 or 3."""

    cert_manager: bool = False
    """Whether cert-manager issues the certificate and writes the caBundle; otherwise the replicas do both."""

    scale_namespaces: tuple[str, ...] = ()
    """The namespaces in which the compactor may scale Deployments. It gives a Deployment with one replica a second
    replica while its pod moves.

    Empty by default, because an account that may scale a Deployment may also scale it to zero."""

    resize: bool = False
    """Whether the compactor may resize running pods and read their usage, which policies with `running: resize` need. A
    resize changes requests and limits of any pod, so the permission is only granted on request."""

    parameter_namespaces: tuple[str, ...] = ()
    """The namespaces in which the recommender writes requests as parameters of compiled policies."""

    demote_groups: bool = False
    """Whether the recommender gives node groups that are out of stock a low priority in the autoscaler's priority
    map."""

    vpa_recommender: bool = False
    """Whether the recommender writes the status of VPAs that name `trimtab` as their only recommender."""

    mode: str = "webhook"
    """What changes pods: `webhook`, `policies` (compiled policies, which the API server evaluates) or `both`; or
    `vpa`: nothing of Trimtab does, and only the recommender is installed, for VPAs."""

    autoscaler_namespace: str = STATUS_NAMESPACE
    """The namespace in which the cluster autoscaler writes its status: the value of the autoscaler's flag
    `--namespace`."""

    autoscaler_status: str = STATUS_NAME
    """The name of the ConfigMap with the autoscaler's status: the value of its flag `--status-config-map-name`. The
    compactor may read no other ConfigMap outside its own namespace."""

    metrics_api: bool = False
    """Whether to install `trimtab metrics-api`, which serves custom metrics. A cluster can have only one provider of
    custom metrics."""

    capture_claim: str = ""
    """The PersistentVolumeClaim in Trimtab's namespace on which a CronJob stores captures for `trimtab replay`; empty:
    there is no CronJob."""

    capture_every: str = "5m"
    """The time between two captures."""

    capture_keep: str = "14d"
    """How long the files of captures stay."""

    service_port: int = 443
    """The port of the Service."""

    port: int = 8443
    """The port that the process listens on."""

    @property
    def writes_vpa_status(self) -> bool:
        """Whether the recommender writes the status of VPAs, which is all that it is for if it is installed alone."""
        return self.vpa_recommender or self.mode == VPA_MODE


Manifest = dict[str, Any]

CONFIGURATION_NAME = "trimtab"
"""The name of both webhook configurations. It sorts before `vpa-webhook-config`, so that Trimtab's webhook is called
before the VPA's and need not be called twice."""
WEBHOOK_NAME, CERTIFICATE_SECRET = "trimtab-webhook", "trimtab-webhook-tls"
"""The webhook's Service, and the Secret with its certificate. The certificate has a Secret of its own, because
cert-manager may write that Secret."""
PROCESSES = tuple(process.name for process in processes.PROCESSES if not process.is_optional)
"""The names of the processes that every installation has."""
WORKERS = tuple(process.name for process in processes.PROCESSES if process.has_lease)
"""The names of the processes of which only the replica with the Lease works."""
INJECT = "cert-manager.io/inject-ca-from"


def component_labels(component: str = "") -> dict[str, str]:
    """Returns the labels of every object of Trimtab, and the label of the component if a component is given.

    The labels are for users: `trimtab install --remove` does not select objects by them.
    """
    common = {"app.kubernetes.io/name": "trimtab", "app.kubernetes.io/managed-by": "trimtab"}
    return {**common, "app.kubernetes.io/component": component} if component else common


def build_manifest(
    api_version: str,
    kind: str,
    name: str,
    values: InstallValues | None = None,
    *,
    component: str = "",
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> Manifest:
    """Returns a manifest; it has a namespace only if `values` are given."""
    meta: Manifest = {"name": name}
    if values is not None:
        meta["namespace"] = values.namespace
    meta["labels"] = component_labels(component)
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}
