"""A few pages over plain HTTP, for who watches a process: metrics, health. Nothing is asked of the outside here.

Tell whoever started a process that it serves, and where.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from trimtab.runtime.files import CannotServe
from trimtab.runtime.settings import ListenAddress

Page = Callable[[], tuple[int, str, bytes]]
"""→ (status, content type, body). Called in a thread of its own."""
TEXT = "text/plain; charset=utf-8"
MOST = 32
"""Connections at once: each has a thread. Probes and scrapes are a handful, and take milliseconds."""
SILENCE = 10
"""Seconds without a byte after which a connection is ended."""


class HttpPages:
    """Serves from `__enter__` to `__exit__`. Raises CannotServe where the address is taken."""

    def __init__(self, address: ListenAddress, pages: Mapping[str, Page]) -> None:
        try:
            self._server = _Server((address.host, address.port), _handler(pages))
        except OSError as error:
            raise CannotServe(f"cannot listen on {address}: {error.strerror}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="pages", daemon=True)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> HttpPages:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """One connection too many ends the oldest: whoever only sits there must not keep a probe out, nor fill memory."""

    daemon_threads = True
    request_queue_size = 4 * MOST
    """Who comes while a crowd does. Python's own 5 lets a probe wait a second for its next try: all the time it has."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._held: dict[Any, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._held[request] = None
            oldest = next(iter(self._held)) if len(self._held) > MOST else None
            self._held.pop(oldest, None)
        if oldest is not None:
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its thread finds the end, and closes it
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._held.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went, or was sent away, is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _handler(pages: Mapping[str, Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            status, kind, body = page() if page else (404, TEXT, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


def tell(file: Path | None, facts: Mapping[str, Any]) -> None:
    """Write `facts` as JSON into the ready file, where one was asked for. Who waits for it never reads half of it."""
    if file is None:
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps(facts) + "\n")
    temporary.replace(file)
