"""Replays the cluster autoscaler on the nodes and the demand of a history: nodes, evictions, and nodes that were
removed in vain.

A node is unneeded while its utilization (requested ÷ allocatable, the larger of cpu and memory, DaemonSets included) is
below the threshold, no pod on it blocks its removal, and all its pods fit on other nodes. If it stays unneeded for long
enough, it is removed: empty nodes together, others one a minute. After a scale-up, no node is removed for a while. For
pods without room, nodes are added of the shape that holds most of them (core/scaledown, cluster-autoscaler 1.36).

The model only has amounts: cpu, memory and pod slots, and node selectors and taints in the form of node shapes. It has
no affinity between pods, spreading, volumes or disruption budgets. Amounts are in the scheduler's units: millicores and
bytes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

BOUGHT_BACK_SECONDS = 3600
"""If a node is added within this many seconds after a removal, the removal counts as having been in vain."""
MAX_EMPTY_REMOVALS = 10
"""How many empty nodes are removed at the same time (--max-empty-bulk-delete)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownFlags:
    """The cluster autoscaler's flags that decide when a node is removed, with their defaults."""

    threshold: float = 0.5
    unneeded_seconds: int = 600
    delay_after_add_seconds: int = 600
    provision_seconds: int = 120
    """The number of seconds from a scale-up until the new node accepts pods. This is not a flag of the autoscaler."""

    def format_arguments(self) -> tuple[str, ...]:
        """Returns the flags as arguments of the cluster autoscaler."""
        return (
            f"--scale-down-utilization-threshold={self.threshold:g}",
            f"--scale-down-unneeded-time={_format_minutes(self.unneeded_seconds)}",
            f"--scale-down-delay-after-add={_format_minutes(self.delay_after_add_seconds)}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayShape:
    """A group of equal nodes: the amounts that each node has for pods after DaemonSets, and what the DaemonSets
    request."""

    name: str
    cpu: int
    memory: int
    pods: int
    daemon_cpu: int = 0
    daemon_memory: int = 0
    price: int | None = None
    """The price in micro-dollars an hour, or None if it is unknown."""
    group: str = ""
    """The node group with a minimum size to which these nodes belong; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWorkload:
    """A number of equal pods of one owner."""

    name: str
    cpu: int
    memory: int
    shapes: frozenset[str]
    """The shapes of nodes on which these pods can run."""
    blocks: bool = False
    """Whether such a pod keeps the autoscaler from removing its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHistory:
    """The input of a replay: the nodes and pods at the beginning, and the number of pods at every moment."""

    shapes: Mapping[str, ReplayShape]
    workloads: Mapping[str, ReplayWorkload]
    nodes: Sequence[tuple[str, Mapping[str, int]]]
    """(shape, workload → number of pods) for each node at the beginning."""
    moments: Sequence[tuple[int, Mapping[str, int]]]
    """(second, workload → number of pods), ascending. A workload that is not in a moment keeps its number."""
    min_nodes: Mapping[str, int] = field(default_factory=dict)
    """Shape → the number of its nodes that are never removed."""
    group_minimums: Mapping[str, int] = field(default_factory=dict)
    """Node group → the number of its nodes, of all its shapes, that are never removed."""


@dataclass(slots=True)
class ReplayResult:
    """What the autoscaler did in a replay."""

    seconds: int = 0
    node_seconds: float = 0.0
    dollars: float | None = 0.0
    """The cost of the whole history in dollars, or None if a node has no price."""
    final_nodes: int = 0
    removed: int = 0
    evictions: int = 0
    bought: int = 0
    bought_back: int = 0
    pending_pod_seconds: float = 0.0

    @property
    def mean_nodes(self) -> float:
        return self.node_seconds / self.seconds if self.seconds else float(self.final_nodes)


@dataclass(slots=True, eq=False)
class _Node:
    shape: ReplayShape
    pods: Counter[str] = field(default_factory=Counter)
    cpu: int = 0
    memory: int = 0
    count: int = 0
    unneeded_since: int | None = None
    ready_at: int = 0

    def can_hold(self, workload: ReplayWorkload) -> bool:
        return (
            self.shape.name in workload.shapes
            and self.count < self.shape.pods
            and self.cpu + workload.cpu <= self.shape.cpu
            and self.memory + workload.memory <= self.shape.memory
        )

    def add_pods(self, workload: ReplayWorkload, count: int) -> None:
        self.pods[workload.name] += count
        self.cpu += count * workload.cpu
        self.memory += count * workload.memory
        self.count += count
        if not self.pods[workload.name]:
            del self.pods[workload.name]

    @property
    def utilization(self) -> float:
        """The node's utilization: the larger of the shares of cpu and memory, DaemonSets included."""
        cpu, memory = self.shape.cpu + self.shape.daemon_cpu, self.shape.memory + self.shape.daemon_memory
        return max(
            (self.cpu + self.shape.daemon_cpu) / cpu if cpu else 0.0,
            (self.memory + self.shape.daemon_memory) / memory if memory else 0.0,
        )

    @property
    def used_share(self) -> float:
        """The sum of the used shares of cpu and memory, by which the scheduler's LeastAllocated compares nodes."""
        shape = self.shape
        return (self.cpu / shape.cpu if shape.cpu else 1.0) + (self.memory / shape.memory if shape.memory else 1.0)


def replay_history(history: NodeHistory, flags: ScaleDownFlags) -> ReplayResult:
    """Replays the whole history with these flags, and returns what the autoscaler did."""
    return _Replay(history, flags).run()


class _Replay:
    """The state of one replay."""

    def __init__(self, history: NodeHistory, flags: ScaleDownFlags) -> None:
        self.history, self.flags = history, flags
        self.nodes = [_Node(history.shapes[shape]) for shape, _ in history.nodes]
        for node, (_, pods) in zip(self.nodes, history.nodes, strict=True):
            for name, count in pods.items():
                node.add_pods(history.workloads[name], count)
        self.pending: Counter[str] = Counter()
        self.result = ReplayResult()
        self.last_bought: int | None = None
        self.removals: deque[int] = deque()
        self.is_settled = False
        """Whether nothing changed since the last evaluation: the same nodes are unneeded."""

    def run(self) -> ReplayResult:
        moments = self.history.moments
        for n, (second, replicas) in enumerate(moments):
            following = moments[n + 1][0] if n + 1 < len(moments) else second
            for name, wanted in replicas.items():
                workload = self.history.workloads[name]
                present = sum(node.pods.get(name, 0) for node in self.nodes) + self.pending[name]
                if wanted > present:
                    self.pending[name] += wanted - present
                for _ in range(present - wanted):
                    self._delete_pod(workload)
                self.is_settled = self.is_settled and wanted == present
            self._place_pending(second)
            self._remove_unneeded(second, max(1, (following - second) // 60))
            self._account(following - second)
        self.result.final_nodes = len(self.nodes)
        return self.result

    def _account(self, seconds: int) -> None:
        result = self.result
        result.seconds += seconds
        result.node_seconds += seconds * len(self.nodes)
        prices = [node.shape.price for node in self.nodes]
        if result.dollars is None or None in prices:
            result.dollars = None
        else:
            result.dollars += fsum(price for price in prices if price is not None) * seconds / 3600 / 1e6
        result.pending_pod_seconds += seconds * self.pending.total()

    def _delete_pod(self, workload: ReplayWorkload) -> None:
        """Deletes one pod of a workload, as a ReplicaSet would: pending pods first, then pods on the node with most of
        them."""
        if self.pending[workload.name]:
            self.pending[workload.name] -= 1
            return
        node = max(self.nodes, key=lambda each: each.pods.get(workload.name, 0))
        node.add_pods(workload, -1)

    def _place_pending(self, second: int) -> None:
        ready = [node for node in self.nodes if node.ready_at <= second]
        for name in self._by_size(self.pending):
            workload = self.history.workloads[name]
            while self.pending[name] and (node := _find_emptiest(ready, workload)) is not None:
                node.add_pods(workload, 1)
                self.pending[name] -= 1
                self.is_settled = False
        self.pending = +self.pending
        if self.pending:
            self._buy_nodes(second)

    def _buy_nodes(self, second: int) -> None:
        """Adds nodes for pending pods that do not fit on nodes which were added before and will be ready soon."""
        coming = [_copy_node(node) for node in self.nodes if node.ready_at > second]
        rest = Counter(self.pending)
        for name in self._by_size(self.pending):
            workload = self.history.workloads[name]
            while rest[name] and (node := _find_emptiest(coming, workload)) is not None:
                node.add_pods(workload, 1)
                rest[name] -= 1
        rest = +rest
        while rest:
            shape = self._choose_shape(rest)
            if shape is None:
                return
            node = _Node(shape, ready_at=second + self.flags.provision_seconds)
            self._fill_node(_copy_node(node), rest)
            self.nodes.append(node)
            rest = +rest
            self.is_settled = False
            self.last_bought = second
            self.result.bought += 1
            while self.removals and second - self.removals[0] > BOUGHT_BACK_SECONDS:
                self.removals.popleft()
            if self.removals:
                self.removals.popleft()
                self.result.bought_back += 1

    def _choose_shape(self, rest: Counter[str]) -> ReplayShape | None:
        """Returns the node shape on which these pods request the most cpu for its price (or for its cpu, if it has no
        price), or None if no shape holds any of them."""
        best, best_value = None, 0.0
        for shape in self.history.shapes.values():
            placed = self._fill_node(_Node(shape), Counter(rest))
            value = placed / (shape.price or shape.cpu or 1)
            if value > best_value:
                best, best_value = shape, value
        return best

    def _fill_node(self, node: _Node, rest: Counter[str]) -> int:
        """Places pods of `rest` on an empty node, the largest first, and removes them from `rest`. Returns the cpu that
        they request."""
        placed = 0
        for name in self._by_size(rest):
            workload = self.history.workloads[name]
            while rest[name] and node.can_hold(workload):
                node.add_pods(workload, 1)
                rest[name] -= 1
                placed += max(1, workload.cpu)
        return placed

    def _remove_unneeded(self, second: int, max_drains: int) -> None:
        if self.last_bought is not None and second - self.last_bought < self.flags.delay_after_add_seconds:
            return
        if not self.is_settled:
            self._mark_unneeded(second)
        due = [
            node
            for node in self.nodes
            if node.unneeded_since is not None and second - node.unneeded_since >= self.flags.unneeded_seconds
        ]
        empty, drains = 0, 0
        for node in due:
            if not self._may_shrink(node) or (node.count and drains >= max_drains):
                continue
            if not node.count and empty >= MAX_EMPTY_REMOVALS * max_drains:
                continue
            moves = self._place_elsewhere(node, [each for each in self.nodes if each is not node])
            if moves is None:
                node.unneeded_since = None
                continue
            self._undo_moves(moves)
            empty, drains = (empty, drains + 1) if node.count else (empty + 1, drains)
            self._remove_node(node, moves, second)

    def _mark_unneeded(self, second: int) -> None:
        """Marks the nodes that could be removed. Nodes that were marked before keep the room that is reserved for their
        pods, so that several nodes do not count on the same room."""
        room = [_copy_node(node) for node in self.nodes]
        open_nodes = list(room)
        order = sorted(range(len(room)), key=lambda n: (self.nodes[n].unneeded_since is None, room[n].utilization, n))
        for n in order:
            node, copy = self.nodes[n], room[n]
            others = [each for each in open_nodes if each is not copy]
            moves = self._place_elsewhere(copy, others) if self._is_candidate(node, second) else None
            if moves is None:
                node.unneeded_since = None
                continue
            open_nodes = others
            node.unneeded_since = second if node.unneeded_since is None else node.unneeded_since
        self.is_settled = True

    def _is_candidate(self, node: _Node, second: int) -> bool:
        return (
            node.ready_at <= second
            and node.utilization < self.flags.threshold
            and not any(self.history.workloads[name].blocks for name in node.pods)
        )

    def _may_shrink(self, node: _Node) -> bool:
        name, group = node.shape.name, node.shape.group
        group_minimum = self.history.group_minimums.get(group, 0)
        return sum(each.shape.name == name for each in self.nodes) > self.history.min_nodes.get(name, 0) and (
            not group_minimum or sum(each.shape.group == group for each in self.nodes) > group_minimum
        )

    def _place_elsewhere(self, node: _Node, others: Sequence[_Node]) -> list[tuple[_Node, str]] | None:
        """Places every pod of the node on another node, each on the fullest node on which it fits, and returns the
        placements. If one pod does not fit anywhere, places no pod and returns None."""
        moves: list[tuple[_Node, str]] = []
        targets = sorted(others, key=lambda each: -each.used_share)
        for name in self._by_size(node.pods):
            workload = self.history.workloads[name]
            start = 0
            for _ in range(node.pods[name]):
                while start < len(targets) and not targets[start].can_hold(workload):
                    start += 1
                if start == len(targets):
                    self._undo_moves(moves)
                    return None
                targets[start].add_pods(workload, 1)
                moves.append((targets[start], name))
        return moves

    def _undo_moves(self, moves: Sequence[tuple[_Node, str]]) -> None:
        for target, name in moves:
            target.add_pods(self.history.workloads[name], -1)

    def _remove_node(self, node: _Node, moves: Sequence[tuple[_Node, str]], second: int) -> None:
        self.nodes.remove(node)
        self.removals.append(second)
        self.result.removed += 1
        self.result.evictions += len(moves)
        self.is_settled = False
        # The scheduler, not the plan, chooses where the successors run.
        for _, name in moves:
            self.pending[name] += 1
        ready = [each for each in self.nodes if each.ready_at <= second]
        for name in self._by_size(self.pending):
            workload = self.history.workloads[name]
            while self.pending[name] and (target := _find_emptiest(ready, workload)) is not None:
                target.add_pods(workload, 1)
                self.pending[name] -= 1

    def _by_size(self, pods: Mapping[str, int]) -> list[str]:
        """Returns the names of the workloads among these pods, sorted by the size of a pod, the largest first."""
        workloads = self.history.workloads
        return sorted(pods, key=lambda name: (-workloads[name].cpu, -workloads[name].memory, name))


def _find_emptiest(nodes: Sequence[_Node], workload: ReplayWorkload) -> _Node | None:
    """Returns the node with the most room for such a pod, as the scheduler's LeastAllocated would choose it, or None if
    it fits on none."""
    return min((node for node in nodes if node.can_hold(workload)), key=lambda node: node.used_share, default=None)


def _copy_node(node: _Node) -> _Node:
    return _Node(node.shape, Counter(node.pods), node.cpu, node.memory, node.count, node.unneeded_since, node.ready_at)


def _format_minutes(seconds: int) -> str:
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
