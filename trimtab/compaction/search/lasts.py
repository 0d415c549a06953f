"""Is this the last node of a zone that something needs?

Counted over all pools. A spread over zones (DoNotSchedule) needs every zone it has; a volume needs the only zone from
which it can be reached, even while no pod uses it: a StatefulSet scaled to zero comes back to it.
"""

from dataclasses import dataclass, field

from trimtab.cluster.node import ZONE
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import LAST_OF_ZONE
from trimtab.packing.nature import node_selected
from trimtab.packing.world import World


@dataclass(slots=True, eq=False)
class Zones:
    world: World
    left: dict[str, int] = field(default_factory=dict)
    """Zone → its nodes that take pods and stay."""
    _needed: dict[str, str] = field(default_factory=dict)
    """Zone → who needs it, empty where nobody does; once it was asked."""

    def __post_init__(self) -> None:
        for number, node in enumerate(self.world.nodes):
            if node.zone and not self.world.closed[number]:
                self.left[node.zone] = self.left.get(node.zone, 0) + 1

    def refuses(self, node: int) -> Reason | None:
        """Why the node may not go; None when its zone has others, or nobody needs the zone."""
        found = self.world.nodes[node]
        if self.left.get(found.zone) != 1 or len(self.left) == 1 or self.world.closed[node]:
            return None
        if found.zone not in self._needed:
            self._needed[found.zone] = self._who(found.zone)
        who = self._needed[found.zone]
        return LAST_OF_ZONE(f"node {found.name} is the last of zone {found.zone}, which {who} needs") if who else None

    def count(self, node: int, sign: int) -> None:
        """One node of the zone goes (-1) or comes back (1)."""
        if not self.world.closed[node] and (zone := self.world.nodes[node].zone):
            self.left[zone] += sign

    def _who(self, zone: str) -> str:
        for pod in {id(pod.ask): pod for pod in self.world.pods}.values():
            if any(spread.topology_key == ZONE for spread in pod.ask.spreads):
                return f"the spread of pod {pod.key} over zones"
        inside = [node for node in self.world.nodes if node.zone == zone]
        outside = [node for node in self.world.nodes if node.zone in self.left and node.zone != zone]
        bound = {claim.nodes: name for name, claim in self.world.inventory.claims.items() if claim.nodes is not None}
        for nodes, (namespace, name) in bound.items():
            here = any(node_selected(nodes, node) for node in inside)
            if here and not any(node_selected(nodes, node) for node in outside):
                return f"the volume of claim {namespace}/{name}"
        return ""
