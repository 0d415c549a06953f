"""What the compactor does with DrainOrders, on a cluster that is played."""

from __future__ import annotations

import pytest

from tests.compactor.played import ACT, Played
from tests.compactor.played_orders import PlayedOrders, with_own_drain
from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import WeeklyWindow

IDLE = Pool(name="all", everything=True, dry_run=False, min_nodes=0, drains=3, evictions_per_hour=1000, node_age=10**9)
"""A pool that acts, and whose nodes are too young for drains of the compactor's own wish."""
CLOSED = WeeklyWindow(start=0, end=0, days=())


def world(pool: Pool = IDLE, **more: object) -> PlayedOrders:
    """Two nodes for orders, with two apps under budgets that allow one, and two nodes beside them."""
    played = Played(**more)  # type: ignore[arg-type]
    played.pools = (pool,)
    played.with_nodes("a", "b", "c", "d")
    played.with_app("web", "a", "b", "a", allowed=1).with_app("api", "a", "b", allowed=1)
    return PlayedOrders(played)


def is_sound(orders: PlayedOrders) -> None:
    assert not orders.played.short
    assert not orders.moved_twice


def test_an_order_empties_its_nodes_and_keeps_them_cordoned() -> None:
    orders = world()
    orders.order("a", "b")
    orders.run(until="Done")
    assert orders.phase() == "Done"
    assert orders.played.cordoned == ["a", "b"]
    assert [orders.played.on("a"), orders.played.on("b")] == [[], []]
    assert orders.status()["empty"] == orders.status()["nodes"] == 2
    assert [orders.events[0], orders.events[-1]] == ["order-accepted", "order-complete"]
    is_sound(orders)


def test_all_nodes_are_cordoned_before_the_first_eviction() -> None:
    orders = world()
    orders.order("a", "b")
    orders.run(until="Done")
    writes = orders.played.writes
    assert max(writes.index("cordon a"), writes.index("cordon b")) < min(
        number for number, write in enumerate(writes) if write.startswith("evict")
    )
    assert writes[0] == "save drain-orders.trimtab.dev"


def test_a_deleted_order_releases_its_nodes_and_leaves_nothing() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(until="Done")
    orders.objects.clear()
    orders.run(6, loop)
    assert not orders.played.cordoned
    assert not orders.notes()
    assert not orders.entries()


def test_an_order_that_is_deleted_in_the_middle_evicts_nothing_more() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(30, until="Draining")
    orders.objects.clear()
    count = sum(write.startswith("evict") for write in orders.played.writes)
    orders.run(6, loop)
    assert sum(write.startswith("evict") for write in orders.played.writes) == count
    assert not orders.played.cordoned
    assert not orders.entries()


def test_a_node_that_another_client_had_cordoned_stays_so_after_the_release() -> None:
    orders = world()
    orders.played.nodes["a"]["spec"]["unschedulable"] = True
    orders.order("a", "b")
    loop = orders.run(until="Done")
    orders.objects.clear()
    orders.run(6, loop)
    assert orders.played.cordoned == ["a"]


def test_a_cordon_that_another_client_makes_after_the_end_is_not_undone() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(until="Done")
    item = orders.played.nodes["a"]
    item["spec"]["unschedulable"] = False
    orders.played._touch(item)
    orders.run(3, loop)
    item["spec"]["unschedulable"] = True
    orders.played._touch(item)
    orders.objects.clear()
    orders.run(6, loop)
    assert orders.played.cordoned == ["a"]


@pytest.mark.parametrize("fault", ["killed", "lost", "changed", "failed"])
def test_an_order_ends_well_after_any_fault_at_any_write(fault: str) -> None:
    whole = world()
    whole.order("a", "b", atOnce=2)
    whole.run(until="Done")
    for number in range(len(whole.played.writes)):
        orders = world()
        orders.played.faults[number] = fault
        orders.order("a", "b", atOnce=2)
        orders.run(120, until="Done")
        assert orders.phase() == "Done", (number, orders.status())
        assert orders.played.cordoned == ["a", "b"], number
        assert len([write for write in orders.played.writes if write.startswith("evict")]) <= 6, number
        is_sound(orders)


