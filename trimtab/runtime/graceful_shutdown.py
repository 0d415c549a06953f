"""Shuts down a server gracefully: it reports that it is not ready, answers requests for a while longer, and then
ends."""

import signal
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from trimtab.runtime.settings import ServerSettings

MARGIN_SECONDS = 4
"""The seconds reserved for gunicorn's own steps: its loop checks for signals once a second, its master four times."""


@runtime_checkable
class GracefulApplication(Protocol):
    """An application that can prepare for the end of its process."""

    def drain(self) -> None:
        """Makes the application report "not ready", and ask clients to send their next request to another replica."""


def drain_on_term(worker: Any, settings: ServerSettings) -> None:
    """Makes SIGTERM start a graceful shutdown in this gunicorn `asgi` worker.

    gunicorn itself would stop accepting connections at once, while endpoints still direct clients to this pod. With
    this function, the process reports "not ready" and serves normally for `shutdown_delay_seconds`. Then it accepts no
    new connections, and answers existing ones until their clients close them or `graceful_timeout_seconds` are nearly
    over.
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
    """Makes sure that signals which arrived before the event loop ran are handled.

    uvloop stores such signals, and handles them only when another signal arrives while the loop runs. So if a process
    was asked to stop while it was loading the application, it would run on until its master kills it. This function
    sends the process a signal without any effect.
    """
    loop.add_signal_handler(signal.SIGWINCH, lambda: None)
    loop.call_soon(signal.raise_signal, signal.SIGWINCH)


class GracefulShutdown:
    """Whether this process has been asked to stop. That can happen once and is never undone. Any thread may use it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_requested(self) -> bool:
        """Whether the process has been asked to stop."""
        return self._event.is_set()

    def request_stop(self) -> None:
        """Asks the process to stop. A second call changes nothing."""
        self._event.set()

    def wait_for_stop(self, seconds: float) -> bool:
        """Waits for this many seconds, or until the process is asked to stop. Returns True if it was asked."""
        return self._event.wait(seconds)


def stop_on_signals(shutdown: GracefulShutdown, also: Callable[[], None] = lambda: None) -> None:
    """Requests the stop on SIGTERM and SIGINT, and calls `also`. It is for processes without a gunicorn server."""

    def stop_and_notify() -> None:
        shutdown.request_stop()
        also()

    def begin(*_: object) -> None:
        # In a thread of its own: the interrupted thread may be in the very wait that should end, and hold its lock.
        if not shutdown.is_requested:
            threading.Thread(target=stop_and_notify, name="stop").start()

    signal.signal(signal.SIGTERM, begin)
    signal.signal(signal.SIGINT, begin)
