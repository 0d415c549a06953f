"""A kubelet writes its own node, and gets nothing of ours by it. Forged annotations: `test_forged_drains.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.adversary.identities import config_map, denied, kubelet
from tests.e2e.installed import Installed

NOTE = "trimtab.dev/cordoned-for"


@pytest.fixture
def nodes(applied: Installed) -> Iterator[tuple[str, str]]:
    """Two nodes: the attacker's own, and another."""
    name = f"adv-{applied.cluster.namespace[-5:]}"
    applied.cluster.pool(name, nodes=2)
    first, second = (node["metadata"]["name"] for node in applied.cluster.list("Node", selector=f"pool={name}"))
    yield first, second
    for node in (first, second):
        applied.cluster.delete("Node", node)


def test_a_kubelet_writes_on_no_node_but_its_own(applied: Installed, nodes: tuple[str, str]) -> None:
    """So what it says of a drain is about its own node alone."""
    own, other = nodes
    attacker = kubelet(applied.cluster, own)
    attacker.patch("Node", own, {"metadata": {"annotations": {NOTE: "{}"}}})
    assert NOTE in applied.cluster.get("Node", own)["metadata"]["annotations"]
    denied(lambda: attacker.patch("Node", other, {"metadata": {"annotations": {NOTE: "{}"}}}))


def test_a_kubelet_reads_no_key_and_no_settings_of_ours(applied: Installed, nodes: tuple[str, str]) -> None:
    """A kubelet reads what pods of its node mount. Keys are mounted nowhere: processes read them by the API."""
    attacker, own = kubelet(applied.cluster, nodes[0]), applied.values.namespace
    for name in ("trimtab-compactor-signing", "trimtab-webhook-signing", "trimtab-webhook-tls"):
        denied(lambda name=name: attacker.get("Secret", name, own))
    denied(lambda: attacker.list("ConfigMap", own))


def test_a_kubelet_writes_no_pool_no_state_and_no_lease(applied: Installed, nodes: tuple[str, str]) -> None:
    attacker, own = kubelet(applied.cluster, nodes[0]), applied.values.namespace
    for name, labels in (("p", {"trimtab.dev/pool": "p"}), ("trimtab-state-p", {"trimtab.dev/state": "p"})):
        denied(
            lambda name=name, labels=labels: attacker.api.request(
                "POST", f"/api/v1/namespaces/{own}/configmaps", config_map(name, labels)
            )
        )
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "trimtab-compactor"}}
    denied(lambda: attacker.api.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{own}/leases", lease))
