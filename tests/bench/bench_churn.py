"""What does a cluster that never rests cost, with Trimtab and without? `make bench-churn`.

A churn of ten hours on a real control plane, on a clock that is ten times as fast: one hour for each run. The same
seeds for each variant: the stand-in for the cluster autoscaler alone with its threshold at 0.5 and at 0.7, and with
Trimtab in addition, which follows or leads. All three seeds take twelve hours, so each run is kept in
build/bench-churn, and is not repeated if it is there already: `BENCH_CHURN_SEEDS=2 BENCH_CHURN_VARIANTS=alone` measures
one run. `BRIEF=1` measures two variants of one seed for less than four minutes each, eight minutes in all; a node that
was emptied in the last of them may still be there at the end.

Every figure is made by the same function from what watches showed, in a live run and in a simulation.

It ends with `RESULT core_hours_over_autoscaler=… core_hours_over_autoscaler_07=… evictions_per_core_hour=…
bought_without=… bought_over_without=… returned_within_hour=… pending_over_without=… wait_p99_over_s=… twice_share=…
broken=0 cordons_left=0 simulated_over_live=…`, where Trimtab follows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.bench.bench_data import locate
from tests.bench.bench_live import cpu
from tests.bench.churn_live import LiveChurn, LiveMachines, LiveStandIn, scale_flags
from tests.bench.churn_watch import ChurnWatch
from tests.bench.results import ROOT, choose_size, is_brief, read_knob, report_result
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.compactors import Compactor
from trimtab.autoscaling.churn.churn_cluster import ClusterTimes
from trimtab.autoscaling.churn.churn_history import ChurnRecord
from trimtab.autoscaling.churn.churn_objects import NAMESPACE
from trimtab.autoscaling.churn.churn_outcome import ChurnOutcome, judge_history
from trimtab.autoscaling.churn.churn_script import HOUR, Churn, ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape, generate_shapes, read_trace
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cli.simulate.churn_run import ALONE, ALONE_07, FOLLOW, LEAD, POOL, ChurnVariant, run_variant
from trimtab.cluster.pool import Pool

TRACE = "openb_pod_list_cpu250.csv"
SPEED = float(read_knob("BENCH_CHURN_SPEED", "10"))
HOURS = float(read_knob("BENCH_CHURN_HOURS", choose_size("10", "0.4")))
SEEDS = tuple(map(int, read_knob("BENCH_CHURN_SEEDS", choose_size("1,2,3", "1")).split(",")))
VARIANTS: Mapping[str, ChurnVariant] = {"alone": ALONE, "alone-07": ALONE_07, "follow": FOLLOW, "lead": LEAD}
NAMES = read_knob("BENCH_CHURN_VARIANTS", choose_size("alone,alone-07,follow,lead", "alone,follow")).split(",")
FOLDER = ROOT / "build" / ("bench-churn-brief" if is_brief() else "bench-churn")
LEASE_SECONDS = 30
"""The duration of the compactor's lease, on the clock of the wall."""
MAX_OVER_AUTOSCALER, MAX_OF_ONE_SEED = 0.90, 0.92
MAX_BOUGHT_OVER, MAX_TWICE, MAX_WAIT_OVER = 1.05, 0.02, 20
UNSCALED = (
    "the scheduler's and the controllers' own delays, a scan of the stand-in and a tick of the compactor (a second at "
    "least), and the hour of `evictionsPerHour`"
)


def main() -> None:
    options = ChurnOptions(
        hours=HOURS,
        warm_up_seconds=choose_size(1800, 300),
        rest_seconds=choose_size(1800, 600),
    )
    churns = {seed: draw_churn(replace(options, seed=seed), shapes()) for seed in SEEDS}
    print(f"clock {SPEED:g} times as fast; not scaled: {UNSCALED}", flush=True)
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for seed, churn in churns.items():
        for name in NAMES:
            path = FOLDER / f"seed-{seed}-{name}-{HOURS:g}h-x{SPEED:g}.json"
            if not path.exists():
                FOLDER.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(measure_live(churn, VARIANTS[name]), indent=1))
            found[seed, name] = json.loads(path.read_text())
            _print_run(seed, name, found[seed, name])
    if {"alone", "follow"} <= set(NAMES):
        _report(found, churns)


def shapes() -> tuple[ChurnPodShape, ...]:
    path = locate(TRACE)
    if path is None:
        print("the openb trace is not here (`make bench-data` fetches it): sizes and lifetimes are generated")
        return generate_shapes()
    with path.open() as lines:
        return read_trace(lines)


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What one run on a control plane of its own showed."""

    history: list[ChurnRecord]
    began_at: float
    """When the cluster's clock began, in seconds since 1970."""
    leads_at: float | None
    """When the compactor began to lead; None without one."""
    footprint: dict[str, float]
    notes: dict[str, Any]


def measure_live(churn: Churn, variant: ChurnVariant) -> dict[str, Any]:
    """Runs one variant on a control plane of its own, and returns its figures."""
    run = run_live(churn, variant)
    outcome = judge_history(run.history, churn.options.warm_up_seconds, churn.seconds)
    return {**asdict(outcome), **run.footprint, **run.notes}


