"""How far is a replay from a run, and what does it cost to read a week? `make bench-replay`, under an hour.

The same churn is simulated without and with Trimtab. A replay from captures of the run without, one each minute,
predicts what the run with Trimtab saves and evicts. A run is chaotic: which of two equal nodes a pod gets decides, an
hour later, which machine is bought. So both runs and the replay are repeated with other names of nodes, by which ties
fall, and their averages are compared. From how far the repeats are from each other follows the standard error of the
comparison (`noise`), and the bench fails if that is too large for its bounds.

In a cluster of thirty nodes luck moves a tenth to a third of what is saved, in one of 170 nodes some per cent. The
bounds are for the large one; of the small one, what luck does to a single run and to a single replay is measured: a
user sees one of each. Then half a million states of pods are read in a process of their own, whose largest memory is
measured.

The part `live`, which `BENCH_REPLAY_PARTS=live` measures, does the same on a real control plane, on a clock that is ten
times as fast: six hours of the large cluster for each seed, once without Trimtab and once with it. Beside the first, a
Prometheus scrapes kube-state-metrics, and what it has is replayed as well. There is a run for each core at once, for
forty minutes. A run is kept in build/bench-replay, and not repeated if it is there already.

Last, a week of 300 nodes is recorded, with a capture every five minutes, and `trimtab replay` runs with all its
variants: how long that takes, and the time of the cpu of all its processes. Because this depends on the machine, a day
of one variant is also divided by what reading a day takes (`week_day_ratio`).

It ends with `RESULT saved_error=… saved_noise=… eviction_error=… eviction_noise=… single_saved_error=…
single_eviction_error=… run_spread=… pod_states=… read_s=… read_mib=… week_s=… week_cpu_s=… week_day_ratio=… week_mib=…`
and more of the week, or with `live_saved_error=… live_eviction_error=…`, those of rarer captures and those of
Prometheus, where errors and spread are the largest of all seeds. The `single` errors are by how much the saving and the
evictions of one replay of the small cluster differ from those of the runs on average, and `run_spread` by how much
those of one run do: `trimtab replay` quotes them, and the errors of the large cluster.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from tests.autoscaling.replay.simulated_captures import CLUSTER_UID, encode_capture_file, namespace_object
from tests.bench.replay_error import ReplayError, replay_run
from tests.bench.replay_week import measure_week, record_week
from tests.bench.results import choose_parts, choose_size, read_knob, report_result
from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cli.replay.recorded_world import read_recording
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

HOURS, EVERY_SECONDS = choose_size(10.0, 2.0), 60
"""How long the churn is, and the time between two captures."""
LARGE_CORES, SMALL_CORES = choose_size((1300.0, 220.0), (60.0, 60.0))
"""About how many cores the pods request: the churn of `make bench-churn` is that of the small cluster."""
SEEDS = tuple(map(int, read_knob("BENCH_REPLAY_SEEDS", choose_size("1,2,3", "1")).split(",")))
REPEATS = int(read_knob("BENCH_REPLAY_REPEATS", choose_size("8", "2")))
LIVE_REPEATS = 4
LIVE_HOURS = float(read_knob("BENCH_REPLAY_LIVE_HOURS", "6"))
ROUNDS, PODS, NODES = choose_size((100, 5000, 300), (10, 5000, 300))
"""Captures, pods in each of them, nodes: each pod is another one in each capture."""
PARTS = choose_parts("BENCH_REPLAY_PARTS", "error,read,week")
WEEK_HOURS = choose_size(168.5, 6.5)
MAX_SAVED_ERROR, MAX_SCRAPED_ERROR, MAX_EVICTION_ERROR, MAX_READ_MIB = 0.10, 0.20, 0.20, 1024
"""kube-state-metrics does not show which pods a budget selects, so more is allowed to what is read from it."""
MAX_NOISE = 0.5
"""The largest standard error of an error, as a share of its bound: with a larger one, luck decides."""


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        _read_folder(sys.argv[2])
        return
    figures: list[str] = []
    broken: dict[str, object] = {}
    if "error" in PARTS:
        _add_errors(figures, broken)
    if "live" in PARTS:
        _add_live(figures, broken)
    if "read" in PARTS:
        _add_reading(figures, broken)
    if "week" in PARTS:
        _add_week(figures, broken)
    report_result("replay", " ".join(figures), broken=broken)


def _add_errors(figures: list[str], broken: dict[str, object]) -> None:
    errors = [_measure_seed(seed, LARGE_CORES) for seed in SEEDS]
    small = [_measure_seed(seed, SMALL_CORES) for seed in SEEDS]
    saved_noise, eviction_noise = max(one.saved_noise for one in errors), max(one.eviction_noise for one in errors)
    noise = max(saved_noise / MAX_SAVED_ERROR, eviction_noise / MAX_EVICTION_ERROR)
    saved, evictions = _find_largest(errors)
    figures.append(
        f"saved_error={saved:.3f} saved_noise={saved_noise:.3f} "
        f"eviction_error={evictions:.3f} eviction_noise={eviction_noise:.3f} "
        f"single_saved_error={max(one.single_saved_error for one in small):.3f} "
        f"single_eviction_error={max(one.single_eviction_error for one in small):.3f} "
        f"run_spread={max(one.run_spread for one in small):.3f}"
    )
    broken |= _find_broken("", errors, MAX_SAVED_ERROR, is_whole=HOURS >= 10)
    broken[f"noise <= {MAX_NOISE}"] = noise > MAX_NOISE and HOURS >= 10


def _add_live(figures: list[str], broken: dict[str, object]) -> None:
    # Imported here: it needs the binaries of a control plane.
    from tests.bench.replay_live import measure_live_errors, read_captures, read_scrapes, run_all

    options = [
        ChurnOptions(seed=seed, hours=LIVE_HOURS, cores=LARGE_CORES, rest_seconds=0, warm_up_seconds=0)
        for seed in SEEDS
    ]
    churns = [draw_churn(one, generate_shapes()) for one in options]
    run_all(churns, EVERY_SECONDS)
    sources = {
        "live_": ("a capture every minute", read_captures, MAX_SAVED_ERROR),
        "live_rare_": ("a capture every five minutes", partial(read_captures, each=5), MAX_SAVED_ERROR),
        "live_scraped_": ("a Prometheus", read_scrapes, MAX_SCRAPED_ERROR),
    }
    for name, (words, read, max_saved) in sources.items():
        errors = measure_live_errors(churns, EVERY_SECONDS, LIVE_REPEATS, read)
        for seed, one in zip(SEEDS, errors, strict=True):
            _print_error(f"seed {seed}, live, {words}", one)
        saved, evictions = _find_largest(errors)
        figures.append(f"{name}saved_error={saved:.3f} {name}eviction_error={evictions:.3f}")
        broken |= _find_broken(name, errors, max_saved, is_whole=LIVE_HOURS >= 6)


def _find_largest(errors: Sequence[ReplayError]) -> tuple[float, float]:
    """Returns the largest errors of all seeds: of the core hours saved, and of the evictions."""
    return max(abs(one.saved_error) for one in errors), max(abs(one.eviction_error) for one in errors)


def _find_broken(name: str, errors: Sequence[ReplayError], max_saved: float, *, is_whole: bool) -> dict[str, object]:
    """Returns each bound, and whether a whole run does not keep it."""
    saved, evictions = _find_largest(errors)
    return {
        f"{name}saved_error <= {max_saved}": saved > max_saved and is_whole,
        f"{name}eviction_error <= {MAX_EVICTION_ERROR}": evictions > MAX_EVICTION_ERROR and is_whole,
    }


def _add_reading(figures: list[str], broken: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _write_pods(Path(folder))
        line = [sys.executable, "-m", "tests.bench.bench_replay", "read", folder]
        cost = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    figures.append(f"pod_states={cost['states']} read_s={cost['seconds']:.0f} read_mib={cost['mib']:.0f}")
    broken[f"read_mib <= {MAX_READ_MIB}"] = cost["mib"] > MAX_READ_MIB


def _add_week(figures: list[str], broken: dict[str, object]) -> None:
    cost = measure_week(record_week(WEEK_HOURS))
    figures.append(
        f"week_days={cost.days:.1f} week_nodes={cost.nodes:.0f} week_pod_states={cost.pod_states} "
        f"week_s={cost.wall_seconds:.0f} week_cpu_s={cost.cpu_seconds:.0f} week_read_cpu_s={cost.read_cpu_seconds:.1f} "
        f"week_day_ratio={cost.day_ratio:.1f} week_mib={cost.mebibytes:.0f}"
    )
    broken[f"week_mib <= {MAX_READ_MIB}"] = cost.mebibytes > MAX_READ_MIB


def _measure_seed(seed: int, cores: float) -> ReplayError:
    one = _repeat_runs(draw_churn(ChurnOptions(seed=seed, hours=HOURS, cores=cores), generate_shapes()))
    _print_error(f"seed {seed}, {cores:g} cores", one)
    return one


def _print_error(title: str, one: ReplayError) -> None:
    print(
        f"{title}: {one.saved:.1f} of {one.core_hours:.0f} core hours saved, "
        f"{one.predicted:.1f} predicted ({one.saved_error:+.1%} ± {one.saved_noise:.1%}); "
        f"{one.evictions:.0f} evictions, {one.predicted_evictions:.0f} predicted "
        f"({one.eviction_error:+.1%} ± {one.eviction_noise:.1%}); the replay "
        f"without Trimtab is {one.model_error:+.2%} from the run; single runs save up to {one.run_spread:.1%} more or "
        f"less than their average, single replays up to {one.single_saved_error:.1%}",
        flush=True,
    )


def _repeat_runs(churn: Churn) -> ReplayError:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pairs = pool.map(partial(replay_run, churn, EVERY_SECONDS), range(1, REPEATS + 1))
        return ReplayError(tuple(pairs))


def _write_pods(path: Path) -> None:
    """Writes captures in which each pod is another one each time."""
    folder, begin = SeriesFolder(path, 300), 1_772_409_600
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n{n}", "uid": f"n{n}"}, "status": {"allocatable": amounts, **ready}}
        for n in range(NODES)
    ]
    for number in range(ROUNDS):
        pods = [_make_pod(number, index) for index in range(PODS)]
        content = encode_capture_file([namespace_object("kube-system", CLUSTER_UID), *nodes, *pods])
        folder.append_round(begin + 300 * number, content)


def _make_pod(number: int, index: int) -> dict[str, object]:
    name, owner = f"web-{number}-{index}", f"web-{index % 500}"
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    resources = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}
    container = {"name": "app", "image": "registry.example.com/web:1", "resources": resources}
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": f"8f14e45f-{number:04d}-{index:06d}",
            "labels": {"app": owner, "pod-template-hash": "6d4b75cb6d"},
            "ownerReferences": [reference],
        },
        "spec": {"nodeName": f"n{index % NODES}", "containers": [container]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _read_folder(folder: str) -> None:
    begin = time.monotonic()
    recorded = read_recording(find_series_files([folder]), PriceFile({}, {}))
    cost = {
        "states": recorded.pod_states,
        "seconds": time.monotonic() - begin,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(msgspec.json.encode(cost).decode())


if __name__ == "__main__":
    main()
