"""Generic ephemeral volumes end with their pods: the zone of the old volume does not bind the successor."""

from typing import Any

import pytest

from tests.cluster_of import Item, node, pod
from tests.compaction.plans import goes

ZONE = "topology.kubernetes.io/zone"


def storage_class(mode: str = "WaitForFirstConsumer", provisioner: str = "ebs.csi.aws.com", **more: Any) -> Item:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disk"},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def build_pod(number: int, zone: str, *, ephemeral: bool = True) -> tuple[Item, ...]:
    name = f"build-{number}"
    claim: Item = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{name}-scratch", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": f"pv-{number}", "storageClassName": "disk"},
    }
    if ephemeral:
        claim["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
        ]
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    volume: Item = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{number}"},
        "spec": {"csi": {"driver": "ebs.csi.aws.com"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }
    source: Item = (
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
        if ephemeral
        else {"persistentVolumeClaim": {"claimName": f"{name}-scratch"}}
    )
    spec = {"volumes": [{"name": "scratch", **source}]}
    return pod(name, f"n-{zone}", "500m", spec=spec), claim, volume


def drained_nodes(shape: Item | None, *, ephemeral: bool = True) -> int:
    zones = ("za", "zb", "zc")
    nodes = [node(f"n-{zone}", labels={ZONE: zone}) for zone in zones]
    pods = [item for n, zone in enumerate(zones) for item in build_pod(n, zone, ephemeral=ephemeral)]
    return len(goes(*nodes, *pods, *([shape] if shape else [])))


def test_pods_with_ephemeral_volumes_leave_the_zone_of_their_volumes() -> None:
    assert drained_nodes(storage_class()) == 2


def test_a_claim_that_outlives_its_pod_keeps_its_zone() -> None:
    assert drained_nodes(storage_class(), ephemeral=False) == 0


@pytest.mark.parametrize(
    "shape",
    [
        storage_class("Immediate"),
        storage_class(""),
        storage_class(provisioner="kubernetes.io/no-provisioner"),
        storage_class(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["za"]}]}]),
        None,
    ],
)
def test_the_zone_stays_where_the_class_does_not_follow_the_pod_or_is_not_known(shape: Item | None) -> None:
    assert drained_nodes(shape) == 0
