"""On a machine without a C compiler: the demo from a clone, and the command from `pip install`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import environ
from tests.e2e.replicas import ROOT
from tests.reasons import has_facts

pytestmark = pytest.mark.slow

COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "cpp", "c89", "c99", "tcc")


def is_compiler(name: str) -> bool:
    return name in COMPILERS or any(word in name for word in ("-gcc", "-g++", "gcc-", "g++-", "clang"))


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose path has everything of this machine but compilers."""
    folder = tmp_path_factory.mktemp("path")
    for source in (Path("/usr/bin"), Path("/bin")):
        for program in source.iterdir():
            if not is_compiler(program.name) and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    assert shutil.which("cc", path=str(folder)) is None
    values = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    home = {"HOME": str(Path.home()), "CC": "/nonexistent/cc"}
    return {**environ.plain(), **values, **home, "PATH": str(folder), "PYTHON3": sys.executable}


def run(surroundings: dict[str, str], folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode and "NewConnectionError" in done.stderr + done.stdout:
        pytest.skip("no network, and not everything is in pip's cache")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_demo_from_a_clone(surroundings: dict[str, str], tmp_path: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert has_facts(run(surroundings, tmp_path, "make", "demo"), "match the offline decision")
    assert "gunicorn_h1c" not in run(surroundings, tmp_path, ".venv/bin/python", "-m", "pip", "list")


def test_pip_install_and_a_plan(surroundings: dict[str, str], tmp_path: Path) -> None:
    run(surroundings, tmp_path, sys.executable, "-m", "venv", "venv")
    run(
        surroundings,
        tmp_path,
        "venv/bin/python",
        "-m",
        "pip",
        "install",
        "--constraint",
        f"{ROOT}/constraints.txt",
        str(ROOT),
    )
    assert run(surroundings, tmp_path, "venv/bin/trimtab", "--version").startswith("trimtab ")
    run(surroundings, tmp_path, "venv/bin/trimtab", "demo", "--keep", "demo")
    assert "can be drained" in run(surroundings, tmp_path, "venv/bin/trimtab", "plan", "--cluster", "demo/pool.json")
