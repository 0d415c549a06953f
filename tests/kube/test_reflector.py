"""Does a watched list stay equal to the server's, whatever happens between them?"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.kube.fake_api import FakeApi
from trimtab.kube.reflector import _MAX_SERVER_ERRORS, Reflector, RetryBackoff
from trimtab.kube.resources import LIST_SOURCES
from trimtab.kube.watch_state import WatchEvent, WatchSettings
from trimtab.runtime.clock import elapsed_seconds


class Quick(RetryBackoff):
    """A clock twenty times as fast, and no patience beyond two of its seconds."""

    def next_wait_seconds(self, at_least: float | None = None) -> float:
        return min(2.0, RetryBackoff.next_wait_seconds(self, at_least)) / 20


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as fake_api:
        for number in range(12):
            fake_api.put(f"node-{number:02d}")
        yield fake_api


class Running:
    """A reflector in its thread, and what it told."""

    def __init__(self, api: FakeApi, settings: WatchSettings | None = None) -> None:
        self.api = api
        self.changes: list[WatchEvent[Any]] = []
        self.it: Reflector[Any] = Reflector(
            api.client(),
            LIST_SOURCES["Node"],
            lambda result: result,
            settings=settings or WatchSettings(page_size=5, idle_seconds=30),
            on_change=self.changes.append,
            backoff=Quick(random.Random(1)),
        )
        self.thread = threading.Thread(target=self.it.run, daemon=True)

    def __enter__(self) -> Running:
        self.thread.start()
        self.eventually(lambda: self.it.health.synced)
        return self

    def __exit__(self, *_: object) -> None:
        self.it.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()

    def eventually(self, said: Callable[[], object], within: float = 30) -> None:
        until = time.monotonic() + within
        while not said():
            assert time.monotonic() < until, self.it.health
            time.sleep(0.01)

    def is_equal(self) -> None:
        self.eventually(lambda: self.it.store.versions_by_key() == self.api.versions())

    def told(self) -> list[tuple[str, str]]:
        return [(change.change_type.value, change.key[1]) for change in self.changes]


def test_a_list_is_read_page_by_page_and_then_followed(api: FakeApi) -> None:
    with Running(api) as watch:
        api.put("node-03")
        api.drop("node-04")
        api.put("new")
        watch.is_equal()
        assert watch.told()[12:] == [("modified", "node-03"), ("deleted", "node-04"), ("added", "new")]
    assert [query.get("continue") for query in api.asked[:3]] == [None, "5", "10"]
    assert api.asked[3]["allowWatchBookmarks"] == "true"


def test_a_streamed_first_list_is_the_same(api: FakeApi) -> None:
    with Running(api, WatchSettings(page_size=5, idle_seconds=30, stream_initial_list=True)) as watch:
        api.put("node-03")
        watch.is_equal()
    assert "sendInitialEvents" in api.asked[0]


def test_a_server_without_streamed_lists_is_listed_page_by_page(api: FakeApi) -> None:
    api.streaming = False
    with Running(api, WatchSettings(page_size=5, idle_seconds=30, stream_initial_list=True)) as watch:
        watch.is_equal()
    assert [("watch" in query) for query in api.asked[:2]] == [True, False]


def test_a_stream_that_ends_within_a_line_loses_nothing_and_invents_nothing(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.cut_mid_line()
        api.put("node-03")
        api.put("node-05")
        watch.is_equal()
        assert watch.told()[12:] == [("modified", "node-03"), ("modified", "node-05")]
        assert watch.it.health.lists == 1


def test_a_version_that_is_no_longer_kept_leads_to_a_new_list_and_only_differences_are_told(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        before = {id(value) for value in watch.it.store.list_values()}
        api.fail(503, times=2)
        api.end_streams()
        for name in ("node-01", "node-02"):
            api.put(name)
        api.drop("node-07")
        api.expire()
        watch.eventually(lambda: watch.it.health.lists == 2)
        watch.is_equal()
        assert sorted(watch.told()[12:]) == [("deleted", "node-07"), ("modified", "node-01"), ("modified", "node-02")]
        assert len(before & {id(value) for value in watch.it.store.list_values()}) == 9


@pytest.mark.parametrize("status", [401, 403, 500, 502, 503, 504])
def test_a_server_in_trouble_is_not_asked_for_all_of_it_again(api: FakeApi, status: int) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.fail(status, times=3)
        api.end_streams()
        api.put("node-01")
        watch.eventually(lambda: len(watch.changes) == 13)
        watch.is_equal()
        assert watch.it.health.lists == 1


def test_an_error_within_the_server_that_goes_on_and_on_leads_to_a_new_list_after_all(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.fail(500, times=_MAX_SERVER_ERRORS + 1)
        api.end_streams()
        watch.eventually(lambda: watch.it.health.lists == 2)
        watch.is_equal()


def test_a_version_from_the_future_leads_to_a_new_list(api: FakeApi) -> None:
    """After a backup was restored the server is behind what it said before."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    body = {"code": 504, "reason": "Timeout", "message": "Too large", "details": {"causes": [cause]}}
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.fail(504, body=json.dumps(body).encode())
        api.end_streams()
        watch.eventually(lambda: watch.it.health.lists == 2)


