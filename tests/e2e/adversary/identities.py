"""Who attacks: logins with real rights, and what became of what they tried."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed

Object = dict[str, Any]


def tenant(cluster: Cluster) -> Cluster:
    """Somebody who may `edit` the cluster's namespace, and nothing else."""
    user = f"tenant-{uuid.uuid4().hex[:6]}"
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": ref,
        "subjects": [subject],
    }
    cluster.apply(binding)
    actual_cluster = Cluster(cluster.plane.kubeconfig_for(user), cluster.namespace, cluster.plane)
    cluster.eventually(lambda: actual_cluster.list("ConfigMap") is not None, what="the tenant's rights")
    return actual_cluster


def kubelet(cluster: Cluster, node: str) -> Cluster:
    """The kubelet of a node, as the API server's Node authorizer and NodeRestriction know it."""
    return Cluster(
        cluster.plane.kubeconfig_for(f"system:node:{node}", "system:nodes"), cluster.namespace, cluster.plane
    )


def thief(here: Installed, process: str) -> Cluster:
    """Who holds the token of one of our processes."""
    return Cluster(here.login_of(process), here.values.namespace, here.cluster.plane)


def denied(attempt: Callable[[], object]) -> str:
    """The API server's reason for refusing the attempt by rights (403) or a policy (422). Raises where it does not."""
    try:
        attempt()
    except ApiError as error:
        if error.status not in (403, 422):
            raise
        return str(error)
    raise AssertionError("the API server let it through")


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    """A ConfigMap as a manifest."""
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
