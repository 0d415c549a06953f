"""The shutdown of a server: it reports that it is not ready, keeps answering for a while, and then ends."""

import signal
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from trimtab.runtime.settings import ServerSettings

MARGIN_SECONDS = 4
"""Seconds reserved for gunicorn's own steps: its loop checks once a second, its master four times."""


@runtime_checkable
class GracefulApplication(Protocol):
    """An application that reacts to the coming end of its process."""

    def drain(self) -> None:
        """From now on reports "not ready", and asks clients to send their next request to another replica."""


def drain_on_term(worker: Any, settings: ServerSettings) -> None:
    """Makes SIGTERM start a drain in this gunicorn `asgi` worker.

    gunicorn alone would stop accepting connections at once, while endpoints still direct clients here. With the drain,
    readiness is off and service is normal for `shutdown_delay_seconds`; then no new connections are accepted,
    and existing ones
    are answered until their clients close them or `graceful_timeout_seconds` is nearly over.
    """
    begun = False

    def begin() -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        # First readiness: the endpoints' controllers need the whole delay to react.
        if isinstance(worker.asgi, GracefulApplication):
            worker.asgi.drain()
        worker.loop.call_later(settings.shutdown_delay_seconds, worker.handle_exit_signal)

    # The worker's own wait must end before the master kills it.
    worker.cfg.set(
        "graceful_timeout",
        max(1, int(settings.graceful_timeout_seconds - settings.shutdown_delay_seconds - MARGIN_SECONDS)),
    )
    worker.loop.add_signal_handler(signal.SIGTERM, begin)
    _deliver_early_signals(worker.loop)


def _deliver_early_signals(loop: Any) -> None:
    """Makes signals count that arrive before the loop runs.

    uvloop stores them, and reads what it stored when a signal arrives while it runs. A process that is asked to stop
    while the application is loading would run on until its master kills it. So it sends itself a signal without an
    effect.
    """
    loop.add_signal_handler(signal.SIGWINCH, lambda: None)
    loop.call_soon(signal.raise_signal, signal.SIGWINCH)


class GracefulShutdown:
    """Whether this process was asked to stop. It starts once and is never undone; safe from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_requested(self) -> bool:
        """True from the moment at which the process was asked to stop."""
        return self._event.is_set()

    def request_stop(self) -> None:
        """Asks the process to stop. A second call changes nothing."""
        self._event.set()

    def wait_for_stop(self, seconds: float) -> bool:
        """Sleeps, but not longer than until the process is asked to stop; returns True if it was."""
        return self._event.wait(seconds)


def stop_on_signals(stop: GracefulShutdown, also: Callable[[], None] = lambda: None) -> None:
    """Begins `stop` on SIGTERM and SIGINT, and calls `also`: for loops without a server of their own."""

    def stop_and_notify() -> None:
        stop.request_stop()
        also()

    def begin(*_: object) -> None:
        # In a thread of its own: the interrupted thread may be in the very wait that should end, and hold its lock.
        if not stop.is_requested:
            threading.Thread(target=stop_and_notify, name="stop").start()

    signal.signal(signal.SIGTERM, begin)
    signal.signal(signal.SIGINT, begin)
