"""Notifications are sent with retries and a limit, never delay a decision, and never show their address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.notifications.messages import Message, NotificationFormat
from trimtab.compactor.notifications.sender import (
    HOUR_SECONDS,
    MAX_WAITING,
    TRIES,
    HttpPost,
    NotificationTerms,
    Notifier,
    NotSent,
)

SECRET = "T000/B000/XXXX"


@dataclass
class Log:
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))


@dataclass
class Receiver:
    """Receives messages; each of the first `failures` fails."""

    failures: list[NotSent] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    tries: int = 0

    def __call__(self, url: str, message: Message) -> None:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        self.messages.append(message)


@dataclass
class World:
    folder: Path
    receiver: Receiver = field(default_factory=Receiver)
    log: Log = field(default_factory=Log)
    now: float = 0.0

    def notifier(self, form: NotificationFormat = "json", max_per_hour: int = 30) -> Notifier:
        file = self.folder / "url"
        file.write_text(f"https://hooks.example.com/services/{SECRET}\n")
        terms = NotificationTerms(file, form, "east", max_per_hour)
        # No thread: the tests send themselves.
        notifier = Notifier(terms, self.log, lambda: self.now, self.receiver, first_wait_seconds=0)  # type: ignore[arg-type]
        notifier._thread = threading.Thread()
        return notifier


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def removed(number: int = 1) -> HistoryEntry:
    return HistoryEntry(at=number, pool="web", what="removed", code="removed", why="gone", node=f"n{number}")


def record(notifier: Notifier, count: int) -> None:
    for number in range(count):
        notifier.record_decision(removed(number))


def test_decisions_of_one_moment_are_one_message(world: World) -> None:
    notifier = world.notifier()
    record(notifier, 3)
    notifier.send_waiting()
    notifier.send_waiting()
    [message] = world.receiver.messages
    assert message.body.count(b'"removed"') == 6


def test_what_may_pass_is_tried_again(world: World) -> None:
    world.receiver.failures = [NotSent("503", is_final=False)] * (TRIES - 1)
    notifier = world.notifier()
    record(notifier, 1)
    notifier.send_waiting()
    assert (world.receiver.tries, len(world.receiver.messages), world.log.lines) == (TRIES, 1, [])


@pytest.mark.parametrize(("is_final", "tries"), [(True, 1), (False, TRIES)])
def test_a_message_that_fails_is_given_up(world: World, is_final: bool, tries: int) -> None:
    world.receiver.failures = [NotSent("the receiver answered 404", is_final)] * TRIES
    notifier = world.notifier()
    record(notifier, 1)
    notifier.send_waiting()
    assert world.receiver.tries == tries
    [(event, fields)] = world.log.lines
    assert (event, fields["tries"]) == ("notification.not-sent", tries)


def test_a_limit_holds_for_an_hour_and_nothing_is_lost(world: World) -> None:
    notifier = world.notifier(max_per_hour=2)
    for number in range(4):
        notifier.record_decision(removed(number))
        notifier.send_waiting()
    assert len(world.receiver.messages) == 2
    assert [event for event, _ in world.log.lines] == ["notification.limit-reached"]
    world.now += HOUR_SECONDS
    notifier.send_waiting()
    assert world.receiver.messages[2].body.count(b'"node"') == 2


def test_cloud_events_count_one_by_one(world: World) -> None:
    notifier = world.notifier("cloudevents", max_per_hour=3)
    record(notifier, 5)
    notifier.send_waiting()
    assert len(world.receiver.messages) == 3
    world.now += HOUR_SECONDS
    notifier.send_waiting()
    assert len({message.body for message in world.receiver.messages}) == 5


def test_what_waits_is_bounded(world: World) -> None:
    notifier = world.notifier()
    record(notifier, MAX_WAITING + 50)
    notifier.send_waiting()
    [message] = world.receiver.messages
    assert b'"leftOut":230' in message.body


@pytest.mark.parametrize("text", ["", "ftp://example.com", None])
def test_a_file_without_an_address_is_said_without_its_content(world: World, text: str | None) -> None:
    notifier = world.notifier()
    if text is None:
        notifier.terms.url_file.unlink()
    else:
        notifier.terms.url_file.write_text(text)
    record(notifier, 1)
    notifier.send_waiting()
    [(_, fields)] = world.log.lines
    assert str(notifier.terms.url_file) in fields["problem"]
    assert "ftp" not in fields["problem"]


class Answers(BaseHTTPRequestHandler):
    status = 200

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
        self.send_response(int(self.path.strip("/").partition("/")[0]))
        self.send_header("Location", "/200")
        self.send_header("Retry-After", "7")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.bodies = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def post(server: HTTPServer, status: int) -> None:
    HttpPost()(f"http://127.0.0.1:{server.server_port}/{status}/{SECRET}", Message(b"{}", "application/json"))


def test_a_message_is_posted(server: HTTPServer) -> None:
    post(server, 200)
    assert server.bodies == [b"{}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("status", "is_final"), [(302, True), (404, True), (429, False), (503, False)])
def test_an_answer_says_whether_to_try_again(server: HTTPServer, status: int, is_final: bool) -> None:
    with pytest.raises(NotSent) as failed:
        post(server, status)
    assert (failed.value.is_final, failed.value.wait_seconds) == (is_final, 7)
    assert str(status) in str(failed.value)
    assert len(server.bodies) == 1  # type: ignore[attr-defined]


def test_an_error_of_the_connection_has_no_address(server: HTTPServer) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(NotSent) as failed:
        post(server, 200)
    assert SECRET not in str(failed.value)
    assert "127.0.0.1" not in str(failed.value)
    assert not failed.value.is_final
    assert failed.value.__cause__ is None


@pytest.mark.parametrize("url", ["https://", "http://[::1", f"https://example.com:99999/{SECRET}"])
def test_an_address_that_is_none_is_final(url: str) -> None:
    with pytest.raises(NotSent) as failed:
        HttpPost()(url, Message(b"", ""))
    assert SECRET not in str(failed.value)


def test_the_last_decisions_are_sent_at_the_end(world: World) -> None:
    notifier = world.notifier()
    notifier._thread = None
    record(notifier, 2)
    notifier.close()
    assert len(world.receiver.messages) == 1
    notifier.record_decision(removed())
    assert len(world.receiver.messages) == 1
