"""DrainOrders on the suite's control plane: the definition, the policy for authors, the role, and a compactor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Compactor, compactor
from tests.e2e.drains import grant_role
from tests.e2e.ours import install_crd
from trimtab.cluster.processes import account_name
from trimtab.compaction.order.author_policy import MARGIN_SECONDS
from trimtab.compaction.order.order_definition import build_drain_order_crd
from trimtab.installation.names import InstallValues
from trimtab.installation.processes.compactor import ORDER_ROLE, render_order_author_policy, render_order_role

Object = dict[str, Any]
AUTHOR = "drainer"


def install_orders(cluster: Cluster) -> None:
    """What an installation brings for orders, and the seconds until an order may be created."""
    install_crd(cluster, build_drain_order_crd())
    for manifest in render_order_author_policy():
        cluster.apply(manifest)
    wait_for_margin()


def wait_for_margin() -> None:
    """Waits until an order that is created now is younger than the policy that was just written."""
    time.sleep(MARGIN_SECONDS + 1.5)


def grant_orders(cluster: Cluster, user: str = AUTHOR) -> Path:
    """Returns the login of a user with the role of the page, who may create orders in the cluster's namespace."""
    login = grant_role(cluster, user)
    may_order(cluster, user)
    return login


def may_order(cluster: Cluster, user: str) -> None:
    """Binds the user to the role of an installation, in the cluster's namespace."""
    for manifest in render_order_role(InstallValues(namespace=cluster.namespace)):
        cluster.apply(manifest)
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"orders-{user}", "namespace": cluster.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ORDER_ROLE},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        }
    )


def as_user(cluster: Cluster, user: str, *groups: str) -> Cluster:
    return Cluster(cluster.plane.kubeconfig_for(user, *groups), cluster.namespace, cluster.plane)


def order(*nodes: str, name: str = "order", by: str = AUTHOR, **spec: Any) -> Object:
    fields = {"by": by, **({"nodes": list(nodes)} if nodes else {}), **spec}
    return {"apiVersion": "trimtab.dev/v1alpha1", "kind": "DrainOrder", "metadata": {"name": name}, "spec": fields}


def create_order(cluster: Cluster, *nodes: str, user: str = AUTHOR, **spec: Any) -> Object:
    """Creates the order with the login of the user. The role of a new binding may take a moment."""
    author, document = as_user(cluster, user), order(*nodes, **{"by": user, **spec})
    deadline = time.monotonic() + 10
    while True:
        try:
            return author.create(document)
        except ApiError as error:
            if error.status != 403 or "spec." in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def status(cluster: Cluster, name: str = "order") -> Object:
    found: Object = cluster.get("DrainOrder", name).get("status", {})
    return found


def wait_for_phase(cluster: Cluster, phase: str, name: str = "order", within: float = 90) -> Object:
    """Returns the status in that phase."""
    try:
        cluster.eventually(lambda: status(cluster, name).get("phase") == phase, within=within)
    except AssertionError:
        raise AssertionError(f"{phase} expected: {status(cluster, name)}") from None
    return status(cluster, name)


def login_of_account(cluster: Cluster, folder: Path) -> Path:
    """Returns a kubeconfig with a token of the compactor's account, which alone may write the status of orders. Here it
    may do everything else, too; with its own rights it is in tests/e2e/adversary."""
    name = account_name("compactor")
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{name}-{cluster.namespace}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
        }
    )
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.request("POST", path, request)["status"]["token"]
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{"name": document["contexts"][0]["context"]["user"], "user": {"token": token}}]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "compactor.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    return file


@contextmanager
def order_compactor(cluster: Cluster, folder: Path, **more: str) -> Iterator[Compactor]:
    """A compactor under the name of its account, which alone may write the status of orders."""
    with compactor(cluster, folder, **{"KUBECONFIG": str(login_of_account(cluster, folder)), **more}) as one:
        yield one
