"""The two servers that are compared: ours, and the reference in Go. Each on one core, with what it costs told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import certs
from tests.bench import crowd
from tests.bench.payloads import write_payloads
from tests.controlplane import environ
from trimtab.runtime.environment import variable_name

YARDSTICKS = Path(__file__).parent / "yardsticks"
SERVER_CORE, CLIENT_CORE = "0", "1"
_TICK = os.sysconf("SC_CLK_TCK")
_RESULT = re.compile(r"RES n=(\d+) .*?p50=(-?\d+) .*?p99=(-?\d+) .*?err=(\d+)")


@dataclass(frozen=True, slots=True)
class Load:
    """What one load was answered with; times in microseconds."""

    reviews: int
    errors: int
    cpu_us: float
    """The server's user and system time per review."""
    p50_us: float = 0.0
    p99_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    name: str
    url: str
    pids: tuple[int, ...]
    client: Path
    """The load client's binary."""

    def cpu(self) -> float:
        """Seconds of user and system time so far."""
        return sum(map(cpu, self.pids))

    @property
    def memory(self) -> int:
        """What the process that answers has resident, in bytes."""
        return int(Path(f"/proc/{self.pids[-1]}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def load(self, body: Path, *how: str) -> Load:
        """The load client's own ways: `-conns N`, `-rate R`, `-burst N`, with `-dur`."""
        command = [str(self.client), "-url", f"{self.url}/mutate?timeout=10s", "-body", str(body), *how]
        before = self.cpu()
        output = subprocess.run(_pinned(CLIENT_CORE, *command), check=True, capture_output=True, text=True).stdout
        spent, result = self.cpu() - before, _RESULT.search(output)
        assert result, output
        reviews, errors = int(result[1]), int(result[4])
        return Load(reviews, errors, spent / max(1, reviews) * 1e6, float(result[2]), float(result[3]))

    def call(self, plan: Path, count: int) -> Load:
        """Reviews as a plan of `tests.bench.arrivals` says."""
        command = [sys.executable, "-m", "tests.bench.caller", self.url, str(plan), str(count)]
        before = self.cpu()
        run = _pinned(CLIENT_CORE, *command)
        document = json.loads(subprocess.run(run, check=True, capture_output=True, text=True, cwd=crowd.ROOT).stdout)
        spent = self.cpu() - before
        return Load(document["answered"], document["errors"], spent / max(1, document["answered"]) * 1e6)


def _pinned(core: str, *command: str) -> list[str]:
    return ["taskset", "-c", core, *command]


def cpu(pid: int) -> float:
    """Seconds of user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def build(home: Path) -> tuple[Path, Path]:
    """Returns the reference and the load client, built from their sources in `yardsticks`."""
    if shutil.which("go") is None:
        raise SystemExit("the reference webhook is written in Go: install Go 1.22 or newer, and put `go` on the PATH")
    reference, client = home / "reference_webhook", home / "load_client"
    for binary in (reference, client):
        subprocess.run(["go", "build", "-o", str(binary), "."], cwd=YARDSTICKS / binary.name, check=True)
    return reference, client


def bodies(home: Path) -> dict[str, Path]:
    """Returns the files of small, typical and big reviews: name → file."""
    return write_payloads(home)


@contextmanager
def both(home: Path) -> Iterator[tuple[Server, Server]]:
    """The reference and ours, each over the same certificate."""
    reference, client = build(home)
    certs.write_folder(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
    with _reference(home, reference, client) as theirs, ours(home, client) as our:
        yield theirs, our


@contextmanager
def under_quota(home: Path, like: Server) -> Iterator[Server]:
    """Ours beside `both`, in a namespace with a quota whose use is another one at each review."""
    with ours(home, like.client, module="tests.bench.under_quota") as our:
        yield our


@contextmanager
def _reference(home: Path, binary: Path, client: Path) -> Iterator[Server]:
    port, pair = _free_port(), home / "certs"
    command = [str(binary), "-addr", f"127.0.0.1:{port}"]
    command += ["-cert", str(pair / "tls.crt"), "-key", str(pair / "tls.key")]
    surroundings = {**os.environ, "GOMAXPROCS": "1"}
    process = subprocess.Popen(_pinned(SERVER_CORE, *command), env=surroundings, stderr=subprocess.DEVNULL)
    try:
        _answers(port)
        yield Server("reference", f"https://127.0.0.1:{port}", (process.pid,), client)
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def ours(home: Path, client: Path, *, module: str = "trimtab", **settings: str) -> Iterator[Server]:
    """`trimtab webhook` as installed: every shipped policy, the self-check, a log line per changed pod.

    module: what is run in its place.
    """
    (home / "snapshot.json").write_text(json.dumps(crowd.snapshot()))
    environment = {
        "LISTEN": "127.0.0.1:0",
        "CERTS_FOLDER": str(home / "certs"),
        "READY_FILE": str(home / "ready.json"),
        "POLICIES": crowd.POLICIES,
        "CLUSTER": str(home / "snapshot.json"),
        "LOG_FORMAT": "json",
        **settings,
    }
    surroundings = {
        **environ.plain(),
        **{variable_name("webhook", name.lower()): value for name, value in environment.items()},
    }
    (home / "ready.json").unlink(missing_ok=True)
    with (home / f"{module}.log").open("wb") as log:
        command = _pinned(SERVER_CORE, sys.executable, "-m", module, "webhook")
        process = subprocess.Popen(command, cwd=crowd.ROOT, env=surroundings, stderr=log, stdout=log)
    try:
        url = _ready(home, process, home / f"{module}.log")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield Server("trimtab", url, (process.pid, *map(int, children)), client)
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(20)


def _ready(home: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 180
    while not (home / "ready.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the webhook did not start: {log.read_text()[-2000:]}")
        time.sleep(0.05)
    return str(json.loads((home / "ready.json").read_text())["url"])


def _free_port() -> int:
    with socket.socket() as actual_socket:
        actual_socket.bind(("127.0.0.1", 0))
        return int(actual_socket.getsockname()[1])


def _answers(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