def test_a_release_ends_well_after_a_death_at_any_write() -> None:
    for number in range(4):
        orders = world()
        orders.order("a", "b")
        loop = orders.run(until="Done")
        orders.objects.clear()
        orders.played.faults[len(orders.played.writes) + number] = "killed"
        orders.run(12, loop)
        assert not orders.played.cordoned, number
        assert not orders.entries(), number


def test_an_author_whose_rights_are_lost_gets_no_further_eviction_and_the_cordons_are_given_back() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.loop()
    while not any(write.startswith("evict") for write in orders.played.writes):
        orders.run(1, loop)
    count = sum(write.startswith("evict") for write in orders.played.writes)
    orders.lost["ann"] = "create pods/eviction"
    orders.run(20, loop)
    assert sum(write.startswith("evict") for write in orders.played.writes) == count
    assert (orders.phase(), orders.status()["reason"]) == ("Failed", "order-author-not-permitted")
    assert not orders.played.cordoned
    assert not orders.notes()
    orders.lost.clear()
    orders.run(5, loop)
    assert not orders.played.cordoned


@pytest.mark.parametrize("dies", range(8))
def test_lost_rights_are_not_forgotten_by_the_next_leader(dies: int) -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.loop()
    while not any(write.startswith("evict") for write in orders.played.writes):
        orders.run(1, loop)
    orders.lost["ann"] = "create pods/eviction"
    orders.played.faults[len(orders.played.writes) + dies] = "killed"
    orders.run(3, loop)
    orders.lost.clear()
    loop = orders.run(20)
    assert orders.phase() == "Failed"
    assert not orders.played.cordoned


def test_while_the_api_server_does_not_say_what_the_author_may_do_nothing_is_written() -> None:
    orders = world()
    orders.silent = True
    orders.order("a", "b")
    loop = orders.run(5)
    assert (orders.phase(), orders.status()["reason"]) == ("Waiting", "order-rights-unknown")
    assert not orders.played.cordoned
    orders.silent = False
    orders.run(60, loop, until="Done")
    assert orders.phase() == "Done"


def test_silence_in_the_middle_stops_evictions_until_it_ends() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.loop()
    while not any(write.startswith("evict") for write in orders.played.writes):
        orders.run(1, loop)
    orders.silent = True
    count = sum(write.startswith("evict") for write in orders.played.writes)
    orders.run(10, loop)
    assert sum(write.startswith("evict") for write in orders.played.writes) == count
    assert orders.played.cordoned == ["a", "b"]
    orders.silent = False
    orders.run(60, loop, until="Done")
    assert orders.phase() == "Done"


def test_each_eviction_is_in_a_namespace_that_a_review_covers() -> None:
    orders = world()
    orders.played.with_app("far", "a", "b", namespace="far")
    orders.order("a", "b")
    orders.run(until="Done")
    assert {"far", "default"} == set().union(*orders.covered)
    assert orders.phase() == "Done"


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (("nowhere",), {}),
        (("a", "b", "c", "d"), {}),
        ((), {"selector": "nothing=here"}),
        ((), {"selector": "!nothing"}),
        ((), {"selector": "a in ("}),
        ((), {"pool": "all"}),
        (("a",), {"pool": "all"}),
        ((), {}),
    ],
)
def test_an_order_of_wrong_nodes_is_refused_for_good(names: tuple[str, ...], more: dict[str, str]) -> None:
    orders = world()
    orders.order(*names, **more)
    loop = orders.run(3)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-wrong-nodes")
    assert not orders.played.cordoned
    assert not orders.entries()
    orders.run(3, loop)
    assert orders.events == ["order-wrong-nodes"]


def test_nodes_of_the_control_plane_and_of_karpenter_are_refused() -> None:
    for labels in ({"node-role.kubernetes.io/control-plane": ""}, {"karpenter.sh/nodepool": "default"}):
        orders = world()
        orders.played.with_nodes("x", labels=labels)
        orders.order("a", "x")
        orders.run(3)
        assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-wrong-nodes")


def test_an_author_who_is_not_proven_is_refused() -> None:
    orders = world()
    orders.unproven = True
    orders.order("a")
    orders.run(3)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-author-unproven")
    assert not orders.played.cordoned


def test_an_author_without_rights_is_refused_and_later_rights_change_nothing() -> None:
    orders = world()
    orders.lost["ann"] = "patch nodes"
    orders.order("a")
    loop = orders.run(3)
    orders.lost.clear()
    orders.run(5, loop)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-author-not-permitted")
    assert not orders.played.cordoned


