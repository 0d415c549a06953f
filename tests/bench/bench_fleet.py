"""What deciding the requests of a fleet costs, on Spark beside one process, and whether both give the same bytes.

    make bench-fleet

Histories are daily histograms in Parquet. The cost of Spark is the CPU of the driver, the master, the workers, the
executors and their Python processes together. `FLEET_SIZES` are containers x days: the first two show whether memory
is flat, and the second is that of the cost; by default 10000x14,100000x14,1000000x2. `executor_mib` is the largest
memory of an executor in any run; pages that its processes share count once.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fleet.generated import write_generated
from tests.fleet.histories import FIRST_DAY
from tests.fleet.spark_cluster import DRIVER_OPTIONS, Sampler, SparkCluster, Taken, environment, missing_part
from tests.fleet.spark_cluster import spark_cluster as start_cluster
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving, vector
from trimtab.fleet.container_decisions import DecisionSettings, decide_container
from trimtab.histogram.daily_rows import DailyRow, merge_rows
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.request import SizingSettings
from trimtab.usage.daily_ingest import DayReader
from trimtab.usage.daily_store import DailyStore
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan

SIZES = os.environ.get("FLEET_SIZES", "10000x14,100000x14,1000000x2")
CLUSTERS = int(os.environ.get("FLEET_CLUSTERS", "50"))
MAX_CPU_OVER_LOCAL, MAX_EXECUTOR_MIB, GOAL_TWO_OVER_ONE = 1.5, 1024, 1.6
INGESTED = 1000
SUBSET_CLUSTER = "c003"


def main() -> None:
    if missing := missing_part():
        sys.exit(f"bench-fleet: {missing}")
    sizes = [(int(one.partition("x")[0]), int(one.partition("x")[2])) for one in SIZES.split(",")]
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder:
        sys.exit(_measure(Path(folder), sizes))


def _measure(folder: Path, sizes: Sequence[tuple[int, int]]) -> int:
    _measure_ingest()
    memory: list[float] = []
    equal, cost_ratio, speed, cpu_ms = True, 0.0, 0.0, 0.0
    for place, (containers, days) in enumerate(sizes):
        usage = write_generated(folder / f"usage-{place}", containers, days, min(CLUSTERS, containers // 100))
        size = sum(one.size for one in DailyStore(str(usage)).list_days())
        print(f"{containers} containers x {days} days: {size / 1e6:.0f} MB in files")
        local = _run_local(usage, folder / f"local-{place}")
        print(f"  one process: {local.cpu_seconds:.1f} s of CPU, {local.executor_mib:.0f} MiB at most")
        with start_cluster(folder / f"cluster-{place}") as cluster:
            two = _run_spark(cluster, usage, folder / f"two-{place}")
        print(f"  two workers: {two.cpu_seconds:.1f} s of CPU, {two.wall_seconds:.1f} s, {two.executor_mib:.0f} MiB")
        is_same = _digest(folder / f"two-{place}") == _digest(folder / f"local-{place}")
        print(f"  the same bytes: {is_same}")
        equal, memory = equal and is_same, [*memory, two.executor_mib]
        if place == min(1, len(sizes) - 1):
            cost_ratio = two.cpu_seconds / local.cpu_seconds
            cpu_ms = 1000 * two.cpu_seconds / containers
            equal = _check_subset(usage, days, folder / f"local-{place}") and equal
            with start_cluster(folder / "cluster-one", workers=1) as cluster:
                one = _run_spark(cluster, usage, folder / "one")
            speed = one.wall_seconds / two.wall_seconds
            print(f"  one worker: {one.cpu_seconds:.1f} s of CPU, {one.wall_seconds:.1f} s")
            with start_cluster(folder / "cluster-killed") as cluster:
                killed = _run_spark(cluster, usage, folder / "killed", kill=True)
            same_killed = _digest(folder / "killed") == _digest(folder / f"local-{place}")
            print(f"  a worker killed in mid-shuffle: {killed.wall_seconds:.1f} s, the same bytes: {same_killed}")
            equal = equal and same_killed
    print(f"two_over_one: goal {GOAL_TWO_OVER_ONE} on four idle cores; this machine has {os.cpu_count()}")
    print(
        f"RESULT equal={int(equal)} spark_cpu_over_local={cost_ratio:.2f} two_over_one={speed:.2f} "
        f"executor_mib={max(memory):.0f} cpu_ms_per_container={cpu_ms:.2f}"
    )
    return int(not equal or cost_ratio > MAX_CPU_OVER_LOCAL or max(memory) > MAX_EXECUTOR_MIB)


def _command(usage: Path, out: Path, *more: str) -> list[str]:
    out.mkdir(parents=True)
    return [sys.executable, "-m", "trimtab", "fleet", "recommend", "--usage", str(usage), "--write",
            str(out / "decisions"), "-o", "json", "--output-file", str(out / "report.json"), *more]  # fmt: skip


def _run_local(usage: Path, out: Path) -> Taken:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    subprocess.run(_command(usage, out), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.monotonic() - started, cpu, after.ru_maxrss / 1024)


def _run_spark(cluster: SparkCluster, usage: Path, out: Path, *, kill: bool = False) -> Taken:
    with (cluster.folder / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            _command(usage, out, "--engine", cluster.url, *DRIVER_OPTIONS), env=environment(), stderr=log, stdout=log
        )
        sampler = Sampler(cluster, driver.pid)
        while driver.poll() is None:
            if kill and (out / "decisions").exists():
                # The first bucket is decided: all blocks are shuffled, most of them not fetched yet.
                cluster.kill_worker(0)
                kill = False
            time.sleep(0.05)
    taken = sampler.finish()
    if driver.returncode or kill:
        sys.exit(f"Spark failed, or no worker was killed:\n{(cluster.folder / 'driver.log').read_text()[-3000:]}")
    return taken


def _digest(out: Path) -> str:
    found = hashlib.sha256()
    for path in (out / "report.json", *sorted((out / "decisions").iterdir())):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _check_subset(usage: Path, days: int, out: Path) -> bool:
    """Whether one process that reads one cluster row by row, without engine, blocks or buckets, decides the same."""
    from pyarrow import parquet

    store = DailyStore(str(usage))
    rows: dict[object, list[DailyRow]] = {}
    for one in store.list_days():
        if one.cluster == SUBSET_CLUSTER:
            for row in store.read_rows(one):
                rows.setdefault(row.container, []).append(row)
    now = (FIRST_DAY + days) * DAY
    settings = DecisionSettings(
        location="", bucket_count=1, days=14, now=now, sizing=SizingSettings(), rows=0
    )  # fmt: skip
    expected = {}
    for of_container in rows.values():
        container = of_container[0].container
        decision = decide_container(SUBSET_CLUSTER, container, merge_rows(of_container, 14), None, settings)
        expected[container.workload] = (decision.cpu_proposed, decision.memory_proposed, decision.confidence)
    table = parquet.read_table(out / "decisions", filters=[("cluster", "=", SUBSET_CLUSTER)])
    columns = (table.column(name).to_pylist() for name in ("workload", "cpu_proposed", "memory_proposed", "confidence"))
    found = {name: tuple(values) for name, *values in zip(*columns, strict=True)}
    print(f"  {len(expected)} containers in one process, decided one by one: the same: {found == expected}")
    return bool(found == expected)


def _many(asked: Asked) -> Answer:
    """A Prometheus with a thousand containers."""
    path, query, _ = asked
    if path.endswith("/labels"):
        return 200, labels("namespace", "pod", "container")
    if path.endswith("/label/namespace/values"):
        return 200, labels("shop")
    if path.endswith("/label/pod/values"):
        return 200, labels(*(f"w{number:04}-7d4b9c6f5d-x2x4k" for number in range(INGESTED)))
    if path.endswith("/query"):
        return 200, vector()
    if "kube_pod_container" in query["query"]:
        return 200, matrix()
    value = 0.25 if "cpu" in query["query"] else 3e8
    times = range(int(query["start"]), int(query["end"]) + 1, int(query["step"]))
    pods = query["query"].partition('pod=~"')[2].partition('"')[0].split("|")
    return 200, matrix(*(
        ({"namespace": "shop", "pod": pod, "container": "app"},
         [(float(at), value * (1 + (at // 300 * 7919 + place) % 50 / 100)) for at in times])
        for place, pod in enumerate(pods)
    ))  # fmt: skip


def _measure_ingest() -> None:
    """One day of a thousand containers from samples. The server's own CPU is in the same process and is measured by
    thread."""
    with serving(_many) as server:
        read = Prometheus(HttpApi(server.url, {}, None, None, None), QueryPlan(max_concurrent_queries=1))
        before = time.thread_time()
        found = DayReader(read).read_day(FIRST_DAY)
        cpu = time.thread_time() - before
    print(f"ingest: {INGESTED} containers x 1 day from samples: {1000 * cpu / INGESTED:.2f} ms of CPU for each "
          f"container and day, {len(found.rows)} rows")  # fmt: skip


if __name__ == "__main__":
    main()
