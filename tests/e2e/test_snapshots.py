"""Can a prepared cluster be put away and taken out again?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.controlplane import prepared, workloads
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane


def test_a_saved_cluster_lives_again(built: Binaries, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    with ControlPlane.start(built) as plane:
        first = Cluster(plane.kubeconfig, plane=plane).in_namespace("before")
        three_pods(first)
        plane.save(saved)
        assert three_run(first), "the cluster that was saved goes on"
    with ControlPlane.start(built, saved=saved) as plane:
        second_cluster = Cluster(plane.kubeconfig, "before", plane)
        assert three_run(second_cluster)
        second_cluster.delete("Pod", second_cluster.running()[0]["metadata"]["name"])
        assert three_run(second_cluster), "its controllers, scheduler and fake kubelets work"


def test_a_prepared_cluster_is_made_once(built: Binaries, tmp_path: Path) -> None:
    namespaces: list[str] = []

    def prepare(cluster: Cluster) -> None:
        namespaces.append(cluster.namespace)
        three_pods(cluster.in_namespace("ready"))

    for _ in range(2):
        with prepared.start(built, "three-pods", "1", prepare, cache=tmp_path) as plane:
            assert three_run(Cluster(plane.kubeconfig, "ready", plane))
    assert len(namespaces) == 1


@pytest.mark.skipif(not os.environ.get("E2E_LARGE"), reason="takes minutes the first time: set E2E_LARGE=1 to run it")
def test_the_openb_cluster_is_seconds_away(built: Binaries) -> None:
    with prepared.start(built, "openb", "1", workloads.openb) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        assert len(cluster.list("Node")) == 310
        assert cluster.eventually(lambda: len(cluster.running()) == 6166, within=60)


def three_pods(cluster: Cluster) -> None:
    cluster.pool("kept", nodes=2)
    cluster.deployment("web", replicas=3)
    assert three_run(cluster)


def three_run(cluster: Cluster) -> bool:
    return cluster.eventually(lambda: len(cluster.running("app=web")) == 3, within=30)
