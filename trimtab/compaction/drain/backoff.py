"""Did what we emptied leave our own pods waiting, or have the autoscaler buy a node? Then the whole pool backs off.

A drain that is released because the cluster changed is nobody's fault, and growth of the load alone is none of ours.
But where the pods that a drain displaced wait for a node, or a node is added that would not have been needed without
what we emptied, the next node of the pool would go the same way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Labels
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, Key, Workloads
from trimtab.compaction.plan_types import backoff_seconds
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity, build
from trimtab.scheduling.filters import admits
from trimtab.scheduling.node_filters import CORDON
from trimtab.scheduling.pod_class import PodClass

FIRST_WAIT, LONGEST_WAIT = 3600, 24 * 3600
"""Seconds that a pool backs off for the first time, and at most; each time in a row doubles it."""
FORGET_AFTER = 24 * 3600
"""Seconds after the end of a back-off in which nothing of the kind happens until it begins at the first wait again."""
BOUGHT_WITHIN = 1800
"""Seconds after a node was emptied in which another one that is added may stand in its place."""
SEEN_AFTER = 30
"""Seconds until the pods a node was added for have come to it: it is judged then."""


class PoolBackoff(msgspec.Struct, frozen=True):
    """How often in a row a pool harmed itself, and when last."""

    times: int
    last: Seconds

    @property
    def until(self) -> Seconds:
        """An hour after the first time, doubling, at most a day."""
        return self.last + backoff_seconds(self.times, FIRST_WAIT, LONGEST_WAIT)

    def is_forgotten(self, now: Seconds) -> bool:
        return now >= self.until + FORGET_AFTER


class EmptiedNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a node that all its pods have left could hold: it is gone when somebody asks."""

    at: Seconds
    """When it was empty."""
    labels: Labels
    allocatable: dict[str, int]
    taints: tuple[Taint, ...] = ()
    attachable: dict[str, int] = {}

    def as_node(self, name: str) -> NodeInfo:
        """The node as it would be now: open, ready and without a pod."""
        return NodeInfo(
            name=name, labels=self.labels, annotations={}, taints=self.taints, cordoned=False, ready=True,
            allocatable=dict(self.allocatable), capacity=dict(self.allocatable), attachable=self.attachable,
            created=None, provider_id="",
        )  # fmt: skip


def emptied_node(node: NodeInfo, at: Seconds) -> EmptiedNode | None:
    """What is kept of a node that is empty now; None where nobody can read what it could hold."""
    if isinstance(node.allocatable, Unreadable):
        return None
    taints = tuple(taint for taint in node.taints if taint.key != CORDON.key and taint.effect != "PreferNoSchedule")
    return EmptiedNode(
        at=at, labels=dict(node.labels), allocatable=dict(node.allocatable), taints=taints,
        attachable=dict(node.attachable),
    )  # fmt: skip


# ── pods that a drain displaced ──────────────────────────────────────────────────────────────────────


def growth(moves: Iterable[PodToEvict], workloads: Workloads) -> dict[Key, int]:
    """Workload → pods it wants more than when its drain began: so many new ones are nobody's successors."""
    return {
        move.workload: max(0, workloads.wanted(move.workload) - move.wanted) if move.wanted else 0
        for move in moves
        if move.owner
    }


