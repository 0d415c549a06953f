"""How far a replay is from a live run: a churn on a real control plane without Trimtab, of which captures are taken,
and the same churn with Trimtab.

The cluster's clock is faster than the wall, so the times of what captures show are stretched before they are replayed.
Each run takes long, so what its watch showed is kept in a folder, and a run that is there already is not repeated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from tests.bench.bench_churn import LEASE_SECONDS, SPEED, run_live
from tests.bench.churn_watch import ChurnWatch
from tests.bench.replay_error import BEGIN, Figures, ReplayedRun, ReplayError, judge, repeat_replay
from tests.bench.results import ROOT
from trimtab.autoscaling.churn.churn_history import BudgetSeen, ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.replay.recording import NodeLife, PodLife, SeriesRecorder, Stretch
from trimtab.cli.replay.recorded_world import RecordedWorld, RecordingSource, build_recorded_world
from trimtab.cli.simulate.churn_run import ALONE, FOLLOW
from trimtab.cluster.capture_series import ClusterChange, ObjectKey
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.inputs.capture_series import SeriesGap, SeriesReader, find_series_files
from trimtab.machines.prices import PriceFile

FOLDER = ROOT / "build" / "bench-replay"
VARIANTS = {"alone": ALONE, "follow": FOLLOW}
RUNS_AT_ONCE = 3
"""Each needs half a core."""
RECORDS = {kind.__name__: kind for kind in (NodeSeen, NodeGone, PodSeen, PodGone, BudgetSeen)}


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run on a control plane, as it is kept in a file."""

    began_at: float
    """When the cluster's clock began, in seconds since 1970."""
    leads_at: float | None
    """When the compactor began to lead; None without one."""
    history: list[ChurnRecord]
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LiveFolder:
    """Where the runs of one seed are kept."""

    churn: Churn
    every: int
    """Seconds of the cluster's clock between two captures."""

    @property
    def captures(self) -> Path:
        """The captures of the run without Trimtab."""
        options = self.churn.options
        size = f"{options.cores:g}-cores-{options.hours:g}h"
        return FOLDER / f"live-seed-{options.seed}-{size}-x{SPEED:g}-every-{self.every}"

    def run_once(self, name: str) -> str:
        """Runs the churn on a control plane with this variant, if that run is not there already. Returns a line about
        the run."""
        path = self._path_of(name)
        if not path.exists():
            self._run(name, path)
        return f"{path.name}: {self.read_run(name).notes}"

    def _run(self, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "alone":
            shutil.rmtree(self.captures, ignore_errors=True)
        beside = self._take_captures if name == "alone" else _take_none
        # A compactor leads once the duration of a lease has passed.
        run = run_live(self.churn, VARIANTS[name], beside, first_round=BEGIN - LEASE_SECONDS * SPEED)
        records = [{"kind": type(one).__name__, **asdict(one)} for one in run.history]
        notes = {**run.notes, **run.footprint}
        kept = {"began_at": run.began_at, "leads_at": run.leads_at, "notes": notes, "history": records}
        path.write_bytes(msgspec.json.encode(kept))

    def read_run(self, name: str) -> KeptRun:
        """Returns a run that is there."""
        kept = msgspec.json.decode(self._path_of(name).read_bytes())
        history = [RECORDS[one.pop("kind")](**one) for one in kept["history"]]
        return KeptRun(kept["began_at"], kept["leads_at"], history, kept["notes"])

    def read_captures(self, since: float, each: int) -> RecordedWorld:
        """Returns the recording from this time on, in seconds since 1970, as if only every so many captures had been
        taken."""
        reader, recorder = SeriesReader(find_series_files([str(self.captures)])), SeriesRecorder(CORDONED_BY_US)
        for change in _thin_changes(reader.iterate_changes(), since, each):
            recorder.apply_change(change)
        recorder.end_stretch()
        source = RecordingSource(reader.cluster, reader.every_seconds * each, 0, tuple(reader.notes))
        return build_recorded_world(recorder, source, PriceFile({}, {}))

    def _path_of(self, name: str) -> Path:
        return Path(f"{self.captures}.{name}.json")

    @contextmanager
    def _take_captures(self, kubeconfig: str, watch: ChurnWatch) -> Iterator[None]:
        line = [sys.executable, "-m", "trimtab", "capture", "--every", f"{max(1, round(self.every / SPEED))}s"]
        settings = {**os.environ, "KUBECONFIG": kubeconfig}
        processes: list[subprocess.Popen[bytes]] = []

        def begin() -> None:
            time.sleep(max(0.0, BEGIN - watch.now) / SPEED)
            with Path(f"{self.captures}.log").open("wb") as log:
                processes.append(subprocess.Popen([*line, "-O", str(self.captures)], env=settings, stderr=log))

        starter = threading.Thread(target=begin, daemon=True)
        starter.start()
        try:
            yield
        finally:
            starter.join()
            processes[0].terminate()
            processes[0].wait(30)


def _thin_changes(changes: Iterable[ClusterChange | SeriesGap], since: float, each: int) -> Iterator[ClusterChange]:
    """Yields one of so many changes from this time on, with what the others in between changed; the first has every
    object."""
    present: dict[ObjectKey, bytes] = {}
    changed: dict[ObjectKey, bytes] = {}
    gone: dict[ObjectKey, None] = {}
    number = 0
    for change in changes:
        assert isinstance(change, ClusterChange), change
        for key in change.gone:
            present.pop(key, None)
            changed.pop(key, None)
        gone |= dict.fromkeys(change.gone)
        present |= change.changed
        changed |= change.changed
        if change.at < since:
            continue
        if not number:
            yield replace(change, changed=dict(present), gone=())
        elif number % each == 0:
            yield replace(change, changed=changed, gone=tuple(key for key in gone if key not in present))
        if number % each == 0:
            changed, gone = {}, {}
        number += 1


def _take_none(kubeconfig: str, watch: ChurnWatch) -> AbstractContextManager[None]:
    return nullcontext()


def run_all(churns: Sequence[Churn], every: int) -> None:
    """Makes the runs of these churns that are not there already. `every`: the seconds of the cluster's clock between
    two captures."""
    with ProcessPoolExecutor(RUNS_AT_ONCE) as pool:
        folders = [LiveFolder(churn, every) for churn in churns]
        for one in as_completed([pool.submit(folder.run_once, name) for folder in folders for name in VARIANTS]):
            print(one.result(), flush=True)


def measure_live_error(churn: Churn, every: int, repeats: int, each: int = 1) -> ReplayError:
    """Returns the error of a replay from captures of the run without Trimtab. `every`: the seconds of the cluster's
    clock between two captures; `each`: one of so many captures is read."""
    folder = LiveFolder(churn, every)
    without, run = folder.read_run("alone"), folder.read_run("follow")
    assert run.leads_at is not None
    # A replay with Trimtab begins with Trimtab: what was captured before it led has no counterpart.
    recorded = folder.read_captures(without.began_at + run.leads_at - run.began_at, each)
    begin, end = ((at - without.began_at) * SPEED for at in (recorded.begin, recorded.end))
    stretched = stretch_recording(recorded, SPEED)
    return ReplayError(
        tuple(
            ReplayedRun(
                without=Figures.of(judge(without.history, begin, end)),
                run=Figures.of(judge(run.history, begin, end)),
                replay_without=replay_without,
                replay=replay,
            )
            for replay_without, replay in (repeat_replay(stretched, naming) for naming in range(repeats))
        )
    )


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
