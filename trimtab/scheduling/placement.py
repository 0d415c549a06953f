"""Placement requests: on which nodes a pod may be placed whatever the order of moves.

A plan moves hundreds of pods in waves, and the waves are arranged after the nodes have been chosen. So a placement
request allows only nodes that fit in any order. Nodes that receive pods lose none, so their resources, host ports and
per-node anti-affinity can only be used up by pods that the plan itself places there. Wider domains (zones) both lose
and gain pods, so a pod that counts in such a domain stays in it, and all counts stay the same. Pods that need more
freedom are left to `drain_simulation`, which places the pods of one node at a time, one after the other.

`BestFitIndex` finds, among the nodes with enough free capacity for a pod, the one with the least.

Open nodes (those that may receive pods) are kept in buckets, sorted by the free amount of the scarcer resource. Nodes
that the same pods may use share a bucket; pools that keep capacity free have buckets of their own. Best fit is then a
binary search in a few lists. A node without a free pod slot, or too full for the smallest request, is in no bucket. The
buckets of a pool that may not receive more are skipped as a whole.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

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


NODE_BITS = 20
"""A node is stored as one sortable integer: its free amount, and below that the node number in this many bits, which
are enough for a million nodes."""
NODE_MASK = (1 << NODE_BITS) - 1
MAX_KEY = 1 << 100
"""A sort key that is larger than that of any node."""
MAX_NEAR_MISSES = 48
"""For an exchange of pods, up to this many nodes per bucket are examined that have slightly too little free
capacity."""
Bucket = list[int]
"""The nodes of a bucket, each as an integer of its free amount and, in the lowest bits, its number; sorted."""
Allowance = list[int]
"""[scarcer resource, other resource]: the amounts that the nodes of one pool may still receive together. The list is
changed in place by its owner as pods arrive and leave."""


class BestFitIndex:
    """Open nodes, sorted by free capacity. The capacity may change only through `place_pod` and `remove_pod`, which
    keep the nodes sorted."""

    __slots__ = (
        "_bucket_of",
        "_buckets",
        "_heavy",
        "_least_major",
        "_least_minor",
        "_light",
        "_mean_ratio",
        "allowances",
        "capacity",
        "open_nodes",
    )

    def __init__(self, requests: PlacementRequests, allowances: Sequence[Allowance | None] | None = None) -> None:
        """Indexes the nodes for these requests. All nodes are closed at first.

        `allowances`: node → the amounts that its pool may still receive, or None if its pool keeps no capacity free.
        The whole argument is None if no pool keeps capacity free.
        """
        self.capacity = requests.room
        self.allowances = allowances if allowances is not None else [None] * len(requests.model.nodes)
        self.open_nodes = bytearray(len(requests.model.nodes))
        self._least_major = min((request.major for request in requests.requests), default=0)
        self._least_minor = min((request.minor for request in requests.requests), default=0)
        self._mean_ratio = sum(request.minor for request in requests.requests) // (
            sum(request.major for request in requests.requests) or 1
        )
        buckets_by_key: dict[tuple[tuple[int, ...], int], tuple[Bucket, Bucket]] = {}
        allowance_by_key: dict[tuple[tuple[int, ...], int], Allowance | None] = {}
        admitting_sets = zip(*requests.node_sets, strict=True) if requests.node_sets else [()] * len(self.open_nodes)
        self._buckets = []
        for admitting, allowance in zip(admitting_sets, self.allowances, strict=True):
            # By identity, not by value: two pools with equal allowances are two pools.
            key = (admitting, id(allowance))
            allowance_by_key[key] = allowance
            self._buckets.append(buckets_by_key.setdefault(key, ([], [])))
        """Node → its bucket while memory is short on it (less per free core than pods request), and while it is not."""
        self._bucket_of: list[Bucket | None] = [None] * len(self.open_nodes)
        """Node → the bucket that holds it now, or None while it is in none."""
        buckets_by_set = [
            [(*pair, allowance_by_key[key]) for key, pair in buckets_by_key.items() if key[0][set_number]]
            for set_number in range(len(requests.node_sets))
        ]
        self._light = [
            (
                [(short, allowance) for short, _, allowance in buckets],
                [(ample, allowance) for _, ample, allowance in buckets],
            )
            for buckets in buckets_by_set
        ]
        self._heavy = [(ample, short) for short, ample in self._light]

    def open_node(self, node: int) -> None:
        """Lets the node receive pods."""
        if not self.open_nodes[node]:
            self.open_nodes[node] = 1
            self._insert(node)

    def close_node(self, node: int) -> None:
        """Closes the node, so that it receives no pods."""
        self._remove(node)
        self.open_nodes[node] = 0

    def _insert(self, node: int) -> None:
        capacity = self.capacity
        major, minor = capacity.major[node], capacity.minor[node]
        if (
            major >= self._least_major
            and minor >= self._least_minor
            and capacity.slots[node] > 0
            and self.open_nodes[node]
        ):
            # Two buckets per set of nodes: in the one, memory is the tighter resource of each node, in the other it is
            # not. Best fit by one resource alone would otherwise strand the other.
            bucket = self._bucket_of[node] = self._buckets[node][minor >= (self._mean_ratio + 1) * major]
            # The free amount and the node number are packed into one integer: it sorts by amount, and ties break by
            # node number.
            insort(bucket, major << NODE_BITS | node)

    def _remove(self, node: int) -> None:
        bucket = self._bucket_of[node]
        if bucket is not None:
            del bucket[bisect_left(bucket, self.capacity.major[node] << NODE_BITS | node)]
            self._bucket_of[node] = None

    def place_pod(self, request: PlacementRequest, node: int) -> None:
        """Places the pod on the node and updates the node's position in its bucket."""
        self._remove(node)
        self.capacity.add_pod(request.pod_class, node)
        self._insert(node)

    def remove_pod(self, request: PlacementRequest, node: int) -> None:
        """Removes the pod from the node and updates the node's position in its bucket: the exact opposite of
        `place_pod`."""
        self._remove(node)
        self.capacity.remove_pod(request.pod_class, node)
        self._insert(node)

    def find_best_fit(self, request: PlacementRequest) -> int:
        """Returns the open node with the least free capacity among those with enough for the request; -1 if there is
        none."""
        minor, need, simple = (
            self.capacity.minor,
            request.minor,
            request.is_simple and not request.pod_class.other_requests,
        )
        floor, best = request.major << NODE_BITS, MAX_KEY
        prefers_light = need < self._mean_ratio * request.major
        # A pod that requests less of the other resource than the mean tries nodes that are short of it first, and the
        # other way round: complementary pods share a node.
        for buckets_of_set in (self._light if prefers_light else self._heavy)[request.node_set]:
            for bucket, allowance in buckets_of_set:
                # Most buckets are empty or hold no node that is large enough: reading the last key is the fastest test.
                if not bucket or bucket[-1] < floor:
                    continue
                if allowance is not None and (allowance[0] < request.major or allowance[1] < need):
                    continue
                for position in range(bisect_left(bucket, floor), len(bucket)):
                    key = bucket[position]
                    if key >= best:
                        break
                    node = key & NODE_MASK
                    if minor[node] >= need and (simple or self.satisfies_other_constraints(request, node)):
                        best = key
                        break
            if best < MAX_KEY:
                return best & NODE_MASK
        return -1

    def find_alternatives(self, request: PlacementRequest, max_nodes: int) -> Iterable[int]:
        """Yields open nodes with enough free capacity, from each bucket those with the least first. At most `max_nodes`
        are examined.

        The pools' allowances are not checked, because this is for pods that stay in their pool.
        """
        minor, need, simple = (
            self.capacity.minor,
            request.minor,
            request.is_simple and not request.pod_class.other_requests,
        )
        floor = request.major << NODE_BITS
        for bucket, _ in chain(*self._light[request.node_set]):
            if not bucket or bucket[-1] < floor:
                continue
            start = bisect_left(bucket, floor)
            # A copy: the caller may move pods between two results, which reorders the buckets.
            keys = bucket[start : start + max_nodes]
            max_nodes -= len(keys)
            for key in keys:
                node = key & NODE_MASK
                if minor[node] >= need and (simple or self.satisfies_other_constraints(request, node)):
                    yield node
            if not max_nodes:
                return

    def satisfies_other_constraints(self, request: PlacementRequest, node: int) -> bool:
        """Returns whether a node satisfies the constraints that the buckets do not express: other resources, and
        constraints about the pods on the node."""
        for number, amount in request.pod_class.other_requests:
            if self.capacity.other_free[number][node] < amount:
                return False
        for domain, counts in request.forbidden_domains:
            if domain[node] in counts:
                return False
        caps = request.max_counts
        return not caps or all(
            domain[node] >= 0 and counts.get(domain[node], 0) <= maximum for domain, counts, maximum in caps
        )

    def fits_on_node(self, request: PlacementRequest, node: int) -> bool:
        """Returns whether the pod fits on this node, open or closed. The pool's allowance is not checked (see
        `is_within_allowance`)."""
        capacity = self.capacity
        return (
            request.nodes[node] == 1
            and capacity.major[node] >= request.major
            and capacity.minor[node] >= request.minor
            and capacity.slots[node] > 0
            and self.satisfies_other_constraints(request, node)
        )

    def is_within_allowance(
        self, request: PlacementRequest, node: int, leaving: PlacementRequest | None = None
    ) -> bool:
        """Returns whether the node's pool may receive the pod. If `leaving` is given, that pod of the same pool is
        assumed to be removed first."""
        allowance = self.allowances[node]
        if allowance is None:
            return True
        major, minor = (leaving.major, leaving.minor) if leaving is not None else (0, 0)
        return allowance[0] + major >= request.major and allowance[1] + minor >= request.minor

    def find_node_over_allowance(self, request: PlacementRequest) -> int:
        """Returns an open node with enough capacity whose pool may not receive the pod; -1 if there is none."""
        minor, floor = self.capacity.minor, request.major << NODE_BITS
        for bucket, allowance in chain(*self._light[request.node_set]):
            if allowance is not None and (allowance[0] < request.major or allowance[1] < request.minor):
                for key in bucket[bisect_left(bucket, floor) :]:
                    node = key & NODE_MASK
                    if minor[node] >= request.minor and self.satisfies_other_constraints(request, node):
                        return node
        return -1

    def find_near_misses(self, request: PlacementRequest) -> Iterable[int]:
        """Yields open nodes with slightly less free capacity than requested, from each bucket those with the smallest
        shortage first."""
        floor = request.major << NODE_BITS
        for bucket, _ in chain(*self._light[request.node_set]):
            position = bisect_left(bucket, floor)
            for key in reversed(bucket[max(0, position - MAX_NEAR_MISSES) : position]):
                yield key & NODE_MASK
