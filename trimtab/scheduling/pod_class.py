"""What does a pod bring and demand, as numbers?

A `PodClass` is what pods of one template share: how much of each resource, which groups they count in, which groups
must be absent, present or even where they go. Fit is asked of kinds, so a thousand replicas cost one.
"""

from dataclasses import dataclass

from msgspec import Struct

from trimtab.cluster.api.pod import NodeSelector
from trimtab.cluster.pod import SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.scheduling.topology import TopologyGroup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One topology spread constraint with DoNotSchedule."""

    group: TopologyGroup
    skew: int
    own: int
    """1 when the pod counts itself, else 0."""
    domains: int
    """How many eligible domains there are."""
    fewest: int
    """minDomains: with fewer domains than this the smallest count is taken for 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodAffinityRule:
    """All required affinity terms of a pod: each key must have a pod that matches all terms."""

    groups: tuple[TopologyGroup, ...]
    itself: bool
    """The pod matches its own terms: the first of its kind may go anywhere."""
    others: tuple[TopologyGroup, ...]
    """Pods that make it not the first: those on their way out are among them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementPreference:
    """Where a pod would rather be; see `wishes.points`."""

    nodes: tuple[int, ...]
    """Node → points for the node itself; empty where the pod says nothing of nodes."""
    groups: tuple[tuple[TopologyGroup, int], ...]
    """Points for each pod of the group in the node's domain."""


class PodClass(Struct, kw_only=True, eq=False, gc=False):
    number: int
    ask: SchedulingRequirements
    volumes: tuple[NodeSelector, ...]
    unknown: Reason | None
    """What keeps us from judging such a pod; then it fits nowhere."""
    workload: int = 0
    """Equal for kinds of one owner; without an owner a kind is its own workload."""
    major: int = 0
    """Of the scarcer of cpu and memory."""
    minor: int = 0
    rest: tuple[tuple[int, int], ...] = ()
    """(resource number, amount) of everything else but the slot."""
    rank: int = 0
    """Sorts largest first: by `major`, then by `minor`."""
    where: int = 0
    """Number of the set of nodes whose nature admits it."""
    adds: tuple[int, ...] = ()
    """Groups it counts in, wherever it is."""
    bars: tuple[TopologyGroup, ...] = ()
    """Groups of which no pod may be in its domain."""
    spreads: tuple[SpreadRule, ...] = ()
    together: PodAffinityRule | None = None
    wish: PlacementPreference | None = None
    checked: bool = False
    """Has bars, spreads or together: more than nature and resources."""
