"""A best-fit index: finds, among the nodes with enough free capacity for a pod, the one with the least.

Open nodes (those that may receive pods) are kept in buckets, sorted by the free amount of the scarcer resource. Nodes
that the same pods may use share a bucket; pools that keep capacity free have buckets of their own. Best fit is then a
binary search in a few lists. A node without a free pod slot, or too full for the smallest request, is in no bucket. The
buckets of a pool that may not receive more are skipped as a whole.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import chain

from trimtab.scheduling.placement_requests import PlacementRequest, PlacementRequests

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