def test_an_old_version_that_is_forced_leads_to_a_new_list(api: FakeApi) -> None:
    api.expire()
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        watch.it.restart_from("1")
        api.put("node-01")
        watch.eventually(lambda: watch.it.health.lists == 2)
        watch.is_equal()


def test_what_is_held_is_made_anew_where_it_is_doubted(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        before = watch.it.store.list_values()
        watch.it.restart_from()
        watch.eventually(lambda: watch.it.health.lists == 2)
        assert all(a is b for a, b in zip(before, watch.it.store.list_values(), strict=True))
        watch.it.store.retransform_next_list()
        watch.it.restart_from()
        watch.eventually(lambda: watch.it.health.lists == 3)
        assert not any(a is b for a, b in zip(before, watch.it.store.list_values(), strict=True))
        watch.is_equal()


def test_429_is_waited_out_as_long_as_the_server_asks(api: FakeApi) -> None:
    """Sixty answers of 429 that ask for a second each: a minute on a clock twenty times as fast."""
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        count = len(api.asked)
        api.fail(429, times=60, retry_after=1)
        api.end_streams()
        watch.eventually(lambda: "429 TooManyRequests" in watch.it.health.error)
        api.put("node-01")
        assert watch.it.health.synced, "what is held stays readable"
        heard = watch.it.health.heard
        time.sleep(0.5)
        assert watch.it.health.age_seconds(elapsed_seconds()) > 0.5, "and its age is told"
        assert watch.it.health.heard == heard
        watch.eventually(lambda: not watch.it.health.error, within=120)
        watch.is_equal()
    waits = [b - a for a, b in zip(api.at[count + 1 :], api.at[count + 2 :], strict=False)][:50]
    assert min(waits) > 0.045
    assert watch.it.health.lists == 1


def test_a_kind_that_is_not_served_is_an_empty_list_that_is_known(api: FakeApi) -> None:
    api.fail(404, times=1000)
    terms = WatchSettings(absent_retry_seconds=0.05)
    it: Reflector[Any] = Reflector(
        api.client(), LIST_SOURCES["VerticalPodAutoscaler"], lambda result: result, settings=terms
    )
    thread = threading.Thread(target=it.run, daemon=True)
    thread.start()
    _until(lambda: it.health.synced)
    it.stop()
    thread.join(30)
    assert (it.health.synced, it.health.absent, it.health.error, it.store.list_values()) == (True, True, "", ())


def test_an_object_that_cannot_be_decoded_is_named_and_not_held(api: FakeApi) -> None:
    api.put("odd", labels={"a": 1})
    with Running(api) as watch:
        assert [error.where for error in watch.it.store.unreadable_objects()] == ["Node odd"]
        assert ("", "odd") not in watch.it.store.versions_by_key()
        api.put("odd", labels={"a": "1"})
        watch.is_equal()
        assert watch.it.store.unreadable_objects() == ()
        api.put("odd", labels={"a": 2})
        watch.eventually(watch.it.store.unreadable_objects)
        assert ("", "odd") not in watch.it.store.versions_by_key()


def test_a_line_that_is_no_event_leads_to_a_new_list(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.say(b'{"type": "ADDED", "object": {"metadata"\n')
        watch.eventually(lambda: watch.it.health.lists == 2)
        watch.is_equal()


def test_bookmarks_move_the_version_on(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        api.bookmark()
        watch.eventually(lambda: watch.it.health.events == 1)
        version = str(api.version)
        api.expire()
        api.end_streams()
        watch.eventually(lambda: watch.it.health.streams == 2)
        assert api.asked[-1]["resourceVersion"] == version
        assert watch.it.health.lists == 1


def test_a_silent_server_is_noticed(api: FakeApi) -> None:
    with Running(api, WatchSettings(page_size=5, idle_seconds=0.2)) as watch:
        watch.eventually(lambda: watch.it.health.streams > 1)
        api.put("node-01")
        watch.is_equal()


def test_a_watch_stops_within_milliseconds(api: FakeApi) -> None:
    assert min(_seconds_to_stop(api) for _ in range(5)) < 0.2, "the best of five: a busy machine takes its time"


def _seconds_to_stop(api: FakeApi) -> float:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        begun = time.monotonic()
        watch.it.stop()
        watch.thread.join(30)
        took = time.monotonic() - begun
        assert not watch.it.health.connected
    return took


def test_a_mistake_in_what_is_held_is_told_and_does_not_end_the_watch(api: FakeApi) -> None:
    calls = []

    def hold(result: Any) -> Any:
        calls.append(result)
        if len(calls) == 1:
            raise ZeroDivisionError
        return result

    it: Reflector[Any] = Reflector(api.client(), LIST_SOURCES["Node"], hold, backoff=Quick(random.Random(1)))
    thread = threading.Thread(target=it.run, daemon=True)
    thread.start()
    _until(lambda: it.health.synced)
    it.stop()
    thread.join(30)
    assert it.store.versions_by_key() == api.versions()


def test_an_error_on_the_stream_tells_nothing_of_how_things_stand(api: FakeApi) -> None:
    """What is held does not grow younger by being told that the server is in trouble."""
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        time.sleep(0.2)
        heard, events = watch.it.health.heard, watch.it.health.events
        api.fail(503, times=1000)
        api.say(b'{"type": "ERROR", "object": {"code": 500, "message": "in trouble"}}\n')
        watch.eventually(lambda: watch.it.health.error)
        assert (watch.it.health.heard, watch.it.health.events) == (heard, events)


def test_a_server_that_keeps_no_version_it_names_is_not_listed_again_and_again_at_once(api: FakeApi) -> None:
    api.oldest = 1 << 40
    it: Reflector[Any] = Reflector(api.client(), LIST_SOURCES["Node"], lambda result: result)
    thread = threading.Thread(target=it.run, daemon=True)
    begun = time.monotonic()
    thread.start()
    _until(lambda: it.health.lists >= 3)
    took = time.monotonic() - begun
    it.stop()
    thread.join(30)
    assert took > 0.45, "the second at once, the third after a pause of half a second to one"


def test_a_kind_that_comes_back_is_listed_anew(api: FakeApi) -> None:
    """Its versions of before say nothing of it any more."""
    source = replace(LIST_SOURCES["Node"], optional=True)
    it: Reflector[Any] = Reflector(
        api.client(), source, lambda result: result, settings=WatchSettings(absent_retry_seconds=0.5)
    )
    thread = threading.Thread(target=it.run, daemon=True)
    thread.start()
    try:
        _until(lambda: it.health.connected)
        api.fail(404)
        api.end_streams()
        _until(lambda: it.health.absent)
        _until(lambda: it.health.connected and not it.health.absent)
        _until(lambda: it.store.versions_by_key() == api.versions())
    finally:
        it.stop()
        thread.join(30)


def _until(text: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not text():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_bookmark_without_a_version_leaves_the_one_there_is(api: FakeApi) -> None:
    with Running(api) as watch:
        watch.eventually(lambda: watch.it.health.connected)
        version = str(api.version)
        api.say(b'{"type": "BOOKMARK", "object": {"metadata": {}}}\n')
        watch.eventually(lambda: watch.it.health.events == 1)
        api.end_streams()
        watch.eventually(lambda: watch.it.health.streams == 2)
        assert api.asked[-1]["resourceVersion"] == version
