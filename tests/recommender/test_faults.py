"""Killed mid-write, two leaders, a corrupt shard, an hour without Prometheus, a spike: nothing lost, nothing wrong."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.recommender.played import MI, START, Histories, Killed, Process, World, moments
from trimtab.cluster.quantity import scheduler_value
from trimtab.cluster.reason import Unreadable
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.checkpoint import Workloads, decode
from trimtab.histogram.time_buckets import DAY

HOUR = 3600
NAMESPACES = ("shop", "team-a", "team-b", "team-c", "team-d")
WEB = ContainerKey("shop", "Deployment", "web", "app")


def p95(world: World, resource: str = "cpu", name: str = "web", namespace: str = "shop") -> int | None:
    histogram = world.of(name, namespace)
    percentiles = histogram.percentiles_of(resource) if histogram is not None else None
    return None if percentiles is None else scheduler_value(resource, percentiles.p95)


def cluster() -> World:
    world = World()
    for namespace in NAMESPACES:
        world.runs("web", "api", namespace=namespace)
    return world


@lru_cache
def _aged(limit: int) -> World:
    world = cluster()
    moments(world, limit=limit).lives(DAY).loop.store_all()
    return world


def aged(limit: int = 900_000) -> World:
    """The cluster, gathered for a day by a process that ended."""
    world = cluster()
    before = _aged(limit)
    world.now, world.days.stored = before.now, dict(before.days.stored)
    world.usage.stored, world.told.stored = dict(before.usage.stored), dict(before.told.stored)
    return world


def test_a_day_of_moments_is_published() -> None:
    world = World().runs("web", cores=0.2)
    moments(world).lives(HOUR // 2)
    assert world.published() == {}
    moments(world).lives(2 * HOUR)
    histogram = world.of("web")
    assert histogram is not None
    percentiles = {resource: histogram.percentiles_of(resource) for resource in ("cpu", "memory")}
    assert {resource: percentile is not None and percentile.young for resource, percentile in percentiles.items()} == {
        "cpu": True,
        "memory": True,
    }
    moments(world).lives(DAY)
    histogram = world.of("web")
    assert histogram is not None
    assert histogram.cpu is not None
    assert not histogram.cpu.young
    assert p95(world) == 200
    assert p95(world, "memory") == 100 * MI


def test_what_is_missing_is_told_with_its_reason() -> None:
    process = moments(World().runs("web")).lives(HOUR // 2)
    lacking = process.loop.recommendations.missing[WEB]
    assert {resource: one.reason.code.name for resource, one in lacking.items()} == {
        "cpu": "insufficient-history",
        "memory": "insufficient-history",
    }
    assert (lacking["cpu"].have, lacking["cpu"].need) == ("0.3 hours, 3 samples", "an hour, 10 samples")


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
@pytest.mark.parametrize("write", [*range(3), *range(17, 27)])  # days are written after an hour
def test_killed_at_any_write_loses_no_more_than_ten_minutes(write: int, after: bool) -> None:
    world = aged(300)  # small shards, so that there are several
    process = moments(world, limit=300)
    assert len(world.usage.stored) > 1
    before = {c: w.merge_days().total_count for (c, r), w in process.loop.history.windows.items() if r == "cpu"}
    world.usage.kill_at, world.usage.kill_after = world.usage.count + write, after
    with pytest.raises(Killed):
        process.lives(2 * HOUR)
    world.usage.kill_at = None
    second_process = moments(world, limit=300)
    assert second_process.loop.history.list_containers() == sorted(before)
    for container, total in before.items():
        assert (
            second_process.loop.history.get_window(container, "cpu").merge_days().total_count
            >= total - 600 // world.step
        )
    second_process.lives(HOUR)
    assert {p95(world, "cpu", name, namespace) for namespace in NAMESPACES for name in ("web", "api")} == {100}


@pytest.mark.parametrize("write", range(12))
def test_killed_while_shards_become_more_loses_nothing(write: int) -> None:
    world = aged()
    count = len(moments(world).loop.history.list_containers())
    world.usage.kill_at = world.usage.count + write
    process = moments(world, limit=270)
    try:
        process.lives(HOUR)
    except Killed:
        world.usage.kill_at = None
    actual_process = moments(world, limit=270)
    assert len(actual_process.loop.history.list_containers()) == count == 10
    assert {
        actual_process.loop.history.get_window(c, "cpu").merge_days().total_count
        for c in actual_process.loop.history.list_containers()
    } <= set(range(DAY // world.step - 2, (DAY + HOUR) // world.step + 1))  # and nothing twice


def test_a_leader_that_is_one_no_more_writes_nothing() -> None:
    world = World().runs("web")
    old = moments(world).lives(DAY)
    written = dict(world.usage.stored), dict(world.told.stored)
    world.usage.fence = world.told.fence = lambda: False  # as the Lease says to the old one
    old.lives(2 * HOUR)
    assert (world.usage.stored, world.told.stored) == written
    assert old.loop.fault_count > 0
    world.usage.fence = world.told.fence = lambda: True
    new = moments(world).lives(HOUR)
    assert new.loop.history.get_window(WEB, "cpu").merge_days().total_count >= DAY // world.step
    assert p95(world) == 100


def held(text: str) -> Workloads:
    shard = decode("here", text)
    assert not isinstance(shard, Unreadable)
    return shard.workloads


def damage(world: World, shard: int) -> str:
    text = world.usage.stored[shard]
    world.usage.stored[shard] = text[: len(text) // 2]
    return world.usage.stored[shard]


def test_a_corrupt_shard_is_kept_aside_and_the_others_live() -> None:
    world = aged(300)
    shard = min(world.usage.stored)
    broken = damage(world, shard)
    second_process = moments(world, limit=300)
    alive = second_process.loop.history.list_containers()
    assert 0 < len(alive) < 10
    assert (
        second_process.loop.metrics.registry.get_sample_value(
            "trimtab_recommender_unreadable_shards", {"what": "usage"}
        )
        == 1
    )
    second_process.lives(HOUR)
    assert world.usage.kept == {shard: broken}
    assert len(moments(world, limit=300).loop.history.list_containers()) == 10


def test_what_a_corrupt_shard_held_stays_published_until_it_is_known_again() -> None:
    world = aged(300)
    damage(world, min(world.usage.stored))
    for container in world.cores:
        world.cores[container] = 0.3
    moments(world, limit=300).lives(12 * HOUR)
    assert len(world.published()) == 10
    assert {round(p95(world, "cpu", c.workload, c.namespace) or 0, -1) for c in world.cores} == {100, 300}


def test_a_corrupt_shard_is_not_overwritten_while_it_cannot_be_kept_aside() -> None:
    world = World().runs("web")
    moments(world).lives(DAY).loop.store_all()
    broken = damage(world, 0)
    second_process = moments(world)
    world.usage.down = True
    second_process.lives(HOUR)
    assert (world.usage.stored, world.usage.kept) == ({0: broken}, {})
    world.usage.down = False
    second_process.lives(HOUR)
    assert world.usage.kept == {0: broken}
    assert world.usage.stored[0] != broken


def test_history_fills_what_a_corrupt_shard_held() -> None:
    world = World().runs("web", cores=0.2)
    source = Histories(world)
    Process(world, source).lives(2 * DAY).loop.store_all()
    damage(world, 0)
    second_process = Process(world, source).lives(HOUR)
    assert second_process.loop.history.get_window(WEB, "cpu").observed_seconds >= 2 * DAY
    assert p95(world) == 200


def test_only_what_a_corrupt_shard_may_have_held_is_read_again() -> None:
    world = cluster()
    source = Histories(world)
    Process(world, source, limit=300).lives(DAY).loop.store_all()
    assert len(world.usage.stored) > 1
    shard = max(world.usage.stored)
    lost = {name.partition("/")[0] for name in held(world.usage.stored[shard])}
    damage(world, shard)
    diary = Process(world, source, limit=300).loop.history
    assert (diary.is_complete, set(diary.imported_until)) == (False, set(NAMESPACES) - lost)
    assert 0 < len(lost) < len(NAMESPACES)


def test_a_namespace_that_is_spread_is_read_again_where_one_of_its_shards_is_corrupt() -> None:
    world = World().runs(*(f"app-{number}" for number in range(24)))
    source = Histories(world)
    Process(world, source, limit=300).lives(DAY).loop.store_all()
    assert len(world.usage.stored) > 1
    damage(world, max(world.usage.stored))
    second_process = Process(world, source, limit=300)
    assert second_process.loop.history.imported_until == {}
    second_process.lives(HOUR)
    assert {second_process.loop.history.get_window(c, "cpu").observed_seconds >= DAY for c in world.cores} == {True}


def test_an_hour_without_prometheus_is_read_afterwards() -> None:
    world, whole = World().runs("web"), World().runs("web")
    source, calm = Histories(world), Histories(whole)
    process = Process(world, source).lives(DAY)
    world.silent = True
    world.cores[WEB], world.bytes[WEB] = 0.4, 300.0 * MI  # what happens meanwhile counts, too
    before = dict(world.told.stored)
    process.lives(HOUR)
    assert world.told.stored == before
    world.silent = False
    process.lives(HOUR)
    other = Process(whole, calm).lives(DAY)
    whole.cores[WEB], whole.bytes[WEB] = 0.4, 300.0 * MI
    other.lives(2 * HOUR)
    for resource in ("cpu", "memory"):
        assert process.loop.history.get_window(WEB, resource) == other.loop.history.get_window(WEB, resource)
        assert process.loop.history.running_peaks(WEB, resource) == other.loop.history.running_peaks(WEB, resource)


def test_an_hour_without_a_source_publishes_nothing_wrong() -> None:
    world = World().runs("web")
    process = moments(world).lives(DAY + HOUR)
    before = dict(world.told.stored)
    world.silent = True
    process.lives(HOUR)
    assert world.told.stored == before
    world.silent = False
    process.lives(HOUR)
    assert p95(world) == 100


def test_samples_that_make_no_sense_are_counted() -> None:
    world = World().runs("web")
    process = moments(world).lives(HOUR)
    world.cores[WEB], world.bytes[WEB] = -1.0, 2.0**60
    process.lives(HOUR)
    count = process.loop.metrics.registry.get_sample_value("trimtab_recommender_ignored_samples_total")
    assert count == 2 * HOUR // world.step


def asked(world: World, resource: str = "cpu") -> int:
    """What the recommender's own rule asks for."""
    histogram = world.of("web")
    percentiles = histogram.percentiles_of(resource) if histogram is not None else None
    assert percentiles is not None
    assert percentiles.request is not None
    return scheduler_value(resource, percentiles.request)


