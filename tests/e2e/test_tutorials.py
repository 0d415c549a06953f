"""The tutorials, done as they say: every command of the page, from a clean folder, with the output that it shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import environ
from tests.controlplane.binaries import Binaries
from tests.docs.console import Shell, steps

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as a reader has it, with everything installed already: `.venv` is the one that runs the tests."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    venv, ours = tmp_path / ".venv", Path(sys.prefix)
    venv.mkdir()
    for name in ("bin", "lib", "include"):
        (venv / name).symlink_to(ours / name)
    shutil.copy(ours / "pyvenv.cfg", venv)
    (venv / ".ready").touch()
    return tmp_path


def test_a_dry_run_on_fake_nodes(clone: Path, built: Binaries) -> None:
    assert built
    environment = {**environ.plain(), "PYTHONPATH": str(clone), "COLUMNS": "120"}
    environment.pop("KUBECONFIG", None)
    page = (clone / "docs" / "tutorial" / "dry-run-on-fake-nodes.md").read_text(encoding="utf-8")
    done = 0
    with Shell(clone, environment) as shell:
        for step in steps(page):
            shell.do(step)
            done += 1
    assert done > 15
    assert not (clone / ".testbed" / "env").exists(), "the test bed took itself away"
