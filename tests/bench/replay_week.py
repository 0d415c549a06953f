"""A recorded week of a large cluster, and what `trimtab replay` of it costs."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.autoscaling.replay.simulated_captures import record_alone
from tests.bench.results import ROOT
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cli.replay.recorded_world import read_recording
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

FOLDER = ROOT / "build" / "bench-replay"
EVERY_SECONDS = 300
BEGIN_SECONDS = 1800
CORES = 2450.0
"""About how many cores the pods request at noon: with it, the cluster has 300 nodes."""
SCAN_SECONDS = 60
"""Between two scans of the autoscaler while it is recorded; captures come every five minutes."""
VARIANTS = 5
"""How many variants `trimtab replay` has by default where no pool is configured."""


@dataclass(frozen=True, slots=True)
class WeekCost:
    """What one replay of the week costs."""

    days: float
    nodes: float
    """The average number of nodes that were recorded."""
    pod_states: int
    read_cpu_seconds: float
    """For reading the captures alone."""
    wall_seconds: float
    cpu_seconds: float
    """Of all processes together."""
    mebibytes: float
    """The largest memory of one of the processes."""

    @property
    def day_ratio(self) -> float:
        """A day of one variant over a day of reading, in time of the cpu."""
        return (self.cpu_seconds - self.read_cpu_seconds) / VARIANTS / self.read_cpu_seconds


def record_week(hours: float) -> Path:
    """Returns the folder with captures of a churn of so many hours, one every five minutes. It is written if it is not
    there yet."""
    path = FOLDER / f"week-{hours:g}-hours"
    if path.is_dir():
        return path
    unfinished = path.with_name(f"{path.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    folder = SeriesFolder(unfinished, EVERY_SECONDS)
    churn = draw_churn(ChurnOptions(hours=hours, cores=CORES, wave_hours=24.0, seed=3), generate_shapes())
    for at, content in record_alone(churn, BEGIN_SECONDS, EVERY_SECONDS, SCAN_SECONDS):
        folder.append_round(at, content)
    return unfinished.rename(path)


def measure_week(path: Path) -> WeekCost:
    """Returns what `trimtab replay` of these captures costs, with all its variants."""
    begun = time.process_time()
    recorded = read_recording(find_series_files([str(path)]), PriceFile({}, {}))
    read_seconds = time.process_time() - begun
    lives = [life for stretch in recorded.world.stretches for life in stretch.nodes]
    node_seconds = sum((recorded.end if life.end is None else life.end) - life.begin for life in lives)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    line = [sys.executable, "-m", "trimtab", "replay", "--captures", str(path), "-o", "json"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    wall_seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return WeekCost(
        days=recorded.seconds / 86_400,
        nodes=node_seconds / recorded.seconds,
        pod_states=recorded.pod_states,
        read_cpu_seconds=read_seconds,
        wall_seconds=wall_seconds,
        cpu_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        mebibytes=after.ru_maxrss / 1024,
    )