def displaced(note: DrainAnnotation, pods: Iterable[PodInfo], workloads: Workloads) -> str:
    """The first of these pods (namespace/name) that stands in the place of one that the drain evicted.

    Pods of the drain's workloads that came to be since it began are successors, but for as many as the workload has
    grown by. Once the node was empty all of them were ready: what came later is none. Empty where there is none.
    """
    known, grown = {move.uid for move in note.moves}, growth(note.moves, workloads)
    found: dict[Key, list[str]] = {}
    for pod in pods:
        key = (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else ("", "", "")
        came = pod.created
        is_new = came is not None and note.since <= came <= (note.emptied or came) and pod.uid not in known
        if is_new and key in grown and pod.deleted is None and not pod.finished:
            found.setdefault(key, []).append(pod.key)
    return next((sorted(keys)[0] for key, keys in sorted(found.items()) if len(keys) > grown[key]), "")


def waiting_successor(note: DrainAnnotation, view: ClusterView, workloads: Workloads, pending: Seconds) -> str:
    """A pod of the drain that no node takes: the scheduler says so, or it has had none for `pending` seconds."""
    waiting = (pod for pod in view.inventory.pods if pod.seeking and is_unplaced(pod, view.at, pending))
    return displaced(note, waiting, workloads)


def is_unplaced(pod: PodInfo, at: Seconds, pending: Seconds) -> bool:
    """Does it wait for a node in vain: by the scheduler's word, or because it has waited for so long?"""
    return pod.unschedulable or (pod.created is not None and at - pod.created > pending)


# ── nodes that were added ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Setback:
    """Why a pool has to back off."""

    pool: str
    cause: str
    """The drain or the added node: one of them counts once."""
    why: str


Emptied = Mapping[str, Mapping[str, EmptiedNode]]
"""Pool → node → what it could hold."""


def setbacks(view: ClusterView, emptied: Emptied, judged: Iterable[str]) -> Iterator[Setback]:
    """Nodes that were added because of what we emptied; `judged`: drains and nodes that have counted."""
    known = set(judged)
    added = [(node, pods) for node, pods in _added(view) if node.name not in known]
    if added:
        workloads = Workloads.of(view)
        notes = [note for _, note in view.noted() if isinstance(note, DrainAnnotation) and note.drain not in known]
        yield from _bought_for_successors(added, notes, workloads)
        yield from _bought_instead(added, view, emptied)


def _added(view: ClusterView) -> list[tuple[NodeInfo, list[PodInfo]]]:
    """Nodes that are new and settled, in the order they came, with the pods that waited for them: older than they."""
    new = {
        node.name: node
        for node in view.inventory.nodes
        if node.created is not None and SEEN_AFTER <= view.at - node.created < BOUGHT_WITHIN
    }
    pods: dict[str, list[PodInfo]] = {}
    for pod in view.inventory.pods if new else ():
        if pod.node in new and _waited_for(pod, new[pod.node]):
            pods.setdefault(pod.node, []).append(pod)
    return sorted(((new[name], mine) for name, mine in pods.items()), key=lambda pair: (pair[0].created, pair[0].name))


def _waited_for(pod: PodInfo, node: NodeInfo) -> bool:
    if pod.daemon or pod.static or pod.finished or pod.created is None or node.created is None:
        return False
    return pod.created <= node.created


def _bought_for_successors(
    added: Sequence[tuple[NodeInfo, list[PodInfo]]], notes: Iterable[DrainAnnotation], workloads: Workloads
) -> Iterator[Setback]:
    for note in notes:
        pods = [pod for node, mine in added if node.created is not None and node.created >= note.since for pod in mine]
        if whose := displaced(note, pods, workloads):
            yield Setback(note.pool, note.drain, f"a node was added for pod {whose}, which drain {note.drain} moved")


def _bought_instead(
    added: Sequence[tuple[NodeInfo, list[PodInfo]]], view: ClusterView, emptied: Emptied
) -> Iterator[Setback]:
    """A node whose pods would all have fitted on what was emptied in the half hour before."""
    names = {node.name: node for node in view.inventory.nodes}
    first = min(node.created or 0 for node, _ in added)
    ghosts = {
        name: (pool, kept)
        for pool, nodes in emptied.items()
        for name, kept in nodes.items()
        if kept.at > first - BOUGHT_WITHIN and (name not in names or name in view.notes.ours)
    }
    if not ghosts:
        return
    world = _before(view, added, {name: kept for name, (_, kept) in ghosts.items()})
    room, kinds = FreeCapacity(world), {pod.uid: kind for pod, kind in world.waiting}
    for node, pods in added:
        at = node.created or 0
        open_then = [name for name, (_, kept) in ghosts.items() if kept.at <= at < kept.at + BOUGHT_WITHIN]
        used = _placed(room, [kinds[pod.uid] for pod in pods], [world.index[name] for name in open_then])
        if used is not None:
            name = world.nodes[used].name
            told = f"node {node.name} was added for pods that would have fitted on node {name}, which we emptied"
            yield Setback(ghosts[name][0], node.name, told)


def _before(
    view: ClusterView, added: Sequence[tuple[NodeInfo, list[PodInfo]]], kept: Mapping[str, EmptiedNode]
) -> ClusterModel:
    """What was there, had nothing been emptied or added: the added nodes' pods wait."""
    waited = {pod.uid for _, pods in added for pod in pods}
    pods = tuple(
        msgspec.structs.replace(pod, node="") if pod.uid in waited else pod for pod in view.inventory.pods
    )  # fmt: skip
    nodes = [node for node in view.inventory.nodes if node.name not in kept]
    nodes += [found.as_node(name) for name, found in kept.items()]
    nodes.sort(key=lambda node: node.name)
    return build(replace(view.inventory, nodes=tuple(nodes), pods=pods))


def _placed(room: FreeCapacity, kinds: Sequence[PodClass], nodes: Sequence[int]) -> int | None:
    """A node that takes one of the pods where these nodes take all of them; else nothing is taken, and None."""
    taken: list[tuple[PodClass, int]] = []
    for kind in kinds:
        place = next((node for node in nodes if admits(room, kind, node)), None)
        if place is None:
            for one, node in taken:
                room.give(one, node)
            return None
        room.take(kind, place)
        taken.append((kind, place))
    return taken[0][1] if taken else None
