"""The soft taints that keep successors off nodes: those that are drained next, and those whose capacity is reserved.

The default scheduler prefers the emptiest nodes, and these are drained next. Taints with the effect PreferNoSchedule
lower the score of a node, and the scheduler counts them: the fewer, the better. Targets that the first wave does not
need have one such taint, so that the capacity for large pods is not used up in pieces. The nodes of the plan have two,
so that a pod that fits nowhere else runs on a reserved target and not on a node that is drained next. A soft taint
rejects no pod, so a pod that fits only there does not have to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.plan_types import Plan
from trimtab.compactor.actuator import Actuator, ErrorCollector

LEAVING = "trimtab.dev/drain-candidate"
RESERVED = "trimtab.dev/reserved-target"
RENAMED_LEAVING = "trimtab.dev/leaving"
"""The key of the first taint before it was renamed: it is removed wherever it is found."""
SOFT_TAINTS = (LEAVING, RESERVED, RENAMED_LEAVING)
BOTH = (LEAVING, RESERVED)
"""The taints of a node that is drained next."""
_WRITE_ORDER = ((), BOTH, (RESERVED,))
MAX_WRITES = 100
"""The maximum number of writes in one round."""


def with_soft_taints(node: NodeInfo, keys: Sequence[str]) -> NodeInfo:
    """Returns the node with the soft taints of these keys and no other soft taint. Its other taints stay."""
    others = tuple(taint for taint in node.taints if taint.key not in SOFT_TAINTS)
    return replace(node, taints=(*others, *(Taint(key=key, effect="PreferNoSchedule") for key in keys)))


@dataclass(slots=True)
class SoftTaints:
    """Adds and removes the taints."""

    actuator: Actuator
    is_enabled: bool = True
    planned_nodes: frozenset[str] = frozenset()
    """The nodes that are drained next. They should have both taints."""
    reserved_nodes: frozenset[str] = frozenset()
    """The nodes whose capacity is reserved. Those that are not drained next should have the taint of reserved targets
    alone."""

    def choose_nodes(self, plan: Plan, reserved: frozenset[str], view: ClusterView, *, busy: bool) -> None:
        """Chooses the nodes of this plan that should have the taints, in pools that may act, and the `reserved`
        targets. `busy`: whether pods are moving.

        While pods move, their workloads lack a ready pod, and a plan then leaves out the nodes of these workloads for a
        moment. So nodes of an earlier plan keep their taints until no pod moves any more.
        """
        acting = {pool.name for pool in view.acting_pools}
        planned = frozenset(step.node for step in plan.all_steps if self.is_enabled and step.pool in acting)
        self.planned_nodes = planned | self.planned_nodes if busy and acting else planned
        self.reserved_nodes = reserved if self.is_enabled else frozenset()

    def update_taints(self, view: ClusterView) -> None:
        """Adds and removes taints where they differ from the choice. A node that changed meanwhile is tried in the next
        round.

        Raises ActuatorUnavailable. If only writes to single nodes are rejected, it is raised after all nodes were
        tried; any other error is raised immediately.
        """
        collector = ErrorCollector()
        existing = [node for node in view.inventory.nodes if node.removal_taint is None]
        chosen = self.planned_nodes | self.reserved_nodes
        differing = [
            node
            for node in existing
            if (node.taints or node.name in chosen) and _own_keys(node, view.namespace) != self._wanted_keys(node, view)
        ]
        # First the nodes that pods may use again, then those that are drained, which have the most taints.
        differing.sort(key=lambda node: _WRITE_ORDER.index(self._wanted_keys(node, view)))
        for node in differing[:MAX_WRITES]:
            with collector.collect_errors():
                self.actuator.set_soft_taints(node, view.versions[node.name], self._wanted_keys(node, view))
            if not collector.has_only_rejections:
                break
        collector.raise_error()

    def remove_taints(self, view: ClusterView) -> None:
        """Removes the taints from every node."""
        self.planned_nodes = self.reserved_nodes = frozenset()
        self.update_taints(view)

    def _wanted_keys(self, node: NodeInfo, view: ClusterView) -> tuple[str, ...]:
        """Returns the keys of the taints that the node should have."""
        if view.paused:
            return ()
        if node.name in self.planned_nodes:
            return BOTH
        return (RESERVED,) if node.name in self.reserved_nodes else ()


def has_soft_taint(node: NodeInfo, home: str) -> bool:
    """Returns whether the node has a taint of this compactor, and not one of a compactor of another namespace."""
    return count_soft_taints(node, home) > 0


def count_soft_taints(node: NodeInfo, home: str) -> int:
    """Returns how many taints of this compactor the node has. The scheduler prefers nodes with fewer of them."""
    return sum(is_ours(taint, home) for taint in node.taints)


def is_ours(taint: Taint, home: str) -> bool:
    """Returns whether the compactor of this namespace wrote the taint, with a present or the earlier key."""
    return taint.key in SOFT_TAINTS and taint.value in ("", home)


def _own_keys(node: NodeInfo, home: str) -> tuple[str, ...]:
    """Returns the keys of this compactor's taints on the node, in the order of `SOFT_TAINTS`."""
    keys = {taint.key for taint in node.taints if is_ours(taint, home)}
    return tuple(key for key in SOFT_TAINTS if key in keys)
