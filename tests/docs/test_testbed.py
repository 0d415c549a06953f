"""`make testbed` is a newcomer's first minutes: it needs what `trimtab` needs, and builds only what it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import binaries, modules
from tests.reasons import has_facts

ROOT = Path(__file__).resolve().parents[2]


def recipe_of(target: str) -> str:
    """Every command that make would run for the target on a fresh clone."""
    argv = ["make", "--dry-run", "--always-make", target]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_it_installs_no_extra_and_builds_nothing_that_it_does_not_start() -> None:
    recipe = recipe_of("testbed")
    assert "--editable .\n" in recipe
    assert "--editable '.[" not in recipe
    assert "tests.controlplane.binaries" not in recipe


def test_its_code_imports_no_package_of_an_extra() -> None:
    program = (
        "import sys; import tests.controlplane.__main__;"
        "print(*[name for name in ('pytest', 'hypothesis', 'jsonschema', 'pyarrow', 'textual', 'xdist')"
        " if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert printed.stdout == "\n"


def test_it_says_first_what_has_to_be_built_and_how_long_that_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    keys: list[str] = []

    def build(module: modules.Module, place: Path, tell: binaries.Tell) -> None:
        keys.append(module.key)
        place.mkdir()

    monkeypatch.setattr(binaries, "build", build)
    lines: list[str] = []
    binaries.find(tell=lines.append)
    expected = [modules.etcd(), modules.kubernetes(), modules.kwok()]
    assert keys == [module.key for module in expected]
    minutes = sum(module.minutes for module in expected)
    [line] = lines
    assert has_facts(line, "3 of 3", "once", f"{minutes:g} min")
    lines.clear()
    binaries.find(tell=lines.append)
    assert lines == []


def test_the_page_gives_the_same_time() -> None:
    minutes = sum(module.minutes for module in (modules.etcd(), modules.kubernetes(), modules.kwok()))
    page = (ROOT / "docs/tutorial/dry-run-on-fake-nodes.md").read_text()
    assert f"about {minutes:g} minutes on two cores" in page
