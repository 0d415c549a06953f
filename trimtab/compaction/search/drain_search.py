"""The search behind a plan: finds a set of nodes that can be drained together, and a target for each of their pods.

The algorithm is best fit with exchange. Candidates are sorted by evictions per saved price, and tried from the fewest
on. Nodes are opened to receive pods from the end of the same order, after the nodes that cannot be drained. Each pod is
placed on the open node with the least free capacity that is enough. So the nodes that would be drained last are filled
first, and no pod moves twice. `strategy.improve_search` then adds and swaps nodes.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import NEEDED_AGAIN, NO_HEADROOM
from trimtab.compaction.search.pool_limits import PoolLimits
from trimtab.scheduling.cluster_model import FreeCapacity, SavedCapacity
from trimtab.scheduling.placement import BestFitIndex, PlacementRequest
from trimtab.scheduling.pod_class import PodClass

FIXED, CANDIDATE, OPEN, DRAINED, TRIED = range(5)
MoveLog = list[tuple[int, int, int]]
"""The moves of a search, from which they can be undone, last one first. Each is (+1 for placed or -1 for removed, pod,
node)."""
MAX_EXCHANGES = 8
"""The maximum number of pods that are moved one after another to make room for one pod."""


@dataclass(slots=True, eq=False)
class Search:
    """One search: its input, the state of every node, and the targets found so far."""

    capacity: FreeCapacity
    order: Sequence[int]
    """The candidates, in the order in which they are tried."""
    pods_to_move: Sequence[Sequence[int]]
    """Node → the pods on it that must move, largest first."""
    requests: Sequence[PlacementRequest | None]
    """Pod → its placement request. None if its placement depends on the order of moves; its node is then not a
    candidate of this search."""
    index: BestFitIndex
    limits: Sequence[PoolLimits | None]
    """Node → the limits of its pool, or None if it is in no pool."""
    effort: int
    """How many times the search may look for a node for a pod after the first pass."""
    state: bytearray = field(init=False)
    closed_nodes: bytes = field(init=False)
    """The nodes that receive no pods in any case."""
    targets: dict[int, int] = field(default_factory=dict)
    """Moved pod → the node that receives it."""
    received_pods: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Node → the moved pods that it receives."""
    drained_nodes: list[int] = field(default_factory=list)
    refusals: dict[int, object] = field(default_factory=dict)
    """Candidate → the limit because of which it is not drained, or the number of the pod that fits on no node."""
    _openable: dict[int, list[int]] = field(default_factory=dict)
    """Set of nodes → the candidates in it that may still be opened to receive pods, in search order; the last one is
    opened first."""
    _searched_positions: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Key of equal requests → a position in the search order: no candidate from there on fits these requests. It stays
    correct because candidates only become fewer."""
    _failed_requests: set[int] = field(default_factory=set)
    """The ids of the requests for which no node was found."""
    _has_allowances: bool = field(init=False)
    """Whether any pool keeps capacity free."""
    _counting: list[PoolLimits | None] = field(init=False)
    """Node → the limits of its pool, for pools that keep capacity free and so must count arriving pods."""
    _sort_keys: dict[int, int] = field(default_factory=dict)
    _removed_capacity: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = bytearray(len(self.capacity.world.nodes))
        self._counting = [None if limits is None or limits.keeps_no_headroom else limits for limits in self.limits]
        self.closed_nodes = bytes(self.capacity.closed_nodes)
        self._has_allowances = any(allowance is not None for allowance in self.index.allowances)
        for node in self.order:
            self.state[node] = CANDIDATE

    # ── the first pass ───────────────────────────────────────────────────
    def run_first_pass(self, most: int | None = None) -> None:
        """Tries every candidate once, in order. With `most`, only the first `most` candidates are tried; the others
        only receive pods."""
        for node in self.order[:most]:
            if self.state[node] == CANDIDATE:
                self.state[node] = TRIED
                if not self.drain_node(node, self.pods_to_move[node]):
                    self._open_node(node)

    def drain_node(self, node: int, pods: Sequence[int], log: MoveLog | None = None) -> bool:
        """Moves all of these pods away from the node. If they do not all fit, none is moved. Returns whether they were
        moved."""
        log = [] if log is None else log
        mark = len(log)
        limits = self.limits[node]
        refusal = limits.rejection_reason(node) if limits is not None else None
        if refusal is not None:
            self.refusals[node] = refusal
            return False
        if self._counting[node] is not None:
            # Pods that the node received leave it too: they must not count in its pool when the pool is checked.
            for pod in [pod for pod in pods if pod in self.targets]:
                self._lift_pod(pod, log)
        if limits is not None:
            limits.remove_node(node)
            refusal = limits.shortage_reason()
        if refusal is not None or not self._place_all(node, pods, log):
            if refusal is not None:
                self.refusals[node] = refusal
            if limits is not None:
                limits.restore_node(node)
            self.undo_moves(log, mark)
            return False
        self.state[node] = DRAINED
        self.capacity.cordon_node(node)
        self.refusals.pop(node, None)
        self.drained_nodes.append(node)
        return True

    def _place_all(self, node: int, pods: Sequence[int], log: MoveLog) -> bool:
        mark = len(log)
        for pod in pods:
            self.effort -= 1
            request = self.requests[pod]
            # When the effort is spent, a request that failed before is not tried again: free capacity only shrinks in
            # this pass.
            if request is None or (self.effort <= 0 and id(request) in self._failed_requests):
                self.refusals[node] = pod
                return False
            place = self.index.find_best_fit(request)
            if place < 0:
                place = self._open_candidate_for(request)
            if place >= 0:
                if pod in self.targets:
                    self._lift_pod(pod, log)
                self._place_pod(pod, request, place, log)
            elif not self._exchange_pods(pod, request, log):
                self.refusals[node] = self._headroom_reason(pod, request) or pod
                # An allowance changes with each node that is drained: the failure says nothing about other nodes then.
                if len(log) == mark and not self._has_allowances:
                    self._failed_requests.add(id(request))
                return False
        return True

    def _headroom_reason(self, pod: int, request: PlacementRequest) -> Reason | None:
        """Returns the reason if only a pool's headroom keeps the pod from a node that could hold it, otherwise None."""
        node = self.index.find_node_over_allowance(request) if self._has_allowances else -1
        limits = self.limits[node] if node >= 0 else None
        if limits is None:
            return None
        pod_key = self.capacity.world.pods[pod].key
        if any(limits.forecast_decides):
            return NEEDED_AGAIN(
                f"pod {pod_key} fits only on nodes of pool {limits.pool.name}, of which the free capacity will be "
                f"requested again within {format_count(limits.pool.payback // 60, 'minute')}"
            )
        return NO_HEADROOM(
            f"pod {pod_key} fits only on nodes of pool {limits.pool.name}, which would then have less free "
            "capacity than its headroom"
        )

    def _open_candidate_for(self, request: PlacementRequest) -> int:
        """Opens the last candidate on which the pod fits, so that it receives pods, and returns it; -1 if the pod fits
        on none."""
        openable = self._openable.get(request.node_set)
        if openable is None:
            mask = request.nodes
            openable = self._openable[request.node_set] = [node for node in self.order if mask[node]]
        while openable and self.state[openable[-1]] != CANDIDATE:
            openable.pop()
        equal_requests = (request.node_set, request.major, request.minor) if request.is_simple else (id(request), 0, 0)
        # Candidates behind this position rejected an equal request before, and they only receive more pods.
        position = min(self._searched_positions.get(equal_requests, len(openable)), len(openable))
        next_position = 0
        while position > 0:
            position -= 1
            node = openable[position]
            if self.state[node] == CANDIDATE and self.index.fits_on_node(request, node):
                if not self.index.is_within_allowance(request, node):
                    # The node's pool may receive the pod once another node is drained, so the node is not skipped.
                    next_position = next_position or position + 1
                    continue
                self._searched_positions[equal_requests] = next_position or position
                self._open_node(node)
                return node
        self._searched_positions[equal_requests] = next_position
        return -1

    def _open_node(self, node: int) -> None:
        self.state[node] = OPEN
        if not self.closed_nodes[node]:
            self.index.open_node(node)

    # ── single steps, all undoable ───────────────────────────────────────
    def _place_pod(self, pod: int, request: PlacementRequest, node: int, log: MoveLog) -> None:
        self.index.place_pod(request, node)
        self.targets[pod] = node
        self.received_pods[node].append(pod)
        log.append((1, pod, node))
        limits = self._counting[node]
        if limits is not None:
            limits.count_arrival(request.pod_class, node)

    def _lift_pod(self, pod: int, log: MoveLog) -> int:
        node = self.targets.pop(pod)
        request = self.requests[pod]
        assert request is not None
        self.index.remove_pod(request, node)
        self.received_pods[node].remove(pod)
        log.append((-1, pod, node))
        limits = self._counting[node]
        if limits is not None:
            limits.count_arrival(request.pod_class, node, -1)
        return node

    def move_pod(self, pod: int, request: PlacementRequest, node: int, log: MoveLog) -> None:
        """Places the pod on this node. The pod leaves its own node or, if it was moved already, its present target."""
        if pod in self.targets:
            self._lift_pod(pod, log)
        self._place_pod(pod, request, node, log)

    def undo_moves(self, log: MoveLog, mark: int = 0) -> None:
        """Undoes the moves of the log from the end, down to the position `mark`."""
        ignored_log: MoveLog = []
        while len(log) > mark:
            sign, pod, node = log.pop()
            if sign > 0:
                self._lift_pod(pod, ignored_log)
            else:
                request = self.requests[pod]
                assert request is not None
                self._place_pod(pod, request, node, ignored_log)

    # ── exchanges ────────────────────────────────────────────────────────
    def _exchange_pods(self, pod: int, request: PlacementRequest, log: MoveLog) -> bool:
        """Places the pod where a smaller moved pod was, then places the smaller pod in the same way, and so on. Returns
        whether all of them were placed."""
        for _ in range(MAX_EXCHANGES):
            if self.effort <= 0:
                return False
            self.effort -= 1
            exchange = self._smaller_moved_pod(request)
            if exchange is None:
                return False
            smaller_pod, node = exchange
            self._lift_pod(smaller_pod, log)
            self.move_pod(pod, request, node, log)
            smaller_request = self.requests[smaller_pod]
            assert smaller_request is not None
            pod, request = smaller_pod, smaller_request
            place = self.index.find_best_fit(request)
            if place >= 0:
                self._place_pod(pod, request, place, log)
                return True
        return False

    def _smaller_moved_pod(self, request: PlacementRequest) -> tuple[int, int] | None:
        """Returns (pod, node) for the smallest moved pod that could make room for this pod, or None if there is
        none."""
        best: tuple[int, int, int, int] | None = None
        capacity = self.capacity
        for node in self.index.find_near_misses(request):
            shortfall = request.major - capacity.major[node]
            for received_pod in self.received_pods.get(node, ()):
                received_request = self.requests[received_pod]
                assert received_request is not None
                rank = (received_request.major, received_request.major - shortfall, node, received_pod)
                if not shortfall <= received_request.major < request.major or (best is not None and rank > best):
                    continue
                if not self.index.is_within_allowance(request, node, leaving=received_request):
                    continue
                if capacity.minor[
                    node
                ] + received_request.minor >= request.minor and self.index.satisfies_other_constraints(request, node):
                    best = rank
        return (best[3], best[2]) if best is not None else None

    # ── taking back ──────────────────────────────────────────────────────
    def keep_node(self, node: int, log: MoveLog) -> None:
        """Reverses the drain of a node: its own pods stay, and the node can receive others."""
        for pod in self.pods_to_move[node]:
            self._lift_pod(pod, log)
        self.drained_nodes.remove(node)
        limits = self.limits[node]
        if limits is not None:
            limits.restore_node(node)
        self.capacity.uncordon_node(node)
        self._open_node(node)

    def drain_again(self, node: int, log: MoveLog) -> None:
        """Undoes `keep_node`, and all moves after it."""
        self.index.close_node(node)
        self.undo_moves(log)
        self.state[node] = DRAINED
        self.capacity.cordon_node(node)
        limits = self.limits[node]
        if limits is not None:
            limits.remove_node(node)
        self.drained_nodes.append(node)

    def drain_receiver(self, node: int, log: MoveLog) -> bool:
        """Drains a node that has received pods. These pods are moved again, together with the node's own pods. Returns
        whether all of them fit."""
        self.index.close_node(node)
        self.state[node] = TRIED
        if self.drain_node(
            node, sorted((*self.pods_to_move[node], *self.received_pods.get(node, ())), key=self._sort_key), log
        ):
            return True
        self._open_node(node)
        return False

    def repack_pods(self) -> bool:
        """Removes all moved pods from their targets and places them again, largest first, so that small pieces of free
        capacity are joined. Returns whether all of them fit."""
        if len(self.targets) > self.effort:
            return False
        log: MoveLog = []
        pods = sorted(self.targets, key=self._sort_key)
        for pod in pods:
            self._lift_pod(pod, log)
        for pod in pods:
            request = self.requests[pod]
            place = self.index.find_best_fit(request) if request is not None else -1
            self.effort -= 1
            if request is None or place < 0:
                self.undo_moves(log)
                return False
            self._place_pod(pod, request, place, log)
        return True

    def suspend_search(self, before: SavedCapacity) -> SavedCapacity:
        """Restores the capacity and all limits to their state before the search. Returns the present state, for
        `resume_search`."""
        after = self.capacity.save_state()
        self.capacity.restore_state(before)
        self._count_arrivals(-1)
        for node in reversed(self.drained_nodes):
            limits = self.limits[node]
            if limits is not None:
                limits.restore_node(node)
        return after

    def resume_search(self, after: SavedCapacity) -> None:
        """Undoes `suspend_search`, with the state that it returned."""
        for node in self.drained_nodes:
            limits = self.limits[node]
            if limits is not None:
                limits.remove_node(node)
        self._count_arrivals(1)
        self.capacity.restore_state(after)

    def _count_arrivals(self, sign: int) -> None:
        is_counting = any(limits is not None for limits in self._counting)
        for pod, node in self.targets.items() if is_counting else ():
            request, limits = self.requests[pod], self._counting[node]
            if request is not None and limits is not None:
                limits.count_arrival(request.pod_class, node, sign)

    def capacity_removed(self, node: int) -> int:
        """Returns how much capacity the drain of a node removes, in the scarcer of cpu and memory. This is the node's
        free capacity plus what its pods need on other nodes."""
        if node not in self._removed_capacity:
            moving = sum([e.major for pod in self.pods_to_move[node] if (e := self.requests[pod]) is not None])
            self._removed_capacity[node] = max(0, self.capacity.world.major[node]) + moving
        return self._removed_capacity[node]

    def _sort_key(self, pod: int) -> int:
        """Returns the key that sorts pods by size, largest first, and then by number."""
        sort_key = self._sort_keys.get(pod)
        if sort_key is None:
            request = self.requests[pod]
            sort_key = self._sort_keys[pod] = ((request.pod_class.sort_key if request is not None else 0) << 32) + pod
        return sort_key


__all__ = ["CANDIDATE", "DRAINED", "FIXED", "OPEN", "PodClass", "Search"]