def test_of_two_orders_for_one_node_the_second_waits_until_the_first_is_deleted() -> None:
    orders = world()
    orders.order("a", uid="u-1")
    orders.order("b", "a", uid="u-2")
    loop = orders.run(60, until="Done")
    orders.run(2, loop)
    assert orders.status("u-2")["reason"] == "order-waits-for-order"
    assert orders.played.cordoned == ["a"]
    del orders.objects["u-1"]
    orders.run(60, loop)
    assert orders.phase("u-2") == "Done"
    assert orders.played.cordoned == ["a", "b"]


def test_orders_of_different_nodes_share_the_budgets() -> None:
    orders = world()
    orders.order("a", uid="u-1")
    orders.order("b", uid="u-2")
    orders.run(120)
    assert [orders.phase("u-1"), orders.phase("u-2")] == ["Done", "Done"]
    is_sound(orders)


def test_a_closed_window_is_waited_for_unless_the_order_overrides_it() -> None:
    pool = Pool(name="all", everything=True, dry_run=False, min_nodes=0, windows=(CLOSED,), node_age=10**9)
    orders = world(pool)
    orders.order("a")
    orders.run(4)
    assert (orders.phase(), orders.status()["reason"]) == ("Waiting", "order-window-closed")
    assert not orders.played.cordoned
    orders = world(pool)
    orders.order("a", override=["Windows"])
    orders.run(until="Done")
    assert orders.phase() == "Done"
    assert len(orders.status()["overrides"]) == 1
    assert "order-overrides" in orders.events


def test_limits_of_a_pool_hold_unless_the_order_overrides_them() -> None:
    keeps = Pool(name="all", everything=True, dry_run=False, min_nodes=4, drains=3, node_age=10**9)
    orders = world(keeps)
    orders.order("a")
    orders.run(4)
    assert orders.status()["reason"] == "order-pool-limit"
    assert not orders.played.cordoned
    orders = world(keeps)
    orders.order("a", override=["Limits"])
    orders.run(until="Done")
    assert orders.phase() == "Done"
    assert orders.status()["overrides"]


def test_evictions_of_an_hour_count_for_the_pool_and_for_orders() -> None:
    slow = Pool(name="all", everything=True, dry_run=False, min_nodes=0, drains=3, evictions_per_hour=2, node_age=10**9)
    orders = world(slow)
    orders.order("a", "b")
    orders.run(30)
    assert sum(write.startswith("evict") for write in orders.played.writes) == 2
    assert orders.phase() == "Draining"
    assert "order-pool-limit" in {remark["reason"] for remark in orders.status()["waiting"]}


@pytest.mark.parametrize("settings", [{"dry_run": True}, {"enabled": False, "dry_run": False}])
def test_a_pool_that_does_not_act_is_named_and_nothing_begins(settings: dict[str, bool]) -> None:
    orders = world(Pool(name="all", everything=True, min_nodes=0, **settings))  # type: ignore[arg-type]
    orders.order("a")
    orders.run(4)
    assert (orders.phase(), orders.status()["reason"]) == ("Waiting", "order-pool-mode")
    assert not orders.played.cordoned


def test_a_pause_and_a_process_that_rehearses_begin_nothing() -> None:
    orders = world()
    orders.played.paused = "namespace trimtab-system has the annotation trimtab.dev/paused: true"
    orders.order("a")
    loop = orders.run(4)
    assert orders.status()["reason"] == "order-paused"
    orders.played.paused = ""
    orders.run(60, loop, until="Done")
    assert orders.phase() == "Done"
    orders = world()
    orders.order("a")
    orders.run(4, orders.loop(rehearses=True))
    assert orders.status()["reason"] == "order-paused"
    assert not orders.played.cordoned


def test_a_node_of_no_pool_is_drained() -> None:
    orders = world()
    orders.played.pools = ()
    orders.order("a", "b")
    orders.run(until="Done")
    assert orders.phase() == "Done"


def test_an_order_ends_the_compactors_own_drain_of_its_node() -> None:
    orders, loop, name = with_own_drain()
    orders.order(name, override=["Limits"])
    orders.run(60, loop, until="Done")
    assert orders.phase() == "Done"
    assert "drain-ordered" in orders.played.told("released")
    assert name in orders.notes()
    assert orders.played.on(name) == []


