"""Placement requests: on which nodes a pod may be placed whatever the order of moves.

A plan moves hundreds of pods in waves, and the waves are arranged after the nodes have been chosen. So a placement
request allows only nodes that fit in any order. Nodes that receive pods lose none, so their resources, host ports and
per-node anti-affinity can only be used up by pods that the plan itself places there. Wider domains (zones) both lose
and gain pods, so a pod that counts in such a domain stays in it, and all counts stay the same. Pods that need more
freedom are left to `drain_simulation`, which places the pods of one node at a time, one after the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import min_domain_count
from trimtab.scheduling.pod_class import PodClass, SpreadRule
from trimtab.scheduling.topology import TopologyGroup


class PlacementRequest(Struct, eq=False, frozen=True, gc=False):
    """What a pod of one class that stays in its wide domains (such as its zone) requires of a node. It is a Struct for
    speed, because a plan creates thousands."""

    pod_class: PodClass
    nodes: bytearray
    """Node → 1 if node attributes, wide domains and the allocatable resources allow the pod."""
    node_set: int
    """The number of the set `nodes` among the sets of all requests."""
    forbidden_domains: tuple[tuple[Sequence[int], dict[int, int]], ...]
    """(node → domain, domain → number of pods): the node's domain must have no pods."""
    max_counts: tuple[tuple[Sequence[int], dict[int, int], int], ...]
    """(node → domain, domain → number of pods, limit): the node's domain must have at most as many pods as the
    limit."""
    is_simple: bool
    is_bound: bool
    """Whether wide domains or a spread constraint restrict the request beyond node attributes, resources and
    anti-affinity. If so, the pod may fit on a node that this request does not allow, when pods are placed one after the
    other."""
    major: int
    minor: int


