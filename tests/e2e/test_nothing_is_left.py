"""Is everything gone when a test process is, however it ended?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane import environ
from tests.controlplane.binaries import Binaries

ROOT = Path(__file__).parents[2]
BRING_UP = """
import json, signal, sys, time
# A shell without job control starts what is in its background with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.controlplane import binaries
from tests.controlplane.control_plane import ControlPlane
plane = ControlPlane.start(binaries.find())
supervisor = plane.processes.supervisor_pid
pids = [*plane.processes.running().values(), supervisor]
print(json.dumps({"pids": pids, "supervisor": supervisor, "folder": str(plane.folder)}), flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit()  # without a word in the suite's output
"""


@pytest.fixture
def another(built: Binaries) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A process of its own that brought up a control plane and sleeps, and what it told of it."""
    argv = [sys.executable, "-c", BRING_UP]
    env = {**environ.plain(), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        assert len(document["pids"]) == 6
        assert all(map(is_alive, document["pids"]))
        yield process, document
        process.kill()
        process.wait()
    shutil.rmtree(document["folder"], ignore_errors=True)  # left where the supervisor itself was killed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_test_process_dies(
    another: tuple[subprocess.Popen[str], dict[str, Any]], number: int
) -> None:
    process, message = another
    process.send_signal(number)
    process.wait(timeout=90)
    assert gone_within(10, message["pids"])
    assert not Path(message["folder"]).exists()


def test_no_component_is_left_when_the_supervisor_is_killed(
    another: tuple[subprocess.Popen[str], dict[str, Any]],
) -> None:
    _, message = another
    os.kill(message["supervisor"], signal.SIGKILL)
    assert gone_within(10, [pid for pid in message["pids"] if pid != message["supervisor"]])


def test_a_frozen_component_is_no_hindrance(another: tuple[subprocess.Popen[str], dict[str, Any]]) -> None:
    process, message = another
    os.kill(message["pids"][0], signal.SIGSTOP)
    process.kill()
    assert gone_within(10, message["pids"])


def is_alive(pid: int) -> bool:
    """A zombie is not: it only waits to be read."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def gone_within(seconds: float, pids: list[int]) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
