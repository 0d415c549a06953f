"""What does it cost to compare 20 000 running pods with the recommended policies, again and again?

    make bench-watchdog     starts from the cluster of `make bench-watch` (the first run makes it, about 15 minutes)

The real process, CPU and memory from /proc: the first look (listing everything included), quiet looks, a policy edited.
The last line is `RESULT first_cpu_s=… look_cpu_ms=… edit_cpu_ms=… rss_mib=…`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import yaml

from tests.bench import population
from tests.bench.results import choose_size, report_result
from tests.controlplane import binaries, environ, prepared
from tests.controlplane.cluster import Cluster
from trimtab.policy.schema import build_crd
from trimtab.runtime import files
from trimtab.runtime.environment import variable_name

ROOT = Path(__file__).parents[2]
TICK = os.sysconf("SC_CLK_TCK")
INTERVAL = 2
LOOKS = choose_size(10, 3)


def main() -> None:
    with (
        prepared.start(binaries.find(), "bench-pods", population.VERSION, population.populate) as plane,
        tempfile.TemporaryDirectory() as home,
    ):
        cluster = Cluster(plane.kubeconfig, plane=plane)
        _policies(cluster)
        ready = Path(home) / "ready.json"
        process = _start(str(plane.kubeconfig), ready)
        try:
            _measure(cluster, process.pid, ready)
        finally:
            process.terminate()
            process.wait(20)


def _policies(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}})
    cluster.apply(build_crd())
    documents = [d for _, content in files.shipped_policies() for d in yaml.safe_load_all(content) if d]
    for document in documents:
        cluster.eventually(lambda d=document: cluster.apply(d))  # type: ignore[misc]


def _start(kubeconfig: str, ready: Path) -> subprocess.Popen[bytes]:
    environment = {
        "LISTEN": "127.0.0.1:0",
        "READY_FILE": ready,
        "KUBECONFIG": kubeconfig,
        "CHECK_INTERVAL_SECONDS": INTERVAL,
        "LOG_LEVEL": "warning",
        "STATUS_WRITE_INTERVAL_SECONDS": 10,
        "LEASE_DURATION_SECONDS": 8,
        "RENEW_DEADLINE_SECONDS": 4,
        "WRITE_TIMEOUT_SECONDS": 2,
    }
    surroundings = {
        **environ.plain(),
        **{variable_name("watchdog", name.lower()): str(value) for name, value in environment.items()},
    }
    return subprocess.Popen([sys.executable, "-m", "trimtab", "watchdog"], cwd=ROOT, env=surroundings)


def _measure(cluster: Cluster, pid: int, ready: Path) -> None:
    begun = time.monotonic()
    cluster.eventually(ready.exists, within=60)
    url = json.loads(ready.read_text())["url"]
    cluster.eventually(lambda: _value(url, "trimtab_running_pods") >= population.PODS, within=300)
    cluster.eventually(lambda: _value(url, "trimtab_watchdog_undecided_pod_groups") == 0, within=60)
    first = _cpu(pid)
    kinds = _value(url, "trimtab_running_pod_groups")
    print(f"first look: {first:.2f} s of CPU, {time.monotonic() - begun:.1f} s; {kinds:.0f} kinds of pods")
    time.sleep(15)  # statuses and events of the beginning
    before = _cpu(pid)
    time.sleep(INTERVAL * LOOKS)
    quiet = (_cpu(pid) - before) / LOOKS
    inside = _value(url, "trimtab_watchdog_check_duration_seconds")
    print(f"a quiet look: {quiet * 1000:.0f} ms of CPU, its watches and election included; {inside * 1000:.0f} ms long")
    before = _cpu(pid)
    name = cluster.list("PodPolicy")[0]["metadata"]["name"]
    cluster.patch("PodPolicy", name, {"spec": {"priority": 7}})
    time.sleep(INTERVAL * 4)
    edit = _cpu(pid) - before - 4 * quiet
    print(f"a policy edited: {edit * 1000:.0f} ms of CPU more, everything decided again")
    rss = _rss(pid)
    print(f"{rss:.0f} MiB held; with a look every 30 s {quiet / 30:.2%} of one core")
    report_result(
        "watchdog",
        f"first_cpu_s={first:.2f} look_cpu_ms={quiet * 1000:.0f} edit_cpu_ms={edit * 1000:.0f} rss_mib={rss:.0f}",
        broken={},
    )


def _value(url: str, name: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.split(" ")[0] == name), -1.0)


def _cpu(pid: int) -> float:
    """Seconds of user and system time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _rss(pid: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
