"""`trimtab reserved measure --cluster live` and the recommender's measurement, through a real API server's node proxy.

The kubelets are played; who reads them has the rights of the shipped role, and no others.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests.controlplane import environ
from tests.controlplane.cluster import Cluster
from tests.e2e.kubelet_pages import KubeletPages, Requests, serving_kubelets
from tests.e2e.recommenders import USER, allow
from tests.reasons import has_facts
from tests.usage.summaries import node_summary
from trimtab.cluster.published_reservations import RESERVATIONS_KEY
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.objects import Writer
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.reservation_sources import configmap_store, list_nodes, read_from_kubelets
from trimtab.recommender.reservations import RESERVATIONS_NAME, ReservationMeasurer
from trimtab.runtime import log

MIB = 1 << 20
ROLES = Path(__file__).resolve().parents[2] / "deploy/recommender-kubelets.yaml"
READER = "reservations-reader"
CONFIGZ = {
    "kubeletconfig": {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi"},
        "systemReserved": {"memory": "256Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        "maxPods": 110,
    }
}
NODES = 6


def page(node: str, pods: int, *, has_runtime: bool = True) -> dict[str, Any]:
    """A summary of this moment: 20m + 1m and 200 MiB + 10 MiB for each pod, with or without the runtime's part."""
    use = 20 + pods
    summary = node_summary(
        node,
        pods,
        kubelet=10 + 0.4 * pods,
        runtime=10 + 0.6 * pods if has_runtime else None,
        of_pods=(1800, 7000),
        total=(1800 + use, 7000 + 10 * use),
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return dict(json.loads(json.dumps(summary).replace("2026-01-05T00:00:00Z", now)))


def machines(cluster: Cluster, pool: str, count: int) -> list[str]:
    """Nodes of eight cores and 32 GiB, of which 100m and 1380 MiB are withheld."""
    names = cluster.pool(pool, nodes=count, labels={"nodepool": pool})
    for name in names:
        status = {
            "allocatable": {"cpu": "7900m", "memory": f"{32768 - 1380}Mi"},
            "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"},
        }
        path = f"/api/v1/nodes/{name}/status"
        cluster.api.request("PATCH", path, {"status": status}, content_type="application/merge-patch+json")
    return names


def allow_reading(cluster: Cluster, user: str) -> None:
    """The shipped role, for this user."""
    role, binding = yaml.safe_load_all(ROLES.read_text("utf-8"))
    name = f"{role['metadata']['name']}-{cluster.namespace}"
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    binding |= {"metadata": {"name": name}, "roleRef": {**binding["roleRef"], "name": name}, "subjects": [subject]}
    cluster.apply([{**role, "metadata": {"name": name}}, binding])


