"""What can one client do to the webhook over HTTP, and what do others notice of it?

    python -m tests.bench.hostile_http        (about two minutes)

The real `trimtab webhook` over TLS with every shipped policy. One process with one address does its worst, one shape
after the other; beside it an honest client sends reviews as an API server does and asks `/healthz` as a kubelet does.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import certs
from tests.bench import crowd
from trimtab.runtime.environment import variable_name

SECONDS = 4.0
"""How long each shape lasts."""

PATIENCE = 10.0
"""Seconds an honest client waits: the API server's own default."""

HOSTILE = "127.0.0.2"
"""The address of the one client; the honest one has 127.0.0.1."""

SILENT = 90
"""Connections that send something and then nothing."""

CHUNKED = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Target:
    """A running webhook."""

    port: int
    worker: int
    """The process that answers."""

    @property
    def resident_mib(self) -> float:
        """What that process has resident."""
        pages = int(Path(f"/proc/{self.worker}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(slots=True)
class Honest:
    """What the honest client got."""

    milliseconds: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """Of all its requests, in milliseconds."""
        if len(self.milliseconds) < 2:
            return PATIENCE * 1000
        return statistics.quantiles(self.milliseconds, n=100, method="inclusive")[98]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileHttp:
    """What one client can do to the others."""

    stall_ms: float
    """The largest p99 of honest `/mutate` and `/healthz` beside any shape."""
    silent_mib: float
    """The largest rise of resident memory by `SILENT` connections that sent something and then nothing."""
    lost: int
    """Honest requests without an answer, or with another one than 200."""
    shapes: dict[str, float]
    """Shape → p99 in milliseconds."""


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Target]:
    """`trimtab webhook` over a fresh pair; `settings` are TRIMTAB_ variables without the prefix."""
    certs.write_folder(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
    ready = home / "ready.json"
    variables = {
        "LISTEN": "127.0.0.1:0", "CERTS_FOLDER": str(home / "certs"), "READY_FILE": str(ready),
        "POLICIES": crowd.POLICIES, "LOG_LEVEL": "error", **settings,
    }  # fmt: skip
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}
    environ |= {variable_name("webhook", name.lower()): value for name, value in variables.items()}
    process = subprocess.Popen([sys.executable, "-m", "trimtab", "webhook"], cwd=crowd.ROOT, env=environ)
    try:
        deadline = time.monotonic() + 90
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the webhook did not start")
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield Target(port=int(json.loads(ready.read_text())["port"]), worker=int(children[0]))
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(30)


def measure(target: Target, seconds: float = SECONDS) -> HostileHttp:
    """The silent connections first, while the process is young, and then every shape, one after the other."""
    _beside(target, None, 1.0)
    before = target.resident_mib
    silent = max(_silent(target, sends) for sends in SILENT_SHAPES.values()) - before
    shapes = {name: _beside(target, name, seconds) for name in SHAPES}
    return HostileHttp(
        stall_ms=max(honest.p99 for honest in shapes.values()),
        silent_mib=silent,
        lost=sum(len(honest.lost) for honest in shapes.values()),
        shapes={name: honest.p99 for name, honest in shapes.items()},
    )


# ── the honest client ────────────────────────────────────────────────────────────────────────────────


def _beside(target: Target, shape: str | None, seconds: float) -> Honest:
    """What the honest client gets beside a shape, or alone."""
    honest = Honest()
    command = [sys.executable, "-m", __spec__.name, "--shape", str(shape), str(target.port), str(seconds)]
    hostile = subprocess.Popen(["nice", *command], cwd=crowd.ROOT) if shape else None
    try:
        if hostile is not None:
            time.sleep(1.0)  # it has to start, and to open its connections
        until = time.monotonic() + seconds
        works = (_reviews, _probes)
        threads = [threading.Thread(target=work, args=(target, honest, until)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        if hostile is not None:
            hostile.kill()
            hostile.wait(30)
    return honest


def _reviews(target: Target, honest: Honest, until: float) -> None:
    """As an API server: one kept connection, and a new one where that was ended."""
    connection, number = _connection(target), 0
    while time.monotonic() < until:
        number += 1
        body = review(number)
        _timed(honest, partial(_status, connection, "POST", "/mutate?timeout=10s", body))
        time.sleep(0.02)
    connection.close()


def _probes(target: Target, honest: Honest, until: float) -> None:
    """As a kubelet: a connection for each."""
    while time.monotonic() < until:
        connection = _connection(target)
        _timed(honest, partial(_status, connection, "GET", "/healthz"))
        connection.close()
        time.sleep(0.1)


def _timed(honest: Honest, ask: Callable[[], int]) -> None:
    began = time.monotonic()
    try:
        status = ask()
    except (OSError, http.client.HTTPException) as error:
        honest.lost.append(repr(error))
        return
    honest.milliseconds.append((time.monotonic() - began) * 1000)
    if status != 200:
        honest.lost.append(str(status))


def _status(connection: http.client.HTTPSConnection, method: str, path: str, body: bytes | None = None) -> int:
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    response = connection.getresponse()
    response.read()
    return response.status


def _connection(target: Target) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection("127.0.0.1", target.port, timeout=PATIENCE, context=_trust())


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
        "uid": f"u-{number}", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "team-a",
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE", "dryRun": False,
        "userInfo": {"username": "u"}, "object": {**pod, "spec": spec},
    }  # fmt: skip
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


# ── the hostile client ───────────────────────────────────────────────────────────────────────────────


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
        connection = _trust().wrap_socket(
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


def _trust() -> ssl.SSLContext:
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
        "namespace": "trimtab-system", "object": {"apiVersion": "v1", "kind": "ConfigMap", **document},
    }  # fmt: skip
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


# ── silent connections ───────────────────────────────────────────────────────────────────────────────

_HEADERS = [b"POST /mutate HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 60_000, *[b"b" * 60_000] * 149]
_EXTENSIONS = [CHUNKED + b"1;", *[b"e" * 60_000] * 150]
_TRAILERS = [CHUNKED + b"0\r\nA: ", *[b"b" * 60_000] * 150]
_BELOW = [CHUNKED + b"1;" + b"e" * 4_000 + b"\r\nx\r\n0\r\nA: " + b"b" * 4_000]
_PAGES = [PAGE[:-4] + b"\r\nContent-Length: 9000000\r\n\r\n", *[b" " * 60_000] * 149]

SILENT_SHAPES: dict[str, list[bytes]] = {
    "headers": _HEADERS, "extensions": _EXTENSIONS, "trailers": _TRAILERS, "all just below": _BELOW, "pages": _PAGES,
}  # fmt: skip
"""What each of the silent connections sends, as far as the server lets it."""


def _silent(target: Target, sends: list[bytes]) -> float:
    """What the process has resident while they all are there, in MiB."""
    hostile = Hostile(target.port, time.monotonic() + 60)
    for _ in range(SILENT):
        with suppress(OSError):
            connection = hostile.secure()
            for piece in sends:
                connection.sendall(piece)
    time.sleep(0.5)
    resident = target.resident_mib
    hostile.drop()
    return resident


def _attack(shape: str, port: int, seconds: float) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    SHAPES[shape](Hostile(port, time.monotonic() + seconds + 2))


def main(arguments: list[str]) -> None:
    """Attack where `--shape NAME PORT SECONDS` says so; otherwise measure all, or the shapes that are named."""
    if arguments[:1] == ["--shape"]:
        _attack(arguments[1], int(arguments[2]), float(arguments[3]))
        os._exit(0)
    for name in set(SHAPES) - set(arguments) if arguments else ():
        del SHAPES[name]
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as target:
        result: Any = measure(target)
        for name, stall in sorted(result.shapes.items(), key=lambda pair: -pair[1]):
            print(f"{stall:8.1f} ms  {name}")
        print(f"RESULT stall_ms={result.stall_ms:.0f} silent_mib={result.silent_mib:.1f} lost={result.lost}")


if __name__ == "__main__":
    main(sys.argv[1:])
