"""The soft taint that keeps successors off the nodes that are drained next.

The default scheduler prefers the emptiest nodes, and these are drained next. A PreferNoSchedule taint on the nodes of
the plan gives them the lowest score. It rejects no pod, so a pod that fits only there does not have to wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.plan_types import Plan
from trimtab.compactor.actuator import Actuator, ErrorCollector

LEAVING = "trimtab.dev/drain-candidate"
RENAMED_LEAVING = "trimtab.dev/leaving"
"""The key of the same taint before it was renamed: it is removed wherever it is found."""
MAX_WRITES = 100
"""The maximum number of writes in one round."""


@dataclass(slots=True)
class LeavingTaint:
    """Adds and removes the taint."""

    actuator: Actuator
    is_enabled: bool = True
    wanted_nodes: frozenset[str] = field(default_factory=frozenset)
    """Nodes that should have the taint."""

    def choose_nodes(self, plan: Plan, view: ClusterView, *, busy: bool) -> None:
        """Chooses the nodes of this plan that should have the taint, in pools that may act. `busy`: whether pods are
        moving.

        While pods move, their workloads lack a ready pod, and a plan then leaves out the nodes of these workloads for a
        moment. So nodes that were chosen earlier keep the taint until no pod moves any more.
        """
        acting = {pool.name for pool in view.pools if not pool.dry_run and pool.enabled}
        planned = frozenset(step.node for step in plan.all_steps if self.is_enabled and step.pool in acting)
        self.wanted_nodes = planned | self.wanted_nodes if busy and acting else planned

    def update_taints(self, view: ClusterView) -> None:
        """Adds and removes taints where they differ from the choice. A node that changed meanwhile is tried in the next
        round.

        Raises ActuatorUnavailable. If only writes to single nodes are rejected, it is raised after all nodes were
        tried; any other error is raised immediately.
        """
        collector = ErrorCollector()
        wanted = frozenset() if view.paused else self.wanted_nodes
        existing = (node for node in view.inventory.nodes if node.removal_taint is None)
        for node in [node for node in existing if _differs(node, view.namespace, node.name in wanted)][:MAX_WRITES]:
            with collector.collect_errors():
                self.actuator.set_leaving_taint(node, view.versions[node.name], leaving=node.name in wanted)
            if not collector.has_only_rejections:
                break
        collector.raise_error()

    def remove_taints(self, view: ClusterView) -> None:
        """Removes the taint from every node."""
        self.wanted_nodes = frozenset()
        self.update_taints(view)


def has_leaving_taint(node: NodeInfo, home: str) -> bool:
    """Returns whether the node has this compactor's taint, and not one of a compactor of another namespace."""
    return any(is_ours(taint, home) for taint in node.taints)


def is_ours(taint: Taint, home: str) -> bool:
    """Returns whether the compactor of this namespace wrote the taint, with the present or the earlier key."""
    return taint.key in (LEAVING, RENAMED_LEAVING) and taint.value in ("", home)


def _differs(node: NodeInfo, home: str, wanted: bool) -> bool:
    """Returns whether a write is needed: the taint is not as wanted, or it has the earlier key."""
    keys = [taint.key for taint in node.taints if is_ours(taint, home)]
    return RENAMED_LEAVING in keys or bool(keys) != wanted
