"""One control plane for the whole run, a fresh namespace for every test.

`KUBECONFIG_E2E` (what `make e2e KUBECONFIG=…` sets) leads the suite to somebody's cluster instead; what can't
run there skips and says why.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster, NotHere
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.charts import Helm
from tests.e2e.installed import Installed, installed

_START = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_START] = time.time()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also tests marked `slow`: what `make e2e-all` runs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests are left out, unless they are asked for; pytest counts them as deselected."""
    if config.getoption("--slow"):
        return
    slow = [item for item in items if "slow" in item.keywords]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The figures that tests have printed, whether they passed or failed; the last line counts the tests themselves."""
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, ())]
    for line in [line for report in reports for line in report.capstdout.splitlines() if line.startswith("RESULT ")]:
        terminalreporter.write_line(line)
    count = {key: len(terminalreporter.stats.get(key, ())) for key in ("passed", "skipped", "failed", "error")}
    minutes = (time.time() - config.stash[_START]) / 60
    terminalreporter.write_line(
        f"RESULT e2e commit={_commit()} passed={count['passed']} skipped={count['skipped']} "
        f"failed={count['failed'] + count['error']} minutes={minutes:.1f}"
    )


def _commit() -> str:
    """The commit of this folder, with `+` behind it where files differ from it; `unknown` outside of a clone."""
    git = ("git", "-C", str(Path(__file__).parent))
    try:
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    yield from _not_here_skips()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    yield from _not_here_skips()


def _not_here_skips() -> Iterator[None]:
    try:
        return (yield)
    except NotHere as error:
        pytest.skip(str(error))


def somebodys_cluster() -> Path | None:
    named = os.environ.get("KUBECONFIG_E2E")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest) -> Binaries:
    """The binaries; a first build tells its progress past pytest's capture."""
    if somebodys_cluster():
        raise NotHere("needs binaries of its own: runs without KUBECONFIG only")
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            binaries.told_on_stderr(line)

    return binaries.find(tell=tell)


@pytest.fixture(scope="session")
def helm(built: Binaries, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The real one, built where it is not there yet."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return Helm(binaries.helm(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane | None]:
    """Ours, up and ready; None when the suite runs against somebody's cluster."""
    if somebodys_cluster():
        yield None
        return
    with ControlPlane.start(request.getfixturevalue("built")) as plane:
        yield plane


@pytest.fixture(scope="session")
def whole_cluster(control_plane: ControlPlane | None) -> Cluster:
    named = control_plane.kubeconfig if control_plane else somebodys_cluster()
    assert named is not None
    return Cluster(named, plane=control_plane)


@pytest.fixture(scope="module")
def sole_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of this file alone, for tests that compare answers about all of a cluster: what tests of other files
    leave would come and go between two answers. On somebody's cluster there is only that one."""
    if (named := somebodys_cluster()) is not None:
        yield Cluster(named)
        return
    with ControlPlane.start(request.getfixturevalue("built")) as plane:
        yield Cluster(plane.kubeconfig, plane=plane)


@pytest.fixture
def cluster(whole_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster seen from a namespace of this test's own, taken away after it."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:40].strip("-")
    inside = whole_cluster.in_namespace(f"{name}-{uuid.uuid4().hex[:5]}")
    yield inside
    inside.clean_up()


@pytest.fixture(scope="module")
def here(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Trimtab as it is installed, and the namespace of a team."""
    whole_cluster.needs_own("webhooks on this machine")
    inside = whole_cluster.in_namespace(f"team-{uuid.uuid4().hex[:5]}")
    with installed(inside, tmp_path_factory.mktemp("installed")) as actual_installed:
        yield actual_installed
    inside.clean_up()


@pytest.fixture
def two_replicas(here: Installed) -> None:
    """The test begins with two that are ready and are called."""
    here.replicas = [replica for replica in here.replicas if replica.process.poll() is None]
    here.start(2 - len(here.replicas)) if len(here.replicas) < 2 else here.route()
    here.cluster.eventually(here.calls, what="pods changed")
