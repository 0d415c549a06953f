"""Beside the cluster autoscaler: we empty, it takes, and nothing comes back."""

from __future__ import annotations

import time
from pathlib import Path

from tests.controlplane.autoscaler import Autoscaler
from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import adding, budget, compactor, group_of_pool, is_cordoned, nodes, pool

SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


def test_the_two_shrink_a_pool_and_settle_and_no_node_is_added_back(cluster: Cluster, tmp_path: Path) -> None:
    """Twenty pods of 1.1 cores on ten nodes of four: a little too full for the autoscaler, and seven would do."""
    name = f"two-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=10, cpu="4", memory="16Gi")
    for number in range(4):
        spec = {"nodeSelector": {"pool": name}}
        cluster.deployment(f"app{number}", replicas=5, cpu="1100m", annotations=SLOW, spec=spec)
        cluster.apply(budget(f"app{number}"))
    cluster.eventually(lambda: len(cluster.running()) == 20, within=60)
    cluster.apply(pool(cluster, name))

    scaler = Autoscaler(cluster, group_of_pool(name), adding(cluster, name))
    with (
        scaler,
        Witness(cluster) as witness,
        compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="true", MOVE_COOLDOWN_SECONDS="0") as one,
    ):
        cluster.eventually(lambda: len(nodes(cluster, name)) == 7, within=90, every=0.5, what="seven nodes left")
        cluster.eventually(lambda: len(one.told("removed")) == 3)
        begun = len(one.told("started"))
        time.sleep(6)  # three plans
        assert (len(nodes(cluster, name)), len(one.told("started")), scaler.added) == (7, begun, [])
        assert not any(map(is_cordoned, nodes(cluster, name)))
        assert len(cluster.running()) == 20
        assert not witness.broken
        assert witness.longest_wait < 5
        cluster.patch("Deployment", "app0", {"spec": {"replicas": 9}})
        cluster.eventually(lambda: len(cluster.running()) == 24, within=60, what="more pods on a node that was added")
        assert scaler.added == [name]
        time.sleep(6)
        assert len(nodes(cluster, name)) == 8
        assert len(one.told("started")) == begun, "what it adds for pods that need it is not emptied again"
