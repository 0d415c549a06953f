"""What an order does round by round on a cluster that is played, and that nothing of it is lost with the process."""

import random

import pytest
from msgspec.structs import replace

from tests.compactor.ordered import OrderedDrain
from tests.compactor.played import Played
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.order.order_round import OrderPhase
from trimtab.compaction.order.reasons import STOPPED
from trimtab.compaction.order.record import ORDER_ANNOTATION, encode_record


def world(**more: object) -> Played:
    """Two nodes of an order, with two apps under budgets that allow one, and two nodes beside them."""
    played = Played(**more)  # type: ignore[arg-type]
    played.with_nodes("a", "b", "c", "d")
    return played.with_app("web", "a", "b", "a", allowed=1).with_app("api", "a", "b", allowed=1)


def codes(result: object) -> set[str]:
    return {reason.code.name for reason in result.failures.values()}  # type: ignore[attr-defined]


def test_both_nodes_are_empty_and_stay_cordoned() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    result = drain.run()
    assert result.is_done
    assert drain.played.cordoned == ["a", "b"]
    assert [drain.played.on("a"), drain.played.on("b")] == [[], []]
    assert not drain.played.short
    assert not drain.moved_twice


def test_nothing_is_evicted_before_all_nodes_are_cordoned() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    first = drain.decide()
    assert [name for name, _ in first.writes] == ["a", "b"]
    assert not drain.played.pods.keys() - {pod["metadata"]["uid"] for pod in drain.played.pods.values()}


@pytest.mark.parametrize("at_once", [1, 2])
def test_whoever_comes_after_a_death_at_any_write_brings_it_to_its_end(at_once: int) -> None:
    writes = OrderedDrain.of(world(), "a", "b", at_once=at_once)
    writes.run()
    for number in range(1, writes.writes + 1):
        drain = OrderedDrain.of(world(), "a", "b", at_once=at_once)
        drain.dies_after = number
        drain.run()
        drain.dies_after = None
        drain.played.tick(30)
        assert drain.run().is_done, number
        assert not drain.played.short
        assert not drain.moved_twice
        assert drain.played.cordoned == ["a", "b"]


def test_a_full_cluster_begins_nothing() -> None:
    played = world().with_app("big", "c", "d", cpu="3800m")
    drain = OrderedDrain.of(played, "a", "b")
    result = drain.run()
    assert result.is_over
    assert codes(result) == {"order-no-room"}
    assert not played.cordoned


def test_what_can_be_drained_is_drained_if_the_user_says_so() -> None:
    played = world().with_app("alone", "b", owner="")
    played.wanted.pop("alone")
    drain = OrderedDrain.of(played, "a", "b", keeps_going=True)
    result = drain.run()
    assert result.phases == {"a": OrderPhase.EMPTY, "b": OrderPhase.FAILED}
    assert played.cordoned == ["a"]
    assert played.nodes["b"]["spec"]["taints"]


def test_a_node_that_another_client_uncordons_is_not_cordoned_again() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    drain._write(drain.decide())
    drain.played.nodes["b"]["spec"]["unschedulable"] = False
    result = drain.run()
    assert codes(result) == {"drain-uncordoned"}
    assert drain.played.cordoned == ["a"]
    assert not result.is_done


def give_back(drain: OrderedDrain, name: str, **metadata: str) -> None:
    """As --release does it, or a node that registers again."""
    item = drain.played.nodes[name]
    item["metadata"]["annotations"] = {}
    item["metadata"].update(metadata)
    item["spec"]["unschedulable"] = False


@pytest.mark.parametrize(
    ("metadata", "phase", "code"),
    [({}, OrderPhase.FAILED, {"order-record-removed"}), ({"uid": "another"}, OrderPhase.LEFT, set())],
)
def test_a_node_that_is_released_or_created_again_is_not_cordoned_again(
    metadata: dict[str, str], phase: OrderPhase, code: set[str]
) -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    drain._write(drain.decide())
    drain.decide()
    give_back(drain, "b", **metadata)
    result = drain.run()
    assert (result.phases["b"], codes(result)) == (phase, code)
    assert "b" not in drain.played.cordoned


def test_a_node_that_is_released_when_it_is_empty_is_left() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    while (result := drain.decide()).phases["a"] is not OrderPhase.EMPTY:
        drain._write(result)
        drain._pass_time()
    give_back(drain, "a")
    result = drain.run()
    assert result.phases == {"a": OrderPhase.LEFT, "b": OrderPhase.EMPTY}
    assert drain.played.cordoned == ["b"]


