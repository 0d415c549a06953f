"""A pool compacted on a real control plane, watched by somebody who is not the compactor."""

from __future__ import annotations

from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Eye, budget, compactor, is_cordoned, nodes, noted, pool, state

SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


def five(cluster: Cluster, name: str) -> None:
    """Five nodes of four cores; nine pods on them that two nodes would hold."""
    cluster.pool(name, nodes=5, cpu="4", memory="16Gi")
    for app in ("web", "api", "job"):
        cluster.deployment(app, replicas=3, cpu="600m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
        cluster.apply(budget(app))
    cluster.eventually(lambda: len(cluster.running()) == 9, within=60)
    cluster.eventually(
        lambda: all(b["status"].get("disruptionsAllowed") == 1 for b in cluster.list("PodDisruptionBudget"))
    )


def test_a_pool_is_emptied_and_no_budget_is_broken(cluster: Cluster, tmp_path: Path) -> None:
    name = f"few-{cluster.namespace[-5:]}"
    five(cluster, name)
    cluster.apply(pool(cluster, name))
    auditor = cluster.auditor
    with Eye(cluster) as eye, compactor(cluster, tmp_path):
        cluster.eventually(lambda: sum(map(is_cordoned, nodes(cluster, name))) >= 2, within=90, every=0.5)
        cluster.eventually(
            lambda: all((noted(n) or {}).get("emptied") for n in nodes(cluster, name) if is_cordoned(n)), within=60
        )
    assert eye.fewest == {"web": 2, "api": 2, "job": 2} or min(eye.fewest.values()) >= 2
    evictions = auditor.writes(user="compactor", resource="pods/eviction")
    assert evictions
    assert all(write.allowed for write in evictions)
    assert state(cluster, name)["ring"]
