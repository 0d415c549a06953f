"""Pods that request nothing keep their nodes while the metrics API says that they fill them."""

from __future__ import annotations

import time
from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import compactor, nodes, pool
from tests.e2e.resource_metrics import GROUP, VERSION, ResourceMetrics


def test_busy_pods_without_requests_stay_and_idle_ones_move(cluster: Cluster, tmp_path: Path) -> None:
    """Three pods that request nothing, each alone on four cores: first they use three of them, then next to none."""
    cluster.needs_own("a metrics API on this machine")
    name = f"use-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    cluster.deployment("web", replicas=3, spec={"nodeSelector": {"pool": name}, "topologySpreadConstraints": [apart]})
    cluster.eventually(lambda: len(cluster.running()) == 3, within=60)
    assert len({pod["spec"]["nodeName"] for pod in cluster.running()}) == 3
    use = {"millicores": 3000}

    def usage(namespace: str) -> dict[str, int]:
        return {f"{cluster.namespace}/{pod['metadata']['name']}": use["millicores"] for pod in cluster.running()}

    with ResourceMetrics(cluster.plane, usage) as metrics:
        metrics.register(cluster)
        try:
            cluster.eventually(
                lambda: cluster.api.request("GET", f"/apis/{GROUP}/{VERSION}/pods")["items"],
                within=60,
                what="the use of all pods",
            )
            cluster.apply(pool(cluster, name))
            with compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="false") as one:
                cluster.eventually(lambda: one.told("planned"), within=60, what="a plan")
                time.sleep(10)  # five plans
                assert one.told("started") == []
                use["millicores"] = 5
                cluster.eventually(lambda: one.told("emptied"), within=100, every=1, what="a node that is drained")
        finally:
            cluster.delete("APIService", f"{VERSION}.{GROUP}")
    assert len(nodes(cluster, name)) == 3, "nobody removes nodes here"
