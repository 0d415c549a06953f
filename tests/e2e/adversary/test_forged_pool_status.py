"""Nobody but the compactor says what a pool does, to `kubectl get pools` either."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import denied, tenant, thief
from tests.e2e.installed import Installed


def forged(name: str, saved: str = "a million") -> dict[str, Any]:
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PoolStatus",
        "metadata": {"name": name},
        "pool": name,
        "status": {"mode": "act", "next": "every node", "saved": saved},
    }


def test_only_the_compactors_account_writes_a_pool_status(applied: Installed) -> None:
    ours = Cluster(applied.cluster.kubeconfig, applied.values.namespace, applied.cluster.plane)
    attempts = count()
    # Each attempt differs from the one before: the policy lets through an update that changes nothing.
    applied.cluster.eventually(
        lambda: "only the compactor" in denied(lambda: ours.apply(forged("web", f"attempt {next(attempts)}"))),
        within=30,
        what="the policy in force",
    )
    own = thief(applied, "compactor")
    own.apply(forged("web"))
    assert "only the compactor" in denied(lambda: ours.patch("PoolStatus", "web", {"status": {"mode": "off"}}))
    ours.patch("PoolStatus", "web", {"metadata": {"labels": {"a": "b"}}})
    for process in ("webhook", "watchdog", "recommender"):
        denied(lambda process=process: thief(applied, process).apply(forged("web")))
    denied(lambda: tenant(applied.cluster).apply(forged("mine")))
    assert ours.get("PoolStatus", "web")["status"]["saved"] == "a million"
    ours.delete("PoolStatus", "web")
