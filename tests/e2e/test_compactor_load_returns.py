"""Beside an autoscaler: load that comes back while emptied nodes stand, and growth that a VPA makes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.autoscaler import Autoscaler
from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e import vpa
from tests.e2e.compactors import Object, adding, compactor, group_of_pool, nodes, noted, pool
from tests.e2e.ours import install_crd

SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


@pytest.fixture
def name(cluster: Cluster) -> str:
    return f"back-{cluster.namespace[-5:]}"


def emptied(cluster: Cluster, name: str) -> list[Object]:
    return [node for node in nodes(cluster, name) if (noted(node) or {}).get("emptied")]


def test_load_that_comes_back_finds_an_emptied_node_open_before_the_next_scan(
    cluster: Cluster, name: str, tmp_path: Path
) -> None:
    """Ten nodes of four cores at 55 %: three are emptied and stand there for ten minutes. Six pods come, for five of
    which the open nodes have no room.
    """
    cluster.pool(name, nodes=10, cpu="4", memory="16Gi")
    spec = {"nodeSelector": {"pool": name}}
    for number in range(4):
        cluster.deployment(f"app{number}", replicas=5, cpu="1100m", annotations=SLOW, spec=spec)
    cluster.eventually(lambda: len(cluster.running()) == 20, within=60)
    cluster.apply(pool(cluster, name))
    scaler = Autoscaler(cluster, group_of_pool(name), adding(cluster, name), unneeded=600, every=10)
    with scaler, compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="true", MOVE_COOLDOWN_SECONDS="0") as one:
        cluster.eventually(lambda: len(emptied(cluster, name)) == 3, within=90, every=0.5, what="three emptied nodes")
        looks = scaler.looks
        cluster.eventually(lambda: scaler.looks > looks, what="the autoscaler has just looked")
        with Witness(cluster) as witness:
            cluster.deployment("more", replicas=6, cpu="1100m", annotations=SLOW, spec=spec)
            cluster.eventually(lambda: len(cluster.running()) == 26, within=60, what="all of the load running")
        assert scaler.added == []
        assert len(nodes(cluster, name)) == 10
        assert len(emptied(cluster, name)) == 1, "two of the three hold the five pods"
        assert {line["code"] for line in one.told("released")} == {"drain-node-uncordoned-for-pods"}
        assert witness.longest_wait < 10
        begun = len(one.told("started"))
        time.sleep(6)  # three plans
        assert len(one.told("started")) == begun, "it waits for the autoscaler's delay after an addition"


@pytest.fixture
def vpas(whole_cluster: Cluster) -> Iterator[None]:
    """VPAs can be made."""
    install_crd(whole_cluster, vpa.definition())
    yield
    whole_cluster.delete("CustomResourceDefinition", vpa.definition()["metadata"]["name"])


@pytest.mark.usefixtures("vpas")
def test_what_a_vpa_will_raise_is_not_evicted(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """Six nodes of four cores with twelve pods of 400m, whose VPA gives three cores to each new one."""
    cluster.pool(name, nodes=6, cpu="4", memory="16Gi")
    cluster.deployment("storefront", replicas=12, cpu="400m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 12, within=60)
    vpa.autoscaler(cluster, "Deployment/storefront", {"cpu": "3"}, updatePolicy={"updateMode": "Initial"})
    cluster.apply(pool(cluster, name))
    scaler = Autoscaler(cluster, group_of_pool(name), adding(cluster, name), unneeded=20)
    with vpa.webhook({"cpu": "3"}) as hook:
        vpa.registered(cluster, "z-vpa", hook)
        with (
            scaler,
            Witness(cluster) as witness,
            compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="true", MOVE_COOLDOWN_SECONDS="0") as one,
        ):
            cluster.eventually(lambda: one.told("planned"), within=60)
            time.sleep(12)  # six plans
            assert (len(witness.left), scaler.added) == (0, [])
            assert len(nodes(cluster, name)) == 6
            assert not one.told("started")
