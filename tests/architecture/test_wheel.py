"""The wheel holds what it should, and works as installed, not only from the tree."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.independent_verbs import EXTRA_PACKAGES
from tests.reasons import has_facts
from trimtab.cli.main import EXTRAS, GROUPS, VERBS

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


@pytest.fixture(scope="module")
def core(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed wheel without the modules of the extras."""
    folder = tmp_path_factory.mktemp("core") / "site"
    shutil.copytree(installed, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for package in EXTRA_PACKAGES:
        path = folder / package.replace(".", "/")
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.with_suffix(".py").unlink()
    return folder


def test_the_core_imports_all_its_modules_without_the_extras(core: Path) -> None:
    extras = {verb for verbs in EXTRAS.values() for verb in verbs}
    modules = [module for verb, (module, _) in VERBS.items() if verb not in extras]
    processes = [f"trimtab.{process}.process" for process in ("compactor", "recommender", "watchdog")]
    code = f"import importlib\nfor name in {[*modules, *processes, 'webhook.app']!r}: importlib.import_module(name)"
    python(core, "-c", code)


def test_the_demo_runs_without_the_extras(core: Path) -> None:
    assert has_facts(python(core, "-m", "trimtab", "demo"), "match the offline decision")


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_verb_says_which_extra_has_it(core: Path, extra: str) -> None:
    command = [sys.executable, "-P", "-m", "trimtab", EXTRAS[extra][0], "--help"]
    environ = {"PYTHONPATH": str(core), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    done = subprocess.run(
        command, cwd=core.parent, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert f"pip install 'trimtab[{extra}]'" in done.stderr


def test_every_verb_is_in_one_group_of_the_help() -> None:
    assert sorted(verb for verbs in GROUPS.values() for verb in verbs) == sorted(VERBS)
