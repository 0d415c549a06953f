"""The last seconds of a server: not ready any more, still answering, then gone.

A process is asked to stop: first it says so, then it waits, then it ends.
"""

import signal
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from trimtab.runtime.settings import Settings

MARGIN = 4
"""Seconds kept back for gunicorn's own steps: its loop looks up once a second, its master four times."""


@runtime_checkable
class GracefulApplication(Protocol):
    """An application that can be told that its process is about to stop."""

    def drain(self) -> None:
        """From now on say "not ready", and ask clients to take their next request elsewhere."""


def drain_on_term(worker: Any, settings: Settings) -> None:
    """Make SIGTERM the beginning of a drain in this gunicorn `asgi` worker.

    gunicorn alone would stop accepting at once, while endpoints still lead clients here. So:
    readiness off and `shutdown_delay_seconds` of normal service; then no new connections; kept ones go on
    being answered until their clients let go or `graceful_timeout` is nearly over.
    """
    begun = False

    def begin() -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        if isinstance(worker.asgi, GracefulApplication):
            worker.asgi.drain()
        worker.loop.call_later(settings.shutdown_delay_seconds, worker.handle_exit_signal)

    # The worker's own wait must end before the master loses patience and kills it.
    worker.cfg.set(
        "graceful_timeout", max(1, int(settings.graceful_timeout_seconds - settings.shutdown_delay_seconds - MARGIN))
    )
    worker.loop.add_signal_handler(signal.SIGTERM, begin)
    _hear_what_came_early(worker.loop)


def _hear_what_came_early(loop: Any) -> None:
    """Signals that come before the loop runs count once it does.

    uvloop notes them, and looks at its notes when a signal comes while it runs: whoever was asked to stop while the
    application was being loaded would go on until its master kills it. So it is sent one that asks for nothing.
    """
    loop.add_signal_handler(signal.SIGWINCH, lambda: None)
    loop.call_soon(signal.raise_signal, signal.SIGWINCH)


class GracefulShutdown:
    """Whether this process has been asked to stop. Begun once, never taken back; safe from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def begun(self) -> bool:
        """True from the moment the process was asked to stop."""
        return self._event.is_set()

    def begin(self) -> None:
        """Ask it to stop. Asking again changes nothing."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until the process is asked to stop; True when it was."""
        return self._event.wait(seconds)


def on_signals(stop: GracefulShutdown, also: Callable[[], None] = lambda: None) -> None:
    """Begin `stop` on SIGTERM and SIGINT (and call `also`): for loops that have no server of their own."""

    def tell() -> None:
        stop.begin()
        also()

    def begin(*_: object) -> None:
        # In a thread of its own: the one that is interrupted may be in the middle of the very wait that is to end, and
        # hold its lock.
        if not stop.begun:
            threading.Thread(target=tell, name="stop").start()

    signal.signal(signal.SIGTERM, begin)
    signal.signal(signal.SIGINT, begin)
