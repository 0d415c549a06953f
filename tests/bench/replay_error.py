"""How far a replay is from a run: the same churn simulated without and with Trimtab, and replayed from captures of the
run without.

A run is chaotic: which of two equal nodes a pod gets decides, an hour later, which machine is bought. So the runs are
repeated with other names of nodes, by which ties fall, and so are the replays. The repeats differ in nothing else, and
from how far they are from each other follows how exactly the error is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from tests.autoscaling.replay.simulated_captures import record_cluster
from trimtab.autoscaling.churn.churn_cluster import ChurnCluster
from trimtab.autoscaling.churn.churn_history import ChurnRecord, NodeSeen
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.replay.daily_outcome import HOUR, DailyOutcome, add_history
from trimtab.cli.replay.recorded_world import RecordedWorld, read_recording
from trimtab.cli.replay.run import ReplaySteps, ReplayVariant, replay_variant
from trimtab.cli.simulate.churn_run import FIRST_ROUND_SECONDS, POOL, CompactorTimes
from trimtab.compactor.in_memory import InMemoryActuator, build_loop
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

BEGIN = FIRST_ROUND_SECONDS
"""When the captures and the compactor begin, in seconds of the churn."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, or one replay."""

    core_hours: float
    """Nodes have two sizes, and which an autoscaler buys differs from run to run: node hours would say less."""
    evictions: int

    @classmethod
    def of(cls, outcome: DailyOutcome) -> Figures:
        return cls(outcome.sum_pools().core_seconds / HOUR, outcome.sum_pods().evictions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRun:
    """One churn of one seed, run twice, and replayed."""

    without: Figures
    """The run of which captures were taken."""
    run: Figures
    """The run with Trimtab."""
    replay_without: Figures
    replay: Figures
    """The replay with Trimtab."""

    @property
    def saved(self) -> float:
        """The core hours that the run with Trimtab saved."""
        return self.without.core_hours - self.run.core_hours

    @property
    def predicted(self) -> float:
        """The core hours that the replay with Trimtab saved."""
        return self.replay_without.core_hours - self.replay.core_hours


@dataclass(frozen=True, slots=True)
class ReplayError:
    """One seed: what was saved and disturbed, in the runs and in the replays."""

    pairs: tuple[ReplayedRun, ...]
    """The repeats, which differ in the names of nodes alone."""

    @property
    def core_hours(self) -> float:
        """The core hours of the runs without Trimtab, on average."""
        return mean(one.without.core_hours for one in self.pairs)

    @property
    def model_error(self) -> float:
        """The core hours of the replays without Trimtab divided by those of the runs without it, less 1."""
        return mean(one.replay_without.core_hours for one in self.pairs) / self.core_hours - 1

    @property
    def saved(self) -> float:
        """The core hours that the runs with Trimtab save on average."""
        return mean(one.saved for one in self.pairs)

    @property
    def predicted(self) -> float:
        """The core hours that the replays save on average."""
        return mean(one.predicted for one in self.pairs)

    @property
    def evictions(self) -> float:
        """The evictions of the runs with Trimtab, on average."""
        return mean(one.run.evictions for one in self.pairs)

    @property
    def predicted_evictions(self) -> float:
        """The evictions of the replays with Trimtab, on average."""
        return mean(one.replay.evictions for one in self.pairs)

    @property
    def saved_error(self) -> float:
        """The predicted saving divided by that of the runs, less 1."""
        return self.predicted / self.saved - 1

    @property
    def eviction_error(self) -> float:
        """The predicted evictions divided by those of the runs, less 1."""
        return self.predicted_evictions / self.evictions - 1

    @property
    def saved_noise(self) -> float:
        """The standard error of `saved_error`: by so much it differs between bench runs that differ in the names of
        nodes alone."""
        return _standard_error([one.predicted - one.saved * (1 + self.saved_error) for one in self.pairs]) / self.saved

    @property
    def eviction_noise(self) -> float:
        """The standard error of `eviction_error`."""
        factor = 1 + self.eviction_error
        rests = [one.replay.evictions - one.run.evictions * factor for one in self.pairs]
        return _standard_error(rests) / self.evictions

    @property
    def single_saved_error(self) -> float:
        """By which share the saving of one replay differs from that of the runs on average, at most."""
        return max(abs(one.predicted / self.saved - 1) for one in self.pairs)

    @property
    def single_eviction_error(self) -> float:
        """By which share the evictions of one replay differ from those of the runs on average, at most."""
        return max(abs(one.replay.evictions / self.evictions - 1) for one in self.pairs)

    @property
    def run_spread(self) -> float:
        """How far the saving of one of the runs is from their average, at most."""
        return max(abs(one.saved / self.saved - 1) for one in self.pairs)


def _standard_error(amounts: Sequence[float]) -> float:
    """Returns the standard error of the mean of these amounts; infinite for a single one."""
    return stdev(amounts) / sqrt(len(amounts)) if len(amounts) > 1 else inf


def replay_run(churn: Churn, every: int, naming: int) -> ReplayedRun:
    """Returns a pair of runs, without Trimtab and with it, and one replay of captures of the run without. `every`: the
    seconds between two captures; `naming`: which names nodes get."""
    cluster = ChurnCluster(churn, naming=naming)
    with TemporaryDirectory() as path:
        folder = SeriesFolder(Path(path), every)
        for at, content in record_cluster(cluster, BEGIN, every):
            folder.append_round(at, content)
        recorded = read_recording(find_series_files([path]), PriceFile({}, {}))
    replay_without, replay = repeat_replay(recorded, naming)
    return ReplayedRun(
        without=Figures.of(judge(cluster.history, BEGIN, churn.seconds)),
        run=Figures.of(judge(run_churn(churn, naming), BEGIN, churn.seconds)),
        replay_without=replay_without,
        replay=replay,
    )


def repeat_replay(recorded: RecordedWorld, naming: int) -> tuple[Figures, Figures]:
    """Returns (without Trimtab, with it) of one replay."""
    return (
        Figures.of(_replay(recorded, ReplayVariant(name="alone", repeat=naming))),
        Figures.of(_replay(recorded, ReplayVariant(name="with", pools=(POOL,), repeat=naming))),
    )


def _replay(recorded: RecordedWorld, variant: ReplayVariant) -> DailyOutcome:
    return replay_variant(recorded.world, variant, ReplaySteps()).outcome


def judge(history: Sequence[ChurnRecord], begin: float, end: float) -> DailyOutcome:
    """Returns the outcome of the time in which there are captures, which is in seconds of the churn."""
    outcome = DailyOutcome()
    groups = {record.name: "" for record in history if isinstance(record, NodeSeen)}
    records = [_shift(record, begin) for record in history if record.at <= end]
    add_history(outcome, records, 0, round(end - begin), groups)
    return outcome


def _shift(record: ChurnRecord, begin: float) -> Any:
    values = {name: getattr(record, name) for name in type(record).__slots__}
    return type(record)(**{**values, "at": max(0.0, record.at - begin)})


def run_churn(churn: Churn, naming: int = 0) -> list[ChurnRecord]:
    """Returns the history of the churn with the stand-in and the compactor."""
    cluster = ChurnCluster(churn, naming=naming)
    stand_in, times = ChurnStandIn(cluster, StandInFlags()), CompactorTimes()
    loop = build_loop(
        InMemoryActuator(cluster, stand_in.describe_autoscaler, (POOL,)),
        plan_seconds=times.plan,
        recheck_seconds=times.recheck,
        poll_seconds=times.poll,
    )
    next_scan, next_round = 10, BEGIN
    while (second := min(next_scan, next_round)) <= churn.seconds:
        cluster.advance_to(second)
        if second == next_round:
            next_round = second + max(1, round(loop.run_round()))
        if second == next_scan:
            stand_in.run_scan()
            next_scan = second + 10
    return cluster.history
