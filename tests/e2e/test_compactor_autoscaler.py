"""What the cluster autoscaler says of itself counts: silent, ill, or adding nodes, and nothing begins or goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.autoscaler import status
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Object, compactor, is_cordoned, nodes, pool


def report(pool_name: str, **said: Any) -> Object:
    return status({pool_name: 3}, **said)


@pytest.fixture
def name(cluster: Cluster) -> Iterator[str]:
    """A pool of three nodes more than half full, so not its own business; nobody has reported."""
    text = f"asc-{cluster.namespace[-5:]}"
    cluster.pool(text, nodes=3, cpu="4", memory="16Gi")
    cluster.deployment("web", replicas=6, cpu="1100m", spec={"nodeSelector": {"pool": text}})
    cluster.eventually(lambda: len(cluster.running("app=web")) == 6, within=60)
    cluster.patch("Deployment", "web", {"spec": {"paused": True}})  # so that the ReplicaSet's template stays as we say
    slow = {"metadata": {"annotations": {"testbed.trimtab.dev/ready-after": "60s"}}}
    for item in cluster.list("ReplicaSet"):
        cluster.patch("ReplicaSet", item["metadata"]["name"], {"spec": {"template": slow}})
    cluster.apply(pool(cluster, text))
    yield text
    cluster.delete("ConfigMap", "cluster-autoscaler-status", "kube-system")


@pytest.mark.parametrize("said", [{"scale_up": "InProgress"}, {"health": "Unhealthy"}, {"ago": 600}])
def test_nothing_begins_before_it_reports_and_nothing_goes_on_when_it_is_ill(
    cluster: Cluster, name: str, tmp_path: Path, said: dict[str, Any]
) -> None:
    with compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="true") as one:
        for state, code in (
            (None, "autoscaler-silent"),
            (report(name, ago=300), "autoscaler-silent"),
            (report(name, health="Unhealthy"), "autoscaler-unhealthy"),
            (report(name, scale_up="InProgress"), "scaling-up"),
        ):
            if state is not None:
                cluster.apply(state)
            cluster.eventually(lambda code=code: code in refusals(one.told("planned")), within=20, what=code)
        assert not one.told("started")
        cluster.apply(report(name))
        cluster.eventually(lambda: one.told("started"), within=20)
        cluster.apply(report(name, **said))
        [line] = cluster.eventually(lambda: one.told("released"), within=30)
        assert line["code"] == "drain-autoscaler-changed"
        cluster.eventually(lambda: not any(map(is_cordoned, nodes(cluster, name))))


def refusals(planned: list[Object]) -> set[str]:
    return {line["code"] for line in planned}
