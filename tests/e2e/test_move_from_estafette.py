"""The page on moving from an estafette node-compactor, typed command by command, against its own kind of leftovers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed
from tests.e2e.pages import blocks
from tests.e2e.test_howtos import HOW_TO, Desk
from tests.reasons import has_facts
from trimtab.cluster.estafette import CONFIG_KEY, MARKED_SECONDS_VARIABLE, POOL_LABEL
from trimtab.inputs.import_estafette import STATE_ANNOTATION

TEN_MINUTES = 600
PAGE = f"{HOW_TO}/from-rehearsal-to-act.md"
SAID = {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75, "scaleDownRequiredUnderutilizedNodeCount": 2}


NODES = {
    "stranded": ({"scaleDownInProgress": True}, True),
    "a person's": ({"markedForRemoval": True}, True),
    "open": ({"scaleDownInProgress": True}, False),
}
"""What its annotation says, and whether the node is cordoned."""


@dataclass(frozen=True)
class Leftovers:
    """A cluster in which it runs, and what it made of the nodes of a pool."""

    desk: Desk
    pool: str

    def nodes(self) -> list[dict[str, Any]]:
        """In the order of `NODES`, then one that it never touched."""
        return [self.desk.here.cluster.get("Node", f"{self.pool}-{number}") for number in range(len(NODES) + 1)]

    def states(self) -> list[tuple[bool, bool]]:
        """Is it cordoned, and does it carry the annotation?"""
        return [
            (bool(node["spec"].get("unschedulable")), STATE_ANNOTATION in node["metadata"].get("annotations", {}))
            for node in self.nodes()
        ]


@pytest.fixture
def leftovers(here: Installed, tmp_path: Path) -> Iterator[Leftovers]:
    cluster, name = here.cluster, f"est-{here.cluster.namespace[-5:]}"
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "estafette"}})
    nodes = cluster.pool(name, nodes=len(NODES) + 1, labels={POOL_LABEL: name})
    for node, (state, is_cordoned) in zip(nodes, NODES.values(), strict=False):
        annotations = {"annotations": {STATE_ANNOTATION: json.dumps(state)}}
        cluster.patch("Node", node, {"metadata": annotations, "spec": {"unschedulable": is_cordoned}})
    metadata = {"name": "estafette-k8s-node-compactor", "namespace": "estafette"}
    data = {CONFIG_KEY: json.dumps({"nodePools": {name: SAID}})}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    cluster.apply(_deployment(metadata))
    cluster.eventually(lambda: cluster.list("Pod", "estafette"), what="a pod of the old compactor")
    yield Leftovers(Desk(here, tmp_path), name)
    cluster.delete("ConfigMap", f"pool-{name}", "trimtab-system")
    for namespace in ("estafette", "team-a"):
        cluster.delete("Namespace", namespace)
    for node in nodes:
        cluster.delete("Node", node)
    cluster.eventually(lambda: _is_gone(cluster, "estafette"), within=90, what="the old compactor's namespace gone")


def _is_gone(cluster: Cluster, namespace: str) -> bool:
    return all(result["metadata"]["name"] != namespace for result in cluster.list("Namespace"))


def _deployment(metadata: dict[str, str]) -> dict[str, Any]:
    labels = {"app": "estafette-k8s-node-compactor"}
    env = [{"name": MARKED_SECONDS_VARIABLE, "value": "60"}]
    container = {"name": "app", "image": "estafette/estafette-k8s-node-compactor:0.1.36", "env": env}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_the_page_moves_over_in_ten_minutes(leftovers: Leftovers) -> None:
    """Nothing changes before step 4; after it the old one is gone, its cordon opened, a person's cordon kept."""
    desk, pool, cluster = leftovers.desk, leftovers.pool, leftovers.desk.here.cluster
    began = time.monotonic()
    written, imported, looked, records, status = (partial(desk.types, block) for block in blocks(PAGE, "sh"))
    before = leftovers.nodes()
    written()
    imported()
    assert f"pool-{pool}" in (desk.home / "pools.yaml").read_text()
    assert pool in looked()
    assert [node["spec"] for node in leftovers.nodes()] == [node["spec"] for node in before]
    message = records()
    assert has_facts(message, "scaled from 1 to 0")
    assert f"pool-{pool}: created" in message
    assert not cluster.list("Pod", "estafette")
    assert leftovers.states() == [(False, False), (True, False), (False, False), (False, False)]
    settings = cluster.get("ConfigMap", f"pool-{pool}", "trimtab-system")["data"]["pool.yaml"]
    assert '"for":"60s"' in settings
    assert pool in status()
    assert time.monotonic() - began < TEN_MINUTES
    second_result = records()
    assert "exists already" in second_result
    assert "scaled" not in second_result


def test_a_pool_that_was_edited_is_left_alone(leftovers: Leftovers) -> None:
    written, _, _, records, _ = blocks(PAGE, "sh")
    cluster, name = leftovers.desk.here.cluster, f"pool-{leftovers.pool}"
    edited = {
        "data": {"pool.yaml": "preset: careful"},
        "metadata": {"name": name, "namespace": "trimtab-system", "labels": {"trimtab.dev/pool": leftovers.pool}},
    }
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", **edited})
    leftovers.desk.types(written)
    assert has_facts(leftovers.desk.types(records), name, "ConfigMap", "other settings", "not changed")
    assert cluster.get("ConfigMap", name, "trimtab-system")["data"] == edited["data"]
