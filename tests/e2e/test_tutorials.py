"""The tutorials, done as they say: every command of the page, from a clean folder, with the output that it shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import environ
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.docs.console import Shell, steps
from tests.e2e.charts import Helm
from tests.fleet.spark_cluster import missing_part

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as a reader has it, with everything installed already: `.venv` is the one that runs the tests."""
    arguments = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    venv, ours = tmp_path / ".venv", Path(sys.prefix)
    venv.mkdir()
    for name in ("bin", "lib", "include"):
        (venv / name).symlink_to(ours / name)
    shutil.copy(ours / "pyvenv.cfg", venv)
    for stamp in (".installed", ".ready"):  # as the Makefile makes them, in this order
        (venv / stamp).touch()
    return tmp_path


def test_a_dry_run_on_fake_nodes(clone: Path, built: Binaries) -> None:
    assert built
    assert done(clone, "dry-run-on-fake-nodes", {}) > 15
    assert not (clone / ".testbed" / "env").exists(), "the test bed took itself away"


def test_the_whole_installation_on_fake_nodes(clone: Path, built: Binaries) -> None:
    assert built
    assert done(clone, "installation-on-fake-nodes", {}) > 30
    assert not (clone / ".testbed" / "env").exists(), "the test bed took itself away"
    assert not (clone / ".testbed" / "processes").exists(), "and the tokens with it"


def test_a_dry_run_on_kind_as_far_as_it_goes_without_containers(clone: Path, built: Binaries, helm: Helm) -> None:
    """The chart, the documents and the commands meet a real API server; what needs pods that run is left out."""
    with ControlPlane.start(built) as plane:
        Cluster(plane.kubeconfig, plane=plane).pool("kind", 1, cpu="8", memory="16Gi")
        programs = [helm.path.parent, Path(built["kubectl"]).parent]
        path = ":".join(map(str, [*programs, "/usr/bin", "/bin"]))
        homes = {f"HELM_{kind}_HOME": str(helm.home) for kind in ("CACHE", "CONFIG", "DATA")}
        assert done(clone, "dry-run-on-kind", {"KUBECONFIG": str(plane.kubeconfig), "PATH": path, **homes}) > 15


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_part()), reason=missing_part())
def test_a_fleet_on_loopback(clone: Path) -> None:
    assert done(clone, "fleet-on-loopback", {}) > 8
    assert not (clone / "spark.json").exists(), "the page removes what it made"


@pytest.mark.parametrize("page", ["plan-a-pool", "write-a-policy"])
def test_a_how_to_that_needs_no_cluster(clone: Path, page: str) -> None:
    """The reader has manifests of their own: the shop's."""
    shutil.copy(clone / "docs" / "tutorial" / "shop.yaml", clone / "my-app.yaml")
    path = f"{clone}/.venv/bin:/usr/bin:/bin"
    assert done(clone, f"../how-to/{page}", {"PATH": path}) > 3


def done(clone: Path, page: str, more: dict[str, str]) -> int:
    """So many steps of it."""
    environment = {**environ.plain(), "PYTHONPATH": str(clone), "COLUMNS": "120", **more}
    if not more:
        environment.pop("KUBECONFIG", None)
    objects = list(steps((clone / "docs" / "tutorial" / f"{page}.md").read_text(encoding="utf-8")))
    with Shell(clone, environment) as shell:
        for step in objects:
            shell.do(step)
    return len(objects)
