"""A few pages over plain HTTP, for who watches a process: metrics, health. Nothing is asked of the outside here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from trimtab.runtime.errors import CannotServe
from trimtab.runtime.settings import Address

Page = Callable[[], tuple[int, str, bytes]]
"""→ (status, content type, body). Called in a thread of its own."""
TEXT = "text/plain; charset=utf-8"


class Pages:
    """Serves from `__enter__` to `__exit__`. Raises CannotServe where the address is taken."""

    def __init__(self, address: Address, pages: Mapping[str, Page]) -> None:
        try:
            self._server = ThreadingHTTPServer((address.host, address.port), _handler(pages))
        except OSError as error:
            raise CannotServe(f"cannot listen on {address}: {error.strerror}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="pages", daemon=True)

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Pages:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(pages: Mapping[str, Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

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
