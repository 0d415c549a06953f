"""The wheel holds what it should, and works as installed, not only from the tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.reasons import has_facts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"trimtab", "webhook", "policies", "certs"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def python(installed: Path, *arguments: str) -> str:
    """Run with the installed wheel before everything else, from a folder that holds nothing of ours."""
    environ = {"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=installed.parent, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_our_four_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_package_is_imported_from_the_installed_wheel(installed: Path, package: str) -> None:
    assert str(installed) in python(installed, "-c", f"import {package}; print({package}.__file__)")


def test_the_shipped_policies_come_with_the_wheel(installed: Path) -> None:
    assert "recommended" in python(installed, "-m", "trimtab", "policies", "list")


def test_the_demo_runs_from_the_wheel(installed: Path) -> None:
    assert has_facts(python(installed, "-m", "trimtab", "demo"), "match the offline decision")
