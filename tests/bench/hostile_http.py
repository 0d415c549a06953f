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
from tests.bench.hostile_shapes import SHAPES, SILENT_SHAPES, Hostile, review, trust
from trimtab.runtime.environment import variable_name

SECONDS = 4.0
"""How long each shape lasts."""

PATIENCE = 10.0
"""Seconds an honest client waits: the API server's own default."""

SILENT = 90
"""Connections that send something and then nothing."""


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
        "LISTEN": "127.0.0.1:0",
        "CERTS_FOLDER": str(home / "certs"),
        "READY_FILE": str(ready),
        "POLICIES": crowd.POLICIES,
        "LOG_LEVEL": "error",
        **settings,
    }
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
    return http.client.HTTPSConnection("127.0.0.1", target.port, timeout=PATIENCE, context=trust())


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
