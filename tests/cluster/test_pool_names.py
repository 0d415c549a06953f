"""The pool that a node names: by a label first, else by the annotations of its MachineSet."""

import pytest

from tests.cluster_of import cluster, node
from trimtab.cluster.pool import Pool, PoolIndex, pool_source

CAPI = {"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "md-0"}
OPENSHIFT = {"machine.openshift.io/machine": "openshift-machine-api/shop-x1-worker-a-7k2xq"}


@pytest.mark.parametrize(
    ("labels", "annotations", "found"),
    [
        ({"nodepool": "web"}, CAPI, ("web", "nodepool")),
        ({}, CAPI, ("md-0", "cluster.x-k8s.io/owner-name")),
        ({}, {**CAPI, "cluster.x-k8s.io/owner-kind": "KubeadmControlPlane"}, ("", "")),
        ({}, OPENSHIFT, ("shop-x1-worker-a", "machine.openshift.io/machine")),
        ({}, {"machine.openshift.io/machine": "openshift-machine-api/shop-x1-master-0"}, ("", "")),
        ({}, {}, ("", "")),
    ],
)
def test_a_node_names_its_pool(labels: dict[str, str], annotations: dict[str, str], found: tuple[str, str]) -> None:
    assert pool_source(cluster(node("a", labels=labels, annotations=annotations)).nodes[0]) == found


def test_the_index_answers_as_each_pool_does() -> None:
    pools = [
        Pool(name="web"),
        Pool(name="red", labels={"team": "red"}),
        Pool(name="md-0"),
        Pool(name="web"),
        Pool(name="all", everything=True),
    ]
    names = [{}, {"nodepool": "web"}, {"team": "red"}, {"nodepool": "web", "team": "red"}, {"nodepool": "red"}]
    nodes = cluster(
        *(node(f"n{n}", labels=labels) for n, labels in enumerate(names)), node("capi", annotations=CAPI)
    ).nodes
    for value in (pools, pools[:3], pools[:1], []):
        index = PoolIndex(value)
        for one in nodes:
            actual_pools = [pool for pool in value if pool.has_node(one)]
            assert list(index.pools_of(one)) == actual_pools
            assert index.only_pool_of(one) is (actual_pools[0] if len(actual_pools) == 1 else None)
            assert index.first_pool_of(one) is (actual_pools[0] if actual_pools else None)
