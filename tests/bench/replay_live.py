"""How far a replay is from a live run: a churn on a real control plane without Trimtab, of which captures are taken
and whose kube-state-metrics a Prometheus scrapes, and the same churn with Trimtab.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

import msgspec

from tests.bench.bench_churn import LEASE_SECONDS, SPEED, LiveRun, run_live
from tests.bench.churn_watch import ChurnWatch
from tests.bench.replay_error import BEGIN, Figures, ReplayedRun, ReplayError, judge, repeat_replay
from tests.bench.results import ROOT
from tests.e2e.real_prometheus import running
from tests.e2e.state_metrics import scraping_state_metrics
from trimtab.autoscaling.churn.churn_history import BudgetSeen, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.replay.recording import NodeLife, PodLife, Stretch
from trimtab.cli.replay.prometheus_input import read_between
from trimtab.cli.replay.recorded_world import RecordedWorld, RecordingSource, build_recorded_world, record_changes
from trimtab.cli.replay.state_metrics_options import StateMetricsOptions
from trimtab.cli.simulate.churn_run import ALONE, FOLLOW
from trimtab.cluster.capture_series import ClusterChange, ObjectKey, RoundGap
from trimtab.cluster.node import CANDIDATE_TAINT, Taint
from trimtab.inputs.capture_series import SeriesReader, find_series_files
from trimtab.inputs.prometheus_login import PrometheusLogin
from trimtab.machines.prices import PriceFile

FOLDER = ROOT / "build" / "bench-replay"
VARIANTS = {"alone": ALONE, "follow": FOLLOW}
SCRAPE_SECONDS = 60
"""How often kube-state-metrics is usually scraped."""
RUNS_AT_ONCE = os.cpu_count() or 1
"""Each needs a core: with three on two cores, the stand-in scans half as often as it should, and each removal of a node
takes longer than in a replay."""
RECORDS = {kind.__name__: kind for kind in (NodeSeen, NodeGone, PodSeen, PodGone, BudgetSeen)}


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

    @property
    def scrapes(self) -> Path:
        """What a Prometheus keeps of the run without Trimtab."""
        return Path(f"{self.captures}.prometheus")

    def run_once(self, name: str) -> str:
        """Runs the churn on a control plane with this variant, if that run is not there already. Returns a line about
        the run."""
        path = self._path_of(name)
        if not path.exists():
            self._run(name, path)
        run = self.read_run(name)
        return f"{path.name}: {run.notes} {run.footprint}"

    def _run(self, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "alone":
            for old in (self.captures, self.scrapes):
                shutil.rmtree(old, ignore_errors=True)
        beside = self._record if name == "alone" else _record_nothing
        # A compactor leads once the duration of a lease has passed.
        run = run_live(self.churn, VARIANTS[name], beside, first_round=BEGIN - LEASE_SECONDS * SPEED)
        records = [{"kind": type(one).__name__, **asdict(one)} for one in run.history]
        path.write_bytes(msgspec.json.encode(replace(run, history=records)))

    def read_run(self, name: str) -> LiveRun:
        """Returns a run that is there."""
        fields = msgspec.json.decode(self._path_of(name).read_bytes())
        fields["history"] = [RECORDS[one.pop("kind")](**one) for one in fields["history"]]
        return LiveRun(**fields)

    def _path_of(self, name: str) -> Path:
        return Path(f"{self.captures}.{name}.json")

    @contextmanager
    def _record(self, kubeconfig: str, watch: ChurnWatch) -> Iterator[None]:
        with (
            scraping_state_metrics(kubeconfig, self.scrapes, SCRAPE_SECONDS / SPEED),
            self._take_captures(kubeconfig, watch),
        ):
            yield

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


def read_captures(folder: LiveFolder, since: float, each: int = 1) -> RecordedWorld:
    """Returns the recording in the captures from this time on, in seconds since 1970, as if only every so many of them
    had been taken."""
    reader = SeriesReader(find_series_files([str(folder.captures)]))
    recorder, rounds = record_changes(_thin_changes(reader.iterate_changes(), since, each))
    source = RecordingSource(reader.cluster, reader.every_seconds * each, rounds, tuple(reader.notes))
    return build_recorded_world(recorder, source, PriceFile({}, {}))


def read_scrapes(folder: LiveFolder, since: float) -> RecordedWorld:
    """Returns the recording in the Prometheus from this time on, in seconds since 1970."""
    with running(folder.scrapes, {}) as url:
        options = StateMetricsOptions(url=url, login=PrometheusLogin(), step=max(1, round(folder.every / SPEED)))
        # After the last scrape, a Prometheus shows it for five minutes more.
        end = folder.read_run("alone").began_at + folder.churn.seconds / SPEED
        return read_between(options, ceil(since), int(end), PriceFile({}, {}))


Reader = Callable[[LiveFolder, float], RecordedWorld]
"""Returns what was recorded of a run from a time on."""


def _thin_changes(changes: Iterable[ClusterChange | RoundGap], since: float, each: int) -> Iterator[ClusterChange]:
    """Yields one of so many changes from this time on, with what the others in between changed; the first has every
    object."""
    texts: dict[ObjectKey, bytes | None] = {}
    number = 0
    for change in changes:
        assert isinstance(change, ClusterChange), change
        texts.update(change.texts)
        if change.at < since:
            continue
        if number % each == 0:
            yield ClusterChange.from_texts(change.at, texts)
            texts = {}
        number += 1


def _record_nothing(kubeconfig: str, watch: ChurnWatch) -> AbstractContextManager[None]:
    return nullcontext()


def run_all(churns: Sequence[Churn], every: int) -> None:
    """Makes the runs of these churns that are not there already. `every`: the seconds of the cluster's clock between
    two captures."""
    with ProcessPoolExecutor(RUNS_AT_ONCE) as pool:
        folders = [LiveFolder(churn, every) for churn in churns]
        for one in as_completed([pool.submit(folder.run_once, name) for folder in folders for name in VARIANTS]):
            print(one.result(), flush=True)


def measure_live_errors(churns: Sequence[Churn], every: int, repeats: int, read: Reader) -> list[ReplayError]:
    """Returns the error of a replay from what was recorded of the run without Trimtab, for each churn. `every`: the
    seconds of the cluster's clock between two captures."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        measure = partial(_measure_error, repeats=repeats, read=read)
        return list(pool.map(measure, [LiveFolder(churn, every) for churn in churns]))


