"""The soft taints that keep successors off nodes: those that are drained next, and those whose capacity is reserved.

The default scheduler prefers the emptiest nodes, and these are drained next. A PreferNoSchedule taint on the nodes of
the plan gives them the lowest score. Targets that the first wave does not need have another such taint, so that the
capacity for large pods is not used up in pieces. A soft taint rejects no pod, so a pod that fits only there does not
have to wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
MAX_WRITES = 100
"""The maximum number of writes in one round."""


@dataclass(slots=True)
class SoftTaints:
    """Adds and removes the taints."""

    actuator: Actuator
    is_enabled: bool = True
    wanted_taints: Mapping[str, str] = field(default_factory=dict)
    """Node → the key of the taint that it should have; no node has both."""

    def choose_nodes(self, plan: Plan, reserved: frozenset[str], view: ClusterView, *, busy: bool) -> None:
        """Chooses the nodes that this plan drains, of pools that may act, and the `reserved` targets.

        While pods move, many workloads lack one, and their nodes are not in the plan for a moment. Earlier nodes of the
        plan therefore keep the taint until nothing moves any more.
        """
        acting = {pool.name for pool in view.acting_pools}
        planned = {step.node for step in plan.all_steps if self.is_enabled and step.pool in acting}
        if busy and acting:
            planned |= {node for node, key in self.wanted_taints.items() if key == LEAVING}
        reserved = reserved if self.is_enabled else frozenset()
        self.wanted_taints = {**dict.fromkeys(reserved, RESERVED), **dict.fromkeys(planned, LEAVING)}

    def update_taints(self, view: ClusterView) -> None:
        """Adds and removes taints where they differ from the choice. A node that changed meanwhile is tried in the next
        round.

        Raises ActuatorUnavailable: immediately, but after all nodes where only single writes are rejected.
        """
        collector = ErrorCollector()
        wanted = {} if view.paused else self.wanted_taints
        existing = (node for node in view.inventory.nodes if node.removal_taint is None)
        differing = [node for node in existing if _differs(node, view.namespace, wanted.get(node.name, ""))]
        # First the nodes that pods may use again, then those that are drained.
        differing.sort(key=lambda node: ("", LEAVING, RESERVED).index(wanted.get(node.name, "")))
        for node in differing[:MAX_WRITES]:
            with collector.collect_errors():
                self.actuator.set_soft_taint(node, view.versions[node.name], wanted.get(node.name, ""))
            if not collector.has_only_rejections:
                break
        collector.raise_error()

    def remove_taints(self, view: ClusterView) -> None:
        """Removes the taints from every node."""
        self.wanted_taints = {}
        self.update_taints(view)


def has_soft_taint(node: NodeInfo, home: str) -> bool:
    """Returns whether the node has a taint of this compactor, and not one of a compactor of another namespace."""
    return any(is_ours(taint, home) for taint in node.taints)


def is_ours(taint: Taint, home: str) -> bool:
    """Returns whether the compactor of this namespace wrote the taint, with a present or the earlier key."""
    return taint.key in SOFT_TAINTS and taint.value in ("", home)


def _differs(node: NodeInfo, home: str, wanted: str) -> bool:
    """Returns whether a write is needed: the node has not exactly the taint that it should have."""
    return [taint.key for taint in node.taints if is_ours(taint, home)] != ([wanted] if wanted else [])
