"""Platforms name the pool of a node; where none does, the labels that divide the nodes into groups are candidates."""

from collections import Counter

import pytest

from tests.cluster_of import HOST, ZONE, cluster, node
from trimtab.cluster.pool import pool_source
from trimtab.cluster.pool_labels import PLATFORM_LABELS, PoolLabel, candidate_labels


@pytest.mark.parametrize("platform", PLATFORM_LABELS, ids=lambda one: one.key)
def test_each_platform_names_the_pool(platform: PoolLabel) -> None:
    place = "annotations" if platform.is_annotation else "labels"
    [read_node] = cluster(node("a", **{place: {platform.key: "web"}})).nodes
    assert pool_source(read_node) == ("web", platform.key)


def test_each_label_is_there_once_with_its_platform_and_source() -> None:
    assert Counter(one.key for one in PLATFORM_LABELS).most_common(1)[0][1] == 1
    assert all(one.platform and one.source for one in PLATFORM_LABELS)


def test_a_node_that_is_no_machine_is_in_no_pool() -> None:
    labels = {"cloud.google.com/gke-nodepool": "web", "type": "virtual-kubelet"}
    assert pool_source(cluster(node("a", labels=labels)).nodes[0]) == ("", "")


def candidates(*labels: dict[str, str]) -> dict[str, int]:
    return {one.key: one.groups for one in candidate_labels(labels)}


def test_a_label_that_divides_the_nodes_is_a_candidate() -> None:
    assert candidates({"crew": "a"}, {"crew": "a"}, {"crew": "b"}) == {"crew": 2}


def test_a_label_with_one_value_or_a_value_for_each_node_is_none() -> None:
    assert candidates({HOST: "a", "os": "linux"}, {HOST: "b", "os": "linux"}, {HOST: "c", "os": "linux"}) == {}


def test_a_label_that_some_nodes_lack_is_none() -> None:
    assert candidates({"crew": "a"}, {"crew": "a"}, {}) == {}


def test_of_labels_with_equal_groups_the_one_that_says_pool_remains() -> None:
    first, other = {"arch": "x", "acme.io/pool-id": "7"}, {"arch": "y", "acme.io/pool-id": "8"}
    assert candidates(first, first, other) == {"acme.io/pool-id": 2}


def test_the_label_that_says_pool_comes_before_the_zone() -> None:
    labels = [{ZONE: zone, "x.io/nodepool": pool} for zone in ("a", "b") for pool in ("web", "db", "db")]
    assert [*candidates(*labels)] == ["x.io/nodepool", ZONE]
