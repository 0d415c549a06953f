"""Does the autoscaler keep this node because its group is at its minimum?

An emptied node of a group at its minimum would stay for ever, empty and cordoned. Counted over all pools, for nodes
that tell their group; `Limits.least` keeps the sum for those that don't.
"""

from dataclasses import dataclass, field

from trimtab.cluster.autoscaler import Autoscaler, Group
from trimtab.cluster.node_group import group_of
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import AT_MINIMUM
from trimtab.packing.world import World


@dataclass(slots=True, eq=False)
class Groups:
    world: World
    of: dict[int, Group] = field(default_factory=dict)
    """Node → its group, where it tells one that has a minimum."""
    left: dict[str, int] = field(default_factory=dict)
    """Group → its nodes that take pods and stay."""

    @classmethod
    def read(cls, world: World, autoscaler: Autoscaler | None) -> "Groups":
        made = cls(world)
        least = [group for group in autoscaler.groups if group.min_size] if autoscaler is not None else []
        for number, node in enumerate(world.nodes if least else ()):
            found = group_of(node, autoscaler.groups) if autoscaler is not None else None
            if found is not None and found.min_size and not world.closed[number]:
                made.of[number] = found
                made.count(number, 1)
        return made

    def refuses(self, node: int) -> Reason | None:
        """Why the node may not go; None where its group has more than its minimum, or is not known."""
        group = self.of.get(node)
        if group is None or self.left[group.name] > (group.min_size or 0):
            return None
        return AT_MINIMUM(f"the autoscaler keeps at least {group.min_size} nodes in group {group.name}")

    def count(self, node: int, sign: int) -> None:
        """One node of the group goes (-1) or comes back (1)."""
        group = self.of.get(node)
        if group is not None:
            self.left[group.name] = self.left.get(group.name, 0) + sign
