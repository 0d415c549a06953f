"""The `PodClass`: what the pods of one template have in common, as numbers.

It has the amount of each resource, the groups in which the pods count, and the groups whose pods must be absent,
present or evenly spread in the domain where the pod is placed. Whether a pod fits is calculated per class, so a
thousand replicas cost as much as one.
"""

from dataclasses import dataclass

from msgspec import Struct

from trimtab.cluster.api.pod import NodeSelector
from trimtab.cluster.pod import SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.scheduling.run_conditions import ANYWHERE, RunConditions
from trimtab.scheduling.topology import TopologyGroup


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadRule:
    """One topology spread constraint with whenUnsatisfiable: DoNotSchedule."""

    group: TopologyGroup
    max_skew: int
    self_count: int
    """1 if the constraint's selector matches the pod itself, otherwise 0."""
    domain_count: int
    """The number of domains that count for the constraint."""
    min_domains: int
    """The constraint's minDomains: if there are fewer domains, kube-scheduler takes the smallest count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodAffinityRule:
    """All required affinity terms of a pod: in each term's domain there must be a pod that matches all of the terms."""

    groups: tuple[TopologyGroup, ...]
    matches_itself: bool
    """Whether the pod matches its own terms, so that the first such pod may be placed anywhere."""
    existing_groups: tuple[TopologyGroup, ...]
    """The groups of matching pods. If any of them has a pod, this pod is not the first; pods with a deletion timestamp
    count too."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementPreference:
    """The scores by which a pod prefers nodes; see `preferences.preference_score`."""

    node_scores: tuple[int, ...]
    """Node → score of the node's own labels; empty if the pod has no preferred node affinity."""
    group_weights: tuple[tuple[TopologyGroup, int], ...]
    """(group, score that each pod of the group in the node's domain adds)."""


class PodClass(Struct, kw_only=True, eq=False, gc=False):
    """Pods that are all the same to kube-scheduler. It is a Struct that the garbage collector does not track, because a
    cluster has tens of thousands."""

    number: int
    ask: SchedulingRequirements
    volumes: tuple[NodeSelector, ...]
    unjudged_reason: Reason | None
    """Why pods of this class cannot be judged, so that they fit on no node; None if they can."""
    workload: int = 0
    """A number that all classes of one owner share. A class without an owner has a number of its own."""
    major: int = 0
    """The requested amount of cpu or memory, whichever is scarcer in the cluster."""
    minor: int = 0
    """The requested amount of the less scarce one of cpu and memory."""
    other_requests: tuple[tuple[int, int], ...] = ()
    """(resource number, amount) of every other requested resource; the pod slot is not among them."""
    sort_key: int = 0
    """Sorts classes in descending size: by `major`, then by `minor`."""
    conditions: RunConditions = ANYWHERE
    """What a node must be so that the pods run there."""
    node_set: int = 0
    """The number of the set of nodes whose labels, name and taints admit the pods, and on which the pods run."""
    unfit_set: int = -1
    """The number of the set of nodes that kube-scheduler admits, although it does harm to run the pods there; -1 if
    there is no such node."""
    member_groups: tuple[int, ...] = ()
    """The numbers of the groups that count the pod, whatever its node."""
    forbidden_groups: tuple[TopologyGroup, ...] = ()
    """The groups of which no pod may be in the domain where the pod is placed."""
    spreads: tuple[SpreadRule, ...] = ()
    affinity: PodAffinityRule | None = None
    preference: PlacementPreference | None = None
    has_constraints: bool = False
    """Whether the class has constraints beyond resources and node attributes: forbidden groups, spread or affinity."""
