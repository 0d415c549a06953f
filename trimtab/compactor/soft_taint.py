"""Successors kept off the nodes that go next.

The default scheduler likes the emptiest nodes best, and they are the next to go. A soft taint of ours on the nodes of
the plan makes it like them least; nothing is forbidden, so nothing that fits only there has to wait.
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
"""Writes in one round."""


@dataclass(slots=True)
class LeavingTaint:
    door: Actuator
    on: bool = True
    wanted: frozenset[str] = field(default_factory=frozenset)

    def aim(self, plan: Plan, view: ClusterView, *, busy: bool) -> None:
        """The nodes of this plan, of pools that may act.

        While pods move, many a workload is short of one, and its nodes are out of the plan for a moment: so what was
        aimed at before stays until nothing moves any more.
        """
        acting = {pool.name for pool in view.pools if not pool.dry_run and pool.enabled}
        found = frozenset(step.node for step in plan.steps if self.on and step.pool in acting)
        self.wanted = found | self.wanted if busy and acting else found

    def steer(self, view: ClusterView) -> None:
        """Taints as wanted, where they are not. A node that changed meanwhile has its turn again.

        Raises NotNow: at once, but where a node alone refuses when all had their turn.
        """
        apart = ErrorCollector()
        wanted = frozenset() if view.paused else self.wanted
        ours = (node for node in view.inventory.nodes if node.going is None)
        for node in [node for node in ours if _differs(node, view.home, node.name in wanted)][:MOST]:
            with apart.tried():
                self.door.steer(node, view.versions[node.name], leaving=node.name in wanted)
            if not apart.only_denied:
                break
        apart.tell()

    def undo(self, view: ClusterView) -> None:
        """No taint of ours on any node."""
        self.wanted = frozenset()
        self.steer(view)


def tainted(node: NodeInfo, home: str) -> bool:
    """Does our taint stand on it? One of a compactor of another namespace is not ours."""
    return any(is_ours(taint, home) for taint in node.taints)


def is_ours(taint: Taint, home: str) -> bool:
    """Whether the compactor of this namespace wrote the taint, under today's key or the earlier one."""
    return taint.key in (LEAVING, RENAMED_LEAVING) and taint.value in ("", home)


def _differs(node: NodeInfo, home: str, wanted: bool) -> bool:
    """Whether a write is needed: the taint is not as wanted, or it has the earlier key."""
    ours = [taint.key for taint in node.taints if is_ours(taint, home)]
    return RENAMED_LEAVING in ours or bool(ours) != wanted
