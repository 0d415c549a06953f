"""A fleet on a real Spark: a standalone master and two workers on loopback, and one of them dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_fleet import NOW, five_clusters, history
from tests.fleet.generated import write_generated
from tests.fleet.spark_cluster import DRIVER_OPTIONS, SparkCluster, environment, missing_part, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing_part()), reason=missing_part())]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


SMALL_BUCKETS = """
import sys
from trimtab.fleet import container_blocks
container_blocks.BYTES_PER_BUCKET = 40_000
from trimtab.cli import main
main()
"""
"""The command with as many buckets for a small history as a large one has."""


def fleet(*arguments: str | Path, folder: Path | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SMALL_BUCKETS, "fleet", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=folder)


def finished(process: subprocess.Popen[bytes], code: int = 0) -> bytes:
    out, error = process.communicate(timeout=900)
    assert (process.returncode, bool(out)) == (code, True), error.decode()[-3000:]
    return out


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_report_of_five_clusters_is_the_same_from_spark(cluster: SparkCluster, tmp_path: Path) -> None:
    clusters, usage = five_clusters(tmp_path), history(tmp_path)
    # Executors have another working directory than the command.
    here = (clusters.relative_to(tmp_path), usage.relative_to(tmp_path))
    arguments = ("report", "--clusters", here[0], "--usage", here[1], "--now", NOW, "-o", "json")
    local = finished(fleet(*arguments, folder=tmp_path), code=3)
    assert b'"failures": [\n    {\n      "cluster": "broken"' in local
    assert finished(fleet(*arguments, "--engine", cluster.url, *DRIVER_OPTIONS, folder=tmp_path), code=3) == local


def test_a_worker_that_dies_in_mid_shuffle_changes_no_byte(cluster: SparkCluster, tmp_path: Path) -> None:
    usage = write_generated(tmp_path / "usage", containers=2000, days=4, clusters=10)
    arguments = ("recommend", "--usage", usage, "-o", "json")
    local = finished(fleet(*arguments, "--write", tmp_path / "local"))
    running = fleet(*arguments, "--write", tmp_path / "spark", "--engine", cluster.url, *DRIVER_OPTIONS)
    # The first bucket is decided: every block has been shuffled, and most of them are still to be fetched.
    deadline = time.monotonic() + 600
    while not (tmp_path / "spark").exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running.poll() is None, "it was over before the worker could die"
    cluster.kill_worker(0)
    assert finished(running) == local
    assert written(tmp_path / "spark") == written(tmp_path / "local")
    cluster.wait_for_worker(cluster.start_worker())
