"""No ten minutes see more bytes than they may; what waits is written first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recommender.played import START, Process, Shelf, World, moments
from trimtab.cluster.quantity import scheduler_value
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, Workloads, decode
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.publisher import ContainerRecommendations, Publisher
from trimtab.recommender.write_budget import OVERHEAD_BYTES, PERIOD_SECONDS, WriteBudget

HOUR = 3600


@given(st.lists(st.tuples(st.floats(0, 300), st.integers(1, 60)), max_size=60))
def test_no_ten_minutes_see_more_than_they_may(steps: list[tuple[float, int]]) -> None:
    clock, written = [0.0], []
    budget = WriteBudget(100, lambda: clock[0])
    for wait, size in steps:
        clock[0] += wait
        if budget.has_room(size):
            budget.spend(size)
            written.append((clock[0], size))
    for end, _ in written:
        assert sum(size for at, size in written if end - PERIOD_SECONDS < at <= end) <= 100


def test_what_is_larger_than_all_of_it_is_written_alone() -> None:
    now = [0.0]
    budget = WriteBudget(100, lambda: now[0])
    assert budget.has_room(500)
    budget.spend(500)
    assert not budget.has_room(1)
    now[0] = PERIOD_SECONDS
    assert budget.has_room(1)


def large() -> World:
    """Forty workloads, in so many namespaces, of which no two use the same."""
    world = World(now=START + 6 * HOUR)
    for number in range(40):
        world.runs("web", namespace=f"team-{number}", cores=0.1 + number / 100)
    return world


def test_with_little_room_every_shard_is_written_in_its_turn() -> None:
    world = large()
    process = Process(world, moments(world).source, limit=400, budget=3 * (400 + OVERHEAD_BYTES)).lives(HOUR)
    shards = len(world.usage.stored)
    assert shards > 6
    process.lives(6 * HOUR)
    assert {*world.usage.writes[-2 * shards :]} == world.usage.stored.keys()
    assert process.loop.checkpointer.unsaved_seconds <= 600 * (shards // 3 + 1)


def test_with_little_room_an_unexpected_end_costs_what_is_told() -> None:
    world = large()
    process = Process(world, moments(world).source, limit=400, budget=3 * (400 + OVERHEAD_BYTES)).lives(8 * HOUR)
    unsaved_seconds = process.loop.checkpointer.unsaved_seconds
    second_history = moments(world, limit=400).loop.history
    lost = [
        process.loop.history.get_window(one, "cpu").merge_days().total_count
        - second_history.get_window(one, "cpu").merge_days().total_count
        for one in process.loop.history.list_containers()
    ]
    assert 0 < max(lost) <= unsaved_seconds / world.step
    process.loop.store_all()
    second_history = moments(world, limit=400).loop.history
    assert second_history.windows == process.loop.history.windows


def test_with_little_room_what_changed_most_is_published_first() -> None:
    world = large()
    one = 2_500 + OVERHEAD_BYTES
    process = Process(world, moments(world).source, limit=400, budget=one).lives(DAY + 9 * HOUR)
    for container in world.cores:
        world.cores[container] *= 1.2
    changed = list(world.cores)[20]
    world.cores[changed] *= 20
    writes = len(world.told.writes)
    while greatest(world, changed.namespace) < 1000:
        process.lives(600)
        assert len(world.told.writes) <= writes + 3, "it waited for the others"


def greatest(world: World, namespace: str) -> int:
    """Millicores, as they are published."""
    histogram = world.of("web", namespace)
    assert histogram is not None
    assert histogram.cpu is not None
    return scheduler_value("cpu", histogram.cpu.max or "0")


def test_with_little_room_a_shard_that_nobody_lives_in_goes() -> None:
    world = World(now=START + 6 * HOUR)
    for number in range(6):
        world.runs("web", "api", "db", "job", namespace=f"team-{number}", cores=0.1 + number / 100)
    process = Process(world, moments(world).source, limit=420, budget=2 * (420 + OVERHEAD_BYTES)).lives(12 * HOUR)
    checkpoints = process.loop.checkpointer
    inhabited = set(checkpoints.shard_store.assignment.shard_by_workload.values())
    assert set(world.usage.writes) - inhabited, "shards grew in number, and some were left"
    assert world.usage.stored.keys() == inhabited
    assert checkpoints.unsaved_seconds <= 600 * (len(inhabited) // 2 + 1)


def usage(milli: int) -> ContainerUsage:
    return ContainerUsage(cpu=Percentiles(p5=f"{milli}m", p50=f"{milli}m", p95=f"{milli}m", request=f"{milli}m"))


def decoded(text: str) -> Workloads:
    shard = decode("here", text)
    assert isinstance(shard, dict), shard
    return shard


@pytest.mark.parametrize("churn", [0, 10, 40])
def test_large_changes_of_a_namespace_without_end_hold_back_no_other(churn: int) -> None:
    """In each round, all workloads of a tenant use twice or half as much, and there is room for two texts."""
    clock, shelf = [0.0], Shelf()
    publisher = Publisher(shelf, LiveHistory(), 0.05, WriteBudget(2 * (400 + OVERHEAD_BYTES), lambda: clock[0]))
    publisher.shard_store.max_bytes = 400
    ours = {f"shop/Deployment/web-{n}": 0 for n in range(4)}
    written_at: dict[str, float] = {}
    for look in range(240):
        theirs = {f"tenant/Deployment/web-{n}": 100 * (1 + look % 2) for n in range(churn)}
        # The shop changes by a tenth after an hour.
        cores = {**ours, **theirs} if look < 60 else {**dict.fromkeys(ours, 55), **theirs}
        workloads = {name: {"main": usage(max(50, milli))} for name, milli in cores.items()}
        publisher.write_changes(ContainerRecommendations(workloads, {}), START, everything=look == 0)
        for text in shelf.stored.values():
            for name, containers in decoded(text).items():
                if usage(55) == containers["main"]:
                    written_at.setdefault(name, clock[0])
        clock[0] += 60
    rounds = PERIOD_SECONDS * (len(shelf.stored) // 2 + 2)
    assert written_at.keys() == ours.keys()
    assert max(written_at.values()) <= 3600 + rounds