def run_live(
    churn: Churn,
    variant: ChurnVariant,
    beside: Callable[[str, ChurnWatch], AbstractContextManager[None]] = lambda kubeconfig, watch: nullcontext(),
    first_round: float = 0.0,
) -> LiveRun:
    """Runs one variant on a control plane of its own. `beside` gets the path of its kubeconfig and the watch, and what
    it returns is open as long as the churn goes on. `first_round`: when the compactor begins, in seconds of the
    churn."""
    times, options = ClusterTimes(), churn.options
    end = churn.seconds + options.rest_seconds
    plane = ControlPlane.start(binaries.find(), start_up=round(times.start_up / SPEED))
    with plane, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(plane.kubeconfig, "default", plane)
        for name in (NAMESPACE, "trimtab-system"):
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        machines = LiveMachines(cluster, churn)
        flags = scale_flags(StandInFlags(threshold=variant.threshold), SPEED)
        with ChurnWatch(cluster, SPEED) as watch:
            live = LiveChurn(cluster, watch, machines, churn)
            live.begin()
            watch.start_clock()
            began_at = time.time()
            with (
                beside(str(plane.kubeconfig), watch),
                LiveStandIn(cluster, watch, machines, flags, times.provision / SPEED) as stand_in,
            ):
                attended = _AttendedCompactor(plane, variant, flags, Path(folder), watch, churn, first_round)
                with attended.attend():
                    live.run(float(end))
            history = watch.history
    notes = {"late": live.late, "scans": stand_in.scans, "faults": [*live.faults, *stand_in.faults][:20]}
    return LiveRun(history, began_at, attended.leads_at, attended.footprint, notes)


@dataclass
class _AttendedCompactor:
    """A compactor next to the churn if the variant has one. It stops in the middle of the rest."""

    plane: ControlPlane
    variant: ChurnVariant
    flags: StandInFlags
    folder: Path
    watch: ChurnWatch
    churn: Churn
    first_round: float
    footprint: dict[str, float] = field(default_factory=dict)
    """What the compactor used."""
    leads_at: float | None = None
    """When it began to lead, in seconds since 1970."""
    _is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def attend(self) -> Iterator[None]:
        if self.variant.precedence is None:
            yield
            return
        home = Cluster(self.plane.kubeconfig, "trimtab-system", self.plane)
        home.apply(pool_item(replace(POOL, autoscaler=self.variant.precedence)))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._run, home)
            try:
                yield
            finally:
                self._is_over.set()
            running.result()

    def _run(self, home: Cluster) -> None:
        home.eventually(lambda: home.get("ConfigMap", "cluster-autoscaler-status", "kube-system"), within=60)
        self._wait_until(self.first_round)
        program = ("tests.bench.fast_compactor", f"{SPEED:g}", "compactor")
        one = Compactor(home, self.folder, program=program, **compactor_settings(self.flags))
        try:
            self._wait_until(self.churn.seconds + self.churn.options.rest_seconds / 2)
            self.footprint.update(cpu_seconds=cpu(one), max_rss_bytes=_max_rss(one.process.pid))
        finally:
            code = one.stop()
        if log := os.environ.get("BENCH_CHURN_LOG"):
            Path(log).write_text(one.log.read_text())
        assert code == 0, one.log.read_text()[-3000:]
        self.leads_at = datetime.fromisoformat(one.told("leads")[0]["timestamp"]).timestamp()

    def _wait_until(self, second: float) -> None:
        self._is_over.wait(max(0.0, (second - self.watch.now) / SPEED))


