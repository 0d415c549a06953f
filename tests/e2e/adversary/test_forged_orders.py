"""Who may write a node makes nobody drain or uncordon another one by the record of an order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import compactor, pool
from tests.e2e.drains import RECORD, cordoned, drain, grant_role, records


def forge(cluster: Cluster, node: str, *names: str, order: str = "forged") -> None:
    record = {"order": order, "since": int(time.time()) - 60, "by": "admin\x1b[2J", "nodes": [node, *names]}
    cluster.patch("Node", node, {"metadata": {"annotations": {RECORD: json.dumps(record)}}})


@pytest.fixture
def nodes(cluster: Cluster) -> list[str]:
    name = f"forge-{cluster.namespace[-5:]}"
    names = list(cluster.pool(name, nodes=3, cpu="4", memory="16Gi"))
    cluster.deployment("app", replicas=3, cpu="100m", spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 3, within=60)
    return names


def test_a_record_names_no_other_node_into_an_order(cluster: Cluster, nodes: list[str]) -> None:
    login = grant_role(cluster)
    kubelet = Cluster(cluster.plane.kubeconfig_for(f"system:node:{nodes[0]}", "system:nodes"), cluster.namespace)
    forge(kubelet, nodes[0], nodes[1], nodes[2])
    run = drain(login, "--resume", nodes[0])
    assert run.code == 3, run.text
    assert run.codes("failed") == {"drain-uncordoned"}
    assert not cordoned(cluster, nodes)
    cluster.patch("Node", nodes[0], {"spec": {"unschedulable": True}})
    assert drain(login, "--resume", nodes[0]).code == 0
    assert cordoned(cluster, nodes) == {nodes[0]}


def test_a_record_uncordons_no_node_that_another_client_cordoned(cluster: Cluster, nodes: list[str]) -> None:
    login = grant_role(cluster)
    cluster.patch("Node", nodes[0], {"spec": {"unschedulable": True}})
    kubelet = Cluster(cluster.plane.kubeconfig_for(f"system:node:{nodes[0]}", "system:nodes"), cluster.namespace)
    forge(kubelet, nodes[0])
    assert drain(login, "--release", "--yes", nodes[0]).code == 0
    assert cordoned(cluster, nodes) == {nodes[0]}
    assert not records(cluster, nodes)


def test_a_kubelet_writes_no_record_on_another_node(cluster: Cluster, nodes: list[str]) -> None:
    kubelet = Cluster(cluster.plane.kubeconfig_for(f"system:node:{nodes[0]}", "system:nodes"), cluster.namespace)
    with pytest.raises(ApiError):
        forge(kubelet, nodes[1])


def test_a_text_that_is_no_record_stops_no_order(cluster: Cluster, nodes: list[str]) -> None:
    login = grant_role(cluster)
    for text in ("{", "[" * 5000, json.dumps({"order": "../x", "since": -1})):
        cluster.patch("Node", nodes[0], {"metadata": {"annotations": {RECORD: text}}})
        assert drain(login, "--release", nodes[0]).code == 0
    assert drain(login, nodes[0]).code == 0
    assert cordoned(cluster, nodes) == {nodes[0]}


def test_the_compactor_believes_no_record(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    """The compactor may drain what it wants to drain; a record changes nothing of it, and it uncordons no node."""
    name = nodes[0].rpartition("-")[0]
    cluster.patch("Node", nodes[0], {"spec": {"unschedulable": True}})
    forge(cluster, nodes[0], *nodes[1:])
    cluster.apply(pool(cluster, name))
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("leads"), within=30)
        time.sleep(5)
        assert nodes[0] in cordoned(cluster, nodes)
        assert records(cluster, nodes).keys() == {nodes[0]}
        assert not [write for write in cluster.auditor.writes(user="compactor") if write.name == nodes[0]]
