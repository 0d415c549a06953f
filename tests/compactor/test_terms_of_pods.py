"""The compactor and what pods state themselves: windows that close, numbers that last over drains and deaths."""

from dataclasses import replace

import pytest

from tests.compactor.played import ACT, Played, process, run
from tests.compactor.played_orders import PlayedOrders
from trimtab.cluster.disruption_terms import PER_DAY_ANNOTATION, WINDOWS_ANNOTATION
from trimtab.compaction.drain.pool_state import PoolState, decode_state

CLOSED = "mon 12:00-13:00"
HOUR = 3600


def two(**annotations: str) -> Played:
    """A Deployment with a pod on n1 and one on n2, which have these annotations; n3 has room and stays."""
    played = Played().with_nodes("n1", "n2", cpu="900m").with_nodes("n3")
    played.with_app("web", "n1", "n2", cpu="500m", annotations=annotations)
    return played.with_app("big", "n3", "n3", cpu="1", annotations={"trimtab.dev/do-not-disrupt": "true"})


def evictions(played: Played) -> list[str]:
    return [write for write in played.writes if write.startswith("evict")]


def state(played: Played) -> PoolState:
    stored = decode_state("all", {"state.json": played.stored["all"]})
    assert isinstance(stored, PoolState)
    return stored


def test_two_pods_of_a_workload_move_within_a_day() -> None:
    played = two()
    run(played, 200)
    assert len(evictions(played)) == 2


def test_of_a_workload_that_permits_one_eviction_a_day_one_pod_moves() -> None:
    played = two(**{PER_DAY_ANNOTATION: "1"})
    run(played, 200)
    assert len(evictions(played)) == 1
    assert {name: len(times) for name, times in state(played).disruptions.items()} == {"ReplicaSet/default/web": 1}
    run(played, 200)
    assert len(evictions(played)) == 1
    played.now += 25 * HOUR
    run(played, 200)
    assert len(evictions(played)) == 2


@pytest.mark.parametrize("number", range(12))
def test_killed_at_any_write_no_more_pods_move_than_the_day_has(number: int) -> None:
    played = two(**{PER_DAY_ANNOTATION: "1"})
    played.faults = {number: "killed"}
    run(played, 100)
    moved = [item for item in played.pods.values() if item["metadata"]["uid"] not in ("u4", "u5")]
    assert len(evictions(played)) <= 2
    assert len([item for item in moved if item["metadata"]["labels"]["app"] == "web"]) <= 1


def test_a_window_that_closes_ends_the_drain_and_nothing_counts_against_the_node() -> None:
    played = two()
    loop = process(played)
    for _ in range(200):
        if any(write.startswith("cordon") for write in played.writes):
            break
        loop.run_round()
        played.tick()
    assert not evictions(played)
    for item in played.pods.values():
        if item["metadata"]["labels"]["app"] == "web":
            item["metadata"]["annotations"][WINDOWS_ANNOTATION] = CLOSED
    for _ in range(40):
        loop.run_round()
        played.tick()
    assert not evictions(played)
    assert "pod-outside-own-windows" in {record.code for record in played.records if record.what == "released"}
    assert (state(played).failures, state(played).strikes) == ({}, 0)


def test_after_the_longest_delay_the_node_is_drained_although_no_window_is_open() -> None:
    played = two(**{WINDOWS_ANNOTATION: CLOSED})
    played.pools = (replace(ACT, max_term_delay=2 * HOUR),)
    run(played, 30)
    assert not evictions(played)
    assert set(state(played).delays) == {"n1", "n2"}
    played.now += HOUR
    run(played, 30)
    assert not evictions(played)
    played.now += HOUR + 60
    run(played, 200)
    assert len(evictions(played)) == 2


@pytest.mark.parametrize("number", range(12))
def test_an_order_that_is_killed_at_any_write_has_counted_each_of_its_evictions(number: int) -> None:
    played = two(**{PER_DAY_ANNOTATION: "5"})
    played.pools = (replace(ACT, node_age=10**9),)
    orders = PlayedOrders(played)
    orders.order("n1", "n2")
    played.faults = {number: "killed"}
    orders.run(80)
    assert len(set(evictions(played))) == 2
    counts = [len(times) for times in state(played).disruptions.values()]
    assert sum(counts) >= 2
