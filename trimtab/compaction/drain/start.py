"""Chooses the drains that begin now, and creates their annotations.

A pool limits how many drains may be in progress and how many pods may be evicted per hour. Time passes between a plan
and its execution, so these limits are checked when a step is planned and again when it begins.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.kinds import DEPLOYMENT
from trimtab.cluster.owner import NO_OWNER_KEY
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import AutoscalerFloor, DrainAnnotation, PodToEvict, deployment_key
from trimtab.compaction.drain.backoff import PoolBackoff
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.reasons import BACKS_OFF, CLOSED, JUST_OPENED
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import DrainStep, Observations, Wave
from trimtab.compaction.surge.find_surge import autoscaler_reason

MAX_NAMESPACES = 3
"""The largest number of namespaces that the reason of a closed pool names."""


def steps_within_pace(
    wave: Wave, pool: Pool, observations: Observations, now: Seconds, owed: int = 0
) -> tuple[DrainStep, ...]:
    """Returns the steps of this pool that may begin now, best first. The pool's limits for simultaneous drains and for
    evictions per hour are respected.

    `owed` is the number of pods that drains in progress still have to evict. A node with more pods than may be evicted
    in an hour may be drained if no other eviction happened in the last hour; otherwise it could never be drained.
    """
    drains = pool.drains - sum(name == pool.name for name in observations.draining.values())
    counted_evictions = observations.recent_evictions(now) + owed
    evictions_left = pool.evictions_per_hour - counted_evictions
    steps: list[DrainStep] = []
    for step in wave.steps:
        if step.pool != pool.name or step.node in observations.draining or len(steps) >= drains:
            continue
        is_alone = not steps and not counted_evictions
        if step.eviction_count <= evictions_left or is_alone:
            steps.append(step)
            evictions_left -= step.eviction_count
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class ActiveDrains:
    """The drains in progress."""

    emptying: Mapping[str, str]
    """Node → pool, for drains that are still evicting pods."""
    emptied: Mapping[str, str]
    """Node → pool, for empty nodes that wait for their removal."""
    stopping: frozenset[str] = frozenset()
    """The nodes of `emptying` whose drains only wait for pods with a long grace period to stop. They hold no place of
    `pace.drains`."""
    owed: Mapping[str, int] = field(default_factory=dict)
    """Pool → the number of pods that still have to be evicted."""
    deleted: Mapping[str, str] = field(default_factory=dict)
    """Node → pool, for nodes that the autoscaler is removing from pools with `autoscaler: lead`. They count towards the
    pool's limits like the compactor's own drains."""


def closed_reason(pool: Pool, state: PoolState, now: Seconds, timeouts: DrainTimeouts) -> Reason | None:
    """Returns why no drain may begin in the pool: failures have closed it, or it backs off. None if drains may begin.
    `state` is the pool's stored state."""
    if state.backoff is not None and now < state.backoff.retry_after:
        return backoff_reason(pool.name, state.backoff, now)
    if state.closed is None or now >= state.closed + timeouts.closed:
        return None
    remaining = state.closed + timeouts.closed - now
    cause = describe_strikes(state) if state.strikes else "the state of the pool could not be read"
    return CLOSED(f"pool {pool.name} is closed for {remaining} more seconds, because {cause}")


def describe_strikes(state: PoolState) -> str:
    """Returns how many drains of the pool failed in a row, with the namespaces that made them fail."""
    names = join_first(sorted(state.strike_namespaces), MAX_NAMESPACES)
    if not names:
        return f"{format_count(state.strikes, 'drain')} in a row failed"
    times = f"{format_count(state.strikes, 'drain')} in a row failed, where all failures of one namespace count as one"
    return f"{times} ({names})"


def opening_reason(pool: Pool, state: PoolState, now: Seconds) -> Reason | None:
    """Returns why no drain may begin because a drained node of the pool was uncordoned recently, or None if drains may
    begin."""
    if state.quiet_until is None or now >= state.quiet_until:
        return None
    return JUST_OPENED(
        f"a drained node of pool {pool.name} was uncordoned, so the pool starts no drain for "
        f"{state.quiet_until - now} s"
    )


def backoff_reason(pool: str, backoff: PoolBackoff, now: Seconds, why: str = "") -> Reason:
    """Returns the reason for a back-off. `why` is its cause; by default it is the number of setbacks."""
    times = f"{backoff.times} time{'' if backoff.times == 1 else 's'} in a row"
    cause = why or f"drains of the pool left pods pending or made the autoscaler add a node, {times}"
    return BACKS_OFF(f"pool {pool} starts no drain for {backoff.retry_after - now} s, because {cause}")


def steps_to_start(
    wave: Sequence[DrainStep], pool: Pool, state: PoolState, active: ActiveDrains, now: Seconds, timeouts: DrainTimeouts
) -> tuple[DrainStep, ...]:
    """Returns the steps that may begin in this pool now, best first. This is checked when the steps are planned, and
    again when they begin.

    `state`: the pool's stored state. `active`: the drains in progress. `timeouts`: the time limits and the maximum
    number of drains."""
    if closed_reason(pool, state, now, timeouts) is not None or opening_reason(pool, state, now) is not None:
        return ()
    busy = {**active.emptying, **active.emptied}
    emptying = {
        **active.deleted,
        **{node: pool_name for node, pool_name in active.emptying.items() if node not in active.stopping},
    }
    free = Wave(steps=tuple(step for step in wave if step.node not in busy))
    steps = steps_within_pace(free, pool, state.to_observations(emptying), now, active.owed.get(pool.name, 0))
    return steps[: max(0, timeouts.drains - len(emptying))]


