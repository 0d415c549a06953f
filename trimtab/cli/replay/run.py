"""Replays the stretches of a recording in one variant: who empties nodes, and by which settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn.churn_cluster import ClusterTimes
from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.replay.daily_outcome import DailyOutcome, add_history
from trimtab.autoscaling.replay.demand import list_events
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.autoscaling.replay.replay_cluster import ReplayCluster
from trimtab.autoscaling.replay.replay_scheduler import ReplayScheduler
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pool import Pool
from trimtab.compactor.in_memory import InMemoryActuator, build_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayVariant:
    """Who empties nodes in a replay."""

    name: str
    threshold: float = 0.5
    """The utilization threshold of the stand-in for the cluster autoscaler."""
    pools: tuple[Pool, ...] = ()
    """The pools of the compactor; empty: it does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySteps:
    """How often the replay looks, in seconds: larger steps are faster and coarser."""

    scan: int = 10
    """Between two scans of the stand-in."""
    plan: int = 60
    """Between two plans of the compactor."""
    poll: int = 10
    """Between two looks of the compactor while it drains."""


FINE_NODE_HOURS = 1_000
"""Up to so many node hours, a replay looks as often as the real processes do."""


def choose_steps(node_hours: float) -> ReplaySteps:
    """Returns how often to look at a recording of this size, so that a replay of it ends in time."""
    factor = max(1, min(30, round(node_hours / FINE_NODE_HOURS)))
    return ReplaySteps(scan=10 * factor, plan=max(60, 20 * factor), poll=10 * min(6, factor))


@dataclass(slots=True)
class ReplayedVariant:
    """What would have been in one variant."""

    variant: ReplayVariant
    outcome: DailyOutcome = field(default_factory=DailyOutcome)
    evicted: Counter[str] = field(default_factory=Counter)
    """Workload → how many of its pods were evicted."""
    decisions: Counter[str] = field(default_factory=Counter)
    """Decision and code → how often the compactor took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWorld:
    """What all variants have in common."""

    stretches: tuple[Stretch, ...]
    base: Inventory
    top_owners: Mapping[OwnerKey, OwnerKey]
    prices: Mapping[str, int]
    """Node group → micro-dollars an hour of one of its nodes."""
    node_prices: Mapping[str, int]
    """Recorded node → micro-dollars an hour."""


def replay_variant(
    world: ReplayWorld,
    variant: ReplayVariant,
    steps: ReplaySteps,
    on_second: Callable[[int], None] = lambda second: None,
    times: ClusterTimes = ClusterTimes(),  # noqa: B008  a frozen value
) -> ReplayedVariant:
    """Replays every stretch. `on_second` is called with how many seconds of all stretches are done."""
    result, done = ReplayedVariant(variant), 0
    for stretch in world.stretches:
        _replay_stretch(world, stretch, result, steps, lambda second, done=done: on_second(done + second), times)  # type: ignore[misc]
        done += stretch.end - stretch.begin
    return result


def _replay_stretch(
    world: ReplayWorld,
    stretch: Stretch,
    result: ReplayedVariant,
    steps: ReplaySteps,
    on_second: Callable[[int], None],
    times: ClusterTimes,
) -> None:
    variant = result.variant
    cluster = ReplayCluster(
        Churn(options=ChurnOptions(), workloads=(), events=list_events(stretch, world.top_owners)),
        times,
        epoch=stretch.begin,
        scheduler=ReplayScheduler(base=world.base),
        stretch=stretch,
        base=replace(world.base, missing_daemons=()),
        recorded_top_owners=world.top_owners,
        prices=world.prices,
    )
    stand_in = ChurnStandIn(cluster, StandInFlags(threshold=variant.threshold, scan_seconds=steps.scan))
    actuator = InMemoryActuator(cluster, stand_in.describe_autoscaler, variant.pools)
    loop = build_loop(actuator, plan_seconds=steps.plan, recheck_seconds=20, poll_seconds=steps.poll)
    end = stretch.end - stretch.begin
    next_scan, next_round = steps.scan, steps.plan if variant.pools else end
    scanned_version = -1
    while (second := min(next_scan, next_round)) < end:
        cluster.advance_to(second)
        if second == next_round:
            next_round = second + max(1, round(loop.run_round()))
        if second == next_scan:
            # Nothing follows from a scan of the same cluster but that time passes, which matters to unneeded nodes.
            if cluster.version != scanned_version or stand_in.state.unneeded or stand_in.state.unremovable:
                stand_in.run_scan()
                scanned_version = cluster.version
            next_scan = second + steps.scan
            on_second(second)
    cluster.advance_to(end)
    add_history(result.outcome, cluster.history, stretch.begin, stretch.end, cluster.group_of_node)
    result.evicted += cluster.count_evictions()
    result.decisions += Counter(f"{one.what} {one.code}" for one in actuator.decisions)
