"""To whom is room promised that is not there yet?

Pods that wait for a node, pods that their owners are about to make again, and one more pod as large as the largest
where a pool wants that: each has its place kept while a plan is made. A promise is kept on a node that stays anyway,
or else on the candidate that would go last, which then stays. Pods that are held back, or that only hold a place for
others, wait for no node. A pod that waits and finds no place, though a pool's
node could hold it, keeps that pool from shrinking; one that no node could ever hold is nobody's business.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import change
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction import reasons as r
from trimtab.packing import nature
from trimtab.packing.fit import admits
from trimtab.packing.kinds import Kind
from trimtab.packing.room import Room
from trimtab.packing.world import World

KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController")
"""Owners that make a lost pod again by themselves."""


@dataclass(slots=True)
class Promises:
    room: Room
    order: Sequence[int]
    """Candidates, the first to go first."""
    pool_of: dict[int, Pool]
    kept: list[tuple[Kind, int]] = field(default_factory=list)
    holders: dict[int, Reason] = field(default_factory=dict)
    """Candidates that stay because a promise is kept there."""
    pools: dict[str, Reason] = field(default_factory=dict)
    """Pools that must not shrink while a pod waits."""

    def keep(self, kind: Kind, whose: str, among: Iterable[int] | None = None) -> bool:
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
                self._refuse(kind, r.PODS_WAIT(f"pod {pod.key} waits for a node and could use the pool"))

    def _refuse(self, kind: Kind, reason: Reason) -> None:
        world = self.room.world
        for node, pool in self.pool_of.items():
            if pool.name not in self.pools and _could_hold(world, kind, node):
                self.pools[pool.name] = reason

    def returning(self) -> None:
        """What was evicted and is not made again yet: without a promise the same room is given away twice."""
        for name, kind, count in missing(self.room.world):
            for _ in range(count):
                if not self.keep(kind, f"a pod that {name} is about to make again"):
                    break

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


def _could_hold(world: World, kind: Kind, node: int) -> bool:
    """Would the pod fit if the node were empty?"""
    if nature.objection(kind.ask, kind.volumes, world.nodes[node]) is not None:
        return False
    wanted = [*zip(world.resources, (kind.major, kind.minor), strict=True)]
    wanted += [(world.names[number], amount) for number, amount in kind.rest]
    return all(amount <= world.amount(node, name) for name, amount in wanted if not name.startswith("volumes:"))


def missing(world: World) -> list[tuple[str, Kind, int]]:
    """(owner, what its pods ask for, how many it will make). Pods on their way out are as good as gone."""
    short = {
        name: scale.wanted
        for name, scale in world.inventory.owners.items()
        if name[1] in KINDS and scale.wanted is not None and scale.ready < scale.wanted
    }
    if not short:
        return []
    present = dict.fromkeys(short, 0)
    like: dict[tuple[str, str, str], Kind] = {}
    for pod, kind in (*zip(world.pods, world.next_of, strict=True), *world.waiting):
        name = (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else ("", "", "")
        if name in short:
            present[name] += pod.deleted is None
            like.setdefault(name, kind)
    return [(f"{n[1]} {n[0]}/{n[2]}", like[n], short[n] - present[n]) for n in sorted(like) if short[n] > present[n]]
