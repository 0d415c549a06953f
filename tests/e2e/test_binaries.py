"""Do the binaries come from where they should, and are they built once?"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from tests.controlplane import binaries, modules
from tests.controlplane.flags import left_out_controllers, minor_of

FAKE_GO = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
sleep 0.2
echo built >> "$XDG_CACHE_HOME/builds"
[ -e "$XDG_CACHE_HOME/broken" ] && { echo "undefined: everything" >&2; exit 1; }
cp /bin/true "$2"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a `go` that counts what it builds."""
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def builds(cache: Path) -> int:
    counted = cache / "builds"
    return len(counted.read_text().splitlines()) if counted.exists() else 0


def test_what_is_missing_is_built_once(cache: Path) -> None:
    first = binaries.find(tell=quiet)
    assert (builds(cache), len(first.paths)) == (6, 6)
    assert binaries.find(tell=quiet) == first
    assert builds(cache) == 6


def test_what_the_user_names_comes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = cache / "assets" / "etcd"
    named.parent.mkdir()
    named.write_text("#!/bin/sh\n")
    named.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(named.parent))
    finding = binaries.find(tell=quiet)
    assert finding["etcd"] == str(named)
    assert builds(cache) == 5


def test_two_that_come_at_once_build_once(cache: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=binaries.find, kwargs={"tell": quiet}) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert builds(cache) == 6


def test_a_failed_build_says_why_and_leaves_nothing(cache: Path) -> None:
    (cache / "broken").touch()
    with pytest.raises(binaries.CannotBuild, match="undefined: everything"):
        binaries.find(tell=quiet)
    (cache / "broken").unlink()
    assert len(binaries.find(tell=quiet).paths) == 6


def test_without_go_the_message_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(binaries.CannotBuild, match="install Go"):
        binaries.find(tell=quiet)


def test_another_minor_has_binaries_of_its_own(cache: Path) -> None:
    assert modules.kubernetes("1.34").key != modules.kubernetes("1.36").key
    with pytest.raises(LookupError, match=r"known are 1\.34, 1\.35, 1\.36, 1\.37"):
        modules.kubernetes("1.20")


def quiet(_: str) -> None:
    pass


def test_the_controller_manager_is_given_only_names_that_its_minor_knows() -> None:
    assert "node-route-controller" in left_out_controllers(minor_of("1.36.2"))
    assert left_out_controllers(minor_of("1.37.0-alpha.1")) == ("node-ipam-controller",)
