"""Decides which groups of pods on several nodes may move as a whole, and what that adds to the drain of a node.

When a node with a pod of such a group is drained, the pods of the group on other nodes are evicted at the same time
(companions). Their nodes stay open: the successors may return to the places that the companions leave, so the plan
needs places only for the pods of the drained node. In one plan, a group moves at most once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import REPLICA_SET
from trimtab.cluster.pod import CRITICAL_PRIORITY, PodInfo
from trimtab.cluster.pod_groups import PodGroup
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction.blockers import Blocked, Evictable, EvictionChecker, Verdict
from trimtab.compaction.groups import reasons as g


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMoves:
    """The groups that move, by the nodes that are drained."""

    refusals: Mapping[int, Reason]
    """Pod on one of the nodes → why its group stays."""
    companions: Mapping[int, tuple[int, ...]]
    """Node → the pods on other nodes that are evicted with it; nodes without any are left out."""
    groups: Mapping[int, PodGroup]
    """Moving pod or companion → its group."""


@dataclass(slots=True)
class GroupPlanner:
    """Decides about the groups of one snapshot."""

    checker: EvictionChecker
    pods: Sequence[PodInfo]
    node_of: Sequence[int]
    """Pod → node."""
    pool_of: Mapping[int, Pool]
    draining: frozenset[int]
    """The nodes that are being drained."""
    judge: Callable[[PodInfo, Pool], Verdict]
    """Returns whether a pod may be evicted, recent moves included."""
    _members: dict[PodGroup, list[int]] = field(default_factory=dict)
    _pending: set[PodGroup] = field(default_factory=set)

    def plan_groups(self, nodes: Sequence[int], moving: Sequence[Sequence[int]]) -> GroupMoves:
        """Returns the groups that move when these nodes are drained. Each group moves with the first of the nodes that
        has pods of it. `moving`: node → its pods that may be evicted."""
        self._find_members()
        refusals: dict[int, Reason] = {}
        companions: dict[int, tuple[int, ...]] = {}
        groups: dict[int, PodGroup] = {}
        moved: set[PodGroup] = set()
        for node in nodes:
            of_node = {number: group for number in moving[node] if (group := self._group_of(number)) is not None}
            if not of_node:
                continue
            own = set(of_node.values())
            stays = {number: reason for number, group in of_node.items() if (reason := self._refusal(group, moved))}
            others = sorted(one for group in own for one in self._members[group] if self.node_of[one] != node)
            if not stays and (reason := self._budget_refusal([*moving[node], *others])) is not None:
                stays = dict.fromkeys(of_node, reason)
            refusals |= stays
            if not stays:
                moved |= own
                companions[node] = tuple(others)
                groups |= {one: group for group in own for one in self._members[group]}
        return GroupMoves(refusals=refusals, companions=companions, groups=groups)

    def _group_of(self, number: int) -> PodGroup | None:
        return self.checker.group_on_several_nodes(self.pods[number])

    def _find_members(self) -> None:
        placed = {id(pod) for pod in self.pods}
        for number in range(len(self.pods)):
            if (group := self._group_of(number)) is not None:
                self._members.setdefault(group, []).append(number)
        for pod in self.checker.inventory.pods:
            if id(pod) not in placed and (group := self.checker.group_on_several_nodes(pod)) is not None:
                self._pending.add(group)

    def _refusal(self, group: PodGroup, moved: set[PodGroup]) -> Reason | None:
        """Returns why the group stays, or None if all of its pods may be evicted one by one."""
        name = f"{group.namespace}/{group.name}"
        if group in moved:
            return g.OTHER_NODE_FIRST(f"group {name} moves with another node of this plan")
        members = self._members[group]
        nodes = {self.node_of[one] for one in members}
        pools = {id(self.pool_of.get(node)) for node in nodes}
        pool = self.pool_of.get(next(iter(nodes)))
        if pool is None or len(pools) > 1 or group in self._pending or nodes & self.draining:
            return g.SEVERAL_POOLS(f"not all pods of group {name} run on nodes of one pool that are not being drained")
        for one in members:
            pod = self.pods[one]
            verdict = self.judge(pod, pool)
            if isinstance(verdict, Blocked):
                return g.MEMBER_STAYS(f"group {name} stays: {verdict.reason}")
            needs_replica = pod.owner is not None and pod.owner.kind == REPLICA_SET and self._is_single(pod)
            is_surge = isinstance(verdict, Evictable) and verdict.surge is not None
            if not isinstance(verdict, Evictable) or is_surge or needs_replica or pod.priority >= CRITICAL_PRIORITY:
                return g.MEMBER_STAYS(f"group {name} stays: pod {pod.key} cannot be evicted together with others")
        return None

    def _is_single(self, pod: PodInfo) -> bool:
        return self.checker.count_replicas(pod) < 2

    def _budget_refusal(self, evicted: Sequence[int]) -> Reason | None:
        """Returns the reason if a budget does not allow all these evictions at the same time, otherwise None."""
        budgets = self.checker.inventory.pdbs
        counts: Counter[int] = Counter()
        grouped: set[int] = set()
        for one in evicted:
            pod = self.pods[one]
            numbers = self.checker.pdb_index.matching_numbers(pod.namespace, pod.requirements.labels)
            counts.update(numbers)
            if self._group_of(one) is not None:
                grouped.update(numbers)
        for number in sorted(grouped):
            if counts[number] > budgets[number].allowed:
                allowed = format_count(budgets[number].allowed, "eviction")
                return g.BUDGET_TOO_SMALL(
                    f"budget {budgets[number].key} allows {allowed} at a time, but the drain with the group needs "
                    f"{counts[number]}"
                )
        return None
