"""The cost of a workload on one machine type: the used share of the price, and surcharges.

A price is split into cores and memory by the weight of the two (how many GiB cost as much as a core). The price of what
the workload can use of a node is the used price. If capacity stays empty, a node costs more than its price:

    last node    the last node of each zone is half empty on average
    volumes      pods with many volumes never pack perfectly: more, the nearer the limit of volumes is
    scale-down   nodes that the autoscaler may not remove stay when the workload shrinks

Types are compared by the GiB of the workload that a dollar an hour pays for: usable GiB / (price + surcharges). A node
that could hold more than a zone's share of the workload counts as holding that share.
"""

from dataclasses import dataclass
from math import ceil

from trimtab.sizing.ranking.capacity import Candidate, Limit, NodeCapacity
from trimtab.sizing.ranking.workload import PoolWorkload

DOLLAR = 1_000_000
"""A dollar in micro-dollars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurchargeRules:
    """Rules for what is added to a node's price for capacity that stays empty."""

    last_node_fill: float = 0.5
    """How full the last node of a zone is on average, from 0 to 1."""
    volume_packing_start: float = 0.8
    """The share of the volume limit above which volumes make packing worse."""
    volume_packing_share: float = 0.10
    """The share of the price that is added when the volume limit is reached."""
    scale_down_share: float = 0.0
    """The share of the price that is added if the autoscaler does not remove nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surcharges:
    """What is added to the price of each node, in dollars an hour."""

    last_node: float
    volumes: float
    scale_down: float

    @property
    def total(self) -> float:
        return self.last_node + self.volumes + self.scale_down


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeScore:
    """One candidate with its capacity and its cost."""

    candidate: Candidate
    capacity: NodeCapacity
    surcharges: Surcharges
    efficiency: float
    """The share of the price with surcharges that pays for used capacity; from 0 to 1."""
    gib_per_dollar: float
    """The GiB of the workload that a dollar an hour pays for, by which types are ranked."""
    nodes_per_zone: float
    """The number of nodes per zone, not rounded."""
    zones: int

    @property
    def node_count(self) -> int:
        """The number of whole nodes in all zones together."""
        # A millionth of a node is an error of floating point, not a node.
        return self.zones * max(1, ceil(self.nodes_per_zone - 1e-6))

    @property
    def total_price(self) -> int:
        """The price of all nodes in micro-dollars an hour."""
        return self.node_count * self.candidate.price


def score_type(
    workload: PoolWorkload, candidate: Candidate, capacity: NodeCapacity, rules: SurchargeRules
) -> TypeScore:
    """Returns the score of a candidate. Its usable GiB must be above 0."""
    price, share_of_zone = candidate.price / DOLLAR, workload.gib / workload.zones
    # Otherwise the largest types would win for the smallest workloads, by room that nothing fills.
    usable = min(capacity.usable_gib, share_of_zone)
    gib_price = price / (candidate.memory_weight * candidate.cores + candidate.gib)
    core_price = candidate.memory_weight * gib_price
    # In the candidate's own cores: a faster core is used less by the same workload.
    used = core_price * usable * workload.cores_per_gib / candidate.performance + gib_price * usable
    nodes_per_zone = share_of_zone / capacity.usable_gib
    surcharges = Surcharges(
        last_node=(1 - rules.last_node_fill) * price / max(1.0, nodes_per_zone),
        volumes=price * rules.volume_packing_share * _volume_pressure(capacity, rules),
        scale_down=price * rules.scale_down_share,
    )
    full_price = price + surcharges.total
    return TypeScore(
        candidate=candidate,
        capacity=capacity,
        surcharges=surcharges,
        efficiency=used / full_price,
        gib_per_dollar=usable / full_price,
        nodes_per_zone=nodes_per_zone,
        zones=workload.zones,
    )


def _volume_pressure(capacity: NodeCapacity, rules: SurchargeRules) -> float:
    """Returns how much volumes make packing worse: from 0 below the start of the surcharge to 1 at the volume limit."""
    volumes = capacity.limits[Limit.VOLUMES]
    others = min(limit for name, limit in capacity.limits.items() if name is not Limit.VOLUMES)
    share = (others / volumes - rules.volume_packing_start) / (1 - rules.volume_packing_start)
    return min(1.0, max(0.0, share))