def measure(cluster: Cluster, *options: str) -> str:
    """What it prints; in two hours, when the nodes are no longer young."""
    login = cluster.plane.kubeconfig_for(READER)
    later = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "reserved",
        "measure",
        "--cluster",
        "live",
        "--kubeconfig",
        str(login),
        "--now",
        later,
        *options,
    ]
    done = subprocess.run(command, env=environ.plain(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pool_of(text: str, name: str) -> dict[str, Any]:
    return {pool["pool"]: pool for pool in json.loads(text)["pools"]}[name]


@pytest.fixture
def pools(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[Cluster, dict[str, str], Requests]]:
    """Pools `whole`, `part` (kubelets that do not know their runtime) and `mute` (no summary), by those words."""
    cluster.needs_own("kubelets on this machine")
    pools = {word: f"{word}-{cluster.namespace[-5:]}" for word in ("whole", "part", "mute")}
    pages: dict[str, KubeletPages] = {}
    for word, pool in pools.items():
        for number, node in enumerate(machines(cluster, pool, NODES)):
            pods = 20 + 15 * number
            pages[node] = KubeletPages(
                (lambda: None)
                if word == "mute"
                else lambda node=node, pods=pods, word=word: page(node, pods, has_runtime=word == "whole"),
                CONFIGZ,
            )
    allow_reading(cluster, READER)
    with serving_kubelets(cluster, pages, tmp_path) as requests:
        yield cluster, pools, requests


def test_kubelets_are_measured_through_the_node_proxy(pools: tuple[Cluster, dict[str, str], Requests]) -> None:
    cluster, names, requests = pools
    options = [option for name in names.values() for option in ("--pool", name)]
    text = measure(cluster, "-o", "json", *options)
    for word, source in (("whole", "system-containers"), ("part", "node-less-pods")):
        pool = pool_of(text, names[word])
        assert pool["sources"] == {source: NODES}
        assert (pool["measuredNodes"], pool["runtime"], pool["reservedNowFrom"]) == (NODES, "containerd", "configz")
        assert pool["reservedNow"] == {"millicores": 80, "bytes": 1280 * MIB}
        assert pool["cpu"]["fit"]["perPod"] == pytest.approx(1, rel=0.02)
        assert pool["memory"]["fit"]["perPod"] == pytest.approx(10 * MIB, rel=0.02)
        assert pool["recommended"] == {"millicores": 120, "bytes": 1152 * MIB}
    mute = pool_of(text, names["mute"])
    assert (mute["cpu"], mute["memory"], mute["recommended"], mute["change"]) == (None, None, None, "unknown")
    assert mute["missing"]["reason"]["code"] == "overhead-not-measured"
    assert mute["reservedNowFrom"] == "allocatable"
    # One request for each node, and one configuration of each pool that answers.
    paths = [path for node, path in requests.asked]
    assert paths.count("/stats/summary?only_cpu_and_memory=true") == 3 * NODES
    assert paths.count("/configz") == 2


def test_the_fallback_is_told_in_words(pools: tuple[Cluster, dict[str, str], Requests]) -> None:
    cluster, names, requests = pools
    text = " ".join(measure(cluster, "--pool", names["part"]).split())
    assert f"{NODES} of {NODES}" in text
    assert has_facts(text, "not report", "container runtime")
    assert {node.rpartition("-")[0] for node, _ in requests.asked} == {names["part"]}


def test_the_recommender_publishes_what_kubelets_answer(pools: tuple[Cluster, dict[str, str], Requests]) -> None:
    cluster, names, _ = pools
    allow(cluster, cluster)
    allow_reading(cluster, USER)
    client = connect_to_cluster(str(cluster.plane.kubeconfig_for(USER)), None)
    try:
        measurer = ReservationMeasurer(
            read_nodes=lambda: list_nodes(client),
            read_overheads=lambda nodes, start, now: read_from_kubelets(client, nodes, start, now),
            store=configmap_store(Writer(client=client, manager="trimtab-recommender"), cluster.namespace),
            metrics=Metrics(CollectorRegistry(), lambda: True).reservations,
            log=log.build_logger(stream=io.StringIO()),
            interval_seconds=1,
        )
        measurer.measure_if_due(int(time.time()) + 7200)
    finally:
        client.close()
    published = json.loads(cluster.get("ConfigMap", RESERVATIONS_NAME)["data"][RESERVATIONS_KEY])
    by_pool = {pool["pool"]: pool for pool in published["pools"]}
    for word in ("whole", "part"):
        assert (by_pool[names[word]]["millicores"], by_pool[names[word]]["memoryBytes"]) == (120, 1152 * MIB)
    assert names["mute"] not in by_pool


def test_a_pool_of_a_hundred_nodes_is_measured_within_a_minute(cluster: Cluster, tmp_path: Path) -> None:
    cluster.needs_own("kubelets on this machine")
    pool = f"large-{cluster.namespace[-5:]}"
    names = machines(cluster, pool, 100)
    pages = {
        node: KubeletPages(lambda node=node, pods=20 + number * 90 // 99: page(node, pods), CONFIGZ)
        for number, node in enumerate(names)
    }
    allow_reading(cluster, READER)
    # A busy kubelet takes about half a second for its summary.
    with serving_kubelets(cluster, pages, tmp_path, delay_seconds=0.5) as requests:
        began = time.monotonic()
        text = measure(cluster, "-o", "json", "--pool", pool)
        took = time.monotonic() - began
    actual_pool = pool_of(text, pool)
    assert (actual_pool["nodes"], actual_pool["measuredNodes"], actual_pool["change"]) == (100, 100, "raise")
    assert actual_pool["memory"]["fit"]["perPod"] == pytest.approx(10 * MIB, rel=0.02)
    assert len([path for _, path in requests.asked if path.startswith("/stats")]) == 100
    assert took < 60
    print(f"RESULT reserved_100_nodes_s={took:.1f}")
