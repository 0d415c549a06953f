"""Is the server back? One list of many asks; the others wait for its word, so that an outage costs next to nothing."""

from __future__ import annotations

import threading

from trimtab.runtime.clock import elapsed

PATIENCE = 20.0
"""Seconds the others wait: what troubles the one that asks may be its own."""


class Road:
    """The way to one API server, shared by the lists of a `Watch`."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._scout: object = None

    def lost(self, who: object) -> None:
        """Nobody answered. The first one who says so is the one that goes on asking."""
        with self._changed:
            self._scout = self._scout or who

    def found(self) -> None:
        """Somebody got an answer: everybody may go."""
        if self._scout is not None:
            self.left(self._scout)

    def left(self, who: object) -> None:
        """This one asks no more."""
        with self._changed:
            if self._scout is who:
                self._scout = None
            self._changed.notify_all()

    def wait(self, who: object, stop: threading.Event) -> None:
        """Until it makes sense for this one to ask; `left` ends it where `stop` is set."""
        until = elapsed() + self._patience
        with self._changed:
            while self._scout not in (None, who) and not stop.is_set() and (left := until - elapsed()) > 0:
                self._changed.wait(left)
