"""What does it cost to move a whole pool to new nodes of another group?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import ZONE, Item, apart, cluster, pod
from tests.compaction.replace.dear_nodes import LABEL, big, machine, small
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.reason import NotYet
from trimtab.compaction.replace.migration import PoolMigration, plan_migration
from trimtab.compaction.replace.node_templates import find_templates


def migrated(*items: Item) -> PoolMigration:
    inventory: Inventory = cluster(*items)
    sources = [node for node in inventory.nodes if node.labels[LABEL] == "big"]
    templates = [one for one in find_templates(inventory, None, ()).templates if one.group == "small"]
    migration = plan_migration(inventory, sources, templates)
    assert isinstance(migration, PoolMigration), migration
    return migration


def test_a_pool_needs_as_many_new_nodes_as_its_pods_fill() -> None:
    result = migrated(big(), *small(), *(pod(f"w-{n}", "a", "1900m") for n in range(5)))
    assert (result.new_nodes, result.price_before, result.price_after) == (3, 800_000, 600_000)
    assert (result.saves, result.unplaced, result.is_possible) == (200_000, (), True)


def test_daemons_of_the_new_nodes_take_their_part() -> None:
    daemon = pod("agent-1", "s", "400m", owner="DaemonSet")
    result = migrated(big(), *small(), daemon, *(pod(f"w-{n}", "a", "1900m") for n in range(4)))
    assert result.new_nodes == 4


def test_pods_that_stand_apart_need_a_node_each() -> None:
    result = migrated(big(), *small(), *(pod(f"w-{n}", "a", "100m", spec=apart("w")) for n in range(3)))
    assert result.new_nodes == 3


def test_a_pod_that_fits_on_no_new_node_is_named() -> None:
    result = migrated(big(), *small(), pod("huge", "a", "9"))
    assert (result.unplaced, result.is_possible) == (("default/huge",), False)


def test_each_zone_gets_its_nodes() -> None:
    other = machine("t", "small", "4", "16Gi", 200_000, labels={ZONE: "z2"})
    result = migrated(big(), *small(), other, *(pod(f"w-{n}", "a", "3500m") for n in range(4)))
    assert (result.new_nodes, result.price_after) == (4, 800_000)


@pytest.mark.parametrize("spare", [3, 2])
def test_a_group_may_be_too_small(spare: int) -> None:
    items: tuple[Any, ...] = (big(), *small(), *(pod(f"w-{n}", "a", "3500m") for n in range(3)))
    inventory = cluster(*items)
    sources = [node for node in inventory.nodes if node.labels[LABEL] == "big"]
    [template] = [one for one in find_templates(inventory, None, ()).templates if one.group == "small"]
    result = plan_migration(inventory, sources, [replace(template, max_new_nodes=spare)])
    assert isinstance(result, PoolMigration)
    assert result.is_possible is (spare == 3)


def test_an_unknown_price_is_not_zero() -> None:
    inventory = cluster(machine("a", "big", "16", "64Gi", None), *small(), pod("w-1", "a"))
    templates = find_templates(inventory, None, ()).templates
    assert isinstance(plan_migration(inventory, inventory.nodes[:1], templates), NotYet)
