"""An owner that does not exist makes the garbage collector delete an object. A token that may delete nothing would so
delete a node, and its pods without regard to their budget, or the webhook's configuration."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import denied, kubelet, thief
from tests.e2e.installed import Installed
from trimtab.installation.names import CONFIGURATION_NAME

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "00000000-0000-4000-8000-00000000dead"}
OWNED = {"metadata": {"ownerReferences": [OWNER]}}
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@pytest.fixture(scope="module")
def nodes(applied: Installed) -> list[str]:
    """Two nodes, and the policy on nodes in force."""
    cluster, pool = applied.cluster, f"own-{applied.cluster.namespace[-5:]}"
    cluster.pool(pool, nodes=2)
    names = [shape["metadata"]["name"] for shape in cluster.list("Node", selector=f"pool={pool}")]
    stolen, attempts = thief(applied, "compactor"), itertools.count()

    def label() -> object:
        # Another value each time: a label that an earlier attempt wrote would be no change, which every policy allows.
        return stolen.patch("Node", names[0], {"metadata": {"labels": {"a": f"attempt-{next(attempts)}"}}})

    cluster.eventually(lambda: "trimtab-compactor-nodes" in denied(label), what="the policy on nodes in force")
    return names


def test_the_compactors_token_gives_a_node_no_owner(applied: Installed, nodes: list[str]) -> None:
    stolen = thief(applied, "compactor")
    assert "trimtab-compactor-nodes" in denied(lambda: stolen.patch("Node", nodes[0], OWNED))


def test_a_kubelet_gives_its_own_node_no_owner(applied: Installed, nodes: list[str]) -> None:
    with pytest.raises(ApiError) as refusal:
        kubelet(applied.cluster, nodes[1]).patch("Node", nodes[1], OWNED)
    assert refusal.value.status == 403


@pytest.mark.parametrize("plural", CONFIGURATIONS)
def test_the_webhooks_token_gives_its_configuration_no_owner(applied: Installed, plural: str) -> None:
    stolen, path = (thief(applied, "webhook"), f"/apis/admissionregistration.k8s.io/v1/{plural}/{CONFIGURATION_NAME}")
    applied.cluster.eventually(
        lambda: "trimtab-webhook-cabundle" in denied(lambda: _replace(stolen, path, dry_run="All", labels={})),
        what="the policy on the caBundle in force",
    )
    assert "trimtab-webhook-cabundle" in denied(lambda: _replace(stolen, path, ownerReferences=[OWNER]))


def _replace(stolen: Cluster, path: str, dry_run: str | None = None, **metadata: Any) -> None:
    stored = stolen.api.request("GET", path)
    stolen.api.request("PUT", path, {**stored, "metadata": {**stored["metadata"], **metadata}}, dryRun=dry_run)
