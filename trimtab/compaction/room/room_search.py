"""Finds the fewest evictions after which pods fit that do not fit now, each with a new place for the pod that moves.

The pods that want to run are placed one after the other, the largest of the highest priority first. A pod that fits
goes to the tightest node. Otherwise the nodes are searched in the order of how many pods would have to move at least:
first all sets of one pod, then of two, and so on. A set is taken if the pod then passes all filters, and every evicted
pod fits on another node, together with all moves before. If no set does, the evicted pods may displace others in turn,
once. Pods that keep the pod away from a node's domain, by a host port or by anti-affinity, are in every set for this
node, wherever they run. Of sets with as many pods, one whose highest priority is lower comes first.

A pod may move if an order could evict it (`ordered_evictions`), if its budget allows an eviction at present, and if its
priority is not above that of the pod that wants its place. No pod moves twice, and none of several pods that run only
together moves without the others. Pods with a priority below that at which they wait for a node only keep room free:
the scheduler preempts them, and they need no place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import EXPENDABLE_PRIORITY_CUTOFF, PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.quantity import format_quantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.blockers import Evictable
from trimtab.compaction.candidates import closed_receivers
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.ordered_evictions import OrderedEvictionChecker
from trimtab.compaction.plan_types import Move
from trimtab.compaction.room import reasons as r
from trimtab.compaction.room.eviction_sets import Evictee, EvictionWay, least_count, list_eviction_sets
from trimtab.compaction.room.move_turns import list_moves
from trimtab.compaction.room.pod_sizes import PodSizes
from trimtab.compaction.room.room_plan import NoRoom, RoomPlace, RoomPlan
from trimtab.compaction.search.reserved_capacity import ReservedCapacity
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import fits_on_node, rejection_reason
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.reasons import NO_ROOM, PORT_TAKEN, TOO_CLOSE
from trimtab.scheduling.topology import TopologyGroup

MAX_EVICTIONS = 16
"""The largest number of pods that move away from one node for one pod."""
MAX_SETS_OF_NODE = 24
"""The largest number of sets of one size that are tried on one node."""
MAX_TRIES = 1_500
"""The largest number of sets that are tried for one pod."""
MAX_DISPLACING_PODS = 12
"""How many pods of nodes that are to be free may look for a place from which others move aside. All others need a place
at once: each such search looks at every node."""
NODES_OF_TRY = 20
"""The number of nodes that are looked at in the time of one try."""
MAX_DEPTH = 1
"""How often an evicted pod may displace others in turn."""
LOWEST_PRIORITY = -(1 << 31)
"""The lowest priority that a pod can have."""


@dataclass(slots=True, eq=False)
class RoomSearch:
    """Places pods in one model, and moves others out of their way."""

    model: ClusterModel
    capacity: FreeCapacity
    checker: OrderedEvictionChecker
    allowed: list[int]
    """Budget → how many evictions it allows at present."""
    targets: dict[int, int] = field(default_factory=dict)
    """Pod that moves → its new node."""
    preemptable: dict[int, None] = field(default_factory=dict)
    """Pods that only keep room free for others. They count as gone."""
    _moved_before: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Pod that moves → the pods that left its new node before it had a place there. They may not leave later."""
    _opened_nodes: list[int] = field(default_factory=list)
    """The nodes from which a set of pods is being moved."""
    _verdicts: dict[int, Evictable | None] = field(default_factory=dict)
    """Pod → the verdict that it may move now, or None if it may not."""
    max_tries: int = MAX_TRIES
    _tries: int = 0
    _unused_displacements: int = MAX_DISPLACING_PODS
    sizes: PodSizes = field(init=False)
    _members: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    """Group → domain → its pods there before any move."""

    def __post_init__(self) -> None:
        self.sizes = PodSizes.for_model(self.model)

    @classmethod
    def for_model(cls, model: ClusterModel, now: Seconds | None, pools: Sequence[Pool]) -> "RoomSearch":
        """Returns the search in the cluster as it is, with what other pods that wait will use."""
        capacity = FreeCapacity(model)
        capacity.reserve_growth()
        for node in closed_receivers(model, {}, now):
            capacity.closed_nodes[node] = 1
        reserved = ReservedCapacity(capacity, (), {}, now=now)
        reserved.reserve_for_pending()
        reserved.reserve_for_daemons()
        reserved.reserve_for_missing()
        reserved.reserve_for_buffers()
        allowed = [0 if budget.is_stale else budget.allowed for budget in model.inventory.pdbs]
        checker = OrderedEvictionChecker.for_order(model.inventory, now, OrderRules(), pools)
        return cls(model, capacity, checker, allowed)

    def preempt_below(self, priority: int) -> None:
        """Takes the pods away that only keep room free, if their priority is below this one."""
        for pod, info in enumerate(self.model.pods):
            if info.priority < min(priority, EXPENDABLE_PRIORITY_CUTOFF) and not (info.is_daemon or info.is_static):
                self.preemptable[pod] = None
                self.capacity.remove_pod(self.model.class_of[pod], self.model.node_of[pod])

    def _list_preempted(self) -> list[str]:
        """Returns those of the pods taken away for which there is no room any more; the others are back."""
        preempted = []
        for pod in self.preemptable:
            pod_class, node = self.model.class_of[pod], self.model.node_of[pod]
            if not self.capacity.closed_nodes[node] and not fits_on_node(self.capacity, pod_class, node):
                preempted.append(self.model.pods[pod].key)
            else:
                self.capacity.add_pod(pod_class, node)
        return preempted

    def place_all(self, wanted: Sequence[tuple[PodInfo, PodClass]], nodes: Sequence[int]) -> RoomPlan | NoRoom:
        """Returns the places of these pods on these nodes, and the moves, or why a pod has no place."""
        saved = self.capacity.save_state()
        result = self._place_rest(wanted, nodes, [])
        if isinstance(result, RoomPlan) or not self.targets:
            return result
        # A pod that moved may have taken the only node of another pod: once more, those first that fit at once.
        self.capacity.restore_state(saved)
        self.targets.clear()
        places, rest = list[RoomPlace](), list[tuple[PodInfo, PodClass]]()
        for one in wanted:
            node = self._place(one[1], one[0].priority, nodes, -1)
            if node is None:
                rest.append(one)
            else:
                places.append(RoomPlace(pod=one[0].key, node=self.model.nodes[node].name))
        second = self._place_rest(rest, nodes, places)
        return second if isinstance(second, RoomPlan) else result

    def _place_rest(
        self, wanted: Sequence[tuple[PodInfo, PodClass]], nodes: Sequence[int], places: list[RoomPlace]
    ) -> RoomPlan | NoRoom:
        """Returns like `place_all`, with the places of other pods before those of these."""
        # What a pod needs on the only node that admits it is taken from the beginning, so that no pod moves there.
        only = {pod.key: node for pod, one in wanted if (node := self._find_only_node(one)) is not None}
        for pod, pod_class in wanted:
            if pod.key in only:
                self.capacity.add_pod(pod_class, only[pod.key])
        for pod, pod_class in wanted:
            self._tries = 0
            if pod.key in only:
                self.capacity.remove_pod(pod_class, only[pod.key])
            node = self._place_wanted(pod_class, pod.priority, nodes)
            if node is None:
                return NoRoom(pod=pod.key, reason=self._explain(pod, pod_class, nodes), placed=len(places))
            places.append(RoomPlace(pod=pod.key, node=self.model.nodes[node].name))
        moves = self._list_moves()
        return RoomPlan(places=tuple(places), moves=moves, preempted=tuple(self._list_preempted()))

    def move_all(self, node: int) -> RoomPlan | NoRoom:
        """Moves all pods of workloads away from a node, and closes it. Returns the moves, or the pod that cannot move;
        the caller then restores the state."""
        model, name = self.model, self.model.nodes[node].name
        pods = [
            pod
            for pod in model.pods_on_node[node]
            if not (model.pods[pod].is_daemon or model.pods[pod].is_static)
            and model.pods[pod].deletion_requested_at is None
        ]
        for pod in pods:
            if self._judge_pod(pod) is None:
                sentence = f"pod {model.pods[pod].key} on node {name} may not move"
                return NoRoom(pod="", reason=r.NO_NODE_CAN_BE_FREE(sentence), placed=0)
        self.capacity.closed_nodes[node] = 1
        self.targets.update(dict.fromkeys(pods, node))
        others = [other for other in range(len(model.nodes)) if other != node]
        for placed, pod in enumerate(
            sorted(pods, key=lambda pod: (self.sizes.rank(model.successor_class_of[pod]), pod))
        ):
            self.capacity.remove_pod(model.class_of[pod], node)
            one, priority = model.successor_class_of[pod], model.pods[pod].priority
            target = self._place(one, priority, others, -1)
            if target is None and self._unused_displacements:
                self._unused_displacements -= 1
                self._tries = 0
                target = self._place(one, priority, others, 0)
            if target is None:
                sentence = f"pod {model.pods[pod].key} of node {name} fits on no other node"
                return NoRoom(pod="", reason=r.NO_NODE_CAN_BE_FREE(sentence), placed=placed)
            self._record_target(pod, target)
        return RoomPlan(places=(), moves=self._list_moves(), freed_node=name)

    def _find_only_node(self, pod_class: PodClass) -> int | None:
        admitting = self.model.node_sets[pod_class.node_set]
        is_only = pod_class.unjudged_reason is None and admitting.count(1) == 1
        return admitting.index(1) if is_only else None

    def _place_wanted(self, pod_class: PodClass, priority: int, nodes: Sequence[int]) -> int | None:
        for depth in range(MAX_DEPTH + 1):
            node = self._place(pod_class, priority, nodes, depth)
            if node is not None:
                return node
        return None

    def _place(self, pod_class: PodClass, priority: int, nodes: Sequence[int], depth: int) -> int | None:
        """Places a pod, after evictions if needed, and returns its node; None if it has no place, and nothing has
        changed. `depth`: how often an evicted pod may displace others in turn; below 0, no pod is evicted."""
        node = self._find_tightest(pod_class, nodes)
        if node is not None:
            self.capacity.add_pod(pod_class, node)
            return node
        if depth < 0:
            return None
        # To look at every node costs as much as many tries: on many nodes, fewer pods may displace others in turn.
        self._tries += len(nodes) // NODES_OF_TRY
        ways = [way for number in nodes if (way := self._find_way(pod_class, number, priority)) is not None]
        for count in range(1, MAX_EVICTIONS + 1):
            for way in sorted(ways, key=lambda way: (way.least, way.priority, way.node)):
                if way.least > count:
                    break
                if self._tries >= self.max_tries * (depth + 1):
                    return None
                more = count - len(way.blockers)
                sets = list_eviction_sets(way.missing, way.movable, more) if more else iter([()])
                for tried, pods in enumerate(sets):
                    self._tries += 1
                    if tried >= MAX_SETS_OF_NODE or self._tries > self.max_tries * (depth + 1):
                        break
                    if self._try_set(pod_class, way.node, (*way.blockers, *pods), depth):
                        return way.node
        return None

    def _find_way(self, pod_class: PodClass, node: int, priority: int) -> EvictionWay | None:
        """Returns how evictions could make room for the pod on the node, or None if no evictions can."""
        if not self._may_be_freed(pod_class, node):
            return None
        blockers = self._list_blockers(pod_class, node, priority) if pod_class.forbidden_groups else ()
        if blockers is None:
            return None
        missing = self._missing_on(pod_class, node)
        freed = [self._requests_of(self.model.class_of[pod]) for pod in blockers if self.model.node_of[pod] == node]
        for amounts in freed:
            missing = tuple([max(0, lacking - amount) for lacking, amount in zip(missing, amounts, strict=True)])
        movable = [one for one in self._movable_on(node, priority) if one.pod not in blockers]
        count = least_count(missing, [one.amounts for one in movable])
        if count is None:
            return None
        if pod_class.has_constraints:
            # Which of the pods leaves may decide, and not only how much it frees.
            movable = [one._replace(kind=self.model.class_of[one.pod].number) for one in movable]
        highest = max((self.model.pods[pod].priority for pod in blockers), default=LOWEST_PRIORITY)
        for one in sorted({one.priority for one in movable}) if count else ():
            if least_count(missing, [other.amounts for other in movable if other.priority <= one]) == count:
                highest = max(highest, one)
                break
        return EvictionWay(
            node=node,
            missing=missing,
            movable=movable,
            blockers=blockers,
            least=count + len(blockers),
            priority=highest,
        )

    def _list_blockers(self, pod_class: PodClass, node: int, priority: int) -> tuple[int, ...] | None:
        """Returns the pods that keep the pod away from the node's domains, by a host port or by anti-affinity, or None
        if one of them may not move."""
        blockers: dict[int, None] = {}
        for group in pod_class.forbidden_groups:
            domain = group.domain_of[node]
            count = self.capacity.group_counts[group.number].get(domain, 0)
            if not count:
                continue
            pods = [pod for pod in self._members_of(group).get(domain, ()) if self._may_move(pod, priority)]
            if len(pods) < count:
                return None
            blockers |= dict.fromkeys(pods)
        return tuple(blockers)

    def _members_of(self, group: TopologyGroup) -> dict[int, list[int]]:
        if group.number not in self._members:
            members: dict[int, list[int]] = {}
            for pod, pod_class in enumerate(self.model.class_of):
                if group.number in pod_class.member_groups:
                    members.setdefault(group.domain_of[self.model.node_of[pod]], []).append(pod)
            self._members[group.number] = members
        return self._members[group.number]

    def _find_tightest(self, pod_class: PodClass, nodes: Sequence[int]) -> int | None:
        """Returns the node on which the pod fits and least is free of the resource of which the pod needs the largest
        share of all nodes; None if it fits on no node."""
        best, least = None, (1 << 62, 1 << 62)
        major, number = self.capacity.major, self.sizes.find_scarcest(pod_class)
        column = major if number is None else self.capacity.other_free[number]
        for node in nodes:
            free = column[node], major[node]
            if free < least and pod_class.major <= major[node] and fits_on_node(self.capacity, pod_class, node):
                best, least = node, free
        return best

    def _may_be_freed(self, pod_class: PodClass, node: int) -> bool:
        return (
            pod_class.unjudged_reason is None
            and not self.capacity.closed_nodes[node]
            and self.model.node_sets[pod_class.node_set][node] == 1
        )

    def _missing_on(self, pod_class: PodClass, node: int) -> tuple[int, ...]:
        """Returns how much of (major, minor, slots, each other resource that the pod requests) is missing."""
        capacity = self.capacity
        return (
            max(0, pod_class.major - capacity.major[node]) if pod_class.major else 0,
            max(0, pod_class.minor - capacity.minor[node]) if pod_class.minor else 0,
            max(0, 1 - capacity.slots[node]),
            *(self._missing_others(pod_class, node)),
        )

    def _missing_others(self, pod_class: PodClass, node: int) -> list[int]:
        missing = [0] * len(self.model.other_resources)
        for number, amount in pod_class.other_requests:
            missing[number] = max(0, amount - self.capacity.other_free[number][node])
        return missing

    def _movable_on(self, node: int, priority: int) -> list[Evictee]:
        """Returns the pods of the node that may move, with the amounts that each of them frees."""
        return [
            Evictee(pod, self._requests_of(self.model.class_of[pod]), self.model.pods[pod].priority)
            for pod in self.model.pods_on_node[node]
            if self._may_move(pod, priority)
        ]

    def _may_move(self, pod: int, priority: int) -> bool:
        info = self.model.pods[pod]
        return (
            info.priority <= priority
            and pod not in self.targets
            and pod not in self.preemptable
            and self._judge_pod(pod) is not None
            and not self.checker.is_in_group(info)
        )

    def _judge_pod(self, pod: int) -> Evictable | None:
        """Returns the verdict that the pod may move now, or None if it may not."""
        if pod not in self._verdicts:
            info = self.model.pods[pod]
            verdict = self.checker.judge_ordered(info)
            # A pod without an owner has no successor, and a budget that allows none has to recover first.
            self._verdicts[pod] = None
            if isinstance(verdict, Evictable) and info.owner is not None:
                is_allowed = verdict.budget is None or self.allowed[verdict.budget] > 0
                self._verdicts[pod] = verdict if is_allowed else None
        return self._verdicts[pod]

    def _try_set(self, pod_class: PodClass, node: int, pods: Sequence[int], depth: int) -> bool:
        """Evicts these pods, places the pod on the node, and the evicted ones elsewhere. Returns whether all of them
        have a place; if not, nothing has changed."""
        capacity, model = self.capacity, self.model
        for pod in pods:
            capacity.remove_pod(model.class_of[pod], model.node_of[pod])
        if not fits_on_node(capacity, pod_class, node):
            for pod in pods:
                capacity.add_pod(model.class_of[pod], model.node_of[pod])
            return False
        saved, targets = (capacity.save_state(), dict(self.targets)) if depth else (None, {})
        capacity.add_pod(pod_class, node)
        # No pod that is on its way is evicted again by one that it displaces.
        self.targets.update({pod: model.node_of[pod] for pod in pods})
        opened = [node, *(model.node_of[pod] for pod in pods)]
        self._opened_nodes += opened
        # A pod that moves aside does not go where the one that takes its place comes from, nor where another of the
        # same set comes from: each would wait for the other.
        places = [other for other in range(len(model.nodes)) if other not in self._opened_nodes]
        placed: list[tuple[int, int]] = []
        for pod in sorted(pods, key=lambda pod: (self.sizes.rank(model.successor_class_of[pod]), pod)):
            one = model.successor_class_of[pod]
            if depth:
                target = self._place(one, model.pods[pod].priority, places, depth - 1)
            else:
                target = self._find_tightest(one, places)
                if target is not None:
                    capacity.add_pod(one, target)
            if target is None:
                break
            placed.append((pod, target))
            self._record_target(pod, target)
        del self._opened_nodes[-len(opened) :]
        if len(placed) == len(pods):
            return True
        if saved is not None:
            capacity.restore_state(saved)
            self.targets = targets
        else:
            for pod, target in reversed(placed):
                capacity.remove_pod(model.successor_class_of[pod], target)
            capacity.remove_pod(pod_class, node)
            for pod in pods:
                del self.targets[pod]
        for pod in pods:
            capacity.add_pod(model.class_of[pod], model.node_of[pod])
        return False

    def _record_target(self, pod: int, target: int) -> None:
        self.targets[pod] = target
        self._moved_before[pod] = tuple(one for one in self.targets if self.model.node_of[one] == target)

    def _list_moves(self) -> tuple[Move, ...]:
        verdicts = {pod: self._judge_pod(pod) for pod in self.targets}
        budgets = {pod: verdict.budget for pod, verdict in verdicts.items() if verdict is not None}
        return list_moves(self.model, self.targets, self._moved_before, budgets, self.allowed)

    # ── why there is no room ─────────────────────────────────────────────
    def _explain(self, pod: PodInfo, pod_class: PodClass, nodes: Sequence[int]) -> Reason:
        """Returns the reason for which the pod has no place, about the node that lacks least."""
        if pod_class.unjudged_reason is not None:
            return r.CANNOT_JUDGE(str(pod_class.unjudged_reason))
        open_nodes = [node for node in nodes if self._may_be_freed(pod_class, node)]
        if not open_nodes:
            return r.NO_NODE_ADMITS(f"none of {format_count(len(nodes), 'node')} admits pod {pod.key}")
        names = (*self.model.main_resources, "pods", *self.model.other_resources)
        requested = dict(zip(names, self._requests_of(pod_class), strict=True))
        best: tuple[float, int, dict[str, int], int] | None = None
        for node in open_nodes:
            movable = self._movable_on(node, pod.priority)
            freed = [sum(one.amounts[i] for one in movable) for i in range(len(names))]
            lacking = {
                name: missing - gain
                for name, missing, gain in zip(names, self._missing_on(pod_class, node), freed, strict=True)
                if missing > gain
            }
            share = fsum(amount / max(1, requested[name]) for name, amount in lacking.items())
            if best is None or (share, node) < best[:2]:
                best = (share, node, lacking, len(movable))
        assert best is not None
        _, node, lacking, count = best
        name, movable_pods = self.model.nodes[node].name, format_count(count, "pod")
        if not lacking:
            conflict = rejection_reason(self.capacity, pod_class, node)
            if conflict is not None and conflict.code not in (NO_ROOM, TOO_CLOSE, PORT_TAKEN):
                return r.KEPT_AWAY(f"{conflict}, and evictions would not change that")
            if pod_class.forbidden_groups and self._list_blockers(pod_class, node, pod.priority) is None:
                return r.KEPT_AWAY(
                    f"a pod that may not move keeps pod {pod.key} away from node {name}, by a host port or by "
                    "anti-affinity"
                )
            return r.NO_OTHER_PLACE(
                f"on node {name} there would be room for pod {pod.key}, but those of its {movable_pods} that would "
                "have to move fit on no other node"
            )
        amounts = ", ".join(f"{format_quantity(key, amount)} of {key}" for key, amount in lacking.items())
        return r.TOO_LITTLE(
            f"pod {pod.key} comes nearest on node {name}, which lacks {amounts} even without its {movable_pods} that "
            "may move"
        )

    def _requests_of(self, pod_class: PodClass) -> tuple[int, ...]:
        others = [0] * len(self.model.other_resources)
        for number, amount in pod_class.other_requests:
            others[number] = amount
        return (pod_class.major, pod_class.minor, 1, *others)