@dataclass(slots=True)
class PlacementRequests:
    """Creates placement requests from the current counts of one `FreeCapacity`."""

    room: FreeCapacity
    set_numbers: dict[bytes, int] = field(default_factory=dict)
    node_sets: list[bytearray] = field(default_factory=list)
    requests: list[PlacementRequest] = field(default_factory=list)
    _requests: dict[tuple[int, tuple[int, ...]], PlacementRequest | None] = field(default_factory=dict)
    unbound_requests: dict[int, PlacementRequest | None] = field(default_factory=dict)
    """Class number → its request, for classes that no wide domain restricts; None if the class cannot be planned."""
    _groups_by_class: dict[int, tuple[TopologyGroup, ...] | None] = field(default_factory=dict)
    _numbered_sets: dict[object, tuple[int, bytearray]] = field(default_factory=dict)

    @property
    def model(self) -> ClusterModel:
        return self.room.world

    def request_for(self, pod_class: PodClass, node: int) -> PlacementRequest | None:
        """Returns the request of a pod of this class that leaves this node, or None if its placement would depend on
        the order of moves."""
        number = pod_class.number
        if number in self.unbound_requests:
            return self.unbound_requests[number]
        if not (
            pod_class.member_groups
            or pod_class.has_constraints
            or pod_class.other_requests
            or pod_class.unjudged_reason
        ):
            return self._create_unconstrained(pod_class)
        wide = self._wide_groups(pod_class)
        if not wide:
            self.unbound_requests[number] = None if wide is None else self._create(pod_class, (), ())
            return self.unbound_requests[number]
        domains = tuple([group.domain_of[node] for group in wide])
        key = (pod_class.number, domains)
        if key not in self._requests:
            self._requests[key] = self._create(pod_class, wide, domains)
        return self._requests[key]

    def _create_unconstrained(self, pod_class: PodClass) -> PlacementRequest:
        """Returns the request of a class that only node attributes, cpu and memory restrict. Most classes are of this
        kind."""
        numbered_set = self._numbered_sets.get(pod_class.node_set)
        set_number, nodes = numbered_set if numbered_set is not None else self._numbered_set(pod_class, (), ())
        request = self.unbound_requests[pod_class.number] = PlacementRequest(
            pod_class,
            nodes,
            set_number,
            (),
            (),
            is_simple=True,
            is_bound=False,
            major=pod_class.major,
            minor=pod_class.minor,
        )
        self.requests.append(request)
        return request

    def _wide_groups(self, pod_class: PodClass) -> tuple[TopologyGroup, ...] | None:
        """Returns the groups in whose domains the pods of the class must stay, or None if the class cannot be planned
        independently of the order of moves."""
        if not pod_class.member_groups and not pod_class.has_constraints and not pod_class.unjudged_reason:
            return ()
        if pod_class.number not in self._groups_by_class:
            self._groups_by_class[pod_class.number] = (
                None if pod_class.unjudged_reason else self._binding_groups(pod_class)
            )
        return self._groups_by_class[pod_class.number]

    def _binding_groups(self, pod_class: PodClass) -> tuple[TopologyGroup, ...] | None:
        affinity_groups = pod_class.affinity.groups if pod_class.affinity else ()
        # Affinity by node: the pod that this one follows may move itself, so the order of moves matters.
        if any(group.is_per_node_domain for group in affinity_groups):
            return None
        groups = [
            *(self.model.groups[number] for number in pod_class.member_groups),
            *pod_class.forbidden_groups,
            *(spread.group for spread in pod_class.spreads),
            *affinity_groups,
        ]
        return tuple(
            {(g.key, id(g.domain_of)): g for g in groups if not (g.is_per_node_domain or g.is_preference_only)}.values()
        )

    def _create(
        self, pod_class: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]
    ) -> PlacementRequest | None:
        if wide and not self._holds_today(pod_class, wide, domains):
            return None
        set_number, nodes = self._numbered_set(pod_class, wide, domains)
        if not (wide or pod_class.has_constraints):
            request = PlacementRequest(
                pod_class, nodes, set_number, (), (), True, False, pod_class.major, pod_class.minor
            )
            self.requests.append(request)
            return request
        counts = self.room.group_counts
        forbidden = tuple([(g.domain_of, counts[g.number]) for g in pod_class.forbidden_groups if g.is_per_node_domain])
        node_spreads = [spread for spread in pod_class.spreads if spread.group.is_per_node_domain]
        max_counts = tuple(
            [(_counting_keys(s.group), counts[s.group.number], s.max_skew - s.self_count) for s in node_spreads]
        )
        is_simple, is_bound = not forbidden and not max_counts, bool(wide or max_counts)
        request = PlacementRequest(
            pod_class, nodes, set_number, forbidden, max_counts, is_simple, is_bound, pod_class.major, pod_class.minor
        )
        self.requests.append(request)
        return request

    def _holds_today(self, pod_class: PodClass, wide: Iterable[TopologyGroup], domains: Iterable[int]) -> bool:
        """Returns whether the constraints of the class hold now in the pod's own domains, if the pod itself is not
        counted.

        If so, they also hold when its successor is placed in the same domains.
        """
        domain_of = {(g.key, id(g.domain_of)): d for g, d in zip(wide, domains, strict=True)}
        adds = frozenset(pod_class.member_groups)

        def others(group: TopologyGroup) -> int:
            domain = domain_of[group.key, id(group.domain_of)]
            return self._count_in_domain(group, domain) - (group.number in adds) if domain >= 0 else 0

        is_forbidden = any(others(group) > 0 for group in pod_class.forbidden_groups if not group.is_per_node_domain)
        affinity_holds = pod_class.affinity is None or all(others(group) > 0 for group in pod_class.affinity.groups)
        is_even = all(
            domain_of[s.group.key, id(s.group.domain_of)] >= 0 and self._is_even(s, others(s.group))
            for s in pod_class.spreads
            if not s.group.is_per_node_domain
        )
        return not is_forbidden and affinity_holds and is_even

    def _count_in_domain(self, group: TopologyGroup, domain: int) -> int:
        counts = self.room.group_counts[group.number]
        if not group.is_counted_per_node:
            return counts.get(domain, 0)
        return sum(count for node, count in counts.items() if group.domain_of[node] == domain)

    def _is_even(self, spread: SpreadRule, others: int) -> bool:
        return others + spread.self_count - min(others, min_domain_count(self.room, spread)) <= spread.max_skew

    def _numbered_set(
        self, pod_class: PodClass, wide: tuple[TopologyGroup, ...], domains: tuple[int, ...]
    ) -> tuple[int, bytearray]:
        key: object = pod_class.node_set
        if wide or pod_class.other_requests:
            # By identity: topology groups share one domain list per key, and hashing the list itself would cost its
            # length.
            key = (pod_class.node_set, tuple([id(g.domain_of) for g in wide]), domains, pod_class.other_requests)
        numbered_set = self._numbered_sets.get(key)
        if numbered_set is None:
            nodes = bytearray(self.model.node_sets[pod_class.node_set])
            for group, wanted in zip(wide, domains, strict=True):
                for node, domain in enumerate(group.domain_of):
                    if domain != wanted:
                        nodes[node] = 0
            for number, amount in pod_class.other_requests:
                self._require_allocatable(nodes, number, amount)
            number = self.set_numbers.setdefault(bytes(nodes), len(self.set_numbers))
            if number == len(self.node_sets):
                self.node_sets.append(nodes)
            numbered_set = self._numbered_sets[key] = (number, self.node_sets[number])
        return numbered_set

    def _require_allocatable(self, nodes: bytearray, number: int, amount: int) -> None:
        """Removes the nodes whose allocatable amount of the resource is less than `amount`."""
        name = self.model.other_resources[number]
        if name.startswith("volumes:"):
            return
        for node in range(len(nodes)):
            if nodes[node] and self.model.allocatable_amount(node, name) < amount:
                nodes[node] = 0


def _counting_keys(group: TopologyGroup) -> Sequence[int]:
    """Returns node → the key under which the group counts the node's pods."""
    if not group.is_counted_per_node:
        return group.domain_of
    return [node if domain >= 0 else -1 for node, domain in enumerate(group.domain_of)]