def test_a_spike_of_a_minute_moves_no_request_of_cpu_and_one_of_memory_is_covered() -> None:
    world = World().runs("web")
    process = moments(world).lives(6 * DAY)
    before = asked(world)
    world.step, world.cores[WEB], world.bytes[WEB] = 60, 1.0, 1000.0 * MI
    process.lives(60)
    world.cores[WEB], world.bytes[WEB] = 0.1, 100.0 * MI
    process.lives(HOUR)
    assert p95(world) in (100, 101)
    assert asked(world) == pytest.approx(before, rel=0.15)
    assert asked(world, "memory") >= 1000 * MI  # a peak that is not covered is a kill


def test_a_small_change_writes_no_recommendation() -> None:
    """After a week: until then each day that was like the others makes the request a little smaller."""
    world = World().runs("web")
    process = moments(world).lives(8 * DAY + 700)
    writes, before = len(world.told.writes), p95(world)
    world.cores[WEB] = 0.102
    process.lives(20 * HOUR)
    assert len(world.told.writes) <= writes + 1  # the date alone
    assert p95(world) in (before, 101, 102)


def test_each_shard_is_kept_every_ten_minutes_and_at_the_end() -> None:
    world = World().runs("web")
    process = moments(world).lives(HOUR)
    assert len(world.usage.writes) == 6
    assert process.loop.store_all()
    assert len(world.usage.writes) == 7


def test_a_new_life_does_not_write_everything_at_once() -> None:
    world = aged(300)
    writes, shards = len(world.usage.writes), len(world.usage.stored)
    moments(world, limit=300).lives(600)
    assert len(world.usage.writes) - writes <= shards // 2 + 1


def test_who_was_deleted_is_forgotten_after_the_window() -> None:
    world = World(step=3600).runs("web", "api")
    process = moments(world).lives(5 * DAY)
    for holding in (world.cores, world.bytes):
        del holding[ContainerKey("shop", "Deployment", "api", "app")]
    process.lives(DAY)
    assert world.of("api") is not None
    process.lives(14 * DAY)
    assert world.of("api") is None
    assert world.of("web") is not None
    assert world.now > START
