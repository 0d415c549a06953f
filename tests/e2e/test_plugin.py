"""`kubectl trimtab`: the command as a plugin of the real kubectl."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.controlplane import binaries

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with the script as an installer writes it."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["kubectl-trimtab"].partition(":")
    script = tmp_path / "kubectl-trimtab"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from {module} import {function}\nsys.exit({function}())\n"
    )
    script.chmod(0o755)
    return f"{tmp_path}:/usr/bin:/bin"


def kubectl(path: str, *arguments: str) -> str:
    command = [str(binaries.kubectl()), *arguments]
    done = subprocess.run(
        command, env={"PATH": path, "HOME": "/nonexistent"}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kubectl_lists_it(path: str) -> None:
    assert f"{path.partition(':')[0]}/kubectl-trimtab" in kubectl(path, "plugin", "list")


def test_kubectl_hands_everything_on_and_the_command_knows_how_it_was_called(path: str) -> None:
    assert "no-cpu-limits" in kubectl(path, "trimtab", "policies", "list")
    assert "Usage: kubectl trimtab policies" in kubectl(path, "trimtab", "policies", "--help")
