"""What the launcher does when it cannot serve, and when its worker dies."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.webhook.server import ROOT, WARNINGS, post, serving
from tests.webhook.worlds import review

START = """
import os, sys
from trimtab.runtime import environment, log
from trimtab.runtime.files import RuntimeFault
from trimtab.runtime.serve import launch_gunicorn
try:
    launch_gunicorn(sys.argv[1], environment.read_settings(os.environ), log.build_logger(style="json"), None)
except RuntimeFault as e:
    sys.exit(f"fault: {e}")
"""


def launched(application: str, listen: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *WARNINGS, "-c", START, application],
        cwd=ROOT,
        env={**os.environ, "TRIMTAB_WEBHOOK_LISTEN": listen, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("application", ["tests.webhook.nowhere:application", "tests.webhook.worlds:nothing"])
def test_an_application_that_cannot_be_imported_ends_the_process(application: str) -> None:
    assert launched(application, "127.0.0.1:0").returncode not in (0, None)


def test_an_address_in_use_is_said_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = launched("tests.webhook.fake_entry:application", f"127.0.0.1:{server.getsockname()[1]}")
    assert process.returncode != 0
    assert "cannot listen on 127.0.0.1:" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_host_that_does_not_exist_is_said_in_one_sentence() -> None:
    process = launched("tests.webhook.fake_entry:application", "192.0.2.1:8443")
    assert process.returncode != 0
    assert "cannot listen on 192.0.2.1:8443" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_ready_file_of_a_process_before_does_not_outlive_it(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text('{"port": 1}')
    launched("tests.webhook.nowhere:x", "192.0.2.1:1", TRIMTAB_WEBHOOK_READY_FILE=str(tmp_path / "ready.json"))
    assert not (tmp_path / "ready.json").exists()


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        os.kill(server.worker, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while sum(line["event"] == "ready" for line in server.log) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert post(server.connect(), review())[0] == 200
