"""The real kube-state-metrics of a control plane, and a Prometheus that scrapes it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane import binaries
from tests.controlplane.ports import free
from tests.e2e.real_prometheus import running
from tests.e2e.scraping import Prometheus
from trimtab.inputs.scraped_cluster import ALLOWLIST

RESOURCES = "nodes,pods,replicasets,poddisruptionbudgets"
OWN_LABELS = {
    "namespace": "monitoring",
    "pod": "kube-state-metrics-0",
    "container": "kube-state-metrics",
    "node": "m-0",
}
"""What a Prometheus knows of the pod that it scrapes."""


@contextmanager
def scraping_state_metrics(
    kubeconfig: str, folder: Path, seconds: float, *, flags: Sequence[str] = (ALLOWLIST,), honors_labels: bool = True
) -> Iterator[str]:
    """The URL of a Prometheus that scrapes kube-state-metrics this often, and has its nodes. It keeps its data in the
    folder: `real_prometheus.running` serves them later. `flags`: more flags of kube-state-metrics; `honors_labels`:
    whether its labels count, or those of its pod."""
    folder.mkdir(parents=True, exist_ok=True)
    port, own_port = free(2)
    argv = [
        str(binaries.kube_state_metrics()),
        f"--kubeconfig={kubeconfig}",
        f"--resources={RESOURCES}",
        "--host=127.0.0.1",
        f"--port={port}",
        "--telemetry-host=127.0.0.1",
        f"--telemetry-port={own_port}",
        *flags,
    ]
    with (folder / "kube-state-metrics.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    every = f"{round(seconds * 1000)}ms"
    job = {
        "job_name": "kube-state-metrics",
        "scrape_interval": every,
        "scrape_timeout": every,
        "honor_labels": honors_labels,
        "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": OWN_LABELS}],
    }
    try:
        with running(folder, {"scrape_configs": [job]}) as url:
            _wait_for_nodes(url)
            yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_for_nodes(url: str) -> None:
    for _ in range(300):
        if Prometheus(url).query("kube_node_info"):
            return
        time.sleep(0.1)
    raise AssertionError("kube-state-metrics shows no node")
