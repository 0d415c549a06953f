"""Is this the last node of a zone that something needs?

Counted over all pools. A spread over zones (DoNotSchedule) needs every zone it has; a volume needs the only zone from
which it can be reached, even while no pod uses it: a StatefulSet scaled to zero comes back to it.

Does the autoscaler keep this node because its group is at its minimum?

An emptied node of a group at its minimum would stay for ever, empty and cordoned. Counted over all pools, for nodes
that tell their group; `PoolLimits.least` keeps the sum for those that don't.

May the pool lose one more node? Minimum sizes and room that is kept free, while a plan grows.

Would the cluster autoscaler remove this node by itself?

It takes a node whose requests are under its threshold: the larger of cpu and memory, or GPUs alone where the node has
some (cluster-autoscaler simulator/utilization, 1.34). By its flags pods of DaemonSets and static pods count neither as
requested nor as room. That its pods fit elsewhere is for who asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.node import ZONE, group_of
from trimtab.cluster.pool import Pool, Spare
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import AT_MINIMUM, LAST_OF_ZONE, NO_HEADROOM
from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.node_filters import node_selected
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True, eq=False)
class ZoneMinimums:
    world: ClusterModel
    left: dict[str, int] = field(default_factory=dict)
    """Zone → its nodes that take pods and stay."""
    _needed: dict[str, str] = field(default_factory=dict)
    """Zone → who needs it, empty where nobody does; once it was asked."""

    def __post_init__(self) -> None:
        for number, node in enumerate(self.world.nodes):
            if node.zone and not self.world.closed[number]:
                self.left[node.zone] = self.left.get(node.zone, 0) + 1

    def refuses(self, node: int) -> Reason | None:
        """Why the node may not go; None when its zone has others, or nobody needs the zone."""
        found = self.world.nodes[node]
        if self.left.get(found.zone) != 1 or len(self.left) == 1 or self.world.closed[node]:
            return None
        if found.zone not in self._needed:
            self._needed[found.zone] = self._who(found.zone)
        who = self._needed[found.zone]
        return LAST_OF_ZONE(f"node {found.name} is the last of zone {found.zone}, which {who} needs") if who else None

    def count(self, node: int, sign: int) -> None:
        """One node of the zone goes (-1) or comes back (1)."""
        if not self.world.closed[node] and (zone := self.world.nodes[node].zone):
            self.left[zone] += sign

    def _who(self, zone: str) -> str:
        for pod in {id(pod.ask): pod for pod in self.world.pods}.values():
            if any(spread.topology_key == ZONE for spread in pod.ask.spreads):
                return f"the spread of pod {pod.key} over zones"
        inside = [node for node in self.world.nodes if node.zone == zone]
        outside = [node for node in self.world.nodes if node.zone in self.left and node.zone != zone]
        bound = {claim.nodes: name for name, claim in self.world.inventory.claims.items() if claim.nodes is not None}
        for nodes, (namespace, name) in bound.items():
            here = any(node_selected(nodes, node) for node in inside)
            if here and not any(node_selected(nodes, node) for node in outside):
                return f"the volume of claim {namespace}/{name}"
        return ""


@dataclass(slots=True, eq=False)
class NodeGroupMinimums:
    world: ClusterModel
    of: dict[int, NodeGroupStatus] = field(default_factory=dict)
    """Node → its group, where it tells one that has a minimum."""
    left: dict[str, int] = field(default_factory=dict)
    """Group → its nodes that take pods and stay."""

    @classmethod
    def read(cls, world: ClusterModel, autoscaler: Autoscaler | None) -> "NodeGroupMinimums":
        made = cls(world)
        least = [group for group in autoscaler.groups if group.min_size] if autoscaler is not None else []
        for number, node in enumerate(world.nodes if least else ()):
            found = group_of(node, autoscaler.groups) if autoscaler is not None else None
            if found is not None and found.min_size and not world.closed[number]:
                made.of[number] = found
                made.count(number, 1)
        return made

    def refuses(self, node: int) -> Reason | None:
        """Why the node may not go; None where its group has more than its minimum, or is not known."""
        group = self.of.get(node)
        if group is None or self.left[group.name] > (group.min_size or 0):
            return None
        return AT_MINIMUM(f"the autoscaler keeps at least {group.min_size} nodes in group {group.name}")

    def count(self, node: int, sign: int) -> None:
        """One node of the group goes (-1) or comes back (1)."""
        group = self.of.get(node)
        if group is not None:
            self.left[group.name] = self.left.get(group.name, 0) + sign


Pair = list[int]
"""[of the scarcer resource, of the other]."""


@dataclass(slots=True, eq=False)
class PoolLimits:
    """One pool's numbers; `go` and `back` undo each other."""

    pool: Pool
    world: ClusterModel
    nodes: Sequence[int]
    cluster: ZoneMinimums
    """Shared by all pools."""
    groups: NodeGroupMinimums
    """Shared by all pools."""
    least: int = 0
    """Nodes that the autoscaler keeps in the pool's groups: an emptied one beyond them would stay for ever."""
    kept: int = 0
    """Nodes that stay and take pods: one that is cordoned, ill or unreadable is none of them."""
    zones: dict[str, int] = field(default_factory=dict)
    """Zone → as many of them."""
    have: Pair = field(default_factory=lambda: [0, 0])
    """Allocatable on nodes that stay and take pods."""
    free: Pair = field(default_factory=lambda: [0, 0])
    """Free on them."""
    used: dict[str, Pair] = field(default_factory=dict)
    """Zone → requested on them; only kept where a zone's death must be survived."""
    room: dict[str, Pair] = field(default_factory=dict)
    """Zone → free on them; likewise."""
    loose: bool = False
    """No room is kept at all: nothing needs to be counted."""
    mean: tuple[int, int] = (0, 0)
    largest: tuple[int, int] = (0, 0)
    remaining: Pair = field(default_factory=lambda: [0, 0])
    """What may still arrive before the pool has less free room than it keeps; below zero where it has less already.

    The same list for the life of the object, so that whoever places pods can read it; unused where `loose`.
    """

    def __post_init__(self) -> None:
        headroom = self.pool.headroom
        self.loose = not headroom.percent and not headroom.nodes and self.pool.spare is Spare.NONE
        sizes = [self._size(node) for node in self.nodes] if not self.loose else ()
        if sizes:
            self.mean = (sum(a for a, _ in sizes) // len(sizes), sum(b for _, b in sizes) // len(sizes))
            self.largest = (max(a for a, _ in sizes), max(b for _, b in sizes))
        for node in self.nodes:
            self._stays(node, 1)
        self._recount_remaining()

    def _size(self, node: int) -> tuple[int, int]:
        first, second = self.world.resources
        return self.world.amount(node, first), self.world.amount(node, second)

    def _count(self, node: int, sign: int) -> None:
        size = self._size(node)
        free = (self.world.major[node], self.world.minor[node])
        zone = self.world.nodes[node].zone
        for i in (0, 1):
            self.have[i] += sign * size[i]
            self.free[i] += sign * free[i]
            self.room.setdefault(zone, [0, 0])[i] += sign * free[i]
            self.used.setdefault(zone, [0, 0])[i] += sign * (size[i] - free[i])

    def _stays(self, node: int, sign: int) -> None:
        if self.world.closed[node]:
            return
        self.kept += sign
        zone = self.world.nodes[node].zone
        self.zones[zone] = self.zones.get(zone, 0) + sign
        if not self.loose:
            self._count(node, sign)

    def refuses(self, node: int) -> Reason | None:
        """Why this node may not go for a minimum of the pool, its zone or its group; None when it may."""
        if self.world.closed[node]:
            return None
        zone, pool = self.world.nodes[node].zone, self.pool
        if self.kept <= pool.min_nodes:
            return AT_MINIMUM(f"pool {pool.name} would have fewer than {pool.min_nodes} nodes")
        if self.kept <= self.least:
            return AT_MINIMUM(f"the autoscaler keeps at least {self.least} nodes in the groups of pool {pool.name}")
        if self.zones[zone] <= pool.min_per_zone:
            return AT_MINIMUM(f"pool {pool.name} would have fewer than {pool.min_per_zone} nodes in zone {zone}")
        return self.cluster.refuses(node) or self.groups.refuses(node)

    def go(self, node: int) -> None:
        """The node no longer counts; its pods are somewhere else (`arrive` tells where)."""
        self._go(node, -1)

    def back(self, node: int) -> None:
        self._go(node, 1)

    def _go(self, node: int, sign: int) -> None:
        self.cluster.count(node, sign)
        self.groups.count(node, sign)
        self._stays(node, sign)
        self._recount_remaining()

    def arrive(self, kind: PodClass, node: int, sign: int = 1) -> None:
        """A moved pod came to a node of the pool (sign -1: it went on)."""
        if self.loose:
            return
        zone = self.world.nodes[node].zone
        for i, amount in enumerate((kind.major, kind.minor)):
            self.free[i] -= sign * amount
            self.room[zone][i] -= sign * amount
            self.used[zone][i] += sign * amount
            # A pod takes as much from the pool's room as from what survives any zone, wherever it arrives.
            self.remaining[i] -= sign * amount

    def _recount_remaining(self) -> None:
        """Sets `remaining` from what the pool has free and what it keeps."""
        if self.loose:
            return
        headroom, spare = self.pool.headroom, self.pool.spare
        for i in (0, 1):
            kept = self.have[i] * headroom.percent // 100 + headroom.nodes * self.mean[i]
            kept += self.largest[i] if spare is Spare.NODE else 0
            self.remaining[i] = self.free[i] - kept
            if spare is Spare.ZONE:
                lost = max((self.room[zone][i] + used[i] for zone, used in self.used.items()), default=0)
                self.remaining[i] -= lost

    def short(self) -> Reason | None:
        """What room is missing as things stand; None when all that is wanted is there."""
        if self.loose:
            return None
        for i, resource in enumerate(self.world.resources):
            if self.remaining[i] < 0:
                if self.pool.spare is Spare.ZONE:
                    return NO_HEADROOM(
                        f"pool {self.pool.name} could not take the pods of a zone that dies ({resource})"
                    )
                return NO_HEADROOM(f"pool {self.pool.name} would have less free {resource} than it keeps")
        return None


GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "microsoft.com/directx")


