"""Processes started, signalled and waited for by name, under a supervisor that outlives nobody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SUPERVISOR = Path(__file__).with_name("supervisor.py")


class ProcessDied(AssertionError):
    """A process ended that should run. The message carries its exit code and the end of its log."""


class Processes:
    """Each has its log in `logs`. `folders` are removed at `close()`, and when this process dies before."""

    def __init__(self, logs: Path, folders: Sequence[Path] = ()) -> None:
        self.logs = logs
        self._lock = threading.Lock()
        self._meant_to_end: set[str] = set()
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SUPERVISOR), str(os.getpid()), *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def supervisor_pid(self) -> int:
        return self._supervisor.pid

    def start(self, name: str, argv: Sequence[str], env: dict[str, str] | None = None) -> int:
        """Starts `argv` as `name` and returns its pid."""
        self._meant_to_end.discard(name)
        environment = {**os.environ, **(env or {})}
        log = str(self.logs / f"{name}.log")
        return int(self._ask(do="start", name=name, argv=list(argv), env=environment, log=log)["pid"])

    def running(self) -> dict[str, int]:
        """Name → pid of what runs now."""
        return dict(self._ask(do="status")["running"])

    def send(self, name: str, number: int) -> bool:
        """False where it had already ended."""
        return "gone" not in self._ask(do="signal", name=name, signal=int(number))

    def stop(self, name: str, number: int = signal.SIGTERM, grace: float = 10.0) -> None:
        """Signals, waits until it is gone (also when it was dying already), kills after `grace` seconds."""
        self._meant_to_end.add(name)
        if self.send(name, number) and number != signal.SIGKILL:
            self.send(name, signal.SIGCONT)  # a frozen process sees no SIGTERM
        if not self._gone(name, within=grace):
            self.send(name, signal.SIGKILL)
            self._gone(name, within=10)

    def check(self) -> None:
        """Raises ProcessDied if something ended that nobody stopped."""
        for name, code in self._ask(do="status")["ended"].items():
            if name not in self._meant_to_end:
                raise ProcessDied(f"{name} ended with {code}; the end of its log:\n{self.log_tail(name)}")

    def log_tail(self, name: str, lines: int = 25) -> str:
        path = self.logs / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "(no log)"

    def close(self) -> None:
        """Ends the supervisor; whatever still runs is killed and the folders are removed."""
        if self._supervisor.stdin is not None:
            self._supervisor.stdin.close()
        self._supervisor.wait(timeout=30)
        if self._supervisor.stdout is not None:
            self._supervisor.stdout.close()

    def _gone(self, name: str, within: float) -> bool:
        deadline = time.monotonic() + within
        while name in self.running():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _ask(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            assert self._supervisor.stdin is not None
            assert self._supervisor.stdout is not None
            self._supervisor.stdin.write(json.dumps(request).encode() + b"\n")
            self._supervisor.stdin.flush()
            line = self._supervisor.stdout.readline()
        if not line:
            raise ProcessDied("the supervisor is gone, and with it every process")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessDied(f"{request.get('name')}: {answer['error']}")
        return answer
