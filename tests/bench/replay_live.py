"""How far a replay is from a live run: a churn on a real control plane without Trimtab, of which captures are taken,
and the same churn with Trimtab.

The cluster's clock is faster than the wall, so the times of what captures show are stretched before they are replayed.
Each run takes long, so its figures are kept in a folder, and a run that is there already is not repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.bench.bench_churn import SPEED, run_live
from tests.bench.replay_error import Figures, ReplayedRun, ReplayError, judge, repeat_replay
from tests.bench.results import ROOT
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.replay.recording import NodeLife, PodLife, Stretch
from trimtab.cli.replay.recorded_world import RecordedWorld, read_recording
from trimtab.cli.simulate.churn_run import ALONE, FOLLOW
from trimtab.inputs.capture_series import find_series_files
from trimtab.machines.prices import PriceFile

FOLDER = ROOT / "build" / "bench-replay"


def measure_live_error(churn: Churn, every: int, folder: Path, repeats: int) -> ReplayError:
    """Returns the error of a replay from captures of this interval, in seconds of the cluster's clock."""
    seed, hours = churn.options.seed, churn.options.hours
    captures = folder / f"seed-{seed}-{hours:g}h-x{SPEED:g}-every-{every}"
    without = _run_once(captures.with_suffix(".alone.json"), churn, captures, every)
    recorded = read_recording(find_series_files([str(captures)]), PriceFile({}, {}))
    stretched = stretch_recording(recorded, SPEED)
    with_trimtab = _run_once(captures.with_suffix(".follow.json"), churn, None, every, begin=without["begin"])
    return ReplayError(
        tuple(
            ReplayedRun(
                without=Figures(without["core_hours"], without["evictions"]),
                run=Figures(with_trimtab["core_hours"], with_trimtab["evictions"]),
                replay_without=replay_without,
                replay=replay,
            )
            for replay_without, replay in (repeat_replay(stretched, naming) for naming in range(repeats))
        )
    )


def _run_once(path: Path, churn: Churn, captures: Path | None, every: int, begin: float = 0.0) -> dict[str, Any]:
    """Returns the figures of one run, from the file if it is there. `captures`: where they are written in the run
    without Trimtab; None: in the run with it."""
    if path.exists():
        return dict(json.loads(path.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    variant = ALONE if captures is not None else FOLLOW

    @contextmanager
    def take_captures(kubeconfig: str) -> Iterator[None]:
        if captures is None:
            yield
            return
        line = [sys.executable, "-m", "trimtab", "capture", "--every", f"{max(1, round(every / SPEED))}s"]
        process = subprocess.Popen(
            [*line, "-O", str(captures)], env={**os.environ, "KUBECONFIG": kubeconfig}, stderr=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)

    run = run_live(churn, variant, take_captures)
    if captures is not None:
        first = read_recording(find_series_files([str(captures)]), PriceFile({}, {})).begin
        begin = max(0.0, (first - run.began_at) * SPEED)
    outcome = judge(run.history, churn, begin)
    figures = {
        "begin": begin,
        **asdict(Figures.of(outcome)),
        **run.notes,
    }
    path.write_text(json.dumps(figures, indent=1))
    return figures


def stretch_recording(recorded: RecordedWorld, speed: float) -> RecordedWorld:
    """Returns the recording on a clock that is so many times as slow."""
    stretches = tuple(_stretch_times(one, speed) for one in recorded.world.stretches)
    return replace(recorded, world=replace(recorded.world, stretches=stretches))


def _stretch_times(stretch: Stretch, speed: float) -> Stretch:
    def scale(at: int) -> int:
        return stretch.begin + round((at - stretch.begin) * speed)

    def scale_known(at: int | None) -> int | None:
        return None if at is None else scale(at)

    pods, nodes = [], []
    for pod in stretch.pods:
        fields = {name: getattr(pod, name) for name in PodLife.__struct_fields__}
        times = {"begin": scale(pod.begin), "bound": scale_known(pod.bound), "end": scale_known(pod.end)}
        pods.append(PodLife(**{**fields, **times}))
    for node in stretch.nodes:
        fields = {name: getattr(node, name) for name in NodeLife.__struct_fields__}
        first = replace(node.first, created=scale_known(node.first.created))
        times = {"begin": scale(node.begin), "end": scale_known(node.end), "first": first}
        cordons = [(scale(begin), scale(end)) for begin, end in node.cordons]
        nodes.append(NodeLife(**{**fields, **times, "cordons": cordons}))
    budgets = [(scale(at), key, budget) for at, key, budget in stretch.budgets]
    return replace(stretch, end=scale(stretch.end), pods=pods, nodes=nodes, budgets=budgets)
