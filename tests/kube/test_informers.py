"""What watches tell is taken by one thread, and lists that are no longer followed are silent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tests.kube.fake_api import FakeApi
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import LIST_SOURCES, ListSource

NODES = LIST_SOURCES["Node"]
LABELLED = replace(NODES, label_selector="later=yes")


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def feed(api: FakeApi, sources: tuple[ListSource, ...] = (NODES,), **more: object) -> ChangeQueue:
    change_queue = ChangeQueue(api.client(), sources, {"Node": lambda shape: shape.metadata.name}, **more)  # type: ignore[arg-type]
    change_queue.start()
    assert eventually(lambda: change_queue.informers.is_synced)
    return change_queue


def test_a_batch_is_all_that_was_told_since_the_last_time() -> None:
    with FakeApi() as api:
        api.put("one")
        api.put("two")
        change_queue = feed(api)
        assert sorted(change.after for change in change_queue.take_changes()) == ["one", "two"]
        assert change_queue.take_changes() == []
        change_queue.stop()


def test_who_waits_hears_what_comes_and_what_comes_together_with_it() -> None:
    with FakeApi() as api:
        change_queue = feed(api)
        api.put("one")
        heard = [change.after for change in change_queue.take_changes(within=10, settle=0.05)]
        assert heard[0] == "one"
        change_queue.stop()


def test_what_is_not_wanted_is_not_told() -> None:
    with FakeApi() as api:
        api.put("one")
        api.put("two")
        change_queue = feed(api, wanted=lambda change: change.after == "two")
        assert [change.after for change in change_queue.take_changes()] == ["two"]
        change_queue.stop()


def test_more_lists_count_once_they_are_followed_and_are_followed_once() -> None:
    with FakeApi() as api:
        api.put("one")
        change_queue = feed(api, sources=())
        assert change_queue.is_synced
        assert change_queue.watch_added([LABELLED])
        assert not change_queue.watch_added([LABELLED])
        assert eventually(lambda: change_queue.is_synced)
        assert [change.after for change in change_queue.take_changes(within=10)] == ["one"]
        assert change_queue.watch_added([])
        assert change_queue.is_synced
        api.put("two")
        assert change_queue.take_changes(within=0.05) == []
        change_queue.stop()
        assert change_queue.errors_by_list() == {}
