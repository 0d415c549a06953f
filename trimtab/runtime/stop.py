"""A process is asked to stop: first it says so, then it waits, then it ends."""

import signal
import threading
from collections.abc import Callable


class Stop:
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


def on_signals(stop: Stop, also: Callable[[], None] = lambda: None) -> None:
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
