"""Which nodes belong together, and how boldly may they be compacted?

The settings of one pool, as its ConfigMap says them (docs: `pool_file` reads it). Absent settings come from the
preset, `balanced` unless another is named.

The one switch that stops every change: `trimtab.dev/paused` on our own namespace.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import Metadata, get
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, SchedulerPlacement
from trimtab.cluster.timestamps import WeeklyWindow

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
OPENSHIFT_MACHINE = "machine.openshift.io/machine"
"""Annotation of OpenShift's machine API: namespace/name of the node's Machine, a MachineSet's name and a suffix."""
CAPI_OWNER_KIND, CAPI_OWNER = "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name"
"""Annotations of Cluster API: what owns the node's Machine (api/core/v1beta1/common_types.go)."""
_GENERATED = re.compile(r"(.+)-[a-z0-9]{5}")
"""A name by `generateName`: five letters and digits after the MachineSet's name."""
KEEP = "trimtab.dev/do-not-disrupt"
"""Annotation of a node or pod, value "true": leave it where it is. Karpenter's word."""
RENAMED_KEEP = "trimtab.dev/keep"
"""The earlier name of `KEEP`. It still blocks, with the reason that names the new one: ignoring it would drain a node
that its owner wants to keep."""


class Goal(StrEnum):
    COST = "cost"
    NODES = "nodes"


class Spare(StrEnum):
    """Whose pods must find room when it dies."""

    NONE = "none"
    NODE = "node"
    ZONE = "zone"


class Precedence(StrEnum):
    """Who empties a node that both the cluster autoscaler and Trimtab could empty."""

    FOLLOW = "follow"
    """The autoscaler: what it will remove by itself is left to it."""
    LEAD = "lead"
    """Trimtab, in its own order; the autoscaler removes what is empty."""


class ProtectUnready(StrEnum):
    """What keeps the pods of a workload of which a replica is not ready."""

    BUDGET = "budget"
    """Its budget. Without one: more than one such replica, one of fewer than three, or one that is young."""
    WORKLOAD = "workload"
    """Any such replica."""


class ProtectCritical(StrEnum):
    """Which pods of the priority class system-cluster-critical stay."""

    ALWAYS = "always"
    WITHOUT_BUDGET = "without-budget"
    """Those without a budget, or without a second ready replica."""
    UNLESS_SAFE = "unless-safe-to-evict"
    """Likewise, but without a budget the annotation safe-to-evict lets one go."""


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
    pending_limit: int = 3600
    """Seconds a pod may wait for a node before it no longer keeps the pool from shrinking."""

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
    openings_per_hour: int = 20
    """Emptied nodes that are opened again in an hour for pods that wait."""
    least_gain: int = 0
    """Thousandths of an average node's price that one eviction must save at least. 0: any saving will do."""
    prices: Mapping[str, int] = field(default_factory=dict)
    """Instance type → micro-dollars an hour, before any table of ours."""
    commitments: Mapping[str, int] = field(default_factory=dict)
    """Instance type → nodes of it that are paid for whether they run or not: that many save no money when they go."""
    autoscaler: Precedence = Precedence.FOLLOW
    lead_max_threshold: int = 50
    """Percent: while the autoscaler's own threshold is above it, a pool that leads and acts begins nothing."""
    group_options: Mapping[str, str] = field(default_factory=dict)
    """The autoscaler's flag → its value for the pool's own node group, where the group's options differ from the flag.
    They stand at the cloud's group, where the API server does not show them."""
    schedulers: Mapping[str, SchedulerPlacement] = field(default_factory=dict)
    """`spec.schedulerName` → how that scheduler places pods, before what Trimtab knows or finds by itself."""
    windows: tuple[WeeklyWindow, ...] = ()
    """When it may act; empty is always."""

    keep_nodes: tuple[str, ...] = ()
    """More node annotations that mean "leave it" (value "true")."""
    keep_pods: tuple[str, ...] = ()
    """More pod annotations that mean "leave it" (value "true")."""
    single_replicas: bool = False
    """May the only replica of a workload be evicted? It is gone until its successor is ready."""
    scale_namespaces: frozenset[str] | None = None
    """Namespaces in which the compactor may give a workload its second replica. None: not known, as in an offline plan,
    and taken for all. No setting of a pool: the compactor's own account says it."""
    jobs: bool = False
    """May pods of Jobs be evicted? Their work so far is lost."""
    not_ready: bool = True
    """May pods that are not ready be evicted, where their budget allows it?"""
    unready: ProtectUnready = ProtectUnready.BUDGET
    critical_pods: ProtectCritical = ProtectCritical.WITHOUT_BUDGET
    min_pod_age: int = 0
    """Seconds a pod must have run."""

    def has(self, node: NodeInfo) -> bool:
        """Does the node belong to this pool?"""
        if self.everything:
            return True
        if self.labels:
            return all(node.labels.get(k) == v for k, v in self.labels.items())
        return pool_name(node) == self.name


