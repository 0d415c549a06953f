"""Does an outage cost no more for many lists than for one?"""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.kube.test_reflector import Quick
from trimtab.kube.errors import Unreachable
from trimtab.kube.reflector import ReconnectGate, Reflector
from trimtab.kube.resources import LIST_SOURCES


class Nobody:
    """A client whom nobody answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, path: str, *_: object, **__: object) -> bytes:
        self.asked.append(path)
        raise Unreachable("nobody there")

    stream = get

    def interrupt_request(self, thread: int) -> None:
        """Nobody waits."""


def test_when_nobody_answers_one_list_asks_and_the_others_wait_for_its_word() -> None:
    client, road = Nobody(), ReconnectGate()
    sources = [LIST_SOURCES[kind] for kind in ("Pod", "Node", "Namespace", "Job", "Deployment")]
    lists: list[Reflector[Any]] = [
        Reflector(client, source, lambda it: it, reconnect_gate=road, backoff=Quick())  # type: ignore[arg-type]
        for source in sources
    ]
    threads = [threading.Thread(target=it.run, daemon=True) for it in lists]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 30
    while len(client.asked) < 8:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(set(client.asked[5:])) == 1, "each has asked once, and then only one of them did"
    for it in lists:
        it.stop()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_a_word_from_anybody_lets_everybody_go() -> None:
    road, gone = ReconnectGate(), []
    road.report_failure("pods")
    waiting = threading.Thread(target=lambda: gone.append(road.wait_for_turn("nodes", threading.Event())))
    waiting.start()
    road.wait_for_turn("pods", threading.Event())
    assert not gone
    road.report_success()
    waiting.join(30)
    assert gone


def test_who_asks_in_vain_holds_the_others_up_for_a_time_only() -> None:
    road = ReconnectGate(patience=0.01)
    road.report_failure("pods")
    road.wait_for_turn("nodes", threading.Event())


def test_who_stops_asking_lets_the_next_one_ask() -> None:
    road = ReconnectGate()
    road.report_failure("pods")
    road.leave_gate("pods")
    road.wait_for_turn("nodes", threading.Event())
    road.report_failure("nodes")
    road.wait_for_turn("nodes", threading.Event())
