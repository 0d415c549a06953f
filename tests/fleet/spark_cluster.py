"""A standalone Spark cluster on loopback: a master and workers as plain processes, and what they take.

Every worker has one executor with one core, as a small node would.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

EXECUTOR_MEMORY = "480m"
_TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.25


def missing_part() -> str:
    """What is missing for Spark on this machine; empty if nothing is."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pandas") is None:
        return "pyspark is not installed: make e2e-fleet"
    if shutil.which("java") is None:
        return "there is no Java runtime: make e2e-fleet"
    return ""


def spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def environment() -> dict[str, str]:
    """For the driver and the cluster: loopback only."""
    return {**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": "2.13"}


DRIVER_OPTIONS = (
    "--spark-conf",
    f"spark.executor.memory={EXECUTOR_MEMORY}",
    "--spark-conf",
    "spark.executor.cores=1",
    "--spark-conf",
    "spark.driver.host=127.0.0.1",
    "--spark-conf",
    "spark.driver.bindAddress=127.0.0.1",
    "--spark-conf",
    "spark.driver.memory=512m",
    "--spark-conf",
    "spark.executor.extraJavaOptions=-XX:+UseSerialGC",
    # A lost executor of this size is found out about in seconds.
    "--spark-conf",
    "spark.network.timeout=60s",
    "--spark-conf",
    "spark.executor.heartbeatInterval=5s",
)


@dataclass(slots=True)
class SparkCluster:
    """The processes."""

    folder: Path
    url: str
    master: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> int:
        """Start a worker; `wait_for_worker` waits until the master knows it."""
        number = len(self.workers)
        self.workers.append(
            _java(
                self.folder,
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                "127.0.0.1",
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(self.folder / f"work-{number}"),
                self.url,
            )
        )
        return number

    def wait_for_worker(self, number: int) -> None:
        _wait_for(self.folder / f"worker-{number}.log", "Successfully registered with master")

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors at once, as a machine dies."""
        for pid in descendants(self.workers[number].pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def executor_mib(self) -> float:
        """The largest memory of an executor now, its Python processes included; pages that several share count once."""
        return max((_executor_mib(worker.pid) for worker in self.workers), default=0.0)

    def cpu_pids(self) -> list[int]:
        return [pid for one in (self.master, *self.workers) for pid in descendants(one.pid)]

    def stop(self) -> None:
        for one in (*self.workers, self.master):
            for pid in reversed(descendants(one.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            one.wait()


@contextlib.contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster for the time of a test."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as actual_socket:
        actual_socket.bind(("127.0.0.1", 0))
        port = actual_socket.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    master = _java(
        folder,
        "master",
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        "0",
    )
    cluster = SparkCluster(folder, url, master)
    try:
        _wait_for(folder / "master.log", "Starting Spark master")
        for number in [cluster.start_worker() for _ in range(workers)]:
            cluster.wait_for_worker(number)
        yield cluster
    finally:
        cluster.stop()


_JAVA_OPTIONS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dspark.master.rest.enabled=false")


def _java(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    java = shutil.which("java")
    assert java is not None
    command = [java, *_JAVA_OPTIONS, "-cp", f"{spark_home()}/jars/*", *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment(), cwd=folder)


def _wait_for(path: Path, words: str, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and words in path.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{path.name}: {path.read_text(errors='replace')[-2000:]}")


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


def descendants(pid: int) -> list[int]:
    """A process and all that it started, parents first."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.name))
    results, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        results.append(one)
        waiting += children.get(one, [])
    return results


def cpu_seconds(pid: int) -> float:
    """Of one process alone; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _executor_mib(worker: int) -> float:
    return sum(proportional_mib(pid) for pid in descendants(worker) if pid != worker)


def proportional_mib(pid: int) -> float:
    """The memory of one process, of shared pages its share; 0 if it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


@dataclass(slots=True)
class Taken:
    """What a run took."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    executor_mib: float = 0.0


class Sampler:
    """Samples what a driver and a cluster take while they run; of a process that ends, the last sample counts."""

    def __init__(self, cluster: SparkCluster, driver: int) -> None:
        self._cluster, self._driver = cluster, driver
        self._before = {pid: cpu_seconds(pid) for pid in cluster.cpu_pids()}
        self._seen: dict[int, float] = {}
        self._executor_mib, self._started, self._done = 0.0, time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        for pid in {*self._cluster.cpu_pids(), *descendants(self._driver)}:
            self._seen[pid] = max(cpu_seconds(pid), self._seen.get(pid, 0.0))
        self._executor_mib = max(self._executor_mib, self._cluster.executor_mib())

    def finish(self) -> Taken:
        """What was taken since the start; to be called when the driver has ended."""
        wall = time.monotonic() - self._started
        self._done.set()
        self._thread.join()
        cpu = sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._seen.items())
        return Taken(wall, cpu, self._executor_mib)
