"""Whom a DrainOrder believes, and for how long, on a cluster that is played."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.compactor.played import ACT
from tests.compactor.played_orders import PlayedOrders, with_own_drain
from tests.compactor.test_drain_orders import CLOSED, IDLE, is_sound, world
from tests.compactor.test_order_stops import evictions_of
from trimtab.compaction.drain.annotation import NotAuthentic
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.order.record import ORDER_ANNOTATION, OrderRecord, encode_record, order_taint
from trimtab.compactor.loop import Loop
from trimtab.compactor.order.order_acceptance import MAX_AGE_SECONDS
from trimtab.compactor.order.order_keeper import MAX_NEW_ORDERS

DAY = 86_400


def begun(orders: PlayedOrders) -> Loop:
    """The rounds until the first eviction."""
    loop = orders.loop()
    while not evictions_of(orders):
        orders.run(1, loop)
    return loop


# ── the policy for authors ───────────────────────────────────────────────
def narrow(orders: PlayedOrders) -> None:
    """A client narrows the binding and restores it, between two looks."""
    orders.policy[1]["metadata"]["generation"] += 2


def test_an_order_of_the_while_in_which_the_policy_was_narrowed_is_refused() -> None:
    orders = world()
    loop = orders.run(5)
    narrow(orders)
    orders.order("a", "b")
    orders.run(10, loop)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-author-unproven")
    assert not orders.played.cordoned
    orders.run(10, loop)
    orders.order("a", uid="u-2")
    orders.run(60, loop)
    assert orders.phase("u-2") == "Done"


def test_a_leader_that_comes_after_the_change_accepts_no_order_from_before() -> None:
    orders = world()
    narrow(orders)
    loop = orders.run(20)
    assert loop.orders is not None
    assert loop.orders.ledger.policy_sighting is not None
    narrow(orders)
    orders.order("a", "b")
    orders.played.tick(60)
    orders.run(10)
    assert orders.phase() == "Refused"


def test_what_was_observed_of_the_policy_is_stored_for_the_next_leader() -> None:
    orders = world()
    narrow(orders)
    orders.run(20)
    orders.order("a", "b")
    orders.run(60, until="Done")
    assert orders.phase() == "Done"


def test_the_policy_is_read_once_in_a_round() -> None:
    orders = world()
    loop = orders.run(3)
    for number in range(MAX_NEW_ORDERS):
        orders.order("a", uid=f"u-{number}")
    readings, lists = orders.policy_readings, orders.listed
    orders.run(10, loop)
    assert orders.policy_readings - readings == orders.listed - lists


# ── rights ───────────────────────────────────────────────────────────────
def test_a_right_that_is_lost_while_the_order_waits_gives_the_cordons_back() -> None:
    orders = world()
    orders.order("a", "b")
    loop = begun(orders)
    orders.played.pools = (dataclasses.replace(IDLE, windows=(CLOSED,)),)
    orders.lost["ann"] = "create pods/eviction"
    orders.run(30, loop)
    assert not orders.played.cordoned
    assert orders.status()["reason"] == "order-author-not-permitted"


def test_a_right_that_is_lost_while_a_successor_starts_gives_the_cordons_back() -> None:
    orders = world(ready_after=200)
    orders.order("a")
    loop = begun(orders)
    orders.run(3, loop)
    orders.lost["ann"] = "patch nodes a"
    orders.run(200, loop)
    assert orders.status()["reason"] == "order-author-not-permitted"
    assert not orders.played.cordoned


@pytest.mark.parametrize("keep_going", [True, False])
def test_a_pod_in_a_namespace_of_another_team_fails_its_node_alone(keep_going: bool) -> None:
    """A tenant binds a pod to a cordoned node: by spec.nodeName, or by a toleration of cordoned nodes."""
    orders = world()
    orders.foreign = {"tenant"}
    orders.order("a", "b", keepGoing=keep_going)
    loop = begun(orders)
    waits = next(name for name, note in orders.notes().items() if note.order is not None and note.order.waits)
    other = "b" if waits == "a" else "a"
    orders.played.with_app("squat", waits, namespace="tenant", cpu="10m")
    orders.run(80, loop)
    assert orders.played.on(other) == []
    assert orders.played.cordoned == ["a", "b"], "the cordons stay"
    assert (orders.phase(), orders.status()["reason"]) == ("Failed", "order-pod-not-permitted")
    assert [remark["node"] for remark in orders.status()["failed"]] == [waits]
    assert "squat-0" in orders.played.on(waits)
    is_sound(orders)


def test_a_foreign_pod_on_a_node_that_is_drained_fails_it_alone_and_evicts_nothing_of_it() -> None:
    orders = world(ready_after=10)
    orders.foreign = {"tenant"}
    orders.order("a", "b")
    loop = begun(orders)
    drained = next(name for name, note in orders.notes().items() if note.order is not None and not note.order.waits)
    other = "b" if drained == "a" else "a"
    orders.played.with_app("squat", drained, namespace="tenant", cpu="10m")
    orders.run(120, loop)
    assert orders.played.on(other) == []
    assert "squat-0" in orders.played.on(drained)
    assert orders.status()["reason"] == "order-pod-not-permitted"
    assert orders.notes()[drained].emptied is None


def test_a_foreign_pod_that_leaves_in_time_is_forgotten() -> None:
    orders = world(ready_after=20)
    orders.foreign = {"tenant"}
    orders.order("a", "b")
    loop = begun(orders)
    waits = next(name for name, note in orders.notes().items() if note.order is not None and note.order.waits)
    orders.played.with_app("squat", waits, namespace="tenant", cpu="10m")
    orders.run(3, loop)
    orders.played.pods = {
        uid: pod for uid, pod in orders.played.pods.items() if pod["metadata"]["namespace"] != "tenant"
    }
    orders.run(120, loop, until="Done")
    assert orders.phase() == "Done"


def test_a_pod_that_comes_to_an_emptied_node_fails_that_node_alone() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.loop()
    while not (emptied := [name for name, note in orders.notes().items() if note.emptied is not None]):
        orders.run(1, loop)
    orders.played.with_app("late", emptied[0], cpu="10m")
    other = "b" if emptied[0] == "a" else "a"
    orders.run(80, loop)
    assert orders.played.on(other) == []
    assert orders.phase() == "Failed"


# ── the age of an order ──────────────────────────────────────────────────
def test_an_order_that_is_too_old_is_not_accepted() -> None:
    orders = world()
    orders.order("a", "b")
    orders.played.now += MAX_AGE_SECONDS + 10
    orders.run(10)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-too-old")


def test_an_order_that_becomes_too_old_ends_and_gives_its_cordons_back() -> None:
    orders = world()
    orders.order("a", "b")
    loop = begun(orders)
    orders.played.pools = (dataclasses.replace(IDLE, windows=(CLOSED,)),)
    orders.run(3, loop)
    assert orders.played.cordoned == ["a", "b"]
    orders.played.now += MAX_AGE_SECONDS + 10
    orders.run(20, loop)
    assert (orders.phase(), orders.status()["reason"]) == ("Failed", "order-too-old")
    assert not orders.played.cordoned


def test_a_done_order_keeps_its_nodes_cordoned_however_old_it_is() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(60, until="Done")
    orders.played.now += 10 * MAX_AGE_SECONDS
    orders.run(10, loop)
    assert orders.played.cordoned == ["a", "b"]
    assert orders.phase() == "Done"


def test_a_time_of_acceptance_that_is_ahead_is_corrected() -> None:
    """A leader whose clock was ahead accepted the order: its `timeout` would end that much later."""
    entry = OrderEntry(name="o", since=2000, digest="d", nodes={})
    assert PoolState(orders={"u": entry}).clamp_to_now(1000).orders["u"].since == 1000


# ── marks on nodes that are not signed ───────────────────────────────────
def test_the_record_of_another_drain_on_a_node_is_said_and_disregarded() -> None:
    """Decision 25: no process acts on the record of `trimtab drain`."""
    orders = world()
    record = OrderRecord(order="forged", since=1, by="nobody", nodes=("a",))
    orders.played.nodes["a"]["metadata"]["annotations"][ORDER_ANNOTATION] = encode_record(record)
    orders.played.nodes["a"]["spec"]["unschedulable"] = True
    orders.order("a", "b")
    orders.run(60)
    assert orders.phase() == "Done", orders.status()["message"]
    assert len(orders.status()["overrides"]) == 1
    assert "order-overrides" in orders.events


def test_a_forged_soft_taint_of_the_order_leaves_no_node_out() -> None:
    orders = world()
    uid = orders.order("a", "b")
    taint = order_taint(uid)
    orders.played.nodes["a"]["spec"]["taints"] = [{"key": taint.key, "value": taint.value, "effect": taint.effect}]
    orders.run(60)
    assert orders.phase() == "Done", orders.status()


def test_a_forged_annotation_of_the_compactor_is_said_and_waited_for() -> None:
    orders = world()
    item = orders.played.nodes["a"]
    item["metadata"]["annotations"]["trimtab.dev/cordoned-for"] = '{"note": {"drain": "x"}}'
    item["spec"]["unschedulable"] = True
    orders.played._touch(item)
    assert isinstance(orders.played.look().annotations.doubtful["a"], NotAuthentic)
    orders.order("a", "b")
    loop = orders.run(6)
    assert (orders.phase(), orders.status()["reason"]) == ("Waiting", "order-compactor-drains")
    del item["metadata"]["annotations"]["trimtab.dev/cordoned-for"]
    orders.played._touch(item)
    orders.run(60, loop)
    assert orders.phase() == "Done"


# ── beside others ────────────────────────────────────────────────────────
def test_an_order_that_waits_for_a_window_does_not_end_the_compactors_own_drain() -> None:
    orders, loop, name = with_own_drain()
    orders.played.pools = (dataclasses.replace(ACT, windows=(CLOSED,)),)
    orders.order(name)
    orders.run(6, loop)
    assert orders.status()["reason"] == "order-window-closed"
    assert "drain-ordered" not in orders.played.told("released")


def test_orders_that_wait_keep_no_later_order_from_being_considered() -> None:
    orders = world()
    orders.order("a", uid="u-1")
    loop = orders.run(60, until="Done")
    for number in range(MAX_NEW_ORDERS + 5):
        orders.order("a", uid=f"w-{number:02}")
    orders.played.now += 60
    orders.order("b", uid="z-1")
    orders.run(60, loop)
    assert orders.phase("z-1") == "Done", orders.status("z-1")


def test_the_release_of_a_node_that_another_client_had_cordoned_says_that_it_stays_so() -> None:
    orders = world()
    orders.played.nodes["a"]["spec"]["unschedulable"] = True
    orders.order("a", "b")
    loop = orders.run(until="Done")
    orders.objects.clear()
    orders.run(4, loop)
    told = {record.node: record.why for record in orders.played.records if record.code == "order-released"}
    assert "stays cordoned" in told["a"]
    assert "uncordoned" in told["b"]


def test_the_status_of_a_done_order_whose_state_was_lost_does_not_say_cordoned() -> None:
    orders = world()
    orders.order("a", "b")
    orders.run(until="Done")
    orders.played.stored.clear()
    orders.run(10)
    assert orders.status()["cordoned"] == len(orders.played.cordoned) == 0


def test_an_error_in_the_release_of_one_order_does_not_stop_the_others() -> None:
    orders = world()
    orders.order("a", uid="u-1")
    loop = orders.run(60, until="Done")
    orders.objects.clear()
    orders.order("b", uid="u-2")
    real = orders.played.release_node

    def release_node(node: str, version: str, *, uncordon: bool) -> None:
        if node == "a":
            raise ValueError("something unforeseen")
        real(node, version, uncordon=uncordon)

    orders.played.release_node = release_node  # type: ignore[method-assign]
    orders.run(60, loop)
    assert orders.phase("u-2") == "Done"


@pytest.mark.parametrize(
    "wish", [{"nodes": ["a"]}, {"nodes": ["zz"]}, {"selector": "kubernetes.io/hostname=a"}, {"pool": "all"}]
)
def test_an_author_who_may_not_list_nodes_learns_nothing_of_them_from_a_refusal(wish: dict[str, Any]) -> None:
    orders = world()
    orders.blind.add("ann")
    orders.order(**wish)
    orders.run(3)
    assert (orders.phase(), orders.status()["reason"]) == ("Refused", "order-author-not-permitted")
    assert orders.status()["message"].endswith("list nodes")


def test_an_order_that_has_lost_its_rights_keeps_no_order_of_another_author_from_the_nodes() -> None:
    orders = world()
    orders.order("a", "b")
    loop = begun(orders)
    orders.lost["ann"] = "create pods/eviction"
    orders.run(20, loop)
    assert orders.phase() == "Failed"
    assert not orders.played.cordoned
    orders.order("a", uid="u-2", by="bob")
    orders.run(60, loop)
    assert orders.phase("u-2") == "Done"
    orders.objects.pop("u-1")
    orders.run(5, loop)
    assert orders.played.cordoned == ["a"]
    is_sound(orders)


def test_an_order_that_has_cordoned_nothing_keeps_no_later_one_from_its_nodes() -> None:
    orders = world()
    orders.played.with_app("big", "c", "d", cpu="3800m")
    orders.order("a", "b")
    loop = orders.run(until="Failed")
    orders.played.with_nodes("e", "f")
    orders.order("a", uid="u-2")
    orders.run(60, loop)
    assert orders.phase("u-2") == "Done"
