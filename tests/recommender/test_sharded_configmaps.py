"""A day that is over is written once, and what stands of it is never written again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.recommender.played import MI, START, Histories, Killed, Process, World, moments
from tests.recommender.test_faults import WEB
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.sharded_configmaps import DayName

HOUR = 3600
FIRST = START // DAY


def days(world: World) -> list[int]:
    return sorted(name.day for name in world.days.stored)


def test_a_day_is_written_once_after_its_last_values_came() -> None:
    world = World().runs("web")
    process = moments(world).lives(DAY + HOUR)
    assert days(world) == []
    process.lives(1200)
    assert days(world) == [FIRST]
    process.lives(3 * DAY)
    assert days(world) == [FIRST + n for n in range(4)]
    assert world.days.puts == 4


def test_what_changes_holds_no_day_that_is_over() -> None:
    world = World().runs("web")
    moments(world).lives(12 * HOUR)
    half = len(world.usage.stored[0])
    moments(world).lives(6 * DAY)
    assert len(world.usage.stored[0]) < half + 100


def test_a_new_life_writes_no_day_again() -> None:
    world = World().runs("web")
    moments(world).lives(3 * DAY + 2 * HOUR)
    second_process = moments(world)
    assert second_process.loop.history.get_window(WEB, "cpu").observed_days == 4
    second_process.lives(HOUR)
    assert world.days.puts == 3


def test_a_day_that_is_too_old_is_dropped() -> None:
    world = World(step=3600).runs("web")
    process = moments(world).lives(20 * DAY + 2 * HOUR)
    assert days(world) == [FIRST + n for n in range(6, 20)]
    assert moments(world).loop.history.windows == process.loop.history.windows


def test_a_container_that_is_gone_is_in_what_stands_of_its_days_alone() -> None:
    world = World().runs("web", "api")
    process = moments(world).lives(DAY)
    gone = ContainerKey("shop", "Deployment", "api", "app")
    for holding in (world.cores, world.bytes):
        del holding[gone]
    process.lives(2 * DAY)
    second_history = moments(world).loop.history
    assert second_history.windows == process.loop.history.windows
    assert second_history.get_window(gone, "cpu").merge_days().total_count == DAY // world.step
    alone = World().runs("web")
    moments(alone).lives(3 * DAY)
    assert len(world.usage.stored[0]) < len(alone.usage.stored[0]) + 40


def test_a_value_that_comes_late_is_written_beside_the_day() -> None:
    world = World().runs("web", "api")
    process = moments(world).lives(DAY + 2 * HOUR)
    process.loop.history.windows[WEB, "cpu"].add_value(START + 100, 0.5)
    process.lives(HOUR)
    assert days(world) == [FIRST, FIRST]
    assert min(map(len, world.days.stored.values())) < max(map(len, world.days.stored.values()))
    second_history = moments(world).loop.history
    assert second_history.windows == process.loop.history.windows


def test_a_history_read_at_once_is_stored_day_by_day() -> None:
    world = World(step=3600).runs("web")
    source = Histories(world)
    for _ in range(5 * 24):
        source.record()
        world.now += world.step
    process = Process(world, source).lives(2 * world.step)
    assert days(world) == [FIRST + n for n in range(5)]
    assert Process(world, source).loop.history.windows == process.loop.history.windows


def test_what_is_damaged_of_a_day_is_told_and_the_others_live() -> None:
    world = World().runs("web")
    moments(world).lives(3 * DAY + 2 * HOUR)
    broken = min(world.days.stored)
    world.days.stored[broken] = world.days.stored[broken][:-9]
    second_process = moments(world)
    assert (
        second_process.loop.metrics.registry.get_sample_value(
            "trimtab_recommender_unreadable_shards", {"what": "usage"}
        )
        == 1
    )
    assert second_process.loop.history.get_window(WEB, "cpu").observed_days == 3
    second_process.lives(DAY)
    assert broken in world.days.stored


def test_below_a_ceiling_the_oldest_days_go() -> None:
    world = World(step=3600).runs(*(f"app-{number}" for number in range(20)))
    process = moments(world)
    process.loop.checkpointer.max_stored_bytes = 2_000
    process.lives(8 * DAY)
    assert process.loop.checkpointer.stored_bytes <= 2_000
    assert 1 < len(days(world)) < 7, "seven days are over"
    assert days(world) == [FIRST + 7 - n for n in range(len(days(world)), 0, -1)]
    assert process.loop.fault_count == 0


def test_while_a_day_cannot_be_written_it_is_kept_with_what_changes() -> None:
    world = World().runs("web")
    process = moments(world).lives(DAY + HOUR)
    world.usage.kill_at = world.usage.count  # the day's own write
    with pytest.raises(Killed):
        process.lives(1200)
    world.usage.kill_at = None
    assert days(world) == []
    second_process = moments(world)
    assert second_process.loop.history.get_window(WEB, "cpu").merge_days().total_count >= DAY // world.step
    second_process.lives(HOUR)
    assert days(world) == [FIRST]


def test_a_peak_that_ran_when_its_day_was_stored_counts_once() -> None:
    """Killed after the day was written, and before what changes was: there it still runs."""
    world = World().runs("web", held=300.0 * MI)
    process = moments(world).lives(DAY - 1200)
    before = dict(world.usage.stored)
    process.lives(2 * HOUR + 1800)
    world.usage.stored = before
    second_process = moments(world).lives(HOUR)
    memory = second_process.loop.history.get_window(WEB, "memory")
    assert memory.histograms_of_days([FIRST])[FIRST].total_count == 4


def test_names_are_in_order_of_days() -> None:
    one = DayName(20_000, "ff")
    assert sorted([one, replace(one, day=9)]) == [replace(one, day=9), one]
