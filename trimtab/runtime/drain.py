"""The last seconds of a server: not ready any more, still answering, then gone."""

import signal
from typing import Any, Protocol, runtime_checkable

from trimtab.runtime.settings import Settings

MARGIN = 4
"""Seconds kept back for gunicorn's own steps: its loop looks up once a second, its master four times."""


@runtime_checkable
class Drains(Protocol):
    """An application that can be told that its process is about to stop."""

    def drain(self) -> None:
        """From now on say "not ready", and ask clients to take their next request elsewhere."""


def drain_on_term(worker: Any, settings: Settings) -> None:
    """Make SIGTERM the beginning of a drain in this gunicorn `asgi` worker.

    gunicorn alone would stop accepting at once, while endpoints still lead clients here. So:
    readiness off and `drain` seconds of normal service; then no new connections; kept ones go on
    being answered until their clients let go or `graceful_timeout` is nearly over.
    """
    begun = False

    def begin() -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        if isinstance(worker.asgi, Drains):
            worker.asgi.drain()
        worker.loop.call_later(settings.drain, worker.handle_exit_signal)

    # The worker's own wait must end before the master loses patience and kills it.
    worker.cfg.set("graceful_timeout", max(1, int(settings.graceful_timeout - settings.drain - MARGIN)))
    worker.loop.add_signal_handler(signal.SIGTERM, begin)
    _hear_what_came_early(worker.loop)


def _hear_what_came_early(loop: Any) -> None:
    """Signals that come before the loop runs count once it does.

    uvloop notes them, and looks at its notes when a signal comes while it runs: whoever was asked to stop while the
    application was being loaded would go on until its master kills it. So it is sent one that asks for nothing.
    """
    loop.add_signal_handler(signal.SIGWINCH, lambda: None)
    loop.call_soon(signal.raise_signal, signal.SIGWINCH)
