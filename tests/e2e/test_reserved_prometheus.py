"""`trimtab reserved measure --prometheus` with the real Prometheus, and series as kubelets have them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_prometheus import START, missing, serving_file

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NODES, DAYS, SCRAPE = 24, 3, 120
NOW = "2026-01-08T00:00:00Z"
MB = 1_000_000
PEAK, PEAK_NODES = START + 86400 + 10 * SCRAPE, (5, 17)
"""Between two full hours these nodes' kubelets and runtimes take twice as much, while their pods take little."""


def pods_of(number: int) -> int:
    return 20 + number % 12 * 8


def series(number: int, at: int, noise: float) -> dict[str, float]:
    """Of one node: 17m + 0.84m and 600 MB + 13.5 MB for each pod, in two parts. Nodes of pool db have no runtime."""
    pods, elapsed = pods_of(number), at - START + 60
    kubelet, runtime = (0.005 + 0.0002 * pods) * elapsed, (0.012 + 0.00064 * pods) * elapsed
    noise = 2.0 if at == PEAK and number in PEAK_NODES else noise
    pods_mb = 200 * pods * (1 + at // SCRAPE % 2)
    label = f'node="n{number:02}"'
    parts = {
        f'container_cpu_usage_seconds_total{{{label},id="/system.slice/kubelet.service"}}': kubelet,
        f'container_cpu_usage_seconds_total{{{label},id="/kubepods.slice"}}': 0.05 * pods * elapsed,
        f"node_cpu_usage_seconds_total{{{label}}}": 0.05 * pods * elapsed + kubelet + runtime,
        f'container_memory_working_set_bytes{{{label},id="/system.slice/kubelet.service"}}': (60 + 1.0 * pods)
        * MB
        * noise,
        f'container_memory_working_set_bytes{{{label},id="/kubepods.slice"}}': pods_mb * MB,
        f"node_memory_working_set_bytes{{{label}}}": (pods_mb + (600 + 13.5 * pods) * noise) * MB,
        f"kubelet_running_pods{{{label}}}": pods,
        f'kube_node_info{{{label},container_runtime_version="containerd://2.1.4"}}': 1,
        f'kube_node_status_capacity{{{label},resource="cpu",unit="core"}}': 8,
        f'kube_node_status_allocatable{{{label},resource="cpu",unit="core"}}': 7.9,
        f'kube_node_status_capacity{{{label},resource="memory",unit="byte"}}': 32 * 2**30,
        f'kube_node_status_allocatable{{{label},resource="memory",unit="byte"}}': 31 * 2**30,
        f'trimtab_compactor_pool_node_info{{{label},pool="{"web" if number < 12 else "db"}"}}': 1,
    }
    if number < 12:
        unit = f'{label},id="/system.slice/containerd.service"'
        parts[f"container_cpu_usage_seconds_total{{{unit}}}"] = runtime
        parts[f"container_memory_working_set_bytes{{{unit}}}"] = (540 + 12.5 * pods) * MB * noise
    return parts


def write(path: Path) -> None:
    """OpenMetrics: the samples of a metric stand together."""
    draw = random.Random(4)
    rows: dict[str, dict[str, list[str]]] = {}
    for number in range(NODES):
        for at in range(START, START + DAYS * 86400 + 1, SCRAPE):
            for name, value in series(number, at, draw.gauss(1, 0.02)).items():
                metric = name.partition("{")[0]
                rows.setdefault(metric, {}).setdefault(name, []).append(f"{name} {value:.3f} {at}\n")
    with path.open("w", encoding="ascii") as out:
        for metric, by_name in rows.items():
            kind = "counter" if metric.endswith("_total") else "gauge"
            out.write(f"# TYPE {metric.removesuffix('_total')} {kind}\n")
            for lines in by_name.values():
                out.writelines(lines)
        out.write("# EOF\n")


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("prometheus")
    write(folder / "metrics.txt")
    with serving_file(folder, folder / "metrics.txt") as url:
        command = [
            sys.executable,
            "-m",
            "trimtab",
            "reserved",
            "measure",
            "--prometheus",
            url,
            "--now",
            NOW,
            "--days",
            str(DAYS),
            "--rate",
            "10m",
            "-o",
            "json",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        yield {pool["pool"]: pool for pool in json.loads(done.stdout)["pools"]}


@pytest.mark.parametrize(("pool", "source"), [("web", "system-containers"), ("db", "node-less-pods")])
def test_slope_and_base_are_recovered(pools: dict[str, Any], pool: str, source: str) -> None:
    result = pools[pool]
    assert (result["nodes"], result["measuredNodes"], result["runtime"]) == (12, 12, "containerd")
    assert result["sources"] == {source: 12}
    assert result["cpu"]["fit"]["perPod"] == pytest.approx(0.84, rel=0.02)
    assert result["memory"]["fit"]["perPod"] == pytest.approx(13.5 * MB, rel=0.02)
    assert result["cpu"]["fit"]["base"] == pytest.approx(17, rel=0.05)


@pytest.mark.parametrize(("pool", "node"), [("web", 5), ("db", 17)])
def test_a_peak_between_two_points_counts_for_the_recommendation(pools: dict[str, Any], pool: str, node: int) -> None:
    peak = 2 * (600 + 13.5 * pods_of(node)) * MB
    assert pools[pool]["memory"]["maximum"] == pytest.approx(peak, rel=0.03)
    assert pools[pool]["recommended"]["bytes"] >= pools[pool]["memory"]["maximum"]


def test_what_is_reserved_now_comes_from_kube_state_metrics(pools: dict[str, Any]) -> None:
    assert pools["web"]["reservedNow"] == {"millicores": 100, "bytes": 2**30 - 100 * 2**20}
    assert pools["web"]["change"] == "raise"
