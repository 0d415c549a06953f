"""What a killed leader leaves where nobody leads after it: whoever leads next cleans it, and so does a removal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import NOTE, Object, compactor, is_cordoned, nodes, pool
from tests.e2e.replicas import ROOT

LEAVING = "trimtab.dev/drain-candidate"


def left(node: Object) -> list[str]:
    """What of ours stands on the node."""
    return [
        *(["cordon"] if is_cordoned(node) else []),
        *(["note"] if NOTE in node["metadata"].get("annotations", {}) else []),
        *([LEAVING] if LEAVING in {taint["key"] for taint in node["spec"].get("taints", [])} else []),
    ]


class Scene:
    """Two nodes, of which one is emptied for a minute."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.name = cluster, f"left-{cluster.namespace[-5:]}"
        cluster.pool(self.name, nodes=2, cpu="4", memory="16Gi")
        cluster.deployment(
            "web",
            replicas=2,
            cpu="500m",
            annotations={"testbed.trimtab.dev/stops-after": "60s"},
            spec={"nodeSelector": {"pool": self.name}, "terminationGracePeriodSeconds": 120},
        )
        cluster.eventually(lambda: len(cluster.running("app=web")) == 2, within=60)
        cluster.apply(pool(cluster, self.name))

    def leftovers(self) -> set[str]:
        return {each_left for node in nodes(self.cluster, self.name) for each_left in left(node)}

    def killed(self, folder: Path) -> None:
        """A leader that emptied a node is gone from one moment to the next, and nobody is there who would lead."""
        with compactor(self.cluster, folder) as one:
            everything = {"cordon", "note", LEAVING}
            self.cluster.eventually(lambda: self.leftovers() >= everything, within=60, what="a node being emptied")
            one.stop(signal.SIGKILL)
        assert self.leftovers() == everything


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    scene = Scene(cluster)
    yield scene
    for pod in cluster.list("Pod"):
        cluster.delete("Pod", pod["metadata"]["name"], grace=0)


def test_whoever_leads_next_cleans_up_after_a_leader_that_was_killed(
    scene: Scene, cluster: Cluster, tmp_path: Path
) -> None:
    """Also where by then nothing is to be emptied any more."""
    scene.killed(tmp_path / "first")
    cluster.delete("ConfigMap", f"pool-{scene.name}")
    with compactor(cluster, tmp_path / "second"):
        cluster.eventually(lambda: not scene.leftovers(), within=60, what="the nodes are as they were")


def test_a_removal_cleans_up_after_a_leader_that_was_killed(scene: Scene, cluster: Cluster, tmp_path: Path) -> None:
    scene.killed(tmp_path)
    arguments = ["install", "--remove", "--traces", "--system-namespace", cluster.namespace]
    command = [sys.executable, "-m", "trimtab", *arguments, "--kubeconfig", str(cluster.kubeconfig)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout
    assert output.count("restored") == 1
    assert not scene.leftovers()
