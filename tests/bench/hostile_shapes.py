"""What the one hostile client does over HTTP: a shape of requests for each limit of the webhook's server."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

HOSTILE = "127.0.0.2"
"""The address of the one client; the honest one has 127.0.0.1."""

CHUNKED = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def review(number: int, containers: int = 2) -> bytes:
    """A review of a pod, each another one."""
    spec = {
        "containers": [
            {"name": f"c{index}", "image": f"app:{number}", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
            for index in range(containers)
        ]
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "labels": {"app": "web"}}}
    request = {
        "uid": f"u-{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "team-a",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "dryRun": False,
        "userInfo": {"username": "u"},
        "object": {**pod, "spec": spec},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


@dataclass(slots=True)
class Hostile:
    """One client with one address."""

    port: int
    until: float
    held: list[socket.socket] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Is there time left?"""
        return time.monotonic() < self.until

    def plain(self) -> socket.socket:
        """A bare TCP connection, held until the end."""
        connection = socket.create_connection(("127.0.0.1", self.port), 5, source_address=(HOSTILE, 0))
        self.held.append(connection)
        return connection

    def secure(self) -> ssl.SSLSocket:
        """A connection over TLS, held until the end."""
        connection = trust().wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), 5, source_address=(HOSTILE, 0))
        )
        connection.settimeout(5)
        self.held.append(connection)
        return connection

    def again(self, work: Callable[[], None]) -> None:
        """Do it until the time is over, whatever the server does to it."""
        while self.goes_on:
            with suppress(OSError):
                work()
            self.drop()

    def drop(self) -> None:
        """Leave every connection."""
        while self.held:
            with suppress(OSError):
                self.held.pop().close()

    def many(self, count: int, work: Callable[[], None]) -> None:
        """The same in so many threads."""
        threads = [threading.Thread(target=self._one, args=(work,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        while self.goes_on:
            time.sleep(0.05)

    def _one(self, work: Callable[[], None]) -> None:
        while self.goes_on:
            with suppress(OSError):
                work()


def trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _sent(hostile: Hostile, *pieces: bytes) -> None:
    """All of it over a connection of its own, then whatever comes back."""
    connection = hostile.secure()
    for piece in pieces:
        connection.sendall(piece)
    while connection.recv(65536):
        pass


def _counted(path: bytes, body: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path, len(body)) + body


def _chunks_of_one_byte(hostile: Hostile) -> None:
    pieces = [b"1\r\nx\r\n" * 40_000] * 25
    hostile.again(lambda: _sent(hostile, CHUNKED, *pieces))


def _chunk_extensions(hostile: Hostile) -> None:
    pieces = [b"1;" + b"e" * 60_000 + b"\r\nx\r\n"] * 100
    hostile.again(lambda: _sent(hostile, CHUNKED, *pieces))


def _trailers(hostile: Hostile) -> None:
    pieces = [b"A: " + b"b" * 100 + b"\r\n"] * 80_000
    hostile.again(lambda: _sent(hostile, CHUNKED + b"0\r\n", b"".join(pieces)))


def _tiny_headers(hostile: Hostile) -> None:
    headers = b"".join(b"a%d: b\r\n" % number for number in range(95))
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n"
    hostile.many(8, lambda: _sent(hostile, whole * 50, b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 100_000))


def _slow_bodies(hostile: Hostile) -> None:
    """The first halves of 300 large bodies, and then a byte at a time."""

    def halves() -> None:
        connections = [hostile.secure() for _ in range(300)]
        for connection in connections:
            connection.sendall(_counted(b"/mutate?timeout=30s", b" " * 200_000)[:100_000])
        while hostile.goes_on:
            for connection in connections:
                with suppress(OSError):
                    connection.send(b" ")

    hostile.again(halves)


def _thousands_of_connections(hostile: Hostile) -> None:
    """2 500 that say nothing at all, and 2 300 that begin a request; those that are ended come again."""

    def crowd_of_both() -> None:
        for number in range(2_500):
            with suppress(OSError):
                hostile.plain()
            if number % 5 == 0 and not hostile.goes_on:
                return
        for _ in range(2_300):
            if not hostile.goes_on:
                return
            with suppress(OSError):
                hostile.secure().sendall(b"POST /mutate HTTP/1.1\r\nHost")
        while hostile.goes_on:
            time.sleep(0.1)

    hostile.again(crowd_of_both)


def _pipelined_pages(hostile: Hostile) -> None:
    hostile.many(4, lambda: _sent(hostile, *[PAGE * 5_000] * 10))


def _pipelined_pages_unread(hostile: Hostile) -> None:
    def unread() -> None:
        connection = hostile.secure()
        while hostile.goes_on:
            connection.sendall(PAGE * 5_000)

    hostile.many(4, unread)


def _hellos_without_an_end(hostile: Hostile) -> None:
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

    def hellos() -> None:
        for _ in range(500):
            hostile.plain().sendall(hello)
        time.sleep(0.2)

    hostile.again(hellos)


def _handshakes_and_no_request(hostile: Hostile) -> None:
    hostile.many(16, lambda: hostile.secure().close())


def _huge_pods(hostile: Hostile) -> None:
    body = review(0, containers=3 * 2**20 // 90)[: 3 * 2**20 - 1]
    whole = review(0, containers=30_000)
    hostile.many(4, lambda: _sent(hostile, _counted(b"/mutate", whole), _counted(b"/mutate", body)))


def _large_garbage(hostile: Hostile) -> None:
    hostile.many(8, lambda: _sent(hostile, _counted(b"/mutate", b" " * (8 * 2**20))))


def _pages_with_bodies(hostile: Hostile) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"
    hostile.many(8, lambda: _sent(hostile, whole, b" " * 8_000_000))


def _checks_of_large_documents(hostile: Hostile) -> None:
    keys = "\n".join(f"key{number}: 1" for number in range(3_500))
    document = {"metadata": {"name": "p", "labels": {"trimtab.dev/pool": "p"}}, "data": {"pool.yaml": keys}}
    whole = json.loads(review(0))
    whole["request"] |= {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "namespace": "trimtab-system",
        "object": {"apiVersion": "v1", "kind": "ConfigMap", **document},
    }
    body = json.dumps(whole).encode()
    hostile.many(16, lambda: _sent(hostile, _counted(b"/validate", body)))


def _deep_json(hostile: Hostile) -> None:
    hostile.many(4, lambda: _sent(hostile, _counted(b"/mutate", b'{"request":{"object":' + b"[" * 4_000_000)))


SHAPES: dict[str, Callable[[Hostile], None]] = {
    "chunks of one byte": _chunks_of_one_byte,
    "chunk extensions": _chunk_extensions,
    "trailers": _trailers,
    "tiny headers": _tiny_headers,
    "slow bodies": _slow_bodies,
    "thousands of connections": _thousands_of_connections,
    "pipelined pages": _pipelined_pages,
    "pipelined pages, answers unread": _pipelined_pages_unread,
    "hellos without an end": _hellos_without_an_end,
    "handshakes and no request": _handshakes_and_no_request,
    "huge pods": _huge_pods,
    "large garbage": _large_garbage,
    "pages with bodies": _pages_with_bodies,
    "checks of large documents": _checks_of_large_documents,
    "deep JSON": _deep_json,
}


_HEADERS = [b"POST /mutate HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 60_000, *[b"b" * 60_000] * 149]
_EXTENSIONS = [CHUNKED + b"1;", *[b"e" * 60_000] * 150]
_TRAILERS = [CHUNKED + b"0\r\nA: ", *[b"b" * 60_000] * 150]
_BELOW = [CHUNKED + b"1;" + b"e" * 4_000 + b"\r\nx\r\n0\r\nA: " + b"b" * 4_000]
_PAGES = [PAGE[:-4] + b"\r\nContent-Length: 9000000\r\n\r\n", *[b" " * 60_000] * 149]

SILENT_SHAPES: dict[str, list[bytes]] = {
    "headers": _HEADERS,
    "extensions": _EXTENSIONS,
    "trailers": _TRAILERS,
    "all just below": _BELOW,
    "pages": _PAGES,
}
"""What each of the silent connections sends, as far as the server lets it."""
