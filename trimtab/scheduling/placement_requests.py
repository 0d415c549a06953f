"""Where may a pod go so that the order of moves does not matter?

A plan moves hundreds of pods in waves that are arranged after the places are chosen. What stays true in any order is
chosen from here: receivers only gain pods, so resources, host ports and node-wide anti-affinity can only be used up
by what the plan itself puts there. Wider domains (zones) lose and gain; so a pod that counts in one stays in the
domains it is in, and all counts stay as they are. What needs more freedom is left to `drain`, one node at a time
and exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import least_count
from trimtab.scheduling.pod_class import PodClass, SpreadRule
from trimtab.scheduling.topology import TopologyGroup


class PlacementRequest(Struct, eq=False, frozen=True, gc=False):
    """Pods of one kind that stay in the same wide domains. A Struct: a plan makes thousands."""

    kind: PodClass
    nodes: bytearray
    """1 where nature, wide domains and the mere presence of a resource allow."""
    where: int
    """Number of that set among all errands' sets."""
    bars: tuple[tuple[Sequence[int], dict[int, int]], ...]
    """(node → domain, pods by domain): no pod may be in the node's domain."""
    caps: tuple[tuple[Sequence[int], dict[int, int], int], ...]
    """(node → domain, pods by domain, most that may be there already)."""
    simple: bool
    tied: bool
    """Wide domains, or a spread, say more than nature, resources and anti-affinity do: less strictly asked, it may fit
    where it does not fit here."""
    major: int
    minor: int


