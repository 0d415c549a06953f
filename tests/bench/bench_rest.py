"""What does a compactor cost that has nothing to do? `make bench-rest`, about five minutes.

1 000 nodes and 10 000 pods of 500 ReplicaSets on a real API server; the compactor as it is installed, with its default
rhythm, in a pool that rehearses. After the first plan: CPU, memory and requests of three minutes.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from tests.bench.bench_live import cpu
from tests.bench.results import choose_size, report_result
from tests.controlplane import binaries, objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.troubled import relay
from tests.controlplane.workloads import create_all
from tests.e2e.compactors import EAGER, USER, Compactor

NODES, SETS, REPLICAS = choose_size((1000, 500, 20), (100, 50, 20))
LONG = choose_size(180.0, 30.0)
DEFAULTS = {
    "PLAN_INTERVAL_SECONDS": "60",
    "RECHECK_DELAY_SECONDS": "15",
    "DRAIN_POLL_INTERVAL_SECONDS": "2",
    "LEASE_DURATION_SECONDS": "60",
    "RENEW_DEADLINE_SECONDS": "30",
    "RETRY_PERIOD_SECONDS": "3",
    "WRITE_TIMEOUT_SECONDS": "10",
    "REQUIRE_AUTOSCALER_STATUS": "false",
}


def main() -> None:
    with ControlPlane.start(binaries.find()) as plane, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(plane.kubeconfig, "default", plane)
        _fill(cluster)
        login = plane.kubeconfig_for(USER, "system:masters")
        with relay(login, Path(folder)) as (between, path):
            one = Compactor(cluster, Path(folder), KUBECONFIG=str(path), **DEFAULTS)
            try:
                cluster.eventually(lambda: one.told("planned"), within=120)
                first = dict(_metrics(one))
                time.sleep(30)
                between.asked.clear()
                before, started = cpu(one), time.monotonic()
                time.sleep(LONG)
                _tell(one, first, between.asked, cpu(one) - before, time.monotonic() - started)
            finally:
                one.stop()


def _fill(cluster: Cluster) -> None:
    """Pods are dealt out without the scheduler, and adopted: the quickest way to so many."""
    names = [f"n{number:04d}" for number in range(NODES)]
    create_all(cluster, [objects.node(n, cpu="8", memory="32Gi", pods=110, labels={}, taints=()) for n in names])
    cluster.take_down("kube-controller-manager")
    sets = [cluster.create(_set(cluster, number)) for number in range(SETS)]
    pods = [(owner, number) for owner in sets for number in range(REPLICAS)]
    create_all(cluster, [_pod(cluster, owner, number, names[n * 7 % NODES]) for n, (owner, number) in enumerate(pods)])
    cluster.bring_back("kube-controller-manager")
    cluster.eventually(
        lambda: all(s["status"].get("readyReplicas") == REPLICAS for s in cluster.list("ReplicaSet")), 180, every=3
    )
    text = {**EAGER, "mode": "rehearse", "nodes": "all"}
    pool = {"name": "pool-all", "labels": {"trimtab.dev/pool": "all"}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": pool, "data": {"pool.yaml": json.dumps(text)}})


def _template(cluster: Cluster, app: str) -> dict[str, Any]:
    container = objects.container("main", cluster.image, "300m", "256Mi")
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}


def _set(cluster: Cluster, number: int) -> dict[str, Any]:
    app = f"app-{number:03d}"
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": app}}, "template": _template(cluster, app)}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": app}, "spec": spec}


def _pod(cluster: Cluster, owner: dict[str, Any], number: int, node: str) -> dict[str, Any]:
    name = owner["metadata"]["name"]
    template = _template(cluster, name)
    above = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner["metadata"]["uid"]}
    above |= {"controller": True, "blockOwnerDeletion": True}
    meta = {**template["metadata"], "name": f"{name}-{number:02d}", "ownerReferences": [above]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template["spec"], "nodeName": node}}


def _metrics(one: Compactor) -> list[tuple[str, float]]:
    with urllib.request.urlopen(f"{one.told('ready')[0]['url']}/metrics", timeout=5) as page:
        lines = [line for line in page.read().decode().splitlines() if not line.startswith("#")]
    return [(name, float(value)) for name, _, value in (line.rpartition(" ") for line in lines)]


def _tell(one: Compactor, first: dict[str, float], counts: Counter[str], used: float, lasted: float) -> None:
    metrics = dict(_metrics(one))
    status = Path(f"/proc/{one.process.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    rest = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    for what, count in counts.most_common(12):
        print(f"  {count * 3600 / lasted:6.0f} an hour  {what}")
    print(f"first plan {first['trimtab_compactor_plan_duration_seconds']:.1f} s, peak {peak // 1024} MB", flush=True)
    report_result(
        "rest",
        f"nodes={NODES} pods={SETS * REPLICAS} plan_s={metrics['trimtab_compactor_plan_duration_seconds']:.2f} "
        f"cpu_percent={used * 100 / lasted:.1f} rss_mb={rest // 1024} peak_mb={peak // 1024} "
        f"requests_per_hour={sum(counts.values()) * 3600 / lasted:.0f}",
        broken={},
    )


if __name__ == "__main__":
    assert os.path.isdir("/proc/self"), "needs Linux"
    main()
