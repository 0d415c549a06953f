"""A node that replaces a similar one: the model need not be built again, and admits what a new one would."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import cluster, node, pod
from trimtab.cluster.api.core import Taint
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.node_filters import is_alike_to_pods

LEAVING = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")
OTHER = Taint(key="team", effect="NoSchedule")
SOFT = Taint(key="team", effect="PreferNoSchedule")
INVENTORY = cluster(node("a"), node("b"), pod("x-1", "a"), pod("y-1", ""))
NODE = INVENTORY.nodes[1]


@pytest.mark.parametrize(
    ("change", "is_alike"),
    [
        ({"is_cordoned": True}, True),
        ({"annotations": {"note": "1"}}, True),
        ({"taints": (SOFT,)}, True),
        ({"taints": (LEAVING,)}, True),
        ({"taints": (OTHER,)}, False),
        ({"labels": {"disk": "fast"}}, False),
        ({"allocatable": {"cpu": 1000}}, False),
        ({"is_ready": False}, False),
    ],
)
def test_a_node_is_alike_to_pods_if_they_are_admitted_as_before(change: dict[str, Any], is_alike: bool) -> None:
    assert is_alike_to_pods(NODE, replace(NODE, **change)) is is_alike


def test_a_node_that_loses_the_taint_of_its_end_is_not() -> None:
    assert not is_alike_to_pods(replace(NODE, taints=(LEAVING,)), NODE)


def answers(capacity: FreeCapacity) -> list[bool]:
    return [fits_on_node(capacity, pod_class, 1) for _, pod_class in capacity.world.pending_pods]


@pytest.mark.parametrize("change", [{"is_cordoned": True}, {"taints": (SOFT,)}, {"taints": (LEAVING,)}])
def test_it_admits_what_a_new_model_admits(change: dict[str, Any]) -> None:
    changed = replace(NODE, **change)
    capacity = FreeCapacity(build_cluster_model(INVENTORY))
    capacity.replace_node(1, changed)
    anew = FreeCapacity(build_cluster_model(replace(INVENTORY, nodes=(INVENTORY.nodes[0], changed))))
    assert capacity.world.nodes == anew.world.nodes
    assert answers(capacity) == answers(anew)
