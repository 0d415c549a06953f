"""Runs one churn in several variants: the stand-in for the cluster autoscaler alone, and with Trimtab beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trimtab.autoscaling.churn.churn_cluster import ChurnCluster, ClusterTimes
from trimtab.autoscaling.churn.churn_outcome import ChurnOutcome, judge_history
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.pool import Pool, Precedence, pool_from_preset
from trimtab.compactor.in_memory import InMemoryActuator, build_loop

POOL = replace(pool_from_preset("keen", "all"), everything=True, dry_run=False, jobs=True)
"""The settings of the pool by default: the preset `keen`, and Jobs may be evicted, as by the cluster autoscaler."""
FIRST_ROUND_SECONDS = 300
"""When the compactor starts, so that the first pods have started before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnVariant:
    """Who empties nodes."""

    name: str
    threshold: float = 0.5
    """The utilization threshold of the stand-in."""
    precedence: Precedence | None = None
    """Whether Trimtab follows the stand-in or leads; None: it does not run."""
    keeps_forecast: bool = True
    """Whether the pool keeps room for what its history forecasts."""


ALONE = ChurnVariant(name="stand-in 0.5")
ALONE_07 = ChurnVariant(name="stand-in 0.7", threshold=0.7)
FOLLOW = ChurnVariant(name="Trimtab follows", precedence=Precedence.FOLLOW)
FOLLOW_UNLEARNT = ChurnVariant(name="the same, no forecast", precedence=Precedence.FOLLOW, keeps_forecast=False)
LEAD = ChurnVariant(name="Trimtab leads", precedence=Precedence.LEAD)
VARIANTS = (ALONE, ALONE_07, FOLLOW, FOLLOW_UNLEARNT, LEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorTimes:
    """How often the compactor looks, in seconds. The defaults are those of a run of ten hours in one: a clock that is
    ten times as fast turns the tick of one second into ten."""

    plan: float = 60
    recheck: float = 20
    poll: float = 10


@dataclass(frozen=True, slots=True)
class ChurnRun:
    """One variant of one seed."""

    seed: int
    variant: ChurnVariant
    outcome: ChurnOutcome
    decisions: Mapping[str, int]
    """Decision and code → how often the compactor took it."""


def run_variant(
    churn: Churn,
    variant: ChurnVariant,
    pool: Pool = POOL,
    *,
    times: ClusterTimes = ClusterTimes(),  # noqa: B008  a frozen value
    compactor_times: CompactorTimes = CompactorTimes(),
) -> ChurnRun:
    """Runs the churn to its end and through the rest after it, and returns the figures."""
    cluster = ChurnCluster(churn, times)
    stand_in = ChurnStandIn(cluster, StandInFlags(threshold=variant.threshold))
    pool = replace(
        pool,
        autoscaler=variant.precedence or Precedence.FOLLOW,
        keeps_forecast=pool.keeps_forecast and variant.keeps_forecast,
    )
    actuator = InMemoryActuator(cluster, stand_in.describe_autoscaler, (pool,))
    loop = build_loop(
        actuator,
        plan_seconds=compactor_times.plan,
        recheck_seconds=compactor_times.recheck,
        poll_seconds=compactor_times.poll,
    )
    end, scan = churn.seconds + churn.options.rest_seconds, int(stand_in.flags.scan_seconds)
    # The compactor stops in the middle of the rest: what it leaves cordoned then is what it leaves behind.
    stop = churn.seconds + churn.options.rest_seconds // 2 if variant.precedence is not None else 0
    next_scan, next_round = scan, FIRST_ROUND_SECONDS if stop else end
    while (second := min(next_scan, next_round)) < end:
        cluster.advance_to(second)
        if second == next_round:
            next_round = second + max(1, round(loop.run_round()))
            if second >= stop:
                loop.shut_down()
                next_round = end
        if second == next_scan:
            stand_in.run_scan()
            next_scan = second + scan
    return ChurnRun(
        seed=churn.options.seed,
        variant=variant,
        outcome=judge_history(cluster.history, churn.options.warm_up_seconds, churn.seconds),
        decisions=Counter(f"{one.what} {one.code}" for one in actuator.decisions),
    )
