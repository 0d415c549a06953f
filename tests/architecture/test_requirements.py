"""What pyproject.toml asks for is what the code imports, and needs no compiler."""

import ast
import sys
import tomllib
from functools import cache
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.image.lock import FROM_SOURCE
from tests.architecture.source_words import ROOT, SHIPPED, source_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = {canonicalize_name(Requirement(one).name): Requirement(one) for one in PROJECT["dependencies"]}
EXTRAS = {
    canonicalize_name(Requirement(one).name) for ones in PROJECT["optional-dependencies"].values() for one in ones
}
REACHED_INTO = ("a2wsgi", "gunicorn", "kubernetes", "uvloop")
"""Packages whose private members Trimtab replaces or reads."""


@cache
def imported_modules() -> dict[str, str]:
    """Top-level module → a file that imports it."""
    results: dict[str, str] = {}
    for file in source_files(SHIPPED):
        for node in file.nodes:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                results.setdefault(name.partition(".")[0], file.name)
    return {name: path for name, path in results.items() if name not in sys.stdlib_module_names and name not in SHIPPED}


def test_every_module_that_is_imported_is_of_a_declared_package() -> None:
    packages = metadata.packages_distributions()
    undeclared = {
        f"{name} ({path})"
        for name, path in imported_modules().items()
        if not {canonicalize_name(one) for one in packages.get(name, [name])} & (REQUIREMENTS.keys() | EXTRAS)
    }
    assert undeclared == set()


def test_every_declared_package_is_imported() -> None:
    packages = metadata.packages_distributions()
    used = {canonicalize_name(one) for name in imported_modules() for one in packages.get(name, [name])}
    # zoneinfo reads tzdata where the system has no time zones.
    assert REQUIREMENTS.keys() - used == {"tzdata"}


@pytest.mark.parametrize("name", REACHED_INTO)
def test_a_package_whose_private_members_are_used_has_an_upper_bound(name: str) -> None:
    assert any(bound.operator == "<" for bound in REQUIREMENTS[name].specifier)


def test_the_versions_that_are_tested_are_allowed() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if requirement := REQUIREMENTS.get(canonicalize_name(name)):
            assert requirement.specifier.contains(version), line


def test_nothing_that_has_to_be_compiled_is_asked_for() -> None:
    # deploy.image.lock resolves everything else from wheels alone.
    assert {canonicalize_name(name) for name in FROM_SOURCE}.isdisjoint(REQUIREMENTS)


def test_the_event_loop_in_c_is_asked_for_only_where_it_runs() -> None:
    marker = REQUIREMENTS["uvloop"].marker
    assert marker is not None
    here = {"platform_python_implementation": "CPython"}
    assert marker.evaluate({**here, "sys_platform": "linux"})
    assert not marker.evaluate({**here, "sys_platform": "win32"})