def by_itself(world: ClusterModel, node: int, autoscaler: Autoscaler) -> int | None:
    """The threshold (percent) that the node is under; None where it is at it or over it."""
    gpu = next((name for name in GPUS if world.amount(node, name) > 0), None)
    if gpu is not None:
        have = world.amount(node, gpu)
        used = have - world.rest[world.names.index(gpu)][node] if gpu in world.names else 0
        return autoscaler.gpu_threshold if used * 100 < autoscaler.gpu_threshold * have else None
    free = (world.major[node], world.minor[node])
    have_of = [world.amount(node, resource) for resource in world.resources]
    amounts = zip(have_of, free, _ignored(world, node, autoscaler), strict=True)
    under = all((have - ours - left) * 100 < autoscaler.threshold * (have - ours) for have, left, ours in amounts)
    return autoscaler.threshold if under else None


def _ignored(world: ClusterModel, node: int, autoscaler: Autoscaler) -> tuple[int, int]:
    """What the pods that its flags leave out ask for, of both resources."""
    daemons, mirrors = autoscaler.ignores_daemon_sets, autoscaler.ignores_mirror_pods
    if not (daemons or mirrors):
        return (0, 0)
    pods = [n for n in world.on[node] if (daemons and world.pods[n].daemon) or (mirrors and world.pods[n].static)]
    kinds = [world.kind_of[n] for n in pods]
    return sum(kind.major for kind in kinds), sum(kind.minor for kind in kinds)