@dataclass(slots=True)
class PlacementRequests:
    """Makes errands over one room; they read its counts as they change."""

    room: FreeCapacity
    sets: dict[bytes, int] = field(default_factory=dict)
    masks: list[bytearray] = field(default_factory=list)
    all: list[PlacementRequest] = field(default_factory=list)
    _made: dict[tuple[int, tuple[int, ...]], PlacementRequest | None] = field(default_factory=dict)
    free: dict[int, PlacementRequest | None] = field(default_factory=dict)
    """Kinds that no wide domain ties, and kinds that can't be planned."""
    _keys: dict[int, tuple[TopologyGroup, ...] | None] = field(default_factory=dict)
    _masks: dict[object, tuple[int, bytearray]] = field(default_factory=dict)

    @property
    def world(self) -> ClusterModel:
        return self.room.world

    def of(self, kind: PodClass, node: int) -> PlacementRequest | None:
        """The errand of a pod of this kind that leaves this node; None when order would matter."""
        number = kind.number
        if number in self.free:
            return self.free[number]
        if not (kind.adds or kind.checked or kind.rest or kind.unknown):
            return self._make_plain(kind)
        wide = self._wide(kind)
        if not wide:
            self.free[number] = None if wide is None else self._make(kind, (), ())
            return self.free[number]
        domains = tuple([group.domain[node] for group in wide])
        name = (kind.number, domains)
        if name not in self._made:
            self._made[name] = self._make(kind, wide, domains)
        return self._made[name]

    def _make_plain(self, kind: PodClass) -> PlacementRequest:
        """Most kinds: nothing but nature and the two resources says where their pods may go."""
        found = self._masks.get(kind.where)
        where, nodes = found if found is not None else self._mask(kind, (), ())
        made = self.free[kind.number] = PlacementRequest(
            kind, nodes, where, (), (), simple=True, tied=False, major=kind.major, minor=kind.minor
        )
        self.all.append(made)
        return made

    def _wide(self, kind: PodClass) -> tuple[TopologyGroup, ...] | None:
        """The groups by whose domains the kind is tied; None when it can't be planned without order."""
        if not kind.adds and not kind.checked and not kind.unknown:
            return ()
        if kind.number not in self._keys:
            self._keys[kind.number] = None if kind.unknown else self._tied(kind)
        return self._keys[kind.number]

    def _tied(self, kind: PodClass) -> tuple[TopologyGroup, ...] | None:
        together = kind.together.groups if kind.together else ()
        if any(group.apart for group in together):
            return None
        spoken = [
            *(self.world.groups[number] for number in kind.adds), *kind.bars,
            *(spread.group for spread in kind.spreads), *together,
        ]  # fmt: skip
        return tuple({(g.key, id(g.domain)): g for g in spoken if not (g.apart or g.soft)}.values())

    def _make(
        self, kind: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]
    ) -> PlacementRequest | None:
        if wide and not self._holds(kind, wide, domains):
            return None
        where, nodes = self._mask(kind, wide, domains)
        if not (wide or kind.checked):
            made = PlacementRequest(kind, nodes, where, (), (), True, False, kind.major, kind.minor)
            self.all.append(made)
            return made
        counts = self.room.counts
        bars = tuple([(g.domain, counts[g.number]) for g in kind.bars if g.apart])
        near = [spread for spread in kind.spreads if spread.group.apart]
        caps = tuple([(_places(s.group), counts[s.group.number], s.skew - s.own) for s in near])
        simple, tied = not bars and not caps, bool(wide or caps)
        made = PlacementRequest(kind, nodes, where, bars, caps, simple, tied, kind.major, kind.minor)
        self.all.append(made)
        return made

    def _holds(self, kind: PodClass, wide: Iterable[TopologyGroup], domains: Iterable[int]) -> bool:
        """Is it true today, without the pod itself, what will be asked when it comes back to the same domains?"""
        at = {(g.key, id(g.domain)): d for g, d in zip(wide, domains, strict=True)}
        adds = frozenset(kind.adds)

        def others(group: TopologyGroup) -> int:
            domain = at[group.key, id(group.domain)]
            return self._count(group, domain) - (group.number in adds) if domain >= 0 else 0

        barred = any(others(group) > 0 for group in kind.bars if not group.apart)
        together = kind.together is None or all(others(group) > 0 for group in kind.together.groups)
        level = all(
            at[s.group.key, id(s.group.domain)] >= 0 and self._level(s, others(s.group))
            for s in kind.spreads
            if not s.group.apart
        )
        return not barred and together and level

    def _count(self, group: TopologyGroup, domain: int) -> int:
        counts = self.room.counts[group.number]
        if not group.per_node:
            return counts.get(domain, 0)
        return sum(count for node, count in counts.items() if group.domain[node] == domain)

    def _level(self, spread: SpreadRule, others: int) -> bool:
        return others + spread.own - min(others, least_count(self.room, spread)) <= spread.skew

    def _mask(self, kind: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]) -> tuple[int, bytearray]:
        name: object = kind.where
        if wide or kind.rest:
            name = (kind.where, tuple([id(g.domain) for g in wide]), domains, kind.rest)
        found = self._masks.get(name)
        if found is None:
            nodes = bytearray(self.world.wheres[kind.where])
            for group, wanted in zip(wide, domains, strict=True):
                for node, domain in enumerate(group.domain):
                    if domain != wanted:
                        nodes[node] = 0
            for number, amount in kind.rest:
                self._only_with(nodes, number, amount)
            number = self.sets.setdefault(bytes(nodes), len(self.sets))
            if number == len(self.masks):
                self.masks.append(nodes)
            found = self._masks[name] = (number, self.masks[number])
        return found

    def _only_with(self, nodes: bytearray, number: int, amount: int) -> None:
        """Only nodes that could ever hold so much of a resource."""
        name = self.world.names[number]
        if name.startswith("volumes:"):
            return
        for node in range(len(nodes)):
            if nodes[node] and self.world.amount(node, name) < amount:
                nodes[node] = 0


def _places(group: TopologyGroup) -> Sequence[int]:
    """Node → where it is counted."""
    if not group.per_node:
        return group.domain
    return [node if domain >= 0 else -1 for node, domain in enumerate(group.domain)]
