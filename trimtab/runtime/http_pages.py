"""A simple HTTP server for a few pages, such as metrics and health, and the ready file of a process.

The pages are answered from memory; they send no requests.
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
"""A function that returns (status, content type, body). It is called in a thread of its own."""
TEXT = "text/plain; charset=utf-8"
MAX_CONNECTIONS = 32
"""The maximum number of connections, each of which has a thread. Probes and scrapes are few and take milliseconds."""
MAX_SILENCE_SECONDS = 10
"""A connection is closed after this many seconds without a byte."""


class HttpPages:
    """Serves from `__enter__` to `__exit__`. Raises CannotServe if the address is in use."""

    def __init__(self, address: ListenAddress, pages: Mapping[str, Page]) -> None:
        try:
            self._server = _Server((address.host, address.port), _handler_class(pages))
        except OSError as error:
            raise CannotServe(f"cannot listen on {address}: {error.strerror}") from error
        # It checks for shutdown every 0.1 seconds. A daemon thread, so that a crash elsewhere ends the process.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="pages", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the server, with the port on which it really listens."""
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
    """A server that closes the oldest connection if there are too many: idle clients must neither block a probe nor
    fill the memory."""

    daemon_threads = True
    request_queue_size = 4 * MAX_CONNECTIONS
    """The number of connections that wait in the kernel during a burst. With Python's default of 5, a probe could have
    to wait a second for its retry, which is its whole timeout."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: dict[Any, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections[request] = None
            # Dicts keep insertion order.
            oldest = next(iter(self._connections)) if len(self._connections) > MAX_CONNECTIONS else None
            self._connections.pop(oldest, None)
        if oldest is not None:
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its thread then reads the end of the stream, and closes the socket
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports an error, unless the cause is only that the connection to a client was closed."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _handler_class(pages: Mapping[str, Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = MAX_SILENCE_SECONDS

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


def write_ready_file(file: Path | None, facts: Mapping[str, Any]) -> None:
    """Writes `facts` as JSON into the ready file, if one is configured. The file is written in one step, so a reader
    never sees half of it."""
    if file is None:
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps(facts) + "\n")
    # A rename is atomic within one folder.
    temporary.replace(file)
