"""An API server that has its troubles: a relay in front of the real one that can be told to fail.

It logs in as the user it stands for, and answers plain HTTP on loopback.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.controlplane import kubeconfig
from tests.controlplane.api import context_of

HANG = 3.0
"""Seconds without an answer, longer than anybody here waits."""


class Relay(http.server.ThreadingHTTPServer):
    """`trouble` is the share of requests that fail: with 429, 500, without any answer, or done and not told."""

    daemon_threads = True

    def __init__(self, login: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        access = kubeconfig.read(login)
        self.there, self.context = urlsplit(access.server), context_of(access)
        self.trouble, self.chance = 0.0, random.Random(1)
        self.failed: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        """Method and path → requests, watches among them."""

    def draw(self) -> str:
        """What becomes of a request: empty where all is well."""
        if self.chance.random() >= self.trouble:
            return ""
        result = self.chance.choice(["429", "500", "hang", "untold"])
        self.failed[result] += 1
        return result


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second one waits for no acknowledgement of the first.
    disable_nagle_algorithm = True
    server: Relay

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its own name
        pass

    def _relayed(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked[f"{self.command} {self.path.partition('?')[0]}"] += 1
        how = self.server.draw()
        if how in ("429", "500"):
            self._refused(int(how))
        elif how == "hang":
            time.sleep(HANG)
            self.close_connection = True
        else:
            self._asked(body, told=how != "untold")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _relayed

    def _refused(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _asked(self, body: bytes, *, told: bool) -> None:
        there = self.server.there
        line = http.client.HTTPSConnection(there.hostname or "", there.port, context=self.server.context, timeout=330)
        try:
            headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
            line.request(self.command, self.path, body or None, headers)
            answer = line.getresponse()
            if told:
                self._told(answer)
            else:
                self.close_connection = True
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            line.close()

    def _told(self, answer: http.client.HTTPResponse) -> None:
        """In pieces as they come: a watch has no end."""
        self.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, text)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError, http.client.HTTPException):
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")


_HOP = ("host", "connection", "content-length", "transfer-encoding", "accept-encoding")


@contextmanager
def relay(login: Path, folder: Path) -> Iterator[tuple[Relay, Path]]:
    """The relay, and a kubeconfig that leads to it."""
    relay = Relay(login)
    threading.Thread(target=relay.serve_forever, daemon=True).start()
    server = f"http://127.0.0.1:{relay.server_address[1]}"
    named = {"name": "relay", "cluster": {"server": server}}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "relay",
        "clusters": [named],
        "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {}}],
    }
    path = folder / "relay.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    try:
        yield relay, path
    finally:
        relay.shutdown()
        relay.server_close()