def _measure_error(folder: LiveFolder, repeats: int, read: Reader) -> ReplayError:
    without, run = folder.read_run("alone"), folder.read_run("follow")
    assert run.leads_at is not None
    # A replay with Trimtab begins with Trimtab: what was recorded before it led has no counterpart.
    recorded = read(folder, without.began_at + run.leads_at - run.began_at)
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
        taints = tuple(_scale_mark(taint, scale) for taint in node.first.taints)
        first = replace(node.first, created=scale_known(node.first.created), taints=taints)
        times = {"begin": scale(node.begin), "end": scale_known(node.end), "first": first}
        cordons = [(scale(begin), scale(end)) for begin, end in node.cordons]
        nodes.append(NodeLife(**{**fields, **times, "cordons": cordons}))
    budgets = [(scale(at), key, budget) for at, key, budget in stretch.budgets]
    return replace(stretch, end=scale(stretch.end), pods=pods, nodes=nodes, budgets=budgets)


def _scale_mark(taint: Taint, scale: Callable[[int], int]) -> Taint:
    """Returns the taint; an autoscaler writes into its own since when the node has it."""
    is_mark = taint.key == CANDIDATE_TAINT and taint.value
    return msgspec.structs.replace(taint, value=str(scale(int(taint.value)))) if is_mark else taint
