"""Which drains begin now, and what do they look like?

A plan is made, then some time passes, then the world is looked at afresh: only what still holds begins.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.moment import Seconds
from trimtab.cluster.pod import Pod
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.drain.memory import Memory
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compaction.drain.pace import due
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.drain.view import View, Workloads
from trimtab.compaction.values import Step, Wave

CLOSED = Code(
    "pool-closed",
    "Two drains in a row failed, or the pool's state was lost: it is closed until somebody looks, or time passes.",
    "See the history, then `trimtab compactor resume --pool NAME`, or wait.",
)  # fmt: skip
PAUSED = Code("compactor-paused", "Everything is paused.", "`trimtab compactor resume`.")
PACE = Code("pool-at-its-pace", "As many nodes are emptied, or pods were evicted, as the pool allows.", "Wait.")


@dataclass(frozen=True, slots=True)
class Standing:
    """What is under way."""

    emptying: Mapping[str, str]
    """Node → pool."""
    emptied: Mapping[str, str]
    """Node → pool."""
    owed: Mapping[str, int] = field(default_factory=dict)
    """Pool → pods that have still to be evicted."""


def closed(pool: Pool, memory: Memory, now: Seconds, terms: Terms) -> Reason | None:
    """Is the pool closed by failures? None when it is open."""
    if memory.closed is None or now >= memory.closed + terms.closed:
        return None
    left = memory.closed + terms.closed - now
    why = f"{memory.strikes} drains in a row failed" if memory.strikes else "its state could not be read"
    return CLOSED(f"pool {pool.name} is closed for another {left} s: {why}")


def due_now(
    wave: Sequence[Step], pool: Pool, memory: Memory, standing: Standing, now: Seconds, terms: Terms
) -> tuple[Step, ...]:
    """Which of these steps may begin in this pool now, best first? Asked when they are planned, and when they begin."""
    if closed(pool, memory, now, terms) is not None:
        return ()
    busy = {**standing.emptying, **standing.emptied}
    free = Wave(steps=tuple(step for step in wave if step.node not in busy))
    found = due(free, pool, memory.observations(standing.emptying), now, standing.owed.get(pool.name, 0))
    return found[: max(0, terms.drains - len(standing.emptying))]


def note(step: Step, view: View, unit: str = "") -> Note:
    """What will stand on the node; `unit` is what the step's saving counts."""
    pods = {pod.uid: pod for pod in view.inventory.pods if pod.node == step.node}
    moves = tuple(_leaving(pods[move.uid], move.turn) for move in step.moves if move.uid in pods)
    said = "\0".join((step.node, str(view.at), *(move.uid for move in moves)))
    drain = hashlib.sha256(said.encode()).hexdigest()[:10]
    surges = dict(_surges(moves, view))
    return Note(
        drain=drain, pool=step.pool, since=view.at, home=view.home, moves=moves, surges=surges, saves=step.saves,
        unit=unit,
    )  # fmt: skip


def _leaving(pod: Pod, turn: int) -> Leaving:
    owner = pod.owner
    return Leaving(
        pod=pod.key, uid=pod.uid, kind=owner.kind if owner else "", owner=owner.name if owner else "", turn=turn,
        priority=pod.priority, grace=pod.grace,
    )  # fmt: skip


def _surges(moves: Sequence[Leaving], view: View) -> list[tuple[str, int]]:
    """Deployments of which the only replica moves."""
    workloads, found = Workloads(view), []
    for move in moves:
        top = view.tops.get(move.workload)
        if top is not None and top.kind == "Deployment" and workloads.wanted(move.workload) == 1:
            found.append((f"{move.namespace}/{top.name}", 1))
    return found


def arrivals(found: Note, view: View) -> dict[str, Seconds]:
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


def rehearsing(pool: Pool, *, everywhere: bool) -> Pool:
    """The pool as it is where nothing may be done at all."""
    return replace(pool, dry_run=True) if everywhere else pool
