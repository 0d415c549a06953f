"""Placement requests: where a pod may be placed so that the order of moves does not matter.

A plan moves hundreds of pods in waves that are arranged after the places are chosen. A placement request allows only
what stays true in any order. Receivers only gain pods, so resources, host ports and anti-affinity by node can be used
up only by pods that the plan places there. Wider domains (zones) lose and gain pods, so a pod that counts in one stays
in its domains, and all counts stay as they are. A pod that requires more freedom is left to `drain_simulation`, which
places one node's pods at a time, exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import least_count
from trimtab.scheduling.pod_class import PodClass, SpreadRule
from trimtab.scheduling.topology import TopologyGroup


class PlacementRequest(Struct, eq=False, frozen=True, gc=False):
    """What pods of one class that stay in the same wide domains require of a node. A Struct: a plan creates
    thousands."""

    kind: PodClass
    nodes: bytearray
    """1 where node attributes, wide domains and the allocatable resources allow the pod."""
    where: int
    """The number of that set of nodes among the sets of all requests."""
    bars: tuple[tuple[Sequence[int], dict[int, int]], ...]
    """(node → domain, pods by domain): no pod may be in the node's domain."""
    caps: tuple[tuple[Sequence[int], dict[int, int], int], ...]
    """(node → domain, pods by domain, the most pods that may be in the domain already)."""
    simple: bool
    tied: bool
    """Wide domains or a spread restrict the request further than node attributes, resources and anti-affinity do.
    Placed exactly, the pod may fit on a node that this request does not allow."""
    major: int
    minor: int


