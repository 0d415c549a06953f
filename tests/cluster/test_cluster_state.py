"""An inventory is the same whether the snapshot has the pods or a watch has read them already."""

from typing import Any

from tests.cluster_of import node, pod
from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document

DAEMONS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default"},
    "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    "status": {"desiredNumberScheduled": 2},
}
NODES = (node("n1"), node("n2"))
# A worker of a leader, which is a pod that another pod owns; and a pod that appears twice with different contents.
PODS = (
    pod("worker", "n1", app="leader", owner="Pod"),
    pod("leader", "n1", app="first", owner="Pod"),
    pod("twice", "n1"),
    pod("twice", "n2"),
    pod("agent-1", "n1", app="agent", owner="DaemonSet"),
    pod("stray", "n9"),
)


def inventory_of(*items: dict[str, Any], watched: Inventory | None = None) -> Inventory:
    documents = [Document(file="test", index=number, value=item) for number, item in enumerate(items)]
    snapshot = build_snapshot(documents).snapshot
    return snapshot_inventory(snapshot, watched.pods if watched is not None else None)


def facts_about_pods(inventory: Inventory) -> tuple[Any, ...]:
    daemons = [(daemon.owner, daemon.nodes) for daemon in inventory.missing_daemons]
    keys = [pod.key for pod in inventory.pods]
    return keys, inventory.leaders, inventory.conflicting_pods, inventory.notes, daemons


def test_pods_that_are_watched_count_as_those_of_a_snapshot() -> None:
    whole = inventory_of(*NODES, DAEMONS, *PODS)
    assert facts_about_pods(inventory_of(*NODES, DAEMONS, watched=whole)) == facts_about_pods(whole)
    assert all(facts_about_pods(whole))


def test_a_claim_that_several_pods_share_is_one_claim() -> None:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("shared", "missing")]
    pods = [pod(name, "n1") for name in ("a", "b")]
    for item in pods:
        item["spec"]["volumes"] = volumes
    shared = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared", "namespace": "default"},
    }
    inventory = inventory_of(*NODES, *pods, shared)
    assert inventory.known_claims_of(inventory.pods) == [inventory.claims["default", "shared"]]
    assert inventory.claims_of(inventory.pods[0]) == [inventory.claims["default", "shared"], None]
