"""The handler of a played server: a function that is given the method, the path and the body, and returns the body of
the response.
"""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

Respond = Callable[[str, str, bytes], bytes]
"""(method, path, body of the request) → body of the response."""


def handler_of(respond: Respond, content_type: str = "application/json") -> type[BaseHTTPRequestHandler]:
    """Return a handler that answers GET and POST with status 200 on kept-alive connections, and logs nothing."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two writes: the second one waits for no acknowledgement of the first.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = respond(self.command, self.path, sent)
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler
