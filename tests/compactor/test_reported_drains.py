"""What a DrainOrder does in situations in which other tools are known to drain without end, or to drain wrongly."""

from __future__ import annotations

import pytest

from tests.compactor.played_orders import PlayedOrders
from tests.compactor.test_drain_orders import is_sound, world

NEVER = 10**12


def stop_starting(orders: PlayedOrders, app: str, on: str) -> None:
    """A pod of this app on this node has an image that cannot be pulled."""
    stuck = next(pod for pod in orders.played.of(app) if pod["spec"]["nodeName"] == on)
    stuck["bound"] = NEVER
    stuck["status"]["phase"] = "Pending"
    stuck["status"]["conditions"][0]["status"] = "False"


def test_a_pod_whose_image_cannot_be_pulled_is_evicted_although_its_budget_allows_nothing() -> None:
    """The API server asks no budget for a pod that has not started."""
    orders = world()
    stop_starting(orders, "api", "a")
    orders.order("a")
    orders.run(until="Done")
    assert orders.phase() == "Done", orders.status()
    assert not orders.played.on("a")
    assert not orders.moved_twice


def test_a_node_that_another_client_uncordons_between_two_evictions_is_not_cordoned_again() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(30, until="Draining")
    orders.played.nodes["a"]["spec"]["unschedulable"] = False
    orders.played._touch(orders.played.nodes["a"])
    count = orders.played.writes.count("cordon a")
    orders.run(30, loop)
    assert orders.phase() == "Failed"
    assert "a" not in orders.played.cordoned
    assert orders.played.writes.count("cordon a") == count
    is_sound(orders)


@pytest.mark.parametrize("grace", [30, 7 * 86_400])
def test_a_node_that_died_with_pods_that_end_late_is_never_called_empty(grace: int) -> None:
    """Its kubelet ends no pod, whatever the grace period is."""
    orders = world()
    orders.played.nodes["a"]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    orders.played._touch(orders.played.nodes["a"])
    orders.played.endless = ("web", "api")
    for pod in orders.played.pods.values():
        pod["spec"]["terminationGracePeriodSeconds"] = grace
    orders.order("a", podTimeout="1m")
    orders.run(120)
    assert orders.phase() in ("Draining", "Failed")
    assert orders.status()["empty"] == 0
    assert orders.played.cordoned == ["a"]
    assert orders.status()["waiting"] or orders.status()["failed"]
    assert not orders.moved_twice


def test_an_order_that_cannot_begin_leaves_no_cordon_behind() -> None:
    orders = world()
    orders.played.with_app("alone", "b", owner="")
    orders.played.wanted.pop("alone")
    orders.order("a", "b")
    orders.run(until="Failed")
    assert orders.phase() == "Failed"
    assert not orders.played.cordoned