class PoolIndex:
    """The pools of a node, as `Pool.has` tells, without asking every pool: one that selects nothing has the nodes that
    name it."""

    __slots__ = ("_named", "_selecting")

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._selecting: list[tuple[int, Pool]] = []
        self._named: dict[str, list[tuple[int, Pool]]] = {}
        for number, pool in enumerate(pools):
            is_selecting = pool.everything or pool.labels
            (self._selecting if is_selecting else self._named.setdefault(pool.name, [])).append((number, pool))

    def of(self, node: NodeInfo) -> tuple[Pool, ...]:
        """All that have the node, in the order they were given in."""
        found = [one for one in self._selecting if one[1].has(node)]
        found += self._named.get(pool_name(node), ()) if self._named else ()
        return tuple(pool for _, pool in sorted(found, key=lambda one: one[0]))

    def only(self, node: NodeInfo) -> Pool | None:
        """The one that has the node; None where none or several have."""
        found = self.of(node)
        return found[0] if len(found) == 1 else None

    def first(self, node: NodeInfo) -> Pool | None:
        """The first that has the node; None where none has."""
        return next(iter(self.of(node)), None)


def pool_name(node: NodeInfo) -> str:
    """The pool that the node's own labels or annotations name; empty when none does."""
    return pool_source(node)[0]


def pool_source(node: NodeInfo) -> tuple[str, str]:
    """(the node's pool, the label or annotation that names it); both empty when none does.

    A label counts before an annotation: where there is one, a person or the platform chose it to select nodes by.
    """
    for key in POOL_LABELS:
        if key in node.labels:
            return node.labels[key], key
    notes = node.annotations
    if notes.get(CAPI_OWNER_KIND) == "MachineSet" and notes.get(CAPI_OWNER):
        return notes[CAPI_OWNER], CAPI_OWNER
    machine_set = machine_set_of(notes.get(OPENSHIFT_MACHINE, ""))
    return (machine_set, OPENSHIFT_MACHINE) if machine_set else ("", "")


def machine_set_of(machine: str) -> str:
    """The MachineSet that made the Machine, given as namespace/name; empty where the name shows that none did."""
    found = _GENERATED.fullmatch(machine.rpartition("/")[2])
    return found[1] if found else ""


def schedulers_of(
    pools: Iterable[Pool], base: Mapping[str, SchedulerPlacement] = KNOWN_SCHEDULERS
) -> dict[str, SchedulerPlacement]:
    """`base` with what the pools' settings say; a name of which two pools say different things is unknown."""
    said: dict[str, SchedulerPlacement] = {}
    for pool in pools:
        for name, placement in pool.schedulers.items():
            same = said.setdefault(name, placement) is placement
            said[name] = placement if same else SchedulerPlacement.UNKNOWN
    return {**base, **said}


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


PAUSED = "trimtab.dev/paused"
"""Label or annotation; whatever it says pauses, only `false` does not."""


def paused(metadata: Metadata) -> str:
    """How the switch is set, in words; empty where nothing is paused."""
    for where in (get(metadata.labels, {}), get(metadata.annotations, {})):
        if PAUSED in where and where[PAUSED].lower() != "false":
            return f"namespace {metadata.name} says {PAUSED}: {where[PAUSED]}"
    return ""


def paused_in(namespaces: Iterable[Namespace], name: str) -> str:
    """The same of the namespace so named; empty where it is not among them."""
    return next((paused(found.metadata) for found in namespaces if found.metadata.name == name), "")
