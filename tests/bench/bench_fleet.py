"""What deciding the requests of a fleet costs, on Spark beside one process, and whether both give the same bytes.

    make bench-fleet
    make bench-fleet FLEET_FOLDER=measured
    make bench-fleet FLEET_FOLDER=measured FLEET_STEPS=100000x14/one,100000x14/two

Histories are daily histograms in Parquet. The cost of Spark is the CPU of the driver, the master, the workers, the
executors and their Python processes together. `FLEET_SIZES` are containers x days: the first two show whether memory
is flat, and the second is that of the cost; by default 10000x14,100000x14,1000000x2. `executor_mib` is the largest
memory of an executor in any run of any size; pages that its processes share count once.

`FLEET_FOLDER` keeps the histories and what each step gave. A step that is in the folder is not run again, so a bench
that was interrupted continues. `FLEET_STEPS` runs the named steps only, again if they are in the folder; the line
RESULT is printed as soon as no step is missing. Use another folder after a change of the code that is measured.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.bench.results import choose_size, read_knob, report_result
from tests.fleet.generated import write_generated
from tests.fleet.histories import FIRST_DAY
from tests.fleet.spark_cluster import DRIVER_OPTIONS, Sampler, Taken, environment, missing_part, proportional_mib
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

SIZES = read_knob("FLEET_SIZES", choose_size("10000x14,100000x14,1000000x2", "2000x3"))
CLUSTERS = int(read_knob("FLEET_CLUSTERS", "50"))
FOLDER, STEPS = read_knob("FLEET_FOLDER", ""), read_knob("FLEET_STEPS", "")
MAX_CPU_OVER_LOCAL, MAX_EXECUTOR_MIB, GOAL_TWO_OVER_ONE = 1.5, 1024, 1.6
INGESTED = 1000
SUBSET_CLUSTER = "c003"
LOCAL, TWO, ONE, KILLED, SUBSET, INGEST = "local", "two", "one", "killed", "subset", "ingest"
NAMES = {
    LOCAL: "one process",
    TWO: "Spark with two workers",
    ONE: "Spark with one worker",
    KILLED: "Spark with two workers, one killed in mid-shuffle",
}


class StepOutcome(msgspec.Struct, frozen=True):
    """What a step gave, as the folder keeps it."""

    finished_at: str
    taken: Taken = msgspec.field(default_factory=Taken)
    digest: str = ""
    """Of all bytes that a run wrote."""
    is_equal: bool = True
    """Whether a check passed."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class FleetSize:
    """A fleet of so many containers, and where its steps keep what they give."""

    containers: int
    days: int
    folder: Path
    is_cost: bool
    """Whether the cost is measured with this size."""

    @property
    def name(self) -> str:
        return f"{self.containers}x{self.days}"

    @property
    def runs(self) -> tuple[str, ...]:
        return (LOCAL, TWO, ONE, KILLED) if self.is_cost else (LOCAL, TWO)

    @property
    def steps(self) -> tuple[str, ...]:
        return (*self.runs, SUBSET) if self.is_cost else self.runs

    def list_bytes(self) -> int:
        return sum(one.size for one in DailyStore(str(self.write_history())).list_days())

    def write_history(self) -> Path:
        """The folder of the history, which is generated once."""
        history = self.folder / "history"
        if not history.exists():
            unfinished = self.folder / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            write_generated(unfinished, self.containers, self.days, min(CLUSTERS, self.containers // 100))
            unfinished.rename(history)
        return history


def main() -> None:
    if missing := missing_part():
        sys.exit(f"bench-fleet: {missing}")
    with nullcontext(FOLDER) if FOLDER else tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder:
        _measure(Path(folder).resolve(), _list_sizes(Path(folder).resolve()))


def _list_sizes(folder: Path) -> list[FleetSize]:
    numbers = [(int(one.partition("x")[0]), int(one.partition("x")[2])) for one in SIZES.split(",")]
    return [
        FleetSize(containers, days, folder / f"{containers}x{days}-in-{CLUSTERS}", place == min(1, len(numbers) - 1))
        for place, (containers, days) in enumerate(numbers)
    ]


def _measure(folder: Path, sizes: Sequence[FleetSize]) -> None:
    """Run the steps that are wanted, and print what all steps gave."""
    steps: dict[str, tuple[Path, Callable[[Path], StepOutcome]]] = {INGEST: (folder / INGEST, _measure_ingest)}
    for size in sizes:
        for step in size.steps:
            steps[f"{size.name}/{step}"] = (size.folder / step, _step_function(size, step))
    expected_texts = [one.strip() for one in STEPS.split(",") if one.strip()]
    if unknown := [one for one in expected_texts if one not in steps]:
        sys.exit(f"bench-fleet: FLEET_STEPS has {', '.join(unknown)}; the steps are {', '.join(steps)}")
    for name in expected_texts or [name for name, (place, _) in steps.items() if not _outcome_file(place).exists()]:
        place, run = steps[name]
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        outcome = run(place)
        _outcome_file(place).write_bytes(msgspec.json.encode(outcome))
        print(f"{name}: {outcome.text or _describe(outcome.taken)}", flush=True)
    if absent := [name for name, (place, _) in steps.items() if not _outcome_file(place).exists()]:
        print(f"No RESULT yet; these steps are missing: {', '.join(absent)}")
        return
    print(f"\n{INGEST}: {_read_outcome(folder / INGEST).text}")
    _print_result(sizes)


def _step_function(size: FleetSize, step: str) -> Callable[[Path], StepOutcome]:
    if step == SUBSET:
        return lambda _: _check_subset(size)
    if step == LOCAL:
        return lambda place: _run_local(size.write_history(), place)
    return lambda place: _run_spark(size.write_history(), place, 1 if step == ONE else 2, kill=step == KILLED)


def _outcome_file(place: Path) -> Path:
    return place / "outcome.json"


def _read_outcome(place: Path) -> StepOutcome:
    return msgspec.json.decode(_outcome_file(place).read_bytes(), type=StepOutcome)


def _describe(records: Taken) -> str:
    return f"{records.wall_seconds:.1f} s, {records.cpu_seconds:.1f} s of CPU, {records.executor_mib:.0f} MiB at most"


def _print_result(sizes: Sequence[FleetSize]) -> None:
    """Print what all steps gave, and RESULT."""
    memory: list[float] = []
    is_equal, cost_ratio, speed, cpu_ms = True, 0.0, 0.0, 0.0
    for size in sizes:
        print(f"{size.containers} containers x {size.days} days: {size.list_bytes() / 1e6:.0f} MB in files")
        outcomes = {step: _read_outcome(size.folder / step) for step in size.steps}
        local, two = outcomes[LOCAL], outcomes[TWO]
        for step in size.runs:
            outcome = outcomes[step]
            same = "" if step == LOCAL else f", the same bytes: {outcome.digest == local.digest}"
            print(f"  {NAMES[step]}: {_describe(outcome.taken)}{same} ({outcome.finished_at})")
            is_equal = is_equal and outcome.digest == local.digest
        memory.append(max(outcomes[step].taken.executor_mib for step in size.runs if step != LOCAL))
        if size.is_cost:
            print(f"  {outcomes[SUBSET].text} ({outcomes[SUBSET].finished_at})")
            is_equal = is_equal and outcomes[SUBSET].is_equal
            cost_ratio = two.taken.cpu_seconds / local.taken.cpu_seconds
            cpu_ms = 1000 * two.taken.cpu_seconds / size.containers
            speed = outcomes[ONE].taken.wall_seconds / two.taken.wall_seconds
    by_size = ", ".join(f"{size.name} {mib:.0f} MiB" for size, mib in zip(sizes, memory, strict=True))
    print(f"the largest executor of each size: {by_size}")
    print(f"two_over_one: goal {GOAL_TWO_OVER_ONE} on four idle cores; this machine has {os.cpu_count()}")
    report_result(
        "fleet",
        f"equal={int(is_equal)} spark_cpu_over_local={cost_ratio:.2f} two_over_one={speed:.2f} "
        f"executor_mib={max(memory):.0f} cpu_ms_per_container={cpu_ms:.2f}",
        broken={
            "equal": not is_equal,
            "spark_cpu_over_local": cost_ratio > MAX_CPU_OVER_LOCAL,
            "executor_mib": max(memory) > MAX_EXECUTOR_MIB,
        },
    )


def _command(usage: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "trimtab",
        "fleet",
        "recommend",
        "--usage",
        str(usage),
        "--write",
        str(out / "decisions"),
        "-o",
        "json",
        "--output-file",
        str(out / "report.json"),
        *more,
    ]


def _run_local(usage: Path, out: Path) -> StepOutcome:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started, mib = time.monotonic(), 0.0
    process = subprocess.Popen(_command(usage, out))
    while process.poll() is None:
        mib = max(mib, proportional_mib(process.pid))
        time.sleep(0.1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(f"one process failed with {process.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return StepOutcome(_now(), Taken(time.monotonic() - started, cpu, mib), _digest(out))


def _run_spark(usage: Path, out: Path, workers: int, *, kill: bool) -> StepOutcome:
    with start_cluster(out / "cluster", workers) as cluster:
        log_file = cluster.folder / "driver.log"
        with log_file.open("ab") as log:
            driver = subprocess.Popen(
                _command(usage, out, "--engine", cluster.url, *DRIVER_OPTIONS),
                env=environment(),
                stderr=log,
                stdout=log,
            )
            sampler = Sampler(cluster, driver.pid)
            while driver.poll() is None:
                if kill and (out / "decisions").exists():
                    # The first bucket is decided: all blocks are shuffled, most of them not fetched yet.
                    cluster.kill_worker(0)
                    kill = False
                time.sleep(0.05)
        end = sampler.finish()
    if driver.returncode or kill:
        sys.exit(f"Spark failed, or no worker was killed:\n{log_file.read_text()[-3000:]}")
    return StepOutcome(_now(), end, _digest(out))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _digest(out: Path) -> str:
    digest = hashlib.sha256()
    for path in (out / "report.json", *sorted((out / "decisions").iterdir())):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _check_subset(size: FleetSize) -> StepOutcome:
    """Whether one process that reads one cluster row by row, without engine, blocks or buckets, decides the same."""
    from pyarrow import parquet

    store = DailyStore(str(size.write_history()))
    rows: dict[object, list[DailyRow]] = {}
    for one in store.list_days():
        if one.cluster == SUBSET_CLUSTER:
            for row in store.read_rows(one):
                rows.setdefault(row.container, []).append(row)
    now = (FIRST_DAY + size.days) * DAY
    settings = DecisionSettings(location="", bucket_count=1, days=14, now=now, sizing=SizingSettings(), rows=0)
    expected = {}
    for of_container in rows.values():
        container = of_container[0].container
        decision = decide_container(SUBSET_CLUSTER, container, merge_rows(of_container, 14), None, settings)
        expected[container.workload] = (decision.cpu_proposed, decision.memory_proposed, decision.confidence)
    table = parquet.read_table(size.folder / LOCAL / "decisions", filters=[("cluster", "=", SUBSET_CLUSTER)])
    columns = (table.column(name).to_pylist() for name in ("workload", "cpu_proposed", "memory_proposed", "confidence"))
    results = {name: tuple(values) for name, *values in zip(*columns, strict=True)}
    is_equal = bool(results == expected)
    text = f"{len(expected)} containers in one process, decided one by one: the same: {is_equal}"
    return StepOutcome(_now(), is_equal=is_equal, text=text)


def _many(request: Asked) -> Answer:
    """A Prometheus with a thousand containers."""
    path, query, _ = request
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
    return 200, matrix(
        *(
            (
                {"namespace": "shop", "pod": pod, "container": "app"},
                [(float(at), value * (1 + (at // 300 * 7919 + place) % 50 / 100)) for at in times],
            )
            for place, pod in enumerate(pods)
        )
    )


def _measure_ingest(_: Path) -> StepOutcome:
    """One day of a thousand containers from samples. The server's own CPU is in the same process and is measured by
    thread."""
    with serving(_many) as server:
        read = Prometheus(HttpApi(server.url, {}, None, None, None), QueryPlan(max_concurrent_queries=1))
        before = time.thread_time()
        read_day = DayReader(read).read_day(FIRST_DAY)
        cpu = time.thread_time() - before
    text = (
        f"{INGESTED} containers x 1 day from samples: {1000 * cpu / INGESTED:.2f} ms of CPU for each container and "
        f"day, {len(read_day.rows)} rows"
    )
    return StepOutcome(_now(), text=text)


if __name__ == "__main__":
    main()
