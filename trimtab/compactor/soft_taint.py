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
MOST = 100
"""The maximum number of writes in one round."""


@dataclass(slots=True)
class LeavingTaint:
    """Adds and removes the taint."""

    door: Actuator
    on: bool = True
    wanted: frozenset[str] = field(default_factory=frozenset)
    """Nodes that should have the taint."""

    def aim(self, plan: Plan, view: ClusterView, *, busy: bool) -> None:
        """Chooses the nodes of this plan, of pools that may act.

        While pods move, many workloads lack one, and their nodes are not in the plan for a moment. Earlier nodes
        therefore keep the taint until nothing moves any more.
        """
        acting = {pool.name for pool in view.pools if not pool.dry_run and pool.enabled}
        planned = frozenset(step.node for step in plan.steps if self.on and step.pool in acting)
        self.wanted = planned | self.wanted if busy and acting else planned

    def steer(self, view: ClusterView) -> None:
        """Adds and removes taints where they differ from the choice. A node that changed meanwhile is tried in the next
        round.

        Raises ActuatorUnavailable: immediately, but after all nodes where only single writes are rejected.
        """
        collector = ErrorCollector()
        wanted = frozenset() if view.paused else self.wanted
        existing = (node for node in view.inventory.nodes if node.going is None)
        for node in [node for node in existing if _differs(node, view.home, node.name in wanted)][:MOST]:
            with collector.tried():
                self.door.steer(node, view.versions[node.name], leaving=node.name in wanted)
            if not collector.only_denied:
                break
        collector.tell()

    def undo(self, view: ClusterView) -> None:
        """Removes the taint from every node."""
        self.wanted = frozenset()
        self.steer(view)


def tainted(node: NodeInfo, home: str) -> bool:
    """Returns whether the node has this compactor's taint, and not one of a compactor of another namespace."""
    return any(is_ours(taint, home) for taint in node.taints)


def is_ours(taint: Taint, home: str) -> bool:
    """Returns whether the compactor of this namespace wrote the taint, with the present or the earlier key."""
    return taint.key in (LEAVING, RENAMED_LEAVING) and taint.value in ("", home)


def _differs(node: NodeInfo, home: str, wanted: bool) -> bool:
    """Returns whether a write is needed: the taint is not as wanted, or it has the earlier key."""
    keys = [taint.key for taint in node.taints if is_ours(taint, home)]
    return RENAMED_LEAVING in keys or bool(keys) != wanted
