"""The order of a stop: not ready first, then a pause, then the end."""

import asyncio
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from trimtab.runtime.graceful_shutdown import drain_on_term
from trimtab.runtime.settings import Settings


class Worker:
    """As much of gunicorn's asgi worker as a drain touches."""

    def __init__(self, app: Any, loop: Any = None) -> None:
        self.loop = loop or asyncio.new_event_loop()
        self.asgi = app
        self.events: list[str] = []
        self.grace = 0
        self.cfg = SimpleNamespace(set=self._set)

    def handle_exit_signal(self) -> None:
        self.events.append("end")
        self.loop.stop()

    def _set(self, name: str, value: int) -> None:
        assert name == "graceful_timeout"
        self.grace = value


class App:
    """An application that writes down when it is told."""

    def __init__(self) -> None:
        self.worker: Worker | None = None

    def drain(self) -> None:
        assert self.worker
        self.worker.events.append("drain")
        self.worker.loop.call_later(0.05, self.worker.events.append, "still served")


def stopped(worker: Worker, signals: int = 1) -> list[str]:
    drain_on_term(worker, Settings(shutdown_delay_seconds=0.2, graceful_timeout_seconds=30))
    for number in range(signals):
        worker.loop.call_later(0.02 * number, os.kill, os.getpid(), signal.SIGTERM)
    worker.loop.run_forever()
    worker.loop.close()
    return worker.events


def test_readiness_goes_first_and_the_end_comes_after_the_pause() -> None:
    app = App()
    app.worker = Worker(app)
    assert stopped(app.worker) == ["drain", "still served", "end"]


def test_a_second_signal_changes_nothing() -> None:
    app = App()
    app.worker = Worker(app)
    assert stopped(app.worker, signals=3) == ["drain", "still served", "end"]


def test_an_application_that_knows_nothing_of_draining_is_stopped_too() -> None:
    assert stopped(Worker(object())) == ["end"]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_signal_that_came_before_the_loop_ran_is_heard(loop: Callable[[], Any]) -> None:
    worker = Worker(object(), loop())
    drain_on_term(worker, Settings(shutdown_delay_seconds=0.0, graceful_timeout_seconds=30))
    os.kill(os.getpid(), signal.SIGTERM)
    worker.loop.call_later(10, worker.loop.stop)
    worker.loop.run_forever()
    worker.loop.close()
    assert worker.events == ["end"]


def test_the_worker_gives_up_before_its_master_does() -> None:
    worker = Worker(object())
    stopped(worker)
    assert 0 < worker.grace < 30 - 0.2
