"""What the report of a replay says about its input: each kind of note a few times, and nothing of it hidden."""

import pytest

from tests.autoscaling.replay.test_recording import MONDAY, ROUND, node, pod, record, unreadable
from trimtab.autoscaling.replay.recording import SeriesRecorder
from trimtab.cli.replay.recorded_world import RecordedWorld, RecordingSource, build_recorded_world
from trimtab.cluster.snapshot import FORBIDDEN_KIND
from trimtab.inputs.price_sources import read_price_sources


def build(recorder: SeriesRecorder) -> RecordedWorld:
    return build_recorded_world(recorder, RecordingSource("", ROUND, 1, ()), read_price_sources(())[0])


def test_a_node_that_says_nothing_of_what_it_can_hold_is_named() -> None:
    silent = {**node("b"), "status": {}}
    recorder = record(*([node("a"), silent, pod("p1", "a")] for _ in range(8)))
    (note,) = build(recorder).notes
    assert "b" in note.split()


def test_many_notes_of_one_kind_are_few() -> None:
    recorder = record([node("a")])
    for number in range(1, 10):
        recorder = record([node("a")], recorder=recorder, begin=number * 7200)
    objects = [unreadable("PodDisruptionBudget", f"b{number}", "shop") for number in range(9)]
    recorder = record(*([node("a"), *objects] for _ in range(8)), recorder=recorder, begin=80_000)
    world = build(recorder)
    assert world.begin == MONDAY + 80_000
    assert len(world.notes) == 4 + 1


@pytest.mark.parametrize(("created", "count"), [(100, 0), (900, 1), (-900, 1)])
def test_a_clock_that_differs_from_that_of_the_api_server_is_named(created: int, count: int) -> None:
    before, after = [node("a"), pod("p1", "a")], [node("a"), pod("p1", "a"), pod("p2", "a", created=created)]
    assert len(build(record(before, *(after for _ in range(7)))).notes) == count


def test_kinds_that_the_login_may_not_list_are_named() -> None:
    objects = [node("a"), pod("p1", "a"), {"kind": FORBIDDEN_KIND, "metadata": {"name": "CapacityBuffer"}}]
    assert len(build(record(*(objects for _ in range(8)))).notes) == 1
