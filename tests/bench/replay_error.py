"""How far a replay is from a run: the same churn simulated without and with Trimtab, and replayed from captures of the
run without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.autoscaling.replay.simulated_captures import record_alone, run_alone
from trimtab.autoscaling.churn.churn_cluster import ChurnCluster
from trimtab.autoscaling.churn.churn_history import ChurnRecord
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.replay.daily_outcome import HOUR, DailyOutcome, add_history
from trimtab.cli.replay.recorded_world import read_recording
from trimtab.cli.replay.run import ReplaySteps, ReplayVariant, replay_variant
from trimtab.cli.simulate.churn_run import FIRST_ROUND_SECONDS, POOL, CompactorTimes
from trimtab.compactor.in_memory import InMemoryActuator, build_loop
from trimtab.inputs.capture_series import SeriesFolder, find_series_files
from trimtab.machines.prices import PriceFile

BEGIN = FIRST_ROUND_SECONDS
"""When the captures and the compactor begin, in seconds of the churn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayError:
    """One seed: what was saved and disturbed, in the run and in the replay."""

    core_hours_without: float
    saved: float
    """Core hours, here and below. Nodes have two sizes, and which an autoscaler buys differs from run to run."""
    predicted: float
    evictions: int
    predicted_evictions: int

    @property
    def saved_error(self) -> float:
        """The predicted saving divided by that of the run, less 1."""
        return self.predicted / self.saved - 1

    @property
    def eviction_error(self) -> float:
        """The predicted evictions divided by those of the run, less 1."""
        return self.predicted_evictions / self.evictions - 1


def measure_error(churn: Churn, every: int) -> ReplayError:
    """Returns the error of a replay from captures of this interval, in seconds."""
    with TemporaryDirectory() as path:
        folder = SeriesFolder(Path(path), every)
        for at, content in record_alone(churn, BEGIN, every):
            folder.append_round(at, content)
        recorded = read_recording(find_series_files([path]), PriceFile({}, {}))
    without, with_trimtab = judge(run_alone(churn), churn), judge(run_with_trimtab(churn), churn)
    replayed = [
        replay_variant(recorded.world, variant, ReplaySteps()).outcome
        for variant in (ReplayVariant(name="alone"), ReplayVariant(name="with", pools=(POOL,)))
    ]
    hours = [one.sum_pools().core_seconds / HOUR for one in (without, with_trimtab, *replayed)]
    return ReplayError(
        core_hours_without=hours[0],
        saved=hours[0] - hours[1],
        predicted=hours[2] - hours[3],
        evictions=with_trimtab.sum_pods().evictions,
        predicted_evictions=replayed[1].sum_pods().evictions,
    )


def judge(history: list[ChurnRecord], churn: Churn) -> DailyOutcome:
    """Returns the outcome of the time in which there are captures."""
    outcome = DailyOutcome()
    groups: Mapping[str, str] = {}
    shifted: list[Any] = [_shift(record) for record in history]
    add_history(outcome, shifted, 0, churn.seconds - BEGIN, groups)
    return outcome


def _shift(record: ChurnRecord) -> Any:
    values = {name: getattr(record, name) for name in type(record).__slots__}
    return type(record)(**{**values, "at": max(0.0, record.at - BEGIN)})


def run_with_trimtab(churn: Churn) -> list[ChurnRecord]:
    """Returns the history of the churn with the compactor beside the stand-in."""
    cluster = ChurnCluster(churn)
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
