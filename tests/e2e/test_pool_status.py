"""Pools that kubectl shows: written by the compactor, whatever others write into them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.test_forged_pool_status import forged
from tests.e2e.compactors import compactor, pool
from tests.e2e.ours import install_crd
from tests.reasons import has_facts
from trimtab.compaction.pool_status import build_pool_status_crd


def status(cluster: Cluster, name: str) -> dict[str, Any]:
    with contextlib.suppress(ApiError):
        status: dict[str, Any] = cluster.get("PoolStatus", name)["status"]
        return status
    return {}


def test_kubectl_shows_a_pool_and_a_forged_one_is_neither_kept_nor_believed(cluster: Cluster, tmp_path: Path) -> None:
    install_crd(cluster, build_pool_status_crd())
    name = f"seen-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    cluster.apply(pool(cluster, name, mode="rehearse"))
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: status(cluster, name).get("next", "nothing") != "nothing", within=40)
        table = cluster.kubectl("get", "pools").splitlines()
        assert table[0].split() == ["NAME", "MODE", "NODES", "DRAINING", "NEXT", "SAVED", "UPDATED", "WAITS"]
        assert table[1].split()[:4] == [name, "rehearse", "3", "0"]
        assert has_facts(table[1], "mode: act", "ConfigMap", "mode rehearse")
        cluster.patch("PoolStatus", name, {"status": {"mode": "act", "next": "every node", "waits": ""}})
        cluster.apply(forged("invented"))
        cluster.eventually(lambda: status(cluster, name).get("mode") == "rehearse", within=40, what="written again")
        cluster.eventually(lambda: not status(cluster, "invented"), within=40, what="the invented one deleted")
        assert one.told("started") == [] or all(line["rehearsed"] for line in one.told("started"))
        cluster.delete("ConfigMap", f"pool-{name}")
        cluster.eventually(lambda: not status(cluster, name), within=40, what="deleted with its pool")