@dataclass(slots=True)
class PlacementRequests:
    """Creates placement requests for one `FreeCapacity`; they read its counts as they change."""

    room: FreeCapacity
    sets: dict[bytes, int] = field(default_factory=dict)
    masks: list[bytearray] = field(default_factory=list)
    all: list[PlacementRequest] = field(default_factory=list)
    _requests: dict[tuple[int, tuple[int, ...]], PlacementRequest | None] = field(default_factory=dict)
    free: dict[int, PlacementRequest | None] = field(default_factory=dict)
    """Class number → its request, where no wide domain binds it; None where the class cannot be planned."""
    _groups_by_class: dict[int, tuple[TopologyGroup, ...] | None] = field(default_factory=dict)
    _numbered_sets: dict[object, tuple[int, bytearray]] = field(default_factory=dict)

    @property
    def world(self) -> ClusterModel:
        return self.room.world

    def of(self, pod_class: PodClass, node: int) -> PlacementRequest | None:
        """Returns the request of a pod of this class that leaves this node; None when the order of moves would
        matter."""
        number = pod_class.number
        if number in self.free:
            return self.free[number]
        if not (pod_class.adds or pod_class.checked or pod_class.rest or pod_class.unknown):
            return self._create_unconstrained(pod_class)
        wide = self._wide_groups(pod_class)
        if not wide:
            self.free[number] = None if wide is None else self._create(pod_class, (), ())
            return self.free[number]
        domains = tuple([group.domain[node] for group in wide])
        key = (pod_class.number, domains)
        if key not in self._requests:
            self._requests[key] = self._create(pod_class, wide, domains)
        return self._requests[key]

    def _create_unconstrained(self, pod_class: PodClass) -> PlacementRequest:
        """Creates the request of a class that only node attributes and the two main resources restrict: most
        classes."""
        numbered_set = self._numbered_sets.get(pod_class.where)
        set_number, nodes = numbered_set if numbered_set is not None else self._numbered_set(pod_class, (), ())
        request = self.free[pod_class.number] = PlacementRequest(
            pod_class, nodes, set_number, (), (), simple=True, tied=False, major=pod_class.major, minor=pod_class.minor
        )
        self.all.append(request)
        return request

    def _wide_groups(self, pod_class: PodClass) -> tuple[TopologyGroup, ...] | None:
        """Returns the groups whose domains bind the class; None when it cannot be planned independently of the
        order."""
        if not pod_class.adds and not pod_class.checked and not pod_class.unknown:
            return ()
        if pod_class.number not in self._groups_by_class:
            self._groups_by_class[pod_class.number] = None if pod_class.unknown else self._binding_groups(pod_class)
        return self._groups_by_class[pod_class.number]

    def _binding_groups(self, pod_class: PodClass) -> tuple[TopologyGroup, ...] | None:
        affinity_groups = pod_class.together.groups if pod_class.together else ()
        # Affinity by node: the pod that this one follows may move itself, so the order of moves matters.
        if any(group.apart for group in affinity_groups):
            return None
        groups = [
            *(self.world.groups[number] for number in pod_class.adds), *pod_class.bars,
            *(spread.group for spread in pod_class.spreads), *affinity_groups,
        ]  # fmt: skip
        return tuple({(g.key, id(g.domain)): g for g in groups if not (g.apart or g.soft)}.values())

    def _create(
        self, pod_class: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]
    ) -> PlacementRequest | None:
        if wide and not self._holds_today(pod_class, wide, domains):
            return None
        set_number, nodes = self._numbered_set(pod_class, wide, domains)
        if not (wide or pod_class.checked):
            request = PlacementRequest(
                pod_class, nodes, set_number, (), (), True, False, pod_class.major, pod_class.minor
            )
            self.all.append(request)
            return request
        counts = self.room.counts
        forbidden = tuple([(g.domain, counts[g.number]) for g in pod_class.bars if g.apart])
        node_spreads = [spread for spread in pod_class.spreads if spread.group.apart]
        max_counts = tuple([(_counting_keys(s.group), counts[s.group.number], s.skew - s.own) for s in node_spreads])
        is_simple, is_bound = not forbidden and not max_counts, bool(wide or max_counts)
        request = PlacementRequest(
            pod_class, nodes, set_number, forbidden, max_counts, is_simple, is_bound, pod_class.major, pod_class.minor
        )
        self.all.append(request)
        return request

    def _holds_today(self, pod_class: PodClass, wide: Iterable[TopologyGroup], domains: Iterable[int]) -> bool:
        """Returns whether the constraints of the class hold today in the pod's own domains, without the pod itself.

        They then hold when its successor is placed in the same domains.
        """
        domain_of = {(g.key, id(g.domain)): d for g, d in zip(wide, domains, strict=True)}
        adds = frozenset(pod_class.adds)

        def others(group: TopologyGroup) -> int:
            domain = domain_of[group.key, id(group.domain)]
            return self._count_in_domain(group, domain) - (group.number in adds) if domain >= 0 else 0

        is_forbidden = any(others(group) > 0 for group in pod_class.bars if not group.apart)
        affinity_holds = pod_class.together is None or all(others(group) > 0 for group in pod_class.together.groups)
        is_even = all(
            domain_of[s.group.key, id(s.group.domain)] >= 0 and self._is_even(s, others(s.group))
            for s in pod_class.spreads
            if not s.group.apart
        )
        return not is_forbidden and affinity_holds and is_even

    def _count_in_domain(self, group: TopologyGroup, domain: int) -> int:
        counts = self.room.counts[group.number]
        if not group.per_node:
            return counts.get(domain, 0)
        return sum(count for node, count in counts.items() if group.domain[node] == domain)

    def _is_even(self, spread: SpreadRule, others: int) -> bool:
        return others + spread.own - min(others, least_count(self.room, spread)) <= spread.skew

    def _numbered_set(
        self, pod_class: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]
    ) -> tuple[int, bytearray]:
        key: object = pod_class.where
        if wide or pod_class.rest:
            # By identity: topology groups share one domain list per key, and hashing the list itself would cost its
            # length.
            key = (pod_class.where, tuple([id(g.domain) for g in wide]), domains, pod_class.rest)
        numbered_set = self._numbered_sets.get(key)
        if numbered_set is None:
            nodes = bytearray(self.world.wheres[pod_class.where])
            for group, wanted in zip(wide, domains, strict=True):
                for node, domain in enumerate(group.domain):
                    if domain != wanted:
                        nodes[node] = 0
            for number, amount in pod_class.rest:
                self._require_allocatable(nodes, number, amount)
            number = self.sets.setdefault(bytes(nodes), len(self.sets))
            if number == len(self.masks):
                self.masks.append(nodes)
            numbered_set = self._numbered_sets[key] = (number, self.masks[number])
        return numbered_set

    def _require_allocatable(self, nodes: bytearray, number: int, amount: int) -> None:
        """Removes the nodes whose allocatable amount of the resource is less than `amount`."""
        name = self.world.names[number]
        if name.startswith("volumes:"):
            return
        for node in range(len(nodes)):
            if nodes[node] and self.world.amount(node, name) < amount:
                nodes[node] = 0


def _counting_keys(group: TopologyGroup) -> Sequence[int]:
    """Returns node → the key under which its pods are counted."""
    if not group.per_node:
        return group.domain
    return [node if domain >= 0 else -1 for node, domain in enumerate(group.domain)]
