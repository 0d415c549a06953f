"""A pool that makes the cluster grow stops, for longer each time."""

from dataclasses import replace

from tests.cluster_of import NOW
from tests.compactor.five import begun, five
from tests.compactor.played import ACT, Played, process, run
from trimtab.compaction.drain.backoff import PoolBackoff
from trimtab.compaction.drain.pool_state import PoolState, encode_state
from trimtab.compaction.drain.timeouts import DrainTimeouts


def grown() -> Played:
    """Successors ask for more than anybody knows of, and the autoscaler buys a node for those that wait."""
    played = five()
    played.pools = (replace(ACT, drains=1, openings_per_hour=0),)
    played.successors = {"web": "3", "api": "3", "job": "3"}
    played.buys_after = 10
    return played


def drains(played: Played) -> int:
    return len(played.told("started"))


def test_a_drain_whose_own_successors_wait_backs_off_the_pool() -> None:
    played = grown()
    loop = run(played, 120)
    before = drains(played)
    assert played.told("closed") == ["pool-backs-off"]
    run(played, 1600, loop)  # not quite an hour
    assert drains(played) == before


def backing_off() -> Played:
    """What a process wrote before it ended."""
    played = five()
    played.stored["all"] = encode_state(PoolState(backoff=PoolBackoff(1, played.now)))
    return played


def test_the_wait_survives_a_restart() -> None:
    played = backing_off()
    run(played, 30)
    assert not drains(played)
    played.now += 3600
    run(played, 30, process(played))
    assert drains(played)


def test_a_node_that_is_bought_for_what_would_have_fitted_on_an_emptied_one_backs_off_the_pool() -> None:
    played = five()
    played.takes_after = 20
    loop = run(played, 80)
    assert played.told("removed")
    played.with_app("new", cpu="3500m")
    played.wanted["new"], played.buys_after = len(played.nodes) + 1, 2
    played.successors["new"] = "3500m"
    run(played, 40, loop)
    assert played.bought
    assert "pool-backs-off" in played.told("closed")


def test_growth_of_the_load_alone_is_no_setback() -> None:
    """Nothing was emptied, or what was emptied is half an hour ago: the load has grown, and that is all."""
    played = five()
    played.takes_after = 20
    loop = run(played, 80)
    assert played.told("removed")
    played.now += 1800
    played.wanted["new"], played.buys_after = len(played.nodes) + 1, 2
    played.successors["new"] = "3500m"
    run(played, 40, loop)
    assert played.bought
    assert not played.told("closed")


def test_pods_that_wait_because_their_workload_has_grown_are_no_setback() -> None:
    played = five()
    loop, _ = begun(played)
    played.wanted["job"] += 1
    played.successors["job"] = "8"
    run(played, 30, loop)
    assert played.told("released")
    assert not played.told("closed")


def test_a_person_ends_the_wait() -> None:
    played = backing_off()
    loop = process(played)
    loop.reopened_at = lambda pool: played.now
    run(played, 30, loop)
    assert drains(played)


def test_the_wait_doubles_to_a_day_and_a_day_without_begins_at_an_hour_again() -> None:
    waits = [PoolBackoff(times, NOW).retry_after - NOW for times in range(1, 8)]
    assert [seconds // 3600 for seconds in waits] == [1, 2, 4, 8, 16, 24, 24]
    memory = PoolState(backoff=PoolBackoff(5, NOW))
    day_after = memory.backoff.retry_after + 86_400
    assert memory.with_setback("d9", day_after - 1).backoff == PoolBackoff(6, day_after - 1)
    assert memory.with_setback("d9", day_after).backoff == PoolBackoff(1, day_after)
    assert memory.without_old_entries(day_after, DrainTimeouts(), []).backoff is None


def test_one_cause_counts_once() -> None:
    memory = PoolState().with_setback("d1", NOW)
    assert memory.with_setback("d1", NOW + 60) == memory
