"""A capture whose names are hashed keeps what a plan reads: pools named by annotations, capacity buffers."""

from typing import Any

from tests.cluster_of import Item, node
from trimtab.cluster.anonymize import hash_names
from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.pool import pool_name
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.kube.capture import plain_objects

MACHINE = "machine.openshift.io/machine"
CAPI = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0"}


def again(*actual_item: Item) -> Inventory:
    """Read, captured with hashed names, and read again."""
    first = build_snapshot([Document(file="t", index=n, value=item) for n, item in enumerate(actual_item)]).snapshot
    written: list[dict[str, Any]] = hash_names(plain_objects(first), b"salt")
    reading = build_snapshot([Document(file="t", index=n, value=item) for n, item in enumerate(written)])
    assert not reading.mistakes
    return snapshot_inventory(reading.snapshot)


def pools(*annotations: dict[str, str]) -> list[str]:
    inventory = again(*(node(f"n{n}", annotations=each) for n, each in enumerate(annotations)))
    return [pool_name(each) for each in inventory.nodes]


def test_nodes_of_one_machine_set_are_of_one_pool() -> None:
    one, two, other = pools({MACHINE: "api/web-7k2xq"}, {MACHINE: "api/web-9zzzz"}, {MACHINE: "api/batch-7k2xq"})
    assert one == two != other
    assert "web" not in one


def test_nodes_of_one_cluster_api_machine_set_are_of_one_pool() -> None:
    one, two = pools(CAPI, CAPI)
    assert one == two != ""


def test_a_buffer_keeps_its_template() -> None:
    meta = {"namespace": "shop"}
    template = {
        "kind": "PodTemplate",
        "metadata": {"name": "chunk", **meta},
        "template": {"spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}]}},
    }
    buffer = {
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", **meta},
        "status": {"podTemplateRef": {"name": "chunk"}, "replicas": 3},
    }
    (reserved_pod,) = again(node("a"), template, buffer).reserved_pods
    assert (reserved_pod.replicas, reserved_pod.pod.requirements.requests) == (3, {"cpu": 2000})
