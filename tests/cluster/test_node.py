"""A node is of the group it tells, and of none where that is in doubt."""

import pytest

from tests.cluster_of import ZONE, cluster, node
from trimtab.cluster.cluster_autoscaler import NodeGroupStatus
from trimtab.cluster.node import group_of

GCE = "https://www.googleapis.com/compute/v1/projects/p/zones/{}/instanceGroups/gke-c-web-{}-grp"
NAMES = (
    GCE.format("z-a", "11aa"),
    GCE.format("z-b", "22bb"),
    GCE.format("z-a", "same"),
    GCE.format("z-b", "same"),
    "aks-web-1-vmss",
    "aks-web-12-vmss",
    "eks-web-00c2f8a1-0000-1111-2222-333344445555",
    "MachineDeployment/ns/web-md",
    "shoot--d--c-web-z1",
    "shoot--d--c-web-z10",
)
GROUPS = tuple(NodeGroupStatus(name=name, healthy=True, scale_up="") for name in NAMES)


@pytest.mark.parametrize(
    ("address", "labels", "told"),
    [
        ("gce://p/z-a/gke-c-web-11aa-x7k2", {}, 0),
        ("gce://p/z-b/gke-c-web-22bb-x7k2", {}, 1),
        ("gce://p/z-b/gke-c-web-same-x7k2", {ZONE: "z-b"}, 3),
        ("gce://p/z-b/gke-c-web-same-x7k2", {}, None),
        ("azure:///s/virtualMachineScaleSets/aks-web-1-vmss/virtualMachines/0", {}, 4),
        ("azure:///s/virtualMachineScaleSets/AKS-web-12-VMSS/virtualMachines/0", {}, 5),
        ("aws:///z-a/i-0123", {"eks.amazonaws.com/nodegroup": "web"}, 6),
        ("aws:///z-a/i-0123", {"eks.amazonaws.com/nodegroup": "we"}, None),
        ("", {"cluster.x-k8s.io/deployment-name": "web-md"}, 7),
        ("", {"node.gardener.cloud/machine-name": "shoot--d--c-web-z1-5f7d8-x2x9q"}, 8),
        ("", {"node.gardener.cloud/machine-name": "shoot--d--c-web-z10-5f7d8-x2x9q"}, 9),
        ("", {}, None),
    ],
)
def test_a_node_tells_its_group(address: str, labels: dict[str, str], told: int | None) -> None:
    shape = node("n", labels=labels)
    shape["spec"]["providerID"] = address
    result = group_of(cluster(shape).nodes[0], GROUPS)
    assert result is (None if told is None else GROUPS[told])
