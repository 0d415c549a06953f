"""Who waits for an answer, and how does another thread end that?

A thread that waits for a frozen server sits in the socket until its deadline; all that wakes it is the end of that
socket. So each thread's is known here while it waits, and no longer: a connection that somebody else uses by now is
never ended.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from urllib3 import PoolManager


class Waiting:
    """By thread, the socket it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: dict[int, socket.socket] = {}

    @contextlib.contextmanager
    def on(self, found: socket.socket | None) -> Iterator[None]:
        """This thread waits for what comes from here; None: for nothing that could be ended."""
        me = threading.get_ident()
        with self._lock:
            if found is not None:
                self._sockets[me] = found
        try:
            yield
        finally:
            with self._lock:
                self._sockets.pop(me, None)

    def end(self, thread: int) -> None:
        """What the thread waits for ends within milliseconds, as if the server had gone. Otherwise nothing happens."""
        with self._lock, contextlib.suppress(OSError):
            if (found := self._sockets.get(thread)) is not None:
                socket.socket.shutdown(found, socket.SHUT_RDWR)  # TLS' own takes its object away from under the reader

    def watch(self, manager: PoolManager) -> None:
        """From now on the beginning of every answer to this pool is waited for here."""
        classes = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: self._pool(classes[scheme]) for scheme in classes}

    def _pool(self, found: Any) -> Any:
        on = self.on

        class Connection(found.ConnectionCls):  # type: ignore[misc]
            def getresponse(self) -> Any:
                with on(self.sock):
                    return super().getresponse()

        return type(found.__name__, (found,), {"ConnectionCls": Connection})
