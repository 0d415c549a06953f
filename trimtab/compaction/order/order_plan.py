"""The plan of a drain that a user orders: which nodes are emptied in which waves, where every pod goes, and what stands
in the way.

All nodes of the order are closed from the beginning, so that no pod is placed on a node that is emptied later: no pod
moves twice. So the nodes outside the order must hold all pods of the order. If they do not, the plan says how much is
missing.

Nodes are emptied zone by zone, at most `OrderRules.at_once` in a wave, and within a wave budgets are spent once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP, Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import Blocked, Evictable
from trimtab.compaction.candidates import CORDONED_BY_US, DO_NOT_DISRUPT, closed_receivers, node_keep_reason
from trimtab.compaction.long_graces import estimate_drain_time, longest_grace
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.ordered_evictions import OrderedEvictionChecker
from trimtab.compaction.order.record import OrderRecord, read_record
from trimtab.compaction.plan_types import DrainStep, Move, Wave
from trimtab.compaction.search.drain_order import arrange_waves, eviction_turns, replay_drain
from trimtab.compaction.search.problem import returning_reason
from trimtab.compaction.search.reserved_capacity import ReservedCapacity
from trimtab.compaction.surge.find_surge import Surge
from trimtab.compaction.surge.transient_room import TransientRoom
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, NoPlacement, drain_exactly, drain_with_preferences


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmovablePod:
    """A pod that an order may not evict."""

    pod: str
    """The pod as namespace/name."""
    node: str
    reason: Reason
    """Why it cannot move; the sentence names what would permit it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """A PodDisruptionBudget that pods of the order share."""

    budget: str
    """The budget as namespace/name."""
    allowed: int
    """How many evictions it allows at present."""
    needed: int
    """How many pods of the order it selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """What an order would do."""

    waves: tuple[Wave, ...]
    """The nodes in the order in which they are emptied. A wave begins when the nodes of the previous one are empty."""
    refusals: Mapping[str, Reason]
    """Node → why it cannot be emptied."""
    unmovable: tuple[UnmovablePod, ...] = ()
    homeless: tuple[str, ...] = ()
    """The pods (namespace/name) for which the nodes outside the order have no room."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Resource → what the homeless pods request, in the scheduler's units (millicores, bytes, pods)."""
    budgets: tuple[BudgetUse, ...] = ()
    surges: tuple[Surge, ...] = ()
    """The Deployments that get more pods for a while."""
    warnings: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    """Pod that moves → what its owner should know."""
    stop_seconds: tuple[int, ...] = ()
    """Wave → how many seconds its pods may take to stop. The time in which successors start is not included."""

    @property
    def steps(self) -> tuple[DrainStep, ...]:
        """The nodes that can be emptied, in order."""
        return tuple(step for wave in self.waves for step in wave.steps)

    def may_begin(self, rules: OrderRules) -> bool:
        """Returns whether the order may begin: every node can be emptied, or one, if the order keeps going."""
        return bool(self.waves) if rules.keeps_going else not self.refusals


def plan_order(
    model: ClusterModel,
    names: Sequence[str],
    rules: OrderRules,
    now: Seconds | None = None,
    closed: Iterable[str] = (),
    order: str = "",
    own_nodes: Collection[str] = (),
    denials: Mapping[str, Reason] | None = None,
    pools: Sequence[Pool] = (),
) -> OrderPlan:
    """Returns the plan of an order. Equal input gives an equal plan.

    names: the nodes to empty, which must exist. now: the time of the snapshot; None if it is unknown. closed: further
    nodes of the order that are not emptied by this plan, and that receive no pods either. order: the name of the order,
    whose own records keep no node from it. own_nodes: the nodes that the compactor has cordoned for this order, or may
    cordon for it whatever their annotations say. denials: uid of a pod → why it cannot be evicted, which only the API
    server knows. pools: the pools whose labels make groups of pods."""
    return _OrderPlanner(
        model,
        [model.node_numbers[name] for name in names],
        rules,
        now,
        order,
        frozenset(own_nodes),
        denials or {},
        pools,
    ).build_plan([model.node_numbers[name] for name in closed if name in model.node_numbers])


