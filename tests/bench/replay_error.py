"""How far a replay is from a run: the same churn simulated without and with Trimtab, and replayed from captures of the
run without.

A run is chaotic: which of two equal nodes a pod gets decides, an hour later, which machine is bought. So the runs are
repeated with other names of nodes, by which ties fall, and so are the replays. The repeats differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from tests.autoscaling.replay.simulated_captures import record_alone
from trimtab.autoscaling.churn.churn_cluster import ChurnCluster
from trimtab.autoscaling.churn.churn_history import ChurnRecord
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
class ReplayError:
    """One seed: what was saved and disturbed, in the runs and in the replays."""

    without: Figures
    """The run of which captures were taken."""
    runs: tuple[Figures, ...]
    """The runs with Trimtab."""
    replays: tuple[tuple[Figures, Figures], ...]
    """(without Trimtab, with it) of each replay."""

    @property
    def saved(self) -> float:
        """The core hours that the runs with Trimtab save on average."""
        return self.without.core_hours - mean(one.core_hours for one in self.runs)

    @property
    def predicted(self) -> float:
        """The core hours that the replays save on average."""
        return mean(alone.core_hours - one.core_hours for alone, one in self.replays)

    @property
    def evictions(self) -> float:
        """The evictions of the runs with Trimtab, on average."""
        return mean(one.evictions for one in self.runs)

    @property
    def predicted_evictions(self) -> float:
        """The evictions of the replays with Trimtab, on average."""
        return mean(one.evictions for _, one in self.replays)

    @property
    def saved_error(self) -> float:
        """The predicted saving divided by that of the runs, less 1."""
        return self.predicted / self.saved - 1

    @property
    def eviction_error(self) -> float:
        """The predicted evictions divided by those of the runs, less 1."""
        return self.predicted_evictions / self.evictions - 1

    @property
    def single_saved_error(self) -> float:
        """How much more one of the replays saves than the runs on average, at most."""
        return max(alone.core_hours - one.core_hours for alone, one in self.replays) / self.saved - 1

    @property
    def single_eviction_error(self) -> float:
        """How many more evictions one of the replays has than the runs on average, at most, as a share."""
        return max(one.evictions for _, one in self.replays) / self.evictions - 1

    @property
    def run_spread(self) -> float:
        """How far the saving of one of the runs is from their average, at most."""
        return max(abs(self.without.core_hours - one.core_hours - self.saved) for one in self.runs) / self.saved


def measure_error(churn: Churn, every: int, repeats: int) -> ReplayError:
    """Returns the error of replays from captures of this interval, in seconds."""
    with TemporaryDirectory() as path:
        folder = SeriesFolder(Path(path), every)
        for at, content in record_alone(churn, BEGIN, every):
            folder.append_round(at, content)
        recorded = read_recording(find_series_files([path]), PriceFile({}, {}))
    return ReplayError(
        without=Figures.of(judge(run_churn(churn, with_trimtab=False), churn)),
        runs=tuple(Figures.of(judge(run_churn(churn, naming), churn)) for naming in range(repeats)),
        replays=repeat_replay(recorded, repeats),
    )


def repeat_replay(recorded: RecordedWorld, repeats: int) -> tuple[tuple[Figures, Figures], ...]:
    """Returns (without Trimtab, with it) of each replay."""
    return tuple(
        (
            Figures.of(_replay(recorded, ReplayVariant(name="alone", repeat=naming))),
            Figures.of(_replay(recorded, ReplayVariant(name="with", pools=(POOL,), repeat=naming))),
        )
        for naming in range(repeats)
    )


def _replay(recorded: RecordedWorld, variant: ReplayVariant) -> DailyOutcome:
    return replay_variant(recorded.world, variant, ReplaySteps()).outcome


def judge(history: Sequence[ChurnRecord], churn: Churn, begin: float = BEGIN) -> DailyOutcome:
    """Returns the outcome of the time in which there are captures. `begin`: of them, in seconds of the churn."""
    outcome = DailyOutcome()
    groups: Mapping[str, str] = {}
    add_history(outcome, [_shift(record, begin) for record in history], 0, round(churn.seconds - begin), groups)
    return outcome


def _shift(record: ChurnRecord, begin: float) -> Any:
    values = {name: getattr(record, name) for name in type(record).__slots__}
    return type(record)(**{**values, "at": max(0.0, record.at - begin)})


def run_churn(churn: Churn, naming: int = 0, *, with_trimtab: bool = True) -> list[ChurnRecord]:
    """Returns the history of the churn with the stand-in, and with the compactor in addition."""
    cluster = ChurnCluster(churn, naming=naming)
    stand_in, times = ChurnStandIn(cluster, StandInFlags()), CompactorTimes()
    loop = build_loop(
        InMemoryActuator(cluster, stand_in.describe_autoscaler, (POOL,)),
        plan_seconds=times.plan,
        recheck_seconds=times.recheck,
        poll_seconds=times.poll,
    )
    next_scan, next_round = 10, BEGIN if with_trimtab else churn.seconds + 1
    while (second := min(next_scan, next_round)) <= churn.seconds:
        cluster.advance_to(second)
        if second == next_round:
            next_round = second + max(1, round(loop.run_round()))
        if second == next_scan:
            stand_in.run_scan()
            next_scan = second + 10
    return cluster.history
