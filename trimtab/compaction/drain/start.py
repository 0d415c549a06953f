"""How many nodes of a wave may be emptied right now?

Which drains begin now, and what do they look like?

A plan is made, then some time passes, then the world is looked at afresh: only what still holds begins.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.backoff import PoolBackoff
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import DrainStep, Observations, Wave


def due(wave: Wave, pool: Pool, seen: Observations, now: Seconds, owed: int = 0) -> tuple[DrainStep, ...]:
    """Steps of this pool to begin now: within its drains at a time and its evictions per hour, best first.

    `owed`: pods that drains under way have still to evict.

    A node of more pods than an hour allows may go when nothing else went in that hour: else it never would.
    """
    drains = pool.drains - sum(name == pool.name for name in seen.draining.values())
    spoken_for = seen.lately(now) + owed
    left = pool.evictions_per_hour - spoken_for
    found: list[DrainStep] = []
    for step in wave.steps:
        if step.pool != pool.name or step.node in seen.draining or len(found) >= drains:
            continue
        alone = not found and not spoken_for
        if len(step.moves) <= left or alone:
            found.append(step)
            left -= len(step.moves)
    return tuple(found)


CLOSED = Code(
    "pool-closed",
    "Two drains in a row failed, or the pool's state was lost: it is closed until somebody looks, or time passes.",
    "See the history, then `trimtab compactor resume --pool NAME`, or wait.",
)  # fmt: skip
BACKS_OFF = Code(
    "pool-backs-off",
    "What was emptied in the pool left its own pods waiting for a node, or made the autoscaler add one: nothing begins "
    "in it for an hour, twice as long each time, at most a day.",
    "See the history for which, and why they found no place; `trimtab compactor resume --pool NAME` ends the wait.",
)  # fmt: skip
JUST_OPENED = Code(
    "pool-uncordoned-recently",
    "An emptied node of the pool was opened for pods that waited: nothing begins for as long as the autoscaler waits "
    "after it added a node (--scale-down-delay-after-add).",
    "Wait.",
)  # fmt: skip
PAUSED = Code("compactor-paused", "Everything is paused.", "`trimtab compactor resume`.")
PACE = Code("pool-rate-limited", "As many nodes are emptied, or pods were evicted, as the pool allows.", "Wait.")


@dataclass(frozen=True, slots=True)
class ActiveDrains:
    """What is under way."""

    emptying: Mapping[str, str]
    """Node → pool."""
    emptied: Mapping[str, str]
    """Node → pool."""
    owed: Mapping[str, int] = field(default_factory=dict)
    """Pool → pods that have still to be evicted."""
    deleted: Mapping[str, str] = field(default_factory=dict)
    """Node → pool that leads, of nodes that the autoscaler removes: they count in its pace like drains of ours."""


def closed(pool: Pool, memory: PoolState, now: Seconds, terms: DrainTimeouts) -> Reason | None:
    """Is the pool closed by failures, or does it back off? None when it is open."""
    if memory.backoff is not None and now < memory.backoff.until:
        return backs_off(pool.name, memory.backoff, now)
    if memory.closed is None or now >= memory.closed + terms.closed:
        return None
    left = memory.closed + terms.closed - now
    why = f"{memory.strikes} drains in a row failed" if memory.strikes else "its state could not be read"
    return CLOSED(f"pool {pool.name} is closed for another {left} s: {why}")


def just_opened(pool: Pool, memory: PoolState, now: Seconds) -> Reason | None:
    """Was an emptied node of the pool opened not long ago? None where none was."""
    if memory.quiet_until is None or now >= memory.quiet_until:
        return None
    return JUST_OPENED(f"a node of pool {pool.name} was opened again; it waits another {memory.quiet_until - now} s")


def backs_off(pool: str, backoff: PoolBackoff, now: Seconds, why: str = "") -> Reason:
    told = why or f"what it emptied made pods wait or a node be added, {backoff.times} times in a row"
    return BACKS_OFF(f"pool {pool} backs off for another {backoff.until - now} s: {told}")


def steps_to_start(
    wave: Sequence[DrainStep], pool: Pool, memory: PoolState, standing: ActiveDrains, now: Seconds, terms: DrainTimeouts
) -> tuple[DrainStep, ...]:
    """Which of these steps may begin in this pool now, best first? Asked when they are planned, and when they begin."""
    if closed(pool, memory, now, terms) is not None or just_opened(pool, memory, now) is not None:
        return ()
    busy, emptying = {**standing.emptying, **standing.emptied}, {**standing.deleted, **standing.emptying}
    free = Wave(steps=tuple(step for step in wave if step.node not in busy))
    found = due(free, pool, memory.observations(emptying), now, standing.owed.get(pool.name, 0))
    return found[: max(0, terms.drains - len(emptying))]


def note(step: DrainStep, view: ClusterView, unit: str = "") -> DrainAnnotation:
    """What will stand on the node; `unit` is what the step's saving counts."""
    pods = {pod.uid: pod for pod in view.inventory.pods if pod.node == step.node}
    workloads = Workloads.of(view)
    moves = tuple(_leaving(pods[move.uid], move.turn, workloads) for move in step.moves if move.uid in pods)
    said = "\0".join((step.node, str(view.at), *(move.uid for move in moves)))
    drain = hashlib.sha256(said.encode()).hexdigest()[:10]
    surges = dict(_surges(moves, workloads))
    return DrainAnnotation(
        drain=drain, pool=step.pool, since=view.at, home=view.home, moves=moves, surges=surges, saves=step.saves,
        unit=unit,
    )  # fmt: skip


def _leaving(pod: PodInfo, turn: int, workloads: Workloads) -> PodToEvict:
    owner = pod.owner
    key = (pod.namespace, owner.kind, owner.name) if owner else ("", "", "")
    return PodToEvict(
        pod=pod.key, uid=pod.uid, kind=key[1], owner=key[2], turn=turn, priority=pod.priority, grace=pod.grace,
        wanted=workloads.wanted(key), missing=workloads.missing(key),
    )  # fmt: skip


def _surges(moves: Sequence[PodToEvict], workloads: Workloads) -> list[tuple[str, int]]:
    """Deployments of which the only replica moves."""
    found = []
    for move in moves:
        top = workloads.view.tops.get(move.workload)
        if top is not None and top.kind == "Deployment" and workloads.wanted(move.workload) == 1:
            found.append((f"{move.namespace}/{top.name}", 1))
    return found


def arrivals(found: DrainAnnotation, view: ClusterView) -> dict[str, Seconds]:
    """Pods that came to be since the drain began, of the workloads it moves: the successors, and when they came."""
    known = {move.uid for move in found.moves}
    keys = {move.workload for move in found.moves if move.owner}
    return {
        pod.key: min(pod.created, view.at)
        for pod in view.inventory.pods
        if pod.owner is not None
        and (pod.namespace, pod.owner.kind, pod.owner.name) in keys
        and pod.uid not in known
        and pod.created is not None
        and pod.created >= found.since
    }


def limited(pool: Pool, *, rehearses: bool, scale_namespaces: Collection[str]) -> Pool:
    """The pool as it is for a process that only rehearses, or that may scale in these namespaces alone."""
    return replace(pool, dry_run=pool.dry_run or rehearses, scale_namespaces=frozenset(scale_namespaces))
