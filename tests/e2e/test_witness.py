"""Does the witness see what must never happen?"""

from __future__ import annotations

from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import budget


def test_a_budget_that_is_broken_and_a_pod_that_waits_are_seen(cluster: Cluster) -> None:
    name = f"wit-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=2, cpu="4", memory="16Gi")
    slow = {"testbed.trimtab.dev/ready-after": "2s"}
    for app in ("broken", "kept"):
        cluster.deployment(app, replicas=3, cpu="100m", annotations=slow, spec={"nodeSelector": {"pool": name}})
        cluster.apply(budget(app))
    cluster.eventually(lambda: len(cluster.running()) == 6, within=60)
    with Witness(cluster) as witness:
        first, second, _ = (pod["metadata"]["name"] for pod in cluster.running("app=broken"))
        cluster.delete("Pod", first, grace=0)
        cluster.delete("Pod", second, grace=0)
        cluster.delete("Pod", cluster.running("app=kept")[0]["metadata"]["name"], grace=0)
        cluster.eventually(lambda: len(cluster.running()) == 6, within=30)
        assert witness.broken == [f"{cluster.namespace}/broken: 1 ready, 2 wanted"]
        assert witness.fewest[cluster.namespace, "kept"] == 2
        assert 1.5 < witness.longest_start < 20
        cluster.deployment("nowhere", cpu="64", spec={"nodeSelector": {"pool": name}})
        cluster.eventually(lambda: len(witness.waiting()) == 1)