def test_a_forged_end_does_not_make_a_node_with_pods_empty() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    drain._write(drain.decide())
    end = DrainAnnotation(drain="d1", pool="", since=drain.played.now, emptied=drain.played.now)
    forged = replace(drain.records()["b"], drain=end)
    drain.played.nodes["b"]["metadata"]["annotations"][ORDER_ANNOTATION] = encode_record(forged)
    result = drain.run()
    assert codes(result) == {"order-node-not-empty"}
    assert not result.is_done


def test_a_node_that_disappears_is_left() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    drain._write(drain.decide())
    drain.played.pods = {uid: pod for uid, pod in drain.played.pods.items() if pod["spec"]["nodeName"] != "b"}
    del drain.played.nodes["b"]
    result = drain.run()
    assert result.phases == {"a": OrderPhase.EMPTY, "b": OrderPhase.LEFT}
    assert result.is_done


def test_a_pod_that_never_ends_fails_its_node_and_begins_no_other() -> None:
    played = world()
    played.endless = ("api",)
    result = OrderedDrain.of(played, "a", "b").run()
    assert codes(result) == {"drain-pod-stuck"}
    assert OrderPhase.WAITING in result.phases.values()


def test_a_successor_that_never_gets_ready_stops_the_order() -> None:
    played = world(ready_after=10**6)
    result = OrderedDrain.of(played, "a", "b").run()
    assert codes(result) == {"drain-successor-not-ready"}
    assert not played.short
    assert not result.is_done


def test_a_stop_waits_for_what_was_evicted_and_evicts_nothing_more() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    while not any("evict" in write for write in drain.played.writes):
        drain._write(drain.decide())
        drain._pass_time()
    evicted = len(drain.played.writes)
    result = drain.run(stop=STOPPED("stopped"))
    assert len(drain.played.writes) == evicted
    assert not result.is_done
    assert len(drain.played.healthy("web")) == 3
    assert len(drain.played.healthy("api")) == 2


def test_no_node_is_begun_after_the_time_of_until() -> None:
    played = world()
    drain = OrderedDrain.of(played, "a", "b", until=played.now + 1)
    drain._write(drain.decide())
    drain._pass_time()
    result = drain.run()
    assert result.stop is not None
    assert result.stop.code.name == "order-until-reached"
    assert not any("evict" in write for write in played.writes)


def test_a_pod_that_was_being_bound_at_the_cordon_moves_too() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    for _ in range(2):
        drain._write(drain.decide())
        drain._pass_time()
    drain.played.with_app("late", "a")
    assert drain.run().is_done
    assert drain.played.on("a") == []


def test_a_pod_that_its_template_binds_to_the_node_is_not_evicted_without_end() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    for _ in range(4):
        drain._write(drain.decide())
        drain._pass_time()
    [successor, *_] = [pod for pod in drain.played.pods.values() if pod["spec"]["nodeName"] in ("c", "d")]
    successor["spec"]["nodeName"] = next(iter(drain.records()))
    result = drain.run()
    assert codes(result) == {"order-pod-returns"}


def test_orders_on_drawn_clusters_end_within_budgets_and_move_no_pod_twice() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        played = Played(ready_after=draw.choice([2, 4, 9]), ends_after=draw.choice([0, 2, 7]))
        names = [f"n{number}" for number in range(draw.randint(3, 6))]
        played.with_nodes(*names, labels={})
        for number in range(draw.randint(1, 5)):
            on = [draw.choice(names) for _ in range(draw.randint(1, 5))]
            cpu = draw.choice(["200m", "500m", "900m"])
            played.with_app(f"app{number}", *on, cpu=cpu, allowed=draw.choice([None, 1, 1, 2]))
        chosen = draw.sample(names, draw.randint(1, len(names) - 1))
        drain = OrderedDrain.of(played, *chosen, at_once=draw.randint(1, 3), keeps_going=draw.random() < 0.3)
        if draw.random() < 0.5:
            drain.dies_after = draw.randint(1, 12)
            drain.run()
            drain.dies_after = None
        result = drain.run()
        assert result.is_over, seed
        assert not played.short, seed
        assert not drain.moved_twice, seed
        assert set(played.cordoned) <= set(chosen), seed
        if result.is_done:
            assert all(not played.on(name) for name in chosen), seed


def test_what_was_evicted_from_a_node_that_failed_is_waited_for() -> None:
    drain = OrderedDrain.of(world(), "a", "b")
    while not any(pod["metadata"].get("deletionTimestamp") for pod in drain.played.pods.values()):
        result = drain.decide()
        drain._write(result)
    # Another client uncordons the node from which a pod was evicted: nothing more begins, but the pod is on its way.
    [begun] = [name for name, record in drain.records().items() if record.drain is not None]
    drain.played.nodes[begun]["spec"]["unschedulable"] = False
    result = drain.decide()
    assert codes(result) == {"drain-uncordoned"}
    assert not result.is_over
    drain.played.tick(40)
    drain.played.tick(40)
    assert drain.decide().is_over