@dataclass(slots=True, eq=False)
class _OrderPlanner:
    model: ClusterModel
    nodes: list[int]
    rules: OrderRules
    now: Seconds | None
    order: str
    own_nodes: frozenset[str]
    denials: Mapping[str, Reason]
    pools: Sequence[Pool]
    pods_to_move: dict[int, list[int]] = field(default_factory=dict)
    budget_of: dict[int, int] = field(default_factory=dict)
    surge_of: dict[int, Surge] = field(default_factory=dict)
    """Pod → what must be done first, so that its budget allows its eviction."""
    refusals: dict[int, Reason] = field(default_factory=dict)
    unmovable: list[UnmovablePod] = field(default_factory=list)
    homeless: list[int] = field(default_factory=list)
    checker: OrderedEvictionChecker = field(init=False)
    allowed: list[int] = field(init=False)
    """Budget → how many of its pods are evicted in one turn. A budget that allows none at present is waited for."""

    def __post_init__(self) -> None:
        inventory = self.model.inventory
        self.checker = OrderedEvictionChecker.for_order(inventory, self.now, self.rules, self.pools)
        self.allowed = [max(1, budget.allowed) for budget in inventory.pdbs]

    def build_plan(self, closed: Sequence[int]) -> OrderPlan:
        """Returns the plan."""
        for node in self.nodes:
            self._judge_node(node)
        capacity = self._prepare_capacity((*self.nodes, *closed))
        transient_room = TransientRoom(self.model, self.surge_of, capacity)
        steps_by_wave: list[tuple[DrainStep, ...]] = []
        for wave in self._arrange_waves():
            steps = tuple(
                step for node in wave if (step := self._place_pods(capacity, transient_room, node)) is not None
            )
            transient_room.end_wave()
            if steps:
                steps_by_wave.append(steps)
        moved = [move for steps in steps_by_wave for step in steps for move in step.moves]
        pods = {pod.uid: pod for pod in self.model.pods}
        warnings = {move.pod: tuple(self.checker.list_warnings(pods[move.uid])) for move in moved}
        names = self.model.nodes
        return OrderPlan(
            waves=tuple(Wave(steps=steps) for steps in steps_by_wave),
            refusals={names[node].name: reason for node, reason in sorted(self.refusals.items())},
            unmovable=tuple(self.unmovable),
            homeless=tuple(self.model.pods[pod].key for pod in self.homeless),
            missing=self._missing_amounts(),
            budgets=tuple(self._budget_uses()),
            surges=self._planned_surges(moved),
            warnings={pod: reasons for pod, reasons in warnings.items() if reasons},
            stop_seconds=tuple(max(self._stop_seconds(step) for step in steps) for steps in steps_by_wave),
        )

    def _planned_surges(self, moves: Sequence[Move]) -> tuple[Surge, ...]:
        uids = {move.uid for move in moves}
        surges = {surge for pod, surge in self.surge_of.items() if self.model.pods[pod].uid in uids}
        return tuple(sorted(surges, key=lambda surge: (surge.deployment.namespace, surge.deployment.name)))

    def _judge_node(self, node: int) -> None:
        """Decides which pods of the node move; a node or pod that cannot is recorded with the reason."""
        reason = self._node_reason(node)
        movable: list[int] = []
        for number in self.model.pods_on_node[node]:
            pod = self.model.pods[number]
            verdict = self.checker.judge_ordered(pod)
            if isinstance(verdict, Evictable) and (returns := returning_reason(self.model, number)) is not None:
                verdict = Blocked(returns)
            if isinstance(verdict, Evictable) and pod.uid in self.denials:
                verdict = Blocked(self.denials[pod.uid])
            if isinstance(verdict, Evictable):
                movable.append(number)
                if verdict.budget is not None:
                    self.budget_of[number] = verdict.budget
                if verdict.surge is not None:
                    self.surge_of[number] = verdict.surge
            elif isinstance(verdict, Blocked):
                name = self.model.nodes[node].name
                self.unmovable.append(UnmovablePod(pod=pod.key, node=name, reason=verdict.reason))
                reason = reason or o.STAYS(f"node {name} cannot be emptied: {verdict.reason}")
        classes = self.model.successor_class_of
        self.pods_to_move[node] = sorted(movable, key=lambda pod: (-classes[pod].major, -classes[pod].minor, pod))
        if reason is not None:
            self.refusals[node] = reason

    def _node_reason(self, number: int) -> Reason | None:
        node = self.model.nodes[number]
        if (doubt := self.model.unreadable_nodes.get(number)) is not None:
            return r.UNREADABLE(f"something about node {node.name} cannot be read: {doubt}")
        if (sign := node.nature.sign_of(NodeKind.SERVERLESS)) is not None:
            return r.NO_MACHINE(f"node {node.name} is no machine: {sign.platform} ({sign.evidence})")
        if node.removal_taint is not None:
            return r.GOING_NODE(f"node {node.name} is being deleted (taint {node.removal_taint.key})")
        if node.is_cordoned and CORDONED_BY_US in node.annotations and node.name not in self.own_nodes:
            return o.COMPACTOR_DRAINS(
                f"according to its annotation {CORDONED_BY_US}, Trimtab's compactor drains node {node.name}"
            )
        record = read_record(node.annotations, node.name)
        if (
            isinstance(record, OrderRecord)
            and record.order != self.order
            and node.name not in self.own_nodes
            and node.is_cordoned
            and not record.is_emptied
        ):
            by = f" by {record.by}" if record.by else ""
            return o.OTHER_ORDER(
                f"node {node.name} belongs to order {record.order}{by}, which has not emptied it yet (--resume goes on "
                "with that order, and --release ends it)"
            )
        keys = () if self.rules.overrides_protection else (KEEP_ANNOTATION, RENAMED_KEEP, DO_NOT_DISRUPT)
        if (reason := node_keep_reason(node, keys)) is not None:
            return o.PROTECTED_NODE(f"{reason} (with {self.rules.words.overrides_protection} it is drained)")
        return None

    def _prepare_capacity(self, closed: Sequence[int]) -> FreeCapacity:
        """Returns the free capacity with all nodes of the order cordoned, and with what pods that wait will use."""
        capacity = FreeCapacity(self.model)
        capacity.reserve_growth()
        for node in closed:
            capacity.cordon_node(node)
        for node in closed_receivers(self.model, {}, self.now):
            capacity.closed_nodes[node] = 1
        reserved = ReservedCapacity(capacity, (), {}, now=self.now)
        reserved.reserve_for_pending()
        reserved.reserve_for_daemons()
        reserved.reserve_for_missing()
        reserved.reserve_for_buffers()
        return capacity

    def _arrange_waves(self) -> Iterator[list[int]]:
        """Yields the nodes that may be emptied, in waves of one zone and of at most `at_once` nodes."""
        names, loads = self.model.nodes, self.pods_to_move
        zones: dict[str, list[int]] = {}
        # The node with the largest pod first: it finds the largest free pieces.
        for node in sorted(self.nodes, key=lambda node: (names[node].zone, self._rank(node), names[node].name)):
            if node not in self.refusals:
                zones.setdefault(names[node].zone, []).append(node)
        for members in zones.values():
            needs = {
                node: Counter(self.budget_of[pod] for pod in loads[node] if pod in self.budget_of) for node in members
            }
            for wave in arrange_waves(members, needs, self.allowed):
                for start in range(0, len(wave), self.rules.at_once):
                    yield wave[start : start + self.rules.at_once]

    def _rank(self, node: int) -> tuple[int, int]:
        pods, classes = self.pods_to_move[node], self.model.successor_class_of
        return (-classes[pods[0]].major, -classes[pods[0]].minor) if pods else (0, 0)

    def _place_pods(self, capacity: FreeCapacity, transient_room: TransientRoom, node: int) -> DrainStep | None:
        """Places the pods of the node, and returns the step; None if they do not all fit, which is recorded. The pods
        that run for a while before the evictions need room, too."""
        name, receivers = self.model.nodes[node].name, range(len(self.model.nodes))
        mark = len(transient_room.used)
        if not transient_room.reserve(self.pods_to_move[node]):
            self.refusals[node] = transient_room.shortage_reason(name)
            return None
        # A pod without an owner has no successor, which would need a place.
        pods = [pod for pod in self.pods_to_move[node] if self.model.pods[pod].owner is not None]
        placement: DrainPlacement | NoPlacement = drain_with_preferences(capacity, node, pods, receivers)
        if isinstance(placement, NoPlacement):
            transient_room.release(mark)
            self._count_homeless(capacity, node)
            self.refusals[node] = o.NO_ROOM(f"the pods of node {name} do not all fit elsewhere: {placement.reason}")
            return None
        targets = dict(placement.moves)
        bare_pods = [pod for pod in self.pods_to_move[node] if pod not in targets]
        order, turns = eviction_turns([*targets, *bare_pods], self.budget_of, self.allowed)
        if not replay_drain(capacity, node, [pod for pod in order if pod in targets], targets):
            transient_room.release(mark)
            # A failed replay opens the node again.
            capacity.cordon_node(node)
            self.refusals[node] = o.TOO_FEW_DISRUPTIONS(
                f"the pods of node {name} fit elsewhere, but not in the turns that their budgets allow"
            )
            return None
        return self._build_step(name, [(pod, targets.get(pod), turn) for pod, turn in zip(order, turns, strict=True)])

    def _build_step(self, name: str, moves: Sequence[tuple[int, int | None, int]]) -> DrainStep:
        """Returns the step; a move is (pod, target, turn). A pod without a successor has no target."""
        pods, nodes, budgets = self.model.pods, self.model.nodes, self.model.inventory.pdbs
        budget_names = {pod: budgets[self.budget_of[pod]].key for pod, _, _ in moves if pod in self.budget_of}
        return DrainStep(
            node=name,
            pool="",
            saves=0,
            moves=tuple(
                Move(
                    pod=pods[pod].key,
                    uid=pods[pod].uid,
                    source=name,
                    target=nodes[target].name if target is not None else "",
                    budget=budget_names.get(pod),
                    turn=turn,
                    surge=self.surge_of[pod].extra if pod in self.surge_of else 0,
                )
                for pod, target, turn in moves
            ),
            reason=o.ORDERED(f"the drain of node {name} was ordered"),
            longest_grace_seconds=longest_grace(pods[pod] for pod, _, _ in moves),
        )

    def _count_homeless(self, capacity: FreeCapacity, node: int) -> None:
        """Records the pods of the node that fit nowhere when those that do are placed."""
        others = range(len(self.model.nodes))
        for pod in self.pods_to_move[node]:
            if self.model.pods[pod].owner is None:
                continue
            placement = drain_exactly(capacity, node, [pod], others)
            if isinstance(placement, DrainPlacement):
                capacity.add_pod(self.model.successor_class_of[pod], placement.moves[0][1])
            else:
                self.homeless.append(pod)

    def _missing_amounts(self) -> dict[str, int]:
        if not self.homeless:
            return {}
        classes, (major, minor) = self.model.successor_class_of, self.model.main_resources
        return {
            major: sum(classes[pod].major for pod in self.homeless),
            minor: sum(classes[pod].minor for pod in self.homeless),
            "pods": len(self.homeless),
        }

    def _budget_uses(self) -> Iterator[BudgetUse]:
        counts = Counter(self.budget_of.values())
        for number in sorted(counts, key=lambda number: self.model.inventory.pdbs[number].key):
            budget = self.model.inventory.pdbs[number]
            allowed = 0 if budget.is_stale else budget.allowed
            yield BudgetUse(budget=budget.key, allowed=allowed, needed=counts[number])

    def _stop_seconds(self, step: DrainStep) -> int:
        pods = {self.model.pods[pod].uid: self.model.pods[pod] for pod in self.pods_to_move[self._number(step.node)]}
        time = estimate_drain_time((pods[move.uid], move.turn) for move in step.moves)
        return time.seconds if time is not None else 0

    def _number(self, name: str) -> int:
        return self.model.node_numbers[name]


def wrong_target_reason(node: NodeInfo) -> str:
    """Returns why a node may never be part of an order, as a predicate such as "runs the control plane"; empty if it
    may. Such an order is a mistake of the user, whatever else is permitted."""
    if (sign := node.nature.sign_of(NodeKind.KARPENTER)) is not None:
        return f"belongs to Karpenter ({sign.platform}), which drains its nodes itself when its NodeClaim is deleted"
    if node.nature.sign_of(NodeKind.CONTROL_PLANE) is not None:
        return "runs the control plane"
    return ""
