"""A volume is reached where its affinity and its labels say so, and is attached by who took its kind over."""

from typing import Any

import pytest

from tests.cluster_of import ZONE, Item, cluster, node, pod
from trimtab.cluster.claims import Claim
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.drain_simulation import NoPlacement, drain_exactly

BETA = "failure-domain.beta.kubernetes.io/zone"
EBS = "ebs.csi.aws.com"
ON_A_DISK: Item = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}


def volume(name: str = "v", labels: dict[str, str] | None = None, **spec: Any) -> Item:
    return {"kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def claim(name: str = "c", volume: str = "v") -> Item:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumeName": volume},
    }


def terms(*terms: list[Item]) -> Item:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": result} for result in terms]}}


def read(item: Item) -> Claim:
    return cluster(item, claim()).claims["default", "c"]


def goes_to(item: Item) -> list[str]:
    """Nodes on which a pod with such a volume fits; one is in each of the zones a to d."""
    zones = [node(f"in-{zone}", labels={ZONE: zone, "disk": "yes"}) for zone in "abcd"]
    world = build_cluster_model(cluster(*zones, node("old"), pod("x-1", "old", spec=ON_A_DISK), claim(), item))
    room, home = FreeCapacity(world), world.node_numbers["old"]
    return [
        world.nodes[n].name
        for n in range(len(zones))
        if not isinstance(drain_exactly(room, home, world.pods_on_node[home], [n]), NoPlacement)
    ]


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ({ZONE: "b"}, ["in-b"]),
        ({BETA: "b"}, ["in-b"]),
        ({ZONE: "a__c"}, ["in-a", "in-c"]),
        ({ZONE: "b", BETA: "c"}, []),
        ({}, ["in-a", "in-b", "in-c", "in-d"]),
    ],
)
def test_the_zone_that_a_volumes_labels_name_is_where_its_pod_may_go(labels: dict[str, str], nodes: list[str]) -> None:
    assert goes_to(volume(labels=labels)) == nodes


def test_labels_and_affinity_of_a_volume_both_hold_and_an_empty_term_selects_nothing() -> None:
    yes = [{"key": "disk", "operator": "In", "values": ["yes"]}]
    no = [{"key": "disk", "operator": "In", "values": ["no"]}]
    assert goes_to(volume(labels={ZONE: "b"}, nodeAffinity=terms(yes, no))) == ["in-b"]
    assert goes_to(volume(labels={ZONE: "b"}, nodeAffinity=terms(no, []))) == []


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        ({"csi": {"driver": "x.example.com"}}, "x.example.com"),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, EBS),
        ({"gcePersistentDisk": {"pdName": "d"}}, "pd.csi.storage.gke.io"),
        ({"azureDisk": {"diskName": "d"}}, "disk.csi.azure.com"),
        ({"nfs": {"server": "s"}}, ""),
    ],
)
def test_a_volume_from_before_csi_counts_against_the_driver_that_took_it_over(source: Item, driver: str) -> None:
    assert read(volume(**source)).driver == driver


def test_a_claim_whose_volume_is_not_there_has_none() -> None:
    actual_claim = cluster(claim()).claims["default", "c"]
    assert (actual_claim.volume, actual_claim.nodes, actual_claim.is_local) == ("", None, False)
