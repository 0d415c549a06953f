"""May the pool lose one more node? Minimum sizes and room that is kept free, while a plan grows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.pool import Pool, Spare
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import AT_MINIMUM, NO_HEADROOM
from trimtab.compaction.search.groups import Groups
from trimtab.compaction.search.lasts import Zones
from trimtab.packing.kinds import Kind
from trimtab.packing.world import World

Pair = list[int]
"""[of the scarcer resource, of the other]."""


@dataclass(slots=True, eq=False)
class Limits:
    """One pool's numbers; `go` and `back` undo each other."""

    pool: Pool
    world: World
    nodes: Sequence[int]
    cluster: Zones
    """Shared by all pools."""
    groups: Groups
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

    def __post_init__(self) -> None:
        headroom = self.pool.headroom
        self.loose = not headroom.percent and not headroom.nodes and self.pool.spare is Spare.NONE
        sizes = [self._size(node) for node in self.nodes] if not self.loose else ()
        if sizes:
            self.mean = (sum(a for a, _ in sizes) // len(sizes), sum(b for _, b in sizes) // len(sizes))
            self.largest = (max(a for a, _ in sizes), max(b for _, b in sizes))
        for node in self.nodes:
            self._stays(node, 1)

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

    def arrive(self, kind: Kind, node: int, sign: int = 1) -> None:
        """A moved pod came to a node of the pool (sign -1: it went on)."""
        if self.loose:
            return
        zone = self.world.nodes[node].zone
        for i, amount in enumerate((kind.major, kind.minor)):
            self.free[i] -= sign * amount
            self.room[zone][i] -= sign * amount
            self.used[zone][i] += sign * amount

    def short(self) -> Reason | None:
        """What room is missing as things stand; None when all that is wanted is there."""
        if self.loose:
            return None
        headroom, spare = self.pool.headroom, self.pool.spare
        for i, resource in enumerate(self.world.resources):
            wanted = self.have[i] * headroom.percent // 100 + headroom.nodes * self.mean[i]
            wanted += self.largest[i] if spare is Spare.NODE else 0
            if self.free[i] < wanted:
                return NO_HEADROOM(f"pool {self.pool.name} would have less free {resource} than it keeps")
            if spare is Spare.ZONE and self._zone_short(i, wanted):
                return NO_HEADROOM(f"pool {self.pool.name} could not take the pods of a zone that dies ({resource})")
        return None

    def _zone_short(self, i: int, wanted: int) -> bool:
        return any(self.free[i] - self.room[zone][i] < used[i] + wanted for zone, used in self.used.items())
