"""Who may write a node, or a ConfigMap of ours, makes the compactor do nothing that they may not do themselves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import NOTE, Compactor, Object, compactor, is_cordoned, nodes, pool

STAYS = 4.0
"""Seconds in which nothing may happen: the compactor looks every fifth of a second, and plans every other second."""


def forged(cluster: Cluster, deployment: str, name: str) -> Object:
    """What a drain writes that gave a Deployment its second replica."""
    at = int(time.time())
    return {
        "drain": "x0",
        "pool": name,
        "since": at,
        "home": cluster.namespace,
        "v": 1,
        "surges": {deployment: 1},
        "surged": {deployment: at},
    }


@contextmanager
def a_bank(cluster: Cluster, **settings: str) -> Iterator[tuple[str, str]]:
    """A pool of one node, and a Deployment of two replicas: (name of the pool, namespace/name)."""
    name = f"forg-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    cluster.deployment("bank", replicas=2, cpu="100m", spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 2, within=60)
    cluster.apply(pool(cluster, name, **settings))
    yield name, f"{cluster.namespace}/bank"


def kubelet(cluster: Cluster, node: str) -> Cluster:
    """Logged in as the kubelet of this node, with NodeRestriction on."""
    login = cluster.plane.kubeconfig_for(f"system:node:{node}", "system:nodes")
    return Cluster(login, cluster.namespace)


def nothing_is_scaled(cluster: Cluster, replicas: int = 2) -> None:
    until = time.monotonic() + STAYS
    while time.monotonic() < until:
        assert cluster.get("Deployment", "bank")["spec"]["replicas"] == replicas
        time.sleep(0.2)
    assert not [w for w in cluster.auditor.writes(user="compactor") if w.resource == "deployments/scale"]


def leads(cluster: Cluster, one: Compactor, times: int = 1) -> None:
    cluster.eventually(lambda: len(one.told("leads")) >= times, within=30)


def holds_the_lease(thief: Cluster, seconds: int) -> None:
    """Nobody leads for so long; a second is over at once."""
    spec = {"holderIdentity": "nobody", "leaseDurationSeconds": seconds}
    thief.patch("Lease", "trimtab-compactor", {"spec": spec})


@pytest.mark.parametrize("mode", ["rehearse", "act"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_kubelet_that_forges_a_note_scales_nothing_and_opens_nothing(
    cluster: Cluster, tmp_path: Path, mode: str, signed: bool
) -> None:
    with a_bank(cluster, mode=mode) as (name, bank), compactor(cluster, tmp_path) as one:
        leads(cluster, one)
        [node] = nodes(cluster, name)
        thief = kubelet(cluster, node["metadata"]["name"])
        with pytest.raises(ApiError, match="forbidden"):
            thief.patch("Deployment", "bank", {"spec": {"replicas": 0}})
        cluster.patch("Node", node["metadata"]["name"], {"spec": {"unschedulable": True}})
        note = forged(cluster, bank, name)
        text = json.dumps({"note": note, "signature": "00" * 16} if signed else note)
        thief.patch("Node", node["metadata"]["name"], {"metadata": {"annotations": {NOTE: text}}})
        nothing_is_scaled(cluster)
        [node] = nodes(cluster, name)
        assert is_cordoned(node), "a person's cordon stays"
        assert node["metadata"]["annotations"][NOTE] == text, "it is left alone"
        cluster.eventually(lambda: one.told("not-authentic"), within=30)
        assert len(one.told("not-authentic")) == 1, "and told of once"
        assert not one.told("released")


def test_notes_of_invented_pools_make_no_state(cluster: Cluster, tmp_path: Path) -> None:
    with a_bank(cluster, mode="rehearse") as (name, bank), compactor(cluster, tmp_path) as one:
        leads(cluster, one)
        [node] = [each_node["metadata"]["name"] for each_node in nodes(cluster, name)]
        thief = kubelet(cluster, node)
        for number in range(3):
            text = json.dumps(forged(cluster, bank, f"invented-{number}") | {"drain": f"x{number}"})
            thief.patch("Node", node, {"metadata": {"annotations": {NOTE: text}}})
            time.sleep(1)
        cluster.eventually(lambda: one.told("not-authentic"), within=30)
        cluster.eventually(lambda: cluster.get("ConfigMap", f"trimtab-state-{name}"), within=30)
        states = cluster.list("ConfigMap", selector="trimtab.dev/state")
        assert {result["metadata"]["labels"]["trimtab.dev/state"] for result in states} <= {name}


def test_who_writes_the_state_and_takes_the_lease_scales_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """The recommender's rights of before: ConfigMaps and Leases of our namespace."""
    with a_bank(cluster, mode="rehearse") as (name, bank), compactor(cluster, tmp_path) as one:
        leads(cluster, one)
        thief = clerk(cluster)
        state = f"trimtab-state-{name}"
        cluster.eventually(lambda: cluster.get("ConfigMap", state), within=20)
        for number, text in enumerate(({"v": 1, "surged": {bank: 1}}, {"v": 1, "surged": {bank: "x0"}})):
            holds_the_lease(thief, 600)  # a leader would write its own state over this one
            cluster.eventually(lambda: len(one.told("leads-no-more")) == len(one.told("leads")), within=30)
            terms = len(one.told("leads"))
            thief.patch("ConfigMap", state, {"data": {"state.json": json.dumps(text)}})
            holds_the_lease(thief, 1)
            leads(cluster, one, terms + 1)
            nothing_is_scaled(cluster)
            cluster.eventually(lambda: len(one.told("unreadable")) > number, within=30)  # noqa: B023  waited for here


def test_an_older_state_that_is_written_back_is_not_believed(cluster: Cluster, tmp_path: Path) -> None:
    """Signed by the compactor itself, before something of the pool ended."""
    name = f"old-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    cluster.deployment("web", replicas=3, cpu="300m", spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 3, within=60)
    cluster.apply(pool(cluster, name))
    state = f"trimtab-state-{name}"
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("started"), within=30)
        cluster.eventually(lambda: json.loads(cluster.get("ConfigMap", state)["data"]["state.json"]).get("drains"))
        old = cluster.get("ConfigMap", state)["data"]
        cluster.eventually(lambda: one.told("emptied"), within=60)
        for node in nodes(cluster, name):
            cluster.patch(
                "Node", node["metadata"]["name"], {"metadata": {"annotations": {"trimtab.dev/do-not-disrupt": "true"}}}
            )
        cluster.eventually(lambda: not any(map(is_cordoned, nodes(cluster, name))), within=30)
    clerk(cluster).patch("ConfigMap", state, {"data": old})
    with compactor(cluster, tmp_path) as two:
        cluster.eventually(lambda: two.told("unreadable"), within=30)
        assert "older" in two.told("unreadable")[0]["why"]


def clerk(cluster: Cluster) -> Cluster:
    """Somebody who may write ConfigMaps and Leases of our namespace, and nothing else."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "get", "create", "patch", "delete"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update", "patch"]},
    ]
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "clerk"}}
    cluster.apply({**about, "kind": "Role", "rules": rules})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "clerk"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "clerk"}
    cluster.apply({**about, "kind": "RoleBinding", "roleRef": ref, "subjects": [subject]})
    return Cluster(cluster.plane.kubeconfig_for("clerk"), cluster.namespace)