def test_a_full_cluster_begins_nothing_and_says_what_is_missing() -> None:
    played = Played().with_nodes("a", "b").with_app("web", "a", "b", cpu="3", allowed=1)
    played.pools = (IDLE,)
    orders = PlayedOrders(played)
    orders.order("a")
    orders.run(4)
    assert (orders.phase(), orders.status()["reason"]) == ("Failed", "order-no-room")
    assert "is missing" in orders.status()["message"]
    assert not played.cordoned


def test_with_keep_going_a_node_that_cannot_be_emptied_is_left_out() -> None:
    orders = world()
    pod = orders.played._make("bare", "a", "100m", ready=True)
    pod["metadata"].pop("ownerReferences", None)
    orders.order("a", "b", keepGoing=True)
    orders.run(80, until="Failed")
    assert orders.phase() == "Failed"
    assert orders.played.cordoned == ["b"]
    assert orders.played.on("b") == []


def test_a_changed_spec_stops_the_order() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.loop()
    while not any(write.startswith("evict") for write in orders.played.writes):
        orders.run(1, loop)
    orders.objects["u-1"]["spec"]["nodes"] = ["a", "b", "c"]
    orders.run(20, loop)
    assert (orders.phase(), orders.status()["reason"]) == ("Failed", "order-changed")
    assert "c" not in orders.played.cordoned


def test_orders_that_cannot_be_read_are_neither_released_nor_continued() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(30, until="Draining")
    orders.broken = True
    count = len(orders.played.writes)
    orders.run(4, loop)
    assert not [write for write in orders.played.writes[count:] if not write.startswith("save")]
    orders.broken, orders.unserved = False, True
    orders.run(4, loop)
    assert orders.played.cordoned == ["a", "b"]
    orders.unserved = False
    orders.run(60, loop, until="Done")
    assert orders.phase() == "Done"


def test_an_annotation_that_the_state_does_not_know_is_removed() -> None:
    orders = world()
    orders.order("a", "b")
    orders.run(until="Done")
    orders.played.stored.clear()
    loop = orders.run(4)
    assert not orders.played.cordoned
    orders.run(6, loop)
    assert orders.phase() == "Done", "an order that has ended does not begin again"
    assert not orders.played.cordoned


def test_the_compactors_own_plan_takes_no_node_of_an_order() -> None:
    played = Played().with_nodes("a", "b", "c").with_app("web", "a", "b", allowed=1)
    played.pools = (Pool(**{**{name: getattr(ACT, name) for name in ACT.__slots__}, "windows": ()}),)
    orders = PlayedOrders(played)
    orders.order("a", "c", override=["Limits"])
    orders.run(80)
    assert orders.phase() == "Done"
    assert set(orders.notes()) == {"a", "c"}
    is_sound(orders)


def test_nothing_is_cordoned_while_the_entry_cannot_be_stored() -> None:
    orders = world()
    orders.played.full = True
    orders.order("a", "b")
    orders.run(8)
    assert not orders.entries()
    assert not orders.played.cordoned
    assert not any(write.startswith("evict") for write in orders.played.writes)


@pytest.mark.parametrize("limit", [{"until": "2020-01-01t00:00:00z"}, {"timeout": "soon"}, {"podTimeout": "soon"}])
def test_an_order_whose_time_limit_cannot_be_read_is_refused(limit: dict[str, str]) -> None:
    orders = world()
    orders.order("a", "b", **limit)
    orders.run(10)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-unreadable")
    assert not orders.played.cordoned


def test_a_cordon_of_another_client_in_the_middle_of_an_order_is_not_undone() -> None:
    """The node is uncordoned and, later, cordoned by another client, while the order keeps going on another node."""
    orders = world(ready_after=40)
    orders.order("a", "b", keepGoing=True)
    loop = orders.loop()
    while not any(write.startswith("evict") for write in orders.played.writes):
        orders.run(1, loop)
    item = orders.played.nodes["b"]
    item["spec"]["unschedulable"] = False
    orders.played._touch(item)
    orders.run(3, loop)
    item["spec"]["unschedulable"] = True
    orders.played._touch(item)
    orders.run(2, loop)
    orders.objects.clear()
    orders.run(6, loop)
    assert orders.played.cordoned == ["b"]
