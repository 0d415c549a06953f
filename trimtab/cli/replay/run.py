"""Replays the stretches of a recording in one variant: who empties nodes, and by which settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn.churn_cluster import ClusterTimes
from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import StandInState
from trimtab.autoscaling.replay.daily_outcome import HOUR, DailyOutcome, add_history, average_outcomes
from trimtab.autoscaling.replay.demand import list_events
from trimtab.autoscaling.replay.recorded_marks import list_unneeded
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.autoscaling.replay.replay_cluster import ReplayCluster, settle_deployments
from trimtab.autoscaling.replay.replay_scheduler import ReplayScheduler, can_ignore_labels
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.garbage_collection import without_garbage_collection
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
    repeat: int = 0
    """The number of the repeat. In each, new nodes get other names and the first pods another order, by which ties
    fall."""


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


def choose_repeats(node_hours: float) -> int:
    """Returns how often to replay a recording of this size. Which of two equal nodes a pod gets decides, an hour later,
    which machine is bought, and in a small cluster one machine is much: the average of several replays says more."""
    return max(1, min(5, round(2 * FINE_NODE_HOURS / max(1.0, node_hours))))


@dataclass(slots=True)
class ReplayedVariant:
    """What would have been in one variant."""

    variant: ReplayVariant
    outcome: DailyOutcome = field(default_factory=DailyOutcome)
    evicted: Counter[str] = field(default_factory=Counter)
    """Workload → how many of its pods were evicted, in all repeats together."""
    core_hours: list[float] = field(default_factory=list)
    """Those of each repeat."""


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
    result.core_hours.append(result.outcome.sum_pools().core_seconds / HOUR)
    return result


def average_repeats(repeats: Sequence[ReplayedVariant]) -> ReplayedVariant:
    """Returns the average of the repeats of one variant."""
    evicted: Counter[str] = Counter()
    for one in repeats:
        evicted.update(one.evicted)
    return ReplayedVariant(
        replace(repeats[0].variant, repeat=0),
        average_outcomes([one.outcome for one in repeats]),
        evicted,
        [hours for one in repeats for hours in one.core_hours],
    )


def _replay_stretch(
    world: ReplayWorld,
    stretch: Stretch,
    result: ReplayedVariant,
    steps: ReplaySteps,
    on_second: Callable[[int], None],
    times: ClusterTimes,
) -> None:
    cluster = start_cluster(world, stretch, result.variant, times)
    run_cluster(cluster, result.variant, steps, on_second)
    add_history(result.outcome, cluster.history, stretch.begin, stretch.end, cluster.group_of_node)
    result.evicted += cluster.count_evictions()


def start_cluster(
    world: ReplayWorld,
    stretch: Stretch,
    variant: ReplayVariant,
    times: ClusterTimes = ClusterTimes(),  # noqa: B008  a frozen value
    cluster_type: type[ReplayCluster] = ReplayCluster,
    scheduler_type: type[ReplayScheduler] = ReplayScheduler,
) -> ReplayCluster:
    """Returns the cluster at the beginning of the stretch."""
    pods = [*stretch.samples.values(), *(daemon for daemons in stretch.daemons.values() for daemon in daemons)]
    return cluster_type(
        Churn(options=ChurnOptions(), workloads=(), events=list_events(stretch, world.top_owners)),
        times,
        epoch=stretch.begin,
        naming=variant.repeat,
        scheduler=scheduler_type(base=world.base, ignores_labels=can_ignore_labels(pods)),
        stretch=stretch,
        base=replace(world.base, missing_daemons=(), deployments=settle_deployments(world.base.deployments)),
        recorded_top_owners=world.top_owners,
        prices=world.prices,
    )


@without_garbage_collection()
def run_cluster(
    cluster: ReplayCluster,
    variant: ReplayVariant,
    steps: ReplaySteps,
    on_second: Callable[[int], None] = lambda second: None,
) -> None:
    """Lets the autoscaler, and the compactor if the variant has one, act until the end of the stretch."""
    flags = StandInFlags(threshold=variant.threshold, scan_seconds=steps.scan)
    unneeded = list_unneeded(cluster.stretch)
    stand_in = ChurnStandIn(cluster, flags, StandInState(unneeded=unneeded, marked=frozenset(unneeded)))
    actuator = InMemoryActuator(cluster, stand_in.describe_autoscaler, variant.pools)
    loop = build_loop(actuator, plan_seconds=steps.plan, recheck_seconds=20, poll_seconds=steps.poll)
    end = cluster.stretch.end - cluster.stretch.begin
    next_scan, next_round = steps.scan, 0 if variant.pools else end
    scanned_version = -1
    while (second := min(next_scan, next_round)) < end:
        cluster.advance_to(second)
        if second == next_round:
            next_round = second + max(1, round(loop.run_round()))
        if second == next_scan:
            # Nothing follows from a scan of the same cluster but that time passes, which matters to unneeded nodes,
            # to drains, and to new pods, for which no node is bought in their first seconds.
            state = stand_in.state
            is_timed = state.unneeded or state.unremovable or state.draining or cluster.waiting
            if cluster.version != scanned_version or is_timed:
                stand_in.run_scan()
                scanned_version = cluster.version
            next_scan = second + steps.scan
            on_second(second)
    cluster.advance_to(end)
