"""The plan: the nodes to drain in waves, the target of every pod, and the reason why every other node stays.

`first_wave` calculates only the first wave, for callers that make a new plan before the second. A pool drains a few
nodes at a time, so most of a plan is never executed. `first_wave` examines only the most promising candidates closely,
and uses the others only as targets; for thousands of nodes it takes a fraction of the time of a whole plan. Its result
is as safe as the first wave of a plan, but may save a little less, because it searches once and tries no improvements.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import with_options
from trimtab.cluster.format_count import format_count
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.reason import Reason
from trimtab.cluster.several_autoscalers import autoscaler_of_node
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.long_graces import longest_grace, note_cut_graces, note_long_drains
from trimtab.compaction.plan_types import DrainStep, LeftNode, Move, Plan, Wave
from trimtab.compaction.rules_of_nodes import has_too_few_replicas
from trimtab.compaction.search.drain_order import (
    arrange_waves,
    by_evictions,
    choose_first_node,
    defer_dear_nodes,
    eviction_turns,
    replay_drain,
    undo_replay,
)
from trimtab.compaction.search.drain_search import DRAINED, Search
from trimtab.compaction.search.pool_limits import PoolLimits, autoscaler_threshold
from trimtab.compaction.search.problem import CompactionProblem, prepare_problem
from trimtab.compaction.search.strategy import search_drains, search_once
from trimtab.compaction.search.upper_bound import bound_problem
from trimtab.compaction.surge.transient_room import TransientRoom
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, drain_with_preferences

EFFORT_FACTOR = 600_000_000_000
"""This number, divided by the cube of the number of nodes, limits how many placements are tried after the first pass.
In large clusters the first pass packs well, and each further attempt costs more."""
MAX_EFFORT = 20_000
MAX_EXACT_CHECKS = 400_000
"""The maximum number of checks of a pod against a node when the pods of nodes must be placed one after the other."""


@without_garbage_collection()
def make_plan(
    model: ClusterModel,
    pools: Sequence[Pool],
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    effort: int | None = None,
) -> Plan:
    """Returns the plan for these pools at this time. Equal input gives an equal plan. `effort` limits how many
    placements are tried after the first pass."""
    problem = prepare_problem(model, pools, context)
    if effort is None:
        effort = min(MAX_EFFORT, EFFORT_FACTOR // max(1, len(model.nodes) ** 3))
    search = search_drains(problem, effort)
    return Planner(problem, search).build_plan()


@dataclass(slots=True, eq=False)
class Planner:
    """Turns the result of a search into waves in which every move is possible."""

    problem: CompactionProblem
    search: Search
    waves: list[list[int]] = field(default_factory=list)
    targets: dict[int, int] = field(default_factory=dict)
    failed_nodes: list[int] = field(default_factory=list)
    left_nodes: dict[str, LeftNode] = field(default_factory=dict)
    """Node → what its removal would save and cost, for nodes that are left to the cluster autoscaler."""
    overdue: set[str] = field(default_factory=set)
    allowed_disruptions: list[int] = field(init=False)
    transient_room: TransientRoom = field(init=False)
    _budget_keys: list[str] = field(init=False)
    _turns_by_node: dict[int, tuple[Sequence[int], Sequence[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.allowed_disruptions = self.problem.allowed_disruptions
        self._budget_keys = [budget.key for budget in self.model.inventory.pdbs]

    @property
    def model(self) -> ClusterModel:
        return self.problem.model

    def build_plan(self) -> Plan:
        """Returns the whole plan."""
        problem, search, capacity = self.problem, self.search, self._replay_capacity()
        self.transient_room = TransientRoom(problem.model, problem.surge_of, capacity)
        for wave in self._arrange_waves():
            confirmed = self._confirm_wave(capacity, wave)
            if confirmed:
                self.waves.append(confirmed)
        self._drain_remaining(capacity)
        waves = tuple(Wave(steps=tuple(map(self._drain_step, wave))) for wave in self.waves)
        drained = {node for wave in self.waves for node in wave}
        receivers = Counter([self.targets[pod] for node in drained for pod in self.problem.pods_to_move[node]])
        return Plan(
            waves=waves,
            refusals={
                node.name: self._refusal_of(number, receivers)
                for number, node in enumerate(self.model.nodes)
                if number not in drained
            },
            unit=problem.unit,
            bound=bound_problem(problem, search),
            notes=self._notes(),
            pods={self.model.pods[p].key: reason for p, reason in sorted(problem.blocked_pods.items())},
            pools=problem.pool_refusals,
            surge_peak=self.transient_room.peak,
            left=self.left_nodes,
            overdue=tuple(sorted(self.overdue)),
        )

    def build_first_wave(self) -> Wave:
        """Returns only the first wave of the plan; it is empty if no node can be drained."""
        capacity = self._replay_capacity()
        self.transient_room = TransientRoom(self.problem.model, self.problem.surge_of, capacity)
        for wave in self._arrange_waves():
            confirmed = self._confirm_wave(capacity, wave)
            if confirmed:
                return Wave(steps=tuple(map(self._drain_step, confirmed)))
        return Wave(steps=())

    def _arrange_waves(self) -> list[list[int]]:
        """Returns the nodes to drain, in waves that their PodDisruptionBudgets allow."""
        problem, search = self.problem, self.search
        order = by_evictions(search.drained_nodes, problem.pods_to_move, problem.savings, problem.extra_moves)
        order = [node for node in order if self._is_worth_draining(node) and not self._is_left_to_autoscaler(node)]
        self.targets = dict(search.targets)
        needs = {node: problem.budget_needs(node) for node in order}
        extras = problem.extra_moves.get
        value = {node: (len(problem.pods_to_move[node]) + extras(node, 0), problem.savings[node]) for node in order}
        chosen = choose_first_node(order, needs, self.allowed_disruptions, value)
        if problem.term_costs:
            by_cost = by_evictions(order, problem.pods_to_move, problem.savings, problem.surcharges)
            chosen = defer_dear_nodes(order, chosen, problem.term_costs, by_cost)
        return arrange_waves(chosen, needs, self.allowed_disruptions)

    def _replay_capacity(self) -> FreeCapacity:
        capacity = FreeCapacity(self.model)
        capacity.reserve_growth()
        # The search cordoned the nodes that it drains; the replay starts with them open, and closes each when it is
        # drained.
        capacity.closed_nodes[:] = bytes(
            1
            if self.model.closed_nodes[n] or (self.problem.capacity.closed_nodes[n] and self.search.state[n] != DRAINED)
            else 0
            for n in range(len(self.model.nodes))
        )
        for pod_class, node in self.problem.reserved:
            capacity.add_pod(pod_class, node)
        return capacity

    def _eviction_turns(self, node: int) -> tuple[Sequence[int], Sequence[int]]:
        """Returns (the pods of the node in the order of eviction, the turn of each pod). A turn begins when the
        successors of the previous turn are ready."""
        if node not in self._turns_by_node:
            self._turns_by_node[node] = eviction_turns(
                self.problem.pods_to_move[node], self.problem.budget_of, self.allowed_disruptions
            )
        return self._turns_by_node[node]

    def _confirm_wave(self, capacity: FreeCapacity, wave: Sequence[int]) -> list[int]:
        """Returns the nodes of the wave whose moves are possible, after they were made."""
        confirmed = [node for node in wave if self._try_replay(capacity, node)]
        if self.problem.surge_of:
            self.transient_room.end_wave()
        return confirmed

    def _try_replay(self, capacity: FreeCapacity, node: int) -> bool:
        pods = self._eviction_turns(node)[0]
        if replay_drain(capacity, node, pods, self.targets):
            if self._reserve_transient(node):
                return True
            undo_replay(capacity, node, pods, self.targets)
        self.failed_nodes.append(node)
        return False

    def _reserve_transient(self, node: int) -> bool:
        """Reserves room for the additional pods of the node's surges. If there is too little, the node stays."""
        if not self.problem.surge_of or self.transient_room.reserve(self.problem.pods_to_move[node]):
            return True
        self.problem.refusals[node] = self.transient_room.shortage_reason(self.model.nodes[node].name)
        return False

    def _is_worth_draining(self, node: int) -> bool:
        """Returns whether the removal of the node saves enough for the number of pods that have to move."""
        pool, limits = self.problem.pool_of[node], self.problem.limits[node]
        if not pool.least_gain or limits is None:
            return True
        mean = sum(self.problem.savings[n] for n in limits.nodes) // len(limits.nodes)
        starts = len(self.problem.pods_to_move[node]) + self.problem.extra_moves.get(node, 0)
        if self.problem.savings[node] * 1000 >= pool.least_gain * mean * starts:
            return True
        self.problem.refusals[node] = r.NO_GAIN(
            f"to drain node {self.model.nodes[node].name}, "
            f"{format_count(len(self.problem.pods_to_move[node]), 'pod')} would have to move"
        )
        return False

    def _is_left_to_autoscaler(self, node: int) -> bool:
        """Returns whether the cluster autoscaler will remove the node itself. If so, the capacity that the plan found
        for the node's pods is kept free.

        The autoscaler removes a node that is under its threshold and whose pods fit on other nodes; it refuses to evict
        the same pods as Trimtab.
        """
        if self.problem.pool_of[node].autoscaler is Precedence.LEAD:
            return False
        autoscaler = self.problem.context.autoscaler
        options = self.problem.pool_of[node].group_options
        if autoscaler is None:
            return False
        own = autoscaler_of_node(autoscaler, self.model.nodes[node], self.problem.pool_of[node].name)
        # If it is not known which autoscaler the node belongs to, it must be under the threshold of each.
        thresholds = [autoscaler_threshold(self.model, node, with_options(member, options)) for member in own.each]
        if None in thresholds:
            return False
        threshold = min(each for each in thresholds if each is not None)
        name = self.model.nodes[node].name
        rules = self.problem.eviction_checker.rules.on_node(name, self.problem.pool_of[node])
        owners = self.model.inventory.owners
        if any(has_too_few_replicas(pod, owners, rules) for pod in self._moving_pods(node)):
            return False
        if name in self.problem.context.overdue:
            self.overdue.add(name)
            return False
        self.left_nodes[name] = LeftNode(
            saves=self.problem.savings[node], evictions=len(self.problem.pods_to_move[node])
        )
        self.problem.refusals[node] = r.AUTOSCALERS(
            f"the utilization of node {name} is under the autoscaler's own threshold of {threshold} %, "
            + (
                "but it is not known to which node group the node belongs, so the autoscaler may remove the node"
                if name in self.problem.node_groups.unmatched_nodes
                else "so the autoscaler will remove the node"
            )
        )
        return True

    # ── nodes that need exact placement, in order ────────────────────────
    def _drain_remaining(self, capacity: FreeCapacity) -> None:
        """Drains those remaining nodes whose pods depend on the order of moves, or that were needed for pods which are
        now placed elsewhere.

        These nodes come after all others, one at a time, each in a wave of its own.
        """
        problem = self.problem
        drained = {node for wave in self.waves for node in wave}
        receivers = set(self.targets.values())
        remaining = [n for n in self.search.order if n not in drained and n not in receivers]
        retried = [
            n for n in remaining if n in self.failed_nodes or n not in self.search.refusals or self._depends_on_order(n)
        ]
        checks, targets = MAX_EXACT_CHECKS, [n for n in range(len(self.model.nodes)) if not capacity.closed_nodes[n]]
        for node in by_evictions(retried, problem.pods_to_move, problem.savings, problem.extra_moves):
            checks -= len(problem.pods_to_move[node]) * len(targets)
            limits = problem.limits[node]
            if checks < 0:
                break
            if limits is None or not self._is_worth_draining(node):
                continue
            # The autoscaler keeps the minimums of its groups too, so it would not remove such a node either.
            reason = limits.rejection_reason(node) if node not in self.failed_nodes else None
            if reason is None and not self._is_left_to_autoscaler(node):
                self._try_exact_drain(capacity, node, targets, receivers)

    def _depends_on_order(self, node: int) -> bool:
        """Returns whether the search rejected the node by a stricter rule than kube-scheduler's filters: the search
        checks a spread constraint as if every other domain could become empty."""
        if any(self.problem.requests[pod] is None for pod in self.problem.pods_to_move[node]):
            return True
        cause = self.search.refusals.get(node)
        request = self.problem.requests[cause] if isinstance(cause, int) else None
        return request is not None and bool(request.max_counts)

    def _try_exact_drain(self, capacity: FreeCapacity, node: int, targets: Sequence[int], receivers: set[int]) -> bool:
        """Places all pods of the node one after the other, and returns whether all of them fit.

        `targets`: the nodes that may receive pods. If a pool would lack headroom after that, its nodes are not used. A
        node in `receivers`, which has received pods already, is not drained."""
        if node in receivers:
            return False
        drained = {n for wave in self.waves for n in wave}
        pods = self._eviction_turns(node)[0]
        open_nodes = [n for n in targets if n not in drained]
        while True:
            placement = drain_with_preferences(capacity, node, pods, open_nodes)
            if not isinstance(placement, DrainPlacement):
                self.problem.refusals.setdefault(node, placement.reason)
                return False
            dest = dict(placement.moves)
            # The exact placement was calculated pod by pod without the other filters of a turn, so it is replayed like
            # any other.
            if not replay_drain(capacity, node, pods, dest):
                return False
            if not self._reserve_transient(node):
                undo_replay(capacity, node, pods, dest)
                return False
            if self.problem.surge_of:
                self.transient_room.end_wave()
            shortage = self._pool_shortage(node, dest)
            if shortage is None:
                break
            undo_replay(capacity, node, pods, dest)
            self.problem.refusals[node] = shortage[1]
            others = [n for n in open_nodes if self.problem.limits[n] is not shortage[0]]
            if len(others) == len(open_nodes):
                return False
            open_nodes = others
        self.problem.refusals.pop(node, None)
        self.targets.update(dest)
        receivers.update(dest.values())
        self.waves.append([node])
        return True

    def _pool_shortage(self, node: int, dest: Mapping[int, int]) -> tuple[PoolLimits, Reason] | None:
        """Returns the first pool that would lack headroom after these moves, and the reason. If there is none, counts
        the moves and returns None. `dest` is pod → target node."""
        own, classes = self.problem.limits[node], self.model.successor_class_of
        counts_node = own is not None and node not in self.failed_nodes
        if own is not None and counts_node:
            own.remove_node(node)
        arrivals = [
            (pool, pod, target) for pod, target in dest.items() if (pool := self.problem.limits[target]) is not None
        ]
        for pool, pod, target in arrivals:
            pool.count_arrival(classes[pod], target)
        affected = {id(pool): pool for pool in (own, *(pool for pool, _, _ in arrivals)) if pool is not None}
        shortage = next(
            ((pool, reason) for pool in affected.values() if (reason := pool.shortage_reason()) is not None), None
        )
        if shortage is None:
            return None
        for pool, pod, target in arrivals:
            pool.count_arrival(classes[pod], target, -1)
        if own is not None and counts_node:
            own.restore_node(node)
        return shortage

    # ── the values of the plan ───────────────────────────────────────────
    def _drain_step(self, node: int) -> DrainStep:
        problem, nodes, dest = self.problem, self.model.nodes, self.targets
        name = nodes[node].name
        pods, budget_of, budget_keys = self.model.pods, problem.budget_of, self._budget_keys
        surge_of = problem.surge_of
        moves = tuple(
            [
                Move(
                    pod=f"{(pod := pods[number]).namespace}/{pod.name}",
                    uid=pod.uid,
                    source=name,
                    turn=turn,
                    target=nodes[dest[number]].name,
                    budget=budget_keys[budget_of[number]] if number in budget_of else None,
                    surge=surge_of[number].extra if number in surge_of else 0,
                )
                for number, turn in zip(*self._eviction_turns(node), strict=True)
            ]
        )
        says = f"node {name} has no pods to move"
        if moves:
            says = f"node {name} has {format_count(len(moves), 'pod')} to move, and the other nodes have room"
        if extra := problem.surge_counts.get(node, 0) if surge_of else 0:
            says += f", also for {format_count(extra, 'more pod')} that must run first"
        reason = r.GOES(says)
        step = DrainStep(
            node=name,
            pool=problem.pool_of[node].name,
            saves=problem.savings[node],
            moves=moves,
            reason=reason,
            longest_grace_seconds=longest_grace(self._moving_pods(node)),
            stated_cost=problem.term_costs.get(node, 0),
        )
        if not problem.companions.get(node):
            return step
        from trimtab.compaction.search.companions import with_companions

        return with_companions(step, problem, node)

    def _refusal_of(self, number: int, receivers: Counter[int]) -> Reason:
        reason = self.problem.refusals.get(number)
        if reason is not None:
            return reason
        name = self.model.nodes[number].name
        cause = self.search.refusals.get(number)
        if isinstance(cause, Reason):
            return cause
        if receivers[number]:
            own = (
                f"pod {self.model.pods[cause].key} on the node fits on no other node"
                if isinstance(cause, int)
                else "no other rule prevents its drain"
            )
            count = format_count(receivers[number], "pod")
            return r.WORTH_KEEPING(f"node {name} receives {count} of drained nodes; {own}")
        if not isinstance(cause, int):
            return r.NOT_TRIED(f"the search reached its limit on other nodes, before it tried node {name}")
        pod = self.model.pods[cause].key
        return r.NO_PLACE(f"not all pods of node {name} fit on other nodes; pod {pod} does not fit")

    def _notes(self) -> tuple[str, ...]:
        notes = [*self.model.inventory.notes, *self.problem.ignored]
        if self.problem.context.observations is None:
            notes.append(
                "there are no stored observations of earlier rounds, so the plan assumes that no pod of the "
                "pools is moving"
            )
        if self.problem.context.now is None:
            notes.append(
                "the plan was made without a time (`--now`), so rules about ages, windows and quiet times are not "
                "applied"
            )
        if self.problem.context.autoscaler is None:
            notes.append(
                "the status of the cluster autoscaler is not known, so the plan assumes that the autoscaler is "
                "healthy and removes no node"
            )
        else:
            notes += self.problem.node_groups.notes
        if self.problem.surge_of:
            notes += self.transient_room.notes(
                pod for wave in self.waves for node in wave for pod in self.problem.pods_to_move[node]
            )
        return (*notes, *self._grace_notes())

    def _grace_notes(self) -> list[str]:
        names = {node: self.model.nodes[node].name for wave in self.waves for node in wave}
        pods = self.model.pods
        notes = note_long_drains(
            {
                name: [(pods[number], turn) for number, turn in zip(*self._eviction_turns(node), strict=True)]
                for node, name in names.items()
            }
        )
        autoscaler = self.problem.context.autoscaler
        if autoscaler is not None and self.left_nodes:
            left = {node.name: n for n, node in enumerate(self.model.nodes) if node.name in self.left_nodes}
            pods_by_node = {name: self._moving_pods(node) for name, node in left.items()}
            notes += note_cut_graces(
                pods_by_node, {name: self.model.nodes[node] for name, node in left.items()}, autoscaler
            )
        return notes

    def _moving_pods(self, node: int) -> list[PodInfo]:
        return [self.model.pods[number] for number in self.problem.pods_to_move[node]]


CLOSE_CANDIDATES = 400
"""The number of candidates that are examined closely at first. If none of them can be drained, four times as many are
examined."""


@without_garbage_collection()
def first_wave(
    model: ClusterModel,
    pools: Sequence[Pool],
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    close: int = CLOSE_CANDIDATES,
) -> Wave:
    """Returns the wave of nodes to drain now, best first; it is empty if no node can be drained. Equal input gives an
    equal wave. `close` is the number of candidates that are examined closely at first."""
    while True:
        problem = prepare_problem(model, pools, context, close)
        wave = Planner(problem, search_once(problem)).build_first_wave()
        if wave.steps or not problem.unexamined:
            return wave
        close *= 4
