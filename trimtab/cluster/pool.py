"""Which nodes belong together, and how boldly may they be compacted?

The settings of one pool, as its ConfigMap says them (docs: `pool_file` reads it). Absent settings come from the
preset, `balanced` unless another is named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trimtab.cluster.node import Node
from trimtab.cluster.windows import Window

LABEL = "trimtab.dev/pool"
"""The label of a pool's ConfigMap; also a node label that names its pool, before any other."""
POOL_LABELS = (
    LABEL, "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool", "agentpool", "worker.gardener.cloud/pool", "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup", "doks.digitalocean.com/node-pool", "nodepool",
    "kubernetes.civo.com/civo-node-pool", "magnum.openstack.org/nodegroup", "compute.coreweave.com/node-pool",
    "autoscaling.k8s.io/nodegroup",
)  # fmt: skip
"""Node labels that tell a pool's name, the first present one counts (knowledge of the platforms' own labels)."""
KEEP = "trimtab.dev/keep"
"""Annotation of a node or pod, value "true": leave it where it is."""


class Goal(StrEnum):
    COST = "cost"
    NODES = "nodes"


class Spare(StrEnum):
    """Whose pods must find room when it dies."""

    NONE = "none"
    NODE = "node"
    ZONE = "zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Room that is left on purpose, on the pool's nodes that stay."""

    percent: int = 0
    """Of what is allocatable there, of cpu and of memory. 0: none."""
    nodes: int = 0
    """As many average nodes' worth. 0: none."""
    largest_pod: bool = False
    """One node that stays has room for one more pod as large as the largest that may move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Nodes with all of these labels belong to it; empty: the nodes whose pool label (`POOL_LABELS`) says `name`."""
    everything: bool = False
    """All nodes belong to it: for one pool over a whole cluster."""
    goal: Goal = Goal.COST
    """What a plan saves: money (prices, else cores), or nodes."""
    dry_run: bool = True
    """Plans are written down, nothing is done. True by default: trust is earned."""
    enabled: bool = True
    """False: the pool is left alone, and that is the reason given."""

    under: Mapping[str, int] = field(default_factory=dict)
    """Resource → percent of allocatable requested, DaemonSets included, at or below which a node is under-used. A
    node is a candidate when all resources named here are. Empty: every node is, the plan alone decides."""
    under_count: int = 1
    """As many nodes must be under-used before anything is planned. More than 1 only where plans are not trusted."""
    under_for: int = 600
    """Seconds a node must have been under-used: what dips for a minute is not idle."""
    node_age: int = 1200
    """Seconds a node must exist before it is emptied: what was just added is there for a reason."""
    receiver_age: int = 60
    """Seconds a node must exist before it counts as a place for pods: younger ones may not be whole yet."""
    quiet: int = 600
    """Seconds without a new node in the pool before anything is planned (the autoscaler's delay-after-add)."""

    min_nodes: int = 1
    """The pool never has fewer, emptied ones not counted."""
    min_per_zone: int = 0
    """Nor any of its zones."""
    headroom: Headroom = Headroom()
    spare: Spare = Spare.NONE
    """Room that is left for the pods of the fullest node (or zone) of those that stay."""

    drains: int = 1
    """Nodes of this pool that are emptied at the same time."""
    evictions_per_hour: int = 200
    """A ceiling on churn."""
    least_gain: int = 0
    """Thousandths of an average node's price that one eviction must save at least. 0: any saving will do."""
    prices: Mapping[str, int] = field(default_factory=dict)
    """Instance type → micro-dollars an hour, before any table of ours."""
    windows: tuple[Window, ...] = ()
    """When it may act; empty is always."""

    keep_nodes: tuple[str, ...] = ()
    """More node annotations that mean "leave it" (value "true")."""
    keep_pods: tuple[str, ...] = ()
    """More pod annotations that mean "leave it" (value "true")."""
    single_replicas: bool = False
    """May the only replica of a workload be evicted? It is gone until its successor is ready."""
    jobs: bool = False
    """May pods of Jobs be evicted? Their work so far is lost."""
    not_ready: bool = True
    """May pods that are not ready be evicted, where their budget allows it?"""
    min_pod_age: int = 0
    """Seconds a pod must have run."""

    def has(self, node: Node) -> bool:
        """Does the node belong to this pool?"""
        if self.everything:
            return True
        if self.labels:
            return all(node.labels.get(k) == v for k, v in self.labels.items())
        return pool_name(node) == self.name


def pool_name(node: Node) -> str:
    """The pool that the node's own labels tell; empty when none does."""
    return next((node.labels[key] for key in POOL_LABELS if key in node.labels), "")


PRESETS: Mapping[str, Pool] = {
    "careful": Pool(
        name="careful", under={"cpu": 50, "memory": 50}, under_for=1800, node_age=3600, quiet=1800,
        headroom=Headroom(percent=15, largest_pod=True), spare=Spare.NODE, evictions_per_hour=60, least_gain=10,
        min_pod_age=300,
    ),
    "balanced": Pool(
        name="balanced", under={"cpu": 80, "memory": 80}, headroom=Headroom(percent=5, largest_pod=True),
    ),
    "keen": Pool(
        name="keen", under_for=300, node_age=600, quiet=300, drains=4, evictions_per_hour=1000, single_replicas=True,
    ),
}  # fmt: skip


def preset(name: str, pool: str) -> Pool:
    """The preset's settings under the pool's own name."""
    return replace(PRESETS[name], name=pool)
