"""What the status of a DrainOrder and its reasons say, on a cluster that is played."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compactor.played_orders import PlayedOrders
from tests.compactor.test_drain_orders import world
from tests.compactor.test_order_surges import three
from trimtab.cluster.timestamps import format_timestamp


def with_bare_pod() -> PlayedOrders:
    orders = world()
    orders.played._make("bare", "a", "100m", ready=True)["metadata"].pop("ownerReferences", None)
    orders.order("a")
    return orders


def with_limit(**limit: Any) -> PlayedOrders:
    orders = world(ready_after=4)
    orders.order("a", "b", **limit)
    return orders


def with_protected_node() -> PlayedOrders:
    orders = world()
    orders.played.nodes["a"]["metadata"]["annotations"]["trimtab.dev/keep"] = "true"
    orders.order("a", keepGoing=True)
    return orders


def with_local_data() -> PlayedOrders:
    orders = world()
    made = orders.played._make("data", "a", "100m", ready=True)
    made["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    orders.order("a")
    return orders


def with_budget_that_more_pods_would_satisfy() -> PlayedOrders:
    orders = PlayedOrders(three())
    orders.played.pools = ()
    orders.order("a")
    return orders


@pytest.mark.parametrize(
    "orders",
    [
        with_bare_pod(),
        with_budget_that_more_pods_would_satisfy(),
        with_limit(until=format_timestamp(world().played.now + 3)),
        with_limit(timeout="3s"),
        with_protected_node(),
        with_local_data(),
    ],
)
def test_what_the_status_advises_are_fields_of_the_order_and_not_flags_of_the_command(orders: PlayedOrders) -> None:
    orders.run(60)
    status = orders.status()
    texts = [status["message"], *(remark["message"] for remark in (*status["failed"], *status["waiting"]))]
    assert orders.phase() == "Failed", status
    assert not [text for text in texts if "--" in text]


def test_conditions_have_the_reason_in_one_word() -> None:
    orders = with_bare_pod()
    orders.run(10)
    accepted, complete = orders.status()["conditions"]
    assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "True", "Accepted")
    assert (complete["type"], complete["status"], complete["reason"]) == ("Complete", "False", "OrderNodeBlocked")
    orders = world()
    orders.unproven = True
    orders.order("a")
    orders.run(3)
    assert orders.status()["conditions"][0]["reason"] == "OrderAuthorUnproven"
