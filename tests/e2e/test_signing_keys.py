"""A signing key is rotated in the middle of a drain: what the key before signed counts until the next rotation."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import NOTE, SIGNING, compactor, is_cordoned, nodes, pool
from tests.e2e.replicas import ROOT


class Scene:
    """Two nodes, one of which is emptied; its compactor is gone, from one moment to the next."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.name = cluster, f"key-{cluster.namespace[-5:]}"
        cluster.pool(self.name, nodes=2, cpu="4", memory="16Gi")
        cluster.deployment("web", replicas=2, cpu="500m", spec={"nodeSelector": {"pool": self.name}})
        cluster.eventually(lambda: len(cluster.running("app=web")) == 2, within=60)
        cluster.apply(pool(cluster, self.name))
        with compactor(cluster, folder) as one:
            cluster.eventually(lambda: one.told("emptied"), within=60, what="a node emptied")
            cluster.eventually(lambda: '"emptied"' in self.note, within=30, what="and its annotation says so")
            one.stop(signal.SIGKILL)

    @property
    def node(self) -> str:
        """The one that is closed."""
        [name] = [node["metadata"]["name"] for node in nodes(self.cluster, self.name) if is_cordoned(node)]
        return str(name)

    @property
    def note(self) -> str:
        return str(self.cluster.get("Node", self.node)["metadata"].get("annotations", {}).get(NOTE))

    @property
    def state(self) -> dict[str, str]:
        data: dict[str, str] = self.cluster.get("ConfigMap", f"trimtab-state-{self.name}")["data"]
        return data

    def says(self, *words: str, expect: int = 0) -> str:
        """What the command prints, on both streams."""
        login = ["--system-namespace", self.cluster.namespace, "--kubeconfig", str(self.cluster.kubeconfig)]
        command = [sys.executable, "-m", "trimtab", *words, *login]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def rotate(self, *more: str, expect: int = 0) -> str:
        return self.says("certs", "rotate-signing-key", "compactor", *more, expect=expect)

    @property
    def found(self) -> set[str]:
        """What `doctor` says of the drains; it is not well otherwise: nothing else is installed."""
        document = json.loads(self.says("doctor", "--ask-in", self.cluster.namespace, "-o", "json", expect=1))
        codes = {each["reason"]["code"] for each in document["findings"] if each["check"] == "drains"}
        return codes - {"drain-without-compactor"}  # it was killed; its Lease may have expired by now, or not yet


@pytest.fixture
def scene(cluster: Cluster, tmp_path: Path) -> Scene:
    return Scene(cluster, tmp_path / "first")


def test_after_one_rotation_a_drain_goes_on_and_is_signed_anew(scene: Scene, cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.get("Secret", SIGNING)["data"]
    assert "Nothing was changed" in scene.rotate()
    assert cluster.get("Secret", SIGNING)["data"] == before
    assert "rotated" in scene.rotate("--yes")
    assert cluster.get("Secret", SIGNING)["data"]["previous"] == before["current"]
    assert scene.found == {"no-problem-found"}
    node, note, signature = scene.node, scene.note, scene.state["signature"]
    with compactor(cluster, tmp_path / "second") as two:
        cluster.eventually(lambda: scene.note != note, within=60, what="the annotation signed anew")
        cluster.eventually(lambda: scene.state["signature"] != signature, within=60, what="the state signed anew")
        assert not two.told("not-authentic") + two.told("unreadable") + two.told("released")
        assert "not authentic" not in scene.rotate()
        two.stop(signal.SIGKILL)
    scene.rotate("--yes")
    assert (scene.node, scene.found) == (node, {"no-problem-found"}), "whoever signed anew is spared by the next one"


def test_after_two_rotations_it_is_nobodys_and_doctor_says_so(scene: Scene, cluster: Cluster, tmp_path: Path) -> None:
    scene.rotate("--yes")
    message = scene.rotate("--yes", expect=2)
    assert f"annotation on node {scene.node}" in message
    assert f"state of pool {scene.name}" in message
    assert scene.found == {"no-problem-found"}, "nothing was rotated"
    scene.rotate("--yes", "--force")
    assert scene.found == {"drain-annotation-not-authentic", "state-not-authentic"}
    node = scene.node
    with compactor(cluster, tmp_path / "second") as two:
        cluster.eventually(lambda: two.told("not-authentic") and two.told("unreadable"), within=60, what="both told of")
        assert scene.node == node, "it is left alone"
        scene.says("compactor", "release", "--yes", node)
        assert not is_cordoned(cluster.get("Node", node))


@pytest.mark.slow
def test_a_leader_takes_a_rotation_over_while_it_leads(cluster: Cluster, tmp_path: Path) -> None:
    """Without any drain that ends: it looks once a minute."""
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: cluster.get("Secret", SIGNING).get("data"), within=60, what="a first key")
        cluster.eventually(lambda: one.told("leads"), within=30)
        terms = len(one.told("leads"))
        login = ["--system-namespace", cluster.namespace, "--kubeconfig", str(cluster.kubeconfig)]
        words = ["certs", "rotate-signing-key", "compactor", "--yes"]
        subprocess.run([sys.executable, "-m", "trimtab", *words, *login], cwd=ROOT, check=True, timeout=60)
        cluster.eventually(lambda: len(one.told("leads")) > terms, within=90, what="all is read anew")


def test_a_state_that_was_deleted_is_named(scene: Scene, cluster: Cluster) -> None:
    cluster.delete("ConfigMap", f"trimtab-state-{scene.name}")
    assert scene.found == {"state-deleted"}
