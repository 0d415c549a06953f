"""How DrainOrders end with the process that carries them out, on a cluster that is played."""

from __future__ import annotations

from typing import Any

from tests.compactor.played import Played
from tests.compactor.played_orders import PlayedOrders
from tests.compactor.test_drain_orders import world
from trimtab.cluster.reason import Reason
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.order.order_object import OrderSpec


def evictions_of(orders: PlayedOrders) -> list[str]:
    return [write for write in orders.played.writes if write.startswith("evict")]


def test_a_stop_of_the_process_ends_evictions_at_the_next_write() -> None:
    orders = world()
    orders.played.budgets.clear()
    for number in range(6):
        orders.played.with_app(f"more-{number}", "a", cpu="10m")
    orders.order("a", "b", atOnce=2)
    loop = orders.loop()
    real = orders.played.evict_pod
    after_stop: list[str] = []

    def evict(move: Any) -> Any:
        if loop.drainer.steps.shutdown.is_requested:
            after_stop.append(move.pod)
        loop.drainer.steps.shutdown.request_stop()
        return real(move)

    orders.played.evict_pod = evict  # type: ignore[method-assign]
    for _ in range(30):
        loop.run_round()
        orders.tick()
        if evictions_of(orders):
            break
    assert len(evictions_of(orders)) >= 1
    assert not after_stop


def test_a_view_that_is_too_old_evicts_nothing() -> None:
    """The reviews and writes of other orders in the same round may take minutes; a pause must take effect."""
    orders = world()
    clock = {"late": 0.0}
    orders.order("a", "b")
    loop = orders.loop()
    loop.elapsed = lambda: orders.played.now + clock["late"]  # type: ignore[method-assign]
    loop.drainer.steps.elapsed = loop.elapsed
    assert loop.orders is not None
    loop.orders.elapsed = loop.elapsed
    real = orders.rights_problem

    def slow(*args: Any, **more: Any) -> Reason | None:
        clock["late"] += 60
        return real(*args, **more)

    orders.rights_problem = slow  # type: ignore[method-assign]
    for _ in range(10):
        loop.run_round()
        orders.tick()
    assert not evictions_of(orders)


def test_a_shutdown_does_not_wait_for_nodes_of_orders() -> None:
    orders = world()
    orders.order("a", "b")
    loop = orders.run(30, until="Draining")
    pauses: list[float] = []
    loop.pause = pauses.append
    loop.shut_down()
    assert len(pauses) == 0


def test_an_order_of_a_lost_state_evicts_nothing_from_a_node_that_was_just_released() -> None:
    orders = world(ready_after=6)
    orders.order("a", "b")
    loop = orders.loop()
    while not evictions_of(orders):
        orders.run(1, loop)
    orders.tick(10)
    orders.played.stored.clear()
    count = len(orders.played.writes)
    orders.run(6)
    writes = orders.played.writes[count:]
    released: set[str] = set()
    for write in writes:
        kind, _, what = write.partition(" ")
        if kind == "release":
            released.add(what)
        elif kind == "cordon":
            released.discard(what)
        elif kind == "evict":
            assert not released, writes


def test_the_second_witness_is_written_again_when_its_config_map_was_deleted() -> None:
    """As for the states of pools: otherwise the next leader knows no order, and uncordons nodes that are repaired."""
    orders = world()
    orders.order("a", "b")
    loop = orders.run(until="Done")
    orders.run(3, loop)
    del orders.played.stored[ORDERS]
    orders.run(5, loop)
    orders.run(3)  # the next leader
    assert orders.played.cordoned == ["a", "b"]


def test_an_unexpected_error_in_one_order_does_not_stop_the_others() -> None:
    orders = world()
    orders.order("b", uid="u-0")
    orders.order("a", uid="u-1")
    real = orders.rights_problem

    def rights_problem(spec: OrderSpec, *args: Any, **more: Any) -> Reason | None:
        if spec.nodes == ("b",):
            raise ValueError("something unforeseen")
        return real(spec, *args, **more)

    orders.rights_problem = rights_problem  # type: ignore[method-assign]
    orders.run(60)
    assert orders.phase("u-1") == "Done"


def test_orders_of_a_tenant_without_rights_that_wait_keep_no_order_of_another_user_waiting() -> None:
    """The room is asked before the rights: an order of a node that is taken waits, whoever its author is."""
    orders = world()
    orders.lost["tenant"] = "patch nodes"
    orders.order("a", uid="u-1")
    loop = orders.run(60, until="Done")
    for number in range(20):
        orders.order("a", uid=f"w-{number:02}", by="tenant")
    orders.played.now += 60
    orders.order("b", uid="z-1")
    orders.run(60, loop)
    assert orders.phase("z-1") == "Done", orders.status("z-1")


def test_an_author_without_rights_learns_it_although_a_node_is_taken() -> None:
    orders = world()
    orders.lost["tenant"] = "patch nodes"
    orders.order("a", uid="u-1")
    loop = orders.run(60, until="Done")
    orders.order("a", uid="w-1", by="tenant")
    orders.run(4, loop)
    assert orders.phase("w-1") == "Refused", orders.status("w-1")["message"]


def test_an_order_of_all_nodes_that_take_pods_is_refused_also_beside_a_control_plane() -> None:
    played = Played().with_nodes("a", "b").with_nodes("m", labels={"node-role.kubernetes.io/control-plane": ""})
    played.pools = ()
    orders = PlayedOrders(played)
    orders.order("a", "b")
    orders.run(20)
    assert orders.phase() == "Refused", (orders.phase(), played.cordoned)