def pool_item(pool: Pool) -> dict[str, Any]:
    """The pool's ConfigMap, with its durations on the faster clock."""

    def scaled(seconds: float) -> str:
        return f"{max(1, round(seconds / SPEED))}s"

    settings = {
        "preset": "keen",
        "nodes": "all",
        "mode": "act",
        "autoscaler": pool.autoscaler.value,
        "underUsed": {"for": scaled(pool.under_for)},
        "quiet": scaled(pool.quiet),
        "keep": {"payback": scaled(pool.payback)},
        "pendingLimit": scaled(pool.pending_limit),
        "age": {"node": scaled(pool.node_age), "receiver": scaled(pool.receiver_age)},
        "pace": {"drains": pool.drains, "evictionsPerHour": round(pool.evictions_per_hour * SPEED)},
        "protect": {"jobs": not pool.jobs, "singleReplicas": not pool.single_replicas},
    }
    meta = {"name": "pool-all", "namespace": "trimtab-system", "labels": {"trimtab.dev/pool": "all"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": json.dumps(settings)}}


def compactor_settings(flags: StandInFlags) -> dict[str, str]:
    """The compactor's settings on the faster clock; a tick takes a second at least."""
    seconds = {
        "PLAN_INTERVAL_SECONDS": 60,
        "RECHECK_DELAY_SECONDS": 20,
        "DRAIN_TIMEOUT_SECONDS": 900,
        "MOVE_COOLDOWN_SECONDS": 3600,
        "NODE_REMOVAL_TIMEOUT_SECONDS": 1500,
        "PENDING_TIMEOUT_SECONDS": 30,
        "POD_TERMINATION_TIMEOUT_SECONDS": 120,
        "READY_TIMEOUT_SECONDS": 300,
        "POOL_BACKOFF_SECONDS": 3600,
        "FORECAST_SLOT_SECONDS": 600,
    }
    return {
        **{name: f"{max(1, round(value / SPEED))}" for name, value in seconds.items()},
        "DRAIN_POLL_INTERVAL_SECONDS": "1",
        "LEASE_DURATION_SECONDS": f"{LEASE_SECONDS}",
        "RENEW_DEADLINE_SECONDS": "15",
        "RETRY_PERIOD_SECONDS": "3",
        "WRITE_TIMEOUT_SECONDS": "10",
        "REQUIRE_AUTOSCALER_STATUS": "true",
        "AUTOSCALER_FLAGS": " ".join(flags.format_arguments()),
        "SCALE_NAMESPACES": NAMESPACE,
    }


def _max_rss(pid: int) -> int:
    """Returns the most memory the process has had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _print_run(seed: int, name: str, figures: Mapping[str, Any]) -> None:
    parts = [f"{key}={value:.1f}" if isinstance(value, float) else f"{key}={value}" for key, value in figures.items()]
    print(f"seed {seed}, {name}: {' '.join(parts)}", flush=True)


def _report(found: Mapping[tuple[int, str], Mapping[str, Any]], churns: Mapping[int, Churn]) -> None:
    def total(name: str, key: str) -> float:
        return sum(float(found[seed, name][key]) for seed in churns)

    saved = total("alone", "core_hours") - total("follow", "core_hours")
    simulated = [run_variant(churn, FOLLOW).outcome for churn in churns.values()]
    _compare_simulation(found, dict(zip(churns, simulated, strict=True)))
    over = {seed: found[seed, "follow"]["core_hours"] / found[seed, "alone"]["core_hours"] for seed in churns}
    waits = [found[seed, "follow"]["wait_p99"] - found[seed, "alone"]["wait_p99"] for seed in churns]
    waited_over = total("follow", "pending_seconds") / max(1.0, total("alone", "pending_seconds"))
    bought_over = total("follow", "bought") / max(1.0, total("alone", "bought"))
    twice = total("follow", "moved_twice") / max(1.0, total("follow", "evictions"))
    figures = {
        "core_hours_over_autoscaler": f"{total('follow', 'core_hours') / total('alone', 'core_hours'):.3f}",
        "core_hours_over_autoscaler_07": (
            f"{total('follow', 'core_hours') / total('alone-07', 'core_hours'):.3f}" if "alone-07" in NAMES else "nan"
        ),
        "evictions_per_core_hour": f"{total('follow', 'evictions') / saved:.2f}" if saved > 0 else "nan",
        "bought_without": f"{total('alone', 'bought'):.0f}",
        "bought_over_without": f"{bought_over:.2f}",
        "returned_within_hour": f"{total('follow', 'returned_within_hour'):.0f}",
        "pending_over_without": f"{waited_over:.2f}",
        "wait_p99_over_s": f"{max(waits):.0f}",
        "twice_share": f"{twice:.3f}",
        "broken": f"{total('follow', 'broken'):.0f}",
        "cordons_left": f"{total('follow', 'cordons_left'):.0f}",
        "simulated_over_live": (f"{sum(one.core_hours for one in simulated) / total('follow', 'core_hours'):.3f}"),
    }
    is_whole = not is_brief()
    broken = {
        "core_hours_over_autoscaler": is_whole and float(figures["core_hours_over_autoscaler"]) > MAX_OVER_AUTOSCALER,
        "one_seed": is_whole and max(over.values()) > MAX_OF_ONE_SEED,
        "bought_over_without": is_whole and bought_over > MAX_BOUGHT_OVER,
        "twice_share": is_whole and twice > MAX_TWICE,
        "wait_p99_over_s": is_whole and max(waits) > MAX_WAIT_OVER,
        "broken": total("follow", "broken"),
        "cordons_left": is_whole and total("follow", "cordons_left"),
    }
    line = " ".join(f"{name}={value}" for name, value in figures.items())
    report_result("churn", line, broken=broken, is_generated=locate(TRACE) is None)


def _compare_simulation(
    found: Mapping[tuple[int, str], Mapping[str, Any]], simulated: Mapping[int, ChurnOutcome]
) -> None:
    for seed, outcome in simulated.items():
        live = found[seed, "follow"]
        ratios = {
            "core hours": outcome.core_hours / live["core_hours"],
            "evictions": outcome.evictions / max(1, live["evictions"]),
            "bought": outcome.bought / max(1, live["bought"]),
        }
        text = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        print(f"seed {seed}: simulated over live: {text}", flush=True)


if __name__ == "__main__":
    assert HOURS * HOUR > 600, "BENCH_CHURN_HOURS is too short to measure anything"
    sys.exit(main())
