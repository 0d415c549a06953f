"""Keeps processes for somebody, and never longer than that somebody lives.

Run as a script, it is the parent of every process of a control plane. It takes one JSON request a line on
stdin and answers each with one line on stdout. When stdin closes or its owner's process ends, by SIGKILL too,
it kills what it started, newest first, removes the folders it was given, and goes. Should the supervisor
itself be killed, the kernel kills its children (PR_SET_PDEATHSIG): it has one thread for that reason, since
that signal comes when the *thread* that forked ends.

Requests: {"do": "start", "name", "argv", "env", "log"} → {"pid"}; {"do": "signal", "name", "signal"};
{"do": "status"} → {"running": {name: pid}, "ended": {name: code}}.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from typing import Any

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Called between fork and exec. Where there is no prctl (not Linux) the closed pipe alone has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the prctl
            os._exit(1)


class Supervisor:
    """The processes by name, in the order of their start."""

    def __init__(self, folders: list[str]) -> None:
        self.folders = folders
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, argv: list[str], env: dict[str, str], log: str) -> dict[str, Any]:
        if name in self.processes and self.processes[name].poll() is None:
            return {"error": f"{name} is already running"}
        self.processes.pop(name, None)  # a restarted process is the newest
        mine = os.getpid()
        with open(log, "ab") as out:
            self.processes[name] = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=lambda: die_with_parent(mine),
            )
        return {"pid": self.processes[name].pid}

    def signal(self, name: str, number: int) -> dict[str, Any]:
        process = self.processes.get(name)
        if process is None or process.poll() is not None:
            return {"gone": True}
        process.send_signal(number)
        return {}

    def status(self) -> dict[str, Any]:
        codes = {name: process.poll() for name, process in self.processes.items()}
        running = {name: self.processes[name].pid for name, code in codes.items() if code is None}
        return {"running": running, "ended": {name: code for name, code in codes.items() if code is not None}}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        do = request.pop("do")
        try:
            if do == "start":
                return self.start(**request)
            return self.signal(request["name"], request["signal"]) if do == "signal" else self.status()
        except OSError as error:
            return {"error": str(error)}

    def end(self) -> None:
        """Nobody asks any more: no grace, and nothing left on disk."""
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.kill()
                process.wait()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def owner_handle(owner: int) -> int | None:
    """A descriptor that turns readable when the owner's process ends; None where the kernel has no pidfd.

    The pipe alone would be kept open by any process the owner forked and that outlives it.
    """
    try:
        return os.pidfd_open(owner)
    except (AttributeError, OSError):
        return None


def main(owner: int, folders: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, who then stops us in order
    supervisor = Supervisor(folders)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin.buffer, selectors.EVENT_READ)
    handle = owner_handle(owner)
    if handle is not None:
        selector.register(handle, selectors.EVENT_READ)
    rest = b""
    try:
        while all(key.fd == sys.stdin.fileno() for key, _ in selector.select()):
            chunk = os.read(sys.stdin.fileno(), 1 << 16)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                print(json.dumps(supervisor.answer(json.loads(line))), flush=True)
    except BrokenPipeError:
        pass  # the owner went between question and answer
    finally:
        supervisor.end()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
