"""To whom is room promised that is not there yet?

Pods that wait for a node, pods that their owners are about to make again, pods that a capacity buffer keeps room for,
and one more pod as large as the largest where a pool wants that: each has its place kept while a plan is made. A
promise is kept on a node that stays anyway,
or else on the candidate that would go last, which then stays. Pods that are held back, or that only hold a place for
others, wait for no node. A pod that waits and finds no place, though a pool's
node could hold it, keeps that pool from shrinking until it has waited for longer than the pool's limit; one that no
node could ever hold keeps none. Either is named.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import change
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction import reasons as r
from trimtab.scheduling import node_filters
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import admits
from trimtab.scheduling.pod_class import PodClass

KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController")
"""Owners that make a lost pod again by themselves."""

MAX_CHUNKS = 500
"""Pods of capacity buffers that room is kept for: whoever may make a buffer may ask for any number."""


@dataclass(slots=True)
class ReservedCapacity:
    room: FreeCapacity
    order: Sequence[int]
    """Candidates, the first to go first."""
    pool_of: dict[int, Pool]
    kept: list[tuple[PodClass, int]] = field(default_factory=list)
    holders: dict[int, Reason] = field(default_factory=dict)
    """Candidates that stay because a promise is kept there."""
    pools: dict[str, Reason] = field(default_factory=dict)
    """Pools that must not shrink while a pod waits."""
    at: Seconds | None = None
    """None: nobody knows how long a pod has waited."""
    ignored: list[str] = field(default_factory=list)
    """Pods that wait and keep no pool from shrinking, each in words."""

    def keep(self, kind: PodClass, whose: str, among: Iterable[int] | None = None) -> bool:
        """A place for one more pod of this kind.

        What we cannot judge of it (a claim that is not bound yet, another scheduler) only narrows its places down: it
        is taken for room that will be needed somewhere.
        """
        kind = kind if kind.unknown is None else change(kind, unknown=None)
        candidates = set(self.order) - set(self.holders)
        nodes = range(len(self.room.world.nodes)) if among is None else list(among)
        last = [n for n in reversed(self.order) if n in candidates and (among is None or n in set(nodes))]
        for node in (*(n for n in nodes if n not in candidates), *last):
            if admits(self.room, kind, node):
                self.room.take(kind, node)
                self.kept.append((kind, node))
                if node in candidates:
                    name = self.room.world.nodes[node].name
                    self.holders[node] = r.PROMISED(f"node {name} keeps room for {whose}")
                return True
        return False

    def waiting(self) -> None:
        world = self.room.world
        for pod, kind in world.waiting:
            if not pod.seeking:
                continue
            if not self.keep(kind, f"pod {pod.key}, which waits for a node"):
                self._refuse(pod, kind)

    def _refuse(self, pod: PodInfo, kind: PodClass) -> None:
        """The pools of which a node could hold the pod, were it empty."""
        reason = r.PODS_WAIT(f"pod {pod.key} waits for a node and could use the pool")
        able = {pool.name: pool for node, pool in self.pool_of.items() if _could_hold(self.room.world, kind, node)}
        if not able:
            self.ignored.append(f"pod {pod.key} waits for a node and fits on none of any pool, not even an empty one")
        for pool in able.values():
            if self._has_waited(pod, pool):
                told = f"pod {pod.key} has waited for a node for more than {pool.pending_limit} s"
                self.ignored.append(f"{told}: pool {pool.name} no longer waits for it")
            else:
                self.pools.setdefault(pool.name, reason)

    def _has_waited(self, pod: PodInfo, pool: Pool) -> bool:
        return self.at is not None and pod.created is not None and self.at - pod.created > pool.pending_limit

    def returning(self) -> None:
        """What was evicted and is not made again yet: without a promise the same room is given away twice."""
        for name, kind, count in missing(self.room.world):
            for _ in range(count):
                if not self.keep(kind, f"a pod that {name} is about to make again"):
                    break

    def buffers(self) -> None:
        """Room that the autoscaler keeps by capacity buffers: without a promise it would buy it back."""
        left = MAX_CHUNKS
        for buffer, kind in self.room.world.buffered:
            wanted = min(buffer.replicas, left)
            held = next((n for n in range(wanted) if not self.keep(kind, f"capacity buffer {buffer.key}")), wanted)
            left -= held
            if held < buffer.replicas:
                self.ignored.append(
                    f"room is kept for {held} of {buffer.replicas} pods of capacity buffer {buffer.key}"
                )

    def leaving(self, draining: Iterable[str]) -> None:
        """Pods that still have to leave a node that is being emptied, and that no plan may speak of just now."""
        world, planned = self.room.world, set(self.order)
        for node in (world.index[name] for name in sorted(draining) if name in world.index):
            for pod in world.on[node] if node not in planned else ():
                found = world.pods[pod]
                if not (found.daemon or found.static or found.finished or found.deleted is not None):
                    self.keep(world.next_of[pod], f"pod {found.key}, whose node is being emptied")

    def largest(self, pool: Pool, pods: Iterable[int]) -> None:
        """Room for one more of the largest pod of a pool that may move; if there is none even now, none is kept."""
        kinds = self.room.world.next_of
        largest = max(pods, key=lambda pod: (kinds[pod].major, kinds[pod].minor, -pod), default=None)
        if largest is not None:
            alone = change(kinds[largest], adds=(), bars=(), spreads=(), together=None, checked=False)
            mine = [node for node, found in self.pool_of.items() if found is pool]
            self.keep(alone, f"one more pod as large as pool {pool.name}'s largest", mine)


def _could_hold(world: ClusterModel, kind: PodClass, node: int) -> bool:
    """Would the pod fit if the node were empty?"""
    if node_filters.objection(kind.ask, kind.volumes, world.nodes[node]) is not None:
        return False
    wanted = [*zip(world.resources, (kind.major, kind.minor), strict=True)]
    wanted += [(world.names[number], amount) for number, amount in kind.rest]
    return all(amount <= world.amount(node, name) for name, amount in wanted if not name.startswith("volumes:"))


def missing(world: ClusterModel) -> list[tuple[str, PodClass, int]]:
    """(owner, what its pods ask for, how many it will make). Pods on their way out are as good as gone."""
    short = {
        name: scale.wanted
        for name, scale in world.inventory.owners.items()
        if name[1] in KINDS and scale.wanted is not None and scale.ready < scale.wanted
    }
    if not short:
        return []
    present = dict.fromkeys(short, 0)
    like: dict[tuple[str, str, str], PodClass] = {}
    for pod, kind in (*zip(world.pods, world.next_of, strict=True), *world.waiting):
        name = (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else ("", "", "")
        if name in short:
            present[name] += pod.deleted is None
            like.setdefault(name, kind)
    return [(f"{n[1]} {n[0]}/{n[2]}", like[n], short[n] - present[n]) for n in sorted(like) if short[n] > present[n]]
