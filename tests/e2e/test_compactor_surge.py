"""A budget that allows no eviction, on the real disruption controller: one more pod first, and the count as before."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.controlplane import objects
from tests.controlplane.auditor import Auditor
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Eye, Object, compactor, nodes, noted, pool

SURGES: Object = {"protect": {"singleReplicas": False}, "surge": {"extraPods": 3}}
SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


def two_nodes(cluster: Cluster, name: str, replicas: int = 1) -> None:
    """A node with the pods of `only`, beside one whose own pods are too many to move."""
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    cluster.deployment("only", replicas=replicas, cpu="300m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running("app=only")) == replicas)
    cluster.create(objects.node(f"{name}-b", cpu="8", memory="32Gi", pods=110, labels={"pool": name}, taints=()))
    cluster.deployment("many", replicas=6, cpu="900m", annotations=SLOW, spec={"nodeName": f"{name}-b"})
    cluster.eventually(lambda: len(cluster.running("app=many")) == 6)


def is_empty(cluster: Cluster, name: str) -> bool:
    """Whether the drain of the first node has ended."""
    return any((noted(node) or {}).get("emptied") for node in nodes(cluster, name))


def budget_of(least: int | str, app: str = "only") -> Object:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}


def scaled(auditor: Auditor) -> list[int]:
    writes = auditor.writes(user="compactor", resource="deployments/scale")
    return [write.asked["spec"]["replicas"] for write in writes]


@pytest.mark.parametrize(("replicas", "least", "counts"), [(1, 1, [2, 1]), (3, 3, [4, 3]), (1, 2, [3, 1])])
def test_the_pods_move_and_no_moment_lacks_one(
    cluster: Cluster, tmp_path: Path, replicas: int, least: int, counts: list[int]
) -> None:
    name = f"surge-{cluster.namespace[-5:]}"
    two_nodes(cluster, name, replicas)
    cluster.apply(budget_of(least))
    cluster.apply(pool(cluster, name, **SURGES))
    auditor = cluster.auditor
    with Eye(cluster, watches_budgets=least <= replicas) as eye, compactor(cluster, tmp_path):
        cluster.eventually(lambda: is_empty(cluster, name), within=90)
    assert eye.fewest["only"] >= replicas
    assert cluster.get("Deployment", "only")["spec"]["replicas"] == replicas
    assert scaled(auditor) == counts
    assert eye.broken_budgets == set()


QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "full"},
    "spec": {"hard": {"pods": "9"}},
}
# `apply` is a server-side apply, by which a client says that it decides minReplicas.
HPA: Object = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "only"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "only"},
        "minReplicas": 3,
        "maxReplicas": 9,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("least", "more", "code"),
    [("90%", None, "surge-too-large"), (3, QUOTA, "surge-without-quota"), (3, HPA, "surge-autoscaler-managed")],
)
def test_what_keeps_the_pods_is_said_and_nothing_is_scaled(
    cluster: Cluster, tmp_path: Path, least: int | str, more: Object | None, code: str
) -> None:
    name = f"stay-{cluster.namespace[-5:]}"
    two_nodes(cluster, name, 3)
    cluster.apply([budget_of(least), *([more] if more is not None else [])])
    if more is QUOTA:
        used = lambda: cluster.get("ResourceQuota", "full")["status"].get("used")  # noqa: E731
        cluster.eventually(used)
    cluster.apply(pool(cluster, name, **SURGES))
    auditor = cluster.auditor
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("leads"), within=20)
        time.sleep(6)
        assert plan_codes(cluster) == {code}
    assert scaled(auditor) == []
    assert len(cluster.running("app=only")) == 3


def plan_codes(cluster: Cluster) -> set[str]:
    """The codes of the reasons that `trimtab plan` gives for pods of the live cluster."""
    words = ["plan", "--cluster", "live", "--now", "now", "-o", "json", "--kubeconfig", str(cluster.kubeconfig)]
    printed = subprocess.run(
        [sys.executable, "-m", "trimtab", *words], capture_output=True, text=True, timeout=60, check=True
    )
    blockers = json.loads(printed.stdout)["blockers"]
    return {blocker["reason"]["code"] for blocker in blockers if blocker["pod"].startswith(f"{cluster.namespace}/only")}