def create_annotation(step: DrainStep, view: ClusterView, unit: str = "") -> DrainAnnotation:
    """Returns the annotation for the node of the step; `unit` is the unit of the step's saving."""
    by_uid = view.inventory.pod_index.by_uid
    pods = {move.uid: pod for move in step.moves if (pod := by_uid.get(move.uid)) is not None and pod.node == step.node}
    workloads = Workloads(view)
    moves = tuple(
        _pod_to_evict(pods[move.uid], move.turn, workloads, step.groups.get(move.uid, ""))
        for move in step.moves
        if move.uid in pods
    )
    uids = {companion.uid for companion in step.companions}
    companions = tuple(
        _pod_to_evict(pod, 0, workloads, step.groups.get(pod.uid, ""))
        for pod in (view.inventory.pods if uids else ())
        if pod.uid in uids
    )
    identity = "\0".join((step.node, str(view.now), *(move.uid for move in moves)))
    # Derived from the decision and not random: a repeated start of the same drain has the same name.
    drain = hashlib.sha256(identity.encode()).hexdigest()[:10]
    extras = _needed_extras(step, pods, view)
    surges = dict(_needed_surges(moves, workloads, extras))
    return DrainAnnotation(
        drain=drain,
        pool=step.pool,
        since=view.now,
        home=view.namespace,
        moves=moves,
        companions=companions,
        surges=surges,
        extras={name: extra for name, extra in extras.items() if name in surges},
        floors=dict(_floors_of(surges, extras, view)),
        saves=step.saves,
        unit=unit,
    )


def _pod_to_evict(pod: PodInfo, turn: int, workloads: Workloads, group: str) -> PodToEvict:
    """Returns one pod to evict, with the state of its workload at the beginning of the drain."""
    key = pod.owner or NO_OWNER_KEY
    return PodToEvict(
        pod=pod.key,
        uid=pod.uid,
        kind=key.kind,
        owner=key.name,
        turn=turn,
        priority=pod.priority,
        grace=pod.grace_seconds,
        wanted=workloads.wanted_replicas(key),
        missing=workloads.missing_replicas(key),
        group=group,
    )


def _needed_extras(step: DrainStep, pods: Mapping[str, PodInfo], view: ClusterView) -> dict[str, int]:
    """Returns Deployment (namespace/name) → the number of additional pods that its budget needs, according to the
    plan."""
    extras: dict[str, int] = {}
    for move in step.moves:
        pod = pods.get(move.uid)
        top = view.top_owners.get(pod.owner) if move.surge and pod is not None and pod.owner is not None else None
        if top is not None and top.kind == DEPLOYMENT:
            name = f"{top.namespace}/{top.name}"
            extras[name] = max(extras.get(name, 0), move.surge)
    return extras


def _needed_surges(
    moves: Sequence[PodToEvict], workloads: Workloads, extras: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Returns the Deployments that get more pods, with their number of replicas now: those whose only replica moves,
    and those of `extras`."""
    surges = []
    for move in moves:
        top = workloads.view.top_owners.get(move.owner_key)
        if top is None or top.kind != DEPLOYMENT:
            continue
        name = f"{move.namespace}/{top.name}"
        if workloads.wanted_replicas(move.owner_key) == 1:
            surges.append((name, 1))
        elif name in extras:
            surges.append((name, workloads.wanted_replicas(top)))
    return surges


def _floors_of(
    surges: Mapping[str, int], extras: Mapping[str, int], view: ClusterView
) -> Iterator[tuple[str, AutoscalerFloor]]:
    """Yields each Deployment whose HorizontalPodAutoscaler is raised instead of its count. Where it cannot be raised,
    the count itself is: the plan permits that only for the only replica of a Deployment without a budget."""
    for name in surges:
        state = view.inventory.deployments.find(deployment_key(name))
        if state is None or state.autoscaler is None or autoscaler_reason(state, extras.get(name, 1)) is not None:
            continue
        yield name, AutoscalerFloor(state.autoscaler.name, state.autoscaler.min_replicas)


def find_successors(annotation: DrainAnnotation, view: ClusterView) -> dict[str, Seconds]:
    """Returns successor → creation time. Successors are pods of the moved workloads that were created since the drain
    began."""
    moves = (*annotation.moves, *annotation.companions)
    evicted = {move.uid for move in moves}
    keys = {move.owner_key for move in moves if move.owner}
    return {
        pod.key: min(pod.created, view.now)
        for key in keys
        for pod in view.inventory.pod_index.by_owner.get(key, ())
        if pod.uid not in evicted and pod.created is not None and pod.created >= annotation.since
    }


def limit_pool(pool: Pool, *, rehearses: bool, scale_namespaces: Collection[str]) -> Pool:
    """Returns the pool, changed for a process that only makes dry runs, or that may scale Deployments only in these
    namespaces."""
    return replace(pool, dry_run=pool.dry_run or rehearses, scale_namespaces=frozenset(scale_namespaces))
