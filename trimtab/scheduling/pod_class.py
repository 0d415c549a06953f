"""The `PodClass`: what the pods of one template have in common, as numbers.

It holds the amount of each resource, the groups in which the pods count, and the groups that must be absent, present or
evenly spread where the pods are placed. Fit is calculated per class, so a thousand replicas cost as much as one.
"""

from dataclasses import dataclass

from msgspec import Struct

from trimtab.cluster.api.pod import NodeSelector
from trimtab.cluster.pod import SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.scheduling.topology import TopologyGroup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One topology spread constraint with whenUnsatisfiable: DoNotSchedule."""

    group: TopologyGroup
    max_skew: int
    self_count: int
    """1 when the constraint's selector matches the pod itself, else 0."""
    domain_count: int
    """The number of eligible domains."""
    min_domains: int
    """minDomains: with fewer domains than this, kube-scheduler takes the smallest count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodAffinityRule:
    """All required affinity terms of a pod: in each term's domain there must be a pod that matches all terms."""

    groups: tuple[TopologyGroup, ...]
    matches_itself: bool
    """The pod matches its own terms: the first pod of its class may be placed anywhere."""
    existing_groups: tuple[TopologyGroup, ...]
    """Pods that prevent this pod from being the first; pods with a deletion timestamp count here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementPreference:
    """Scores for the nodes that a pod prefers; see `preferences.preference_score`."""

    node_scores: tuple[int, ...]
    """Node → score of the node itself; empty if the pod has no preferred node affinity."""
    group_weights: tuple[tuple[TopologyGroup, int], ...]
    """(group, score for each pod of the group in the node's domain)."""


class PodClass(Struct, kw_only=True, eq=False, gc=False):
    """Pods that kube-scheduler treats alike. A Struct without garbage collection: a cluster has tens of thousands."""

    number: int
    ask: SchedulingRequirements
    volumes: tuple[NodeSelector, ...]
    unjudged_reason: Reason | None
    """Why such a pod cannot be judged; it then fits on no node."""
    workload: int = 0
    """A number that the classes of one owner share; a class without an owner is its own workload."""
    major: int = 0
    """The request of the scarcer of cpu and memory in the cluster."""
    minor: int = 0
    """The request of the other of the two."""
    other_requests: tuple[tuple[int, int], ...] = ()
    """(resource number, amount) of every other resource; the pod slot is not among them."""
    sort_key: int = 0
    """A sort key, largest first: by `major`, then by `minor`."""
    node_set: int = 0
    """The number of the set of nodes whose labels, name and taints admit the pod."""
    member_groups: tuple[int, ...] = ()
    """The numbers of the groups in which the pod counts, wherever it is."""
    forbidden_groups: tuple[TopologyGroup, ...] = ()
    """Groups of which no pod may be in the pod's domain."""
    spreads: tuple[SpreadRule, ...] = ()
    affinity: PodAffinityRule | None = None
    preference: PlacementPreference | None = None
    has_constraints: bool = False
    """The class has constraints beyond resources and node attributes: forbidden groups, spreads or affinity."""
