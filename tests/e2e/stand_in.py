"""Somebody else in our place: with a pair that API servers trust, or one that is over, and with nonsense to say."""

from __future__ import annotations

import http.server
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import certs
from tests.e2e.installed import Installed


@dataclass(slots=True)
class StandIn:
    """Answers 200 with these bytes, whatever it is asked."""

    answer: bytes = b""
    asked: list[bytes] = field(default_factory=list)


@contextmanager
def standing_in(here: Installed, folder: certs.CertificateFiles) -> Iterator[StandIn]:
    """Somebody with this pair in our place."""
    stand_in = StandIn()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            stand_in.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(stand_in.answer)

        def log_message(self, *_: object) -> None:
            pass

    home = here.home / f"stand-in-{time.monotonic_ns()}"
    certs.write_folder(home, replace(folder, authority_key=None))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "tls.crt", home / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    here.stop(signal.SIGKILL)
    here.balancer.backends = [server.server_address[1]]
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
