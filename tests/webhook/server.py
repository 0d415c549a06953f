"""The real server in a process of its own, on a free loopback port."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import certs
from trimtab.runtime.environment import variable_name

ROOT = Path(__file__).parents[2]
# gunicorn drops the sockets of clients that would not leave; nothing else may be warned about.
WARNINGS = ("-W", "error", "-W", "ignore::ResourceWarning")
START = """
import os
from trimtab.runtime import environment, log
from webhook.main import run
run(environment.read_settings(os.environ), log.build_logger(style="json"), "tests.webhook.fake_entry:application")
"""


class Server:
    """A running service: its folder, its process, and connections to it."""

    def __init__(self, home: Path, process: "subprocess.Popen[bytes]") -> None:
        self.certs, self.process = home / "certs", process
        self._ready, self._log = home / "ready.json", home / "log"
        self._open: list[http.client.HTTPSConnection] = []
        self.port = self._port()

    def issue(self) -> certs.CertificateFiles:
        """A pair for loopback; not yet in the folder."""
        return certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC))

    def trust(self) -> ssl.SSLContext:
        """A client's that trusts what the folder's bundle holds now."""
        return ssl.create_default_context(cadata=(self.certs / "ca.crt").read_text())

    def connect(self, host: str = "localhost", trust: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        """A verified connection, closed at the server's end at the latest."""
        connection = http.client.HTTPSConnection(host, self.port, timeout=30, context=trust or self.trust())
        self._open.append(connection)
        return connection

    def hang_up(self) -> None:
        """Close every connection made so far."""
        while self._open:
            self._open.pop().close()

    def stop(self, signum: int = signal.SIGTERM) -> None:
        """Ask the process to stop."""
        self.process.send_signal(signum)

    @property
    def worker(self) -> int:
        """The process that answers."""
        master = self.process.pid
        return int(Path(f"/proc/{master}/task/{master}/children").read_text().split()[0])

    @property
    def memory(self) -> int:
        """What the worker has resident, in bytes."""
        pages = int(Path(f"/proc/{self.worker}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def log(self) -> list[dict[str, object]]:
        """What it has written, line by line; every line must be JSON."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def _port(self) -> int:
        deadline = time.monotonic() + 90
        while not self._ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the server did not start: {self._log.read_text()}")
            time.sleep(0.02)
        return int(json.loads(self._ready.read_text())["port"])


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Server]:
    """A server over a fresh pair; `settings` are TRIMTAB_ variables without the prefix."""
    certs.write_folder(home / "certs", certs.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC)))
    environment = {"LISTEN": "127.0.0.1:0", "CERTS_FOLDER": str(home / "certs"), "READY_FILE": str(home / "ready.json")}
    environ = {
        **os.environ,
        **{variable_name("webhook", name.lower()): value for name, value in {**environment, **settings}.items()},
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *WARNINGS, "-c", START], cwd=ROOT, env=environ, stderr=log)
        try:
            with ExitStack() as over:
                running = Server(home, process)
                over.callback(running.hang_up)
                yield running
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
                process.wait(60)


def post(connection: http.client.HTTPConnection, body: bytes, path: str = "/mutate") -> tuple[int, bytes]:
    """One review over a connection that stays open."""
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()
