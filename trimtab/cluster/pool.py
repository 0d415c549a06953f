"""A node pool: which nodes belong to it, and the settings that limit its compaction.

`pool_config` reads the settings of a pool from its ConfigMap. An absent setting comes from the preset, `balanced`
unless the ConfigMap names another one. `trimtab.dev/paused` on Trimtab's own namespace stops every change.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import Metadata, value_or
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, SchedulerPlacement
from trimtab.cluster.timestamps import WeeklyWindow

POOL_LABEL = "trimtab.dev/pool"
"""The label of a pool's ConfigMap; on a node, the label that names its pool, before any other."""
POOL_LABELS = (
    POOL_LABEL, "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool", "agentpool", "worker.gardener.cloud/pool", "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup", "doks.digitalocean.com/node-pool", "nodepool",
    "kubernetes.civo.com/civo-node-pool", "magnum.openstack.org/nodegroup", "compute.coreweave.com/node-pool",
    "autoscaling.k8s.io/nodegroup",
)  # fmt: skip
"""Node labels that name a pool; the first one that a node has counts (the platforms' own labels)."""
OPENSHIFT_MACHINE = "machine.openshift.io/machine"
"""The annotation of OpenShift's machine API: namespace/name of the node's Machine; the name is a MachineSet's name with
a suffix."""
CAPI_OWNER_KIND, CAPI_OWNER = "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name"
"""Annotations of Cluster API: the owner of the node's Machine (api/core/v1beta1/common_types.go)."""
# A name by `generateName`: five letters and digits after the MachineSet's name.
_GENERATED = re.compile(r"(.+)-[a-z0-9]{5}")
KEEP_ANNOTATION = "trimtab.dev/do-not-disrupt"
"""The annotation of a node or a pod that must stay; its value is "true". Karpenter's word."""
RENAMED_KEEP = "trimtab.dev/keep"
"""The earlier name of `KEEP_ANNOTATION`. It still blocks, with a reason that names the new one: to ignore it would
drain a node that its owner wants to keep."""


class Goal(StrEnum):
    """The goal of a pool's plans."""

    COST = "cost"
    NODES = "nodes"


class Spare(StrEnum):
    """The failure for which a pool keeps capacity: the loss of no node, of one node, or of one zone."""

    NONE = "none"
    NODE = "node"
    ZONE = "zone"


class Precedence(StrEnum):
    """The order between the cluster autoscaler and Trimtab on a node that both could drain."""

    FOLLOW = "follow"
    """The autoscaler first: Trimtab leaves alone what the autoscaler will remove by itself."""
    LEAD = "lead"
    """Trimtab first, in its own order; the autoscaler removes empty nodes."""


class ProtectUnready(StrEnum):
    """What blocks the eviction of a workload's pods while one of its replicas is not ready."""

    BUDGET = "budget"
    """Its budget. Without a budget: more than one such replica, one of fewer than three, or a young one."""
    WORKLOAD = "workload"
    """Any such replica."""


class ProtectCritical(StrEnum):
    """Which pods of the priority class system-cluster-critical must stay."""

    ALWAYS = "always"
    WITHOUT_BUDGET = "without-budget"
    """Pods without a budget, and pods without a second ready replica."""
    UNLESS_SAFE = "unless-safe-to-evict"
    """The same, but the annotation safe-to-evict allows the eviction of a pod without a budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Capacity that stays free on purpose, on the nodes of the pool that stay."""

    percent: int = 0
    """Percent of the allocatable cpu and memory there. 0: none."""
    nodes: int = 0
    """The capacity of this number of average nodes. 0: none."""
    largest_pod: bool = False
    """Whether one node that stays must have room for one more pod as large as the largest that may move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The settings of one node pool."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Nodes with all of these labels belong to the pool; empty: the nodes whose pool label (`POOL_LABELS`) has the
    value `name`."""
    everything: bool = False
    """Whether all nodes belong to it: for one pool over a whole cluster."""
    goal: Goal = Goal.COST
    """What a plan saves: money (by prices, otherwise by cores), or nodes."""
    dry_run: bool = True
    """Whether plans are only reported. True by default: you enable changes after you trust the plans."""
    enabled: bool = True
    """If False, the pool is left alone, and that is the reported reason."""

    under: Mapping[str, int] = field(default_factory=dict)
    """Resource → percent of allocatable that is requested, DaemonSets included, at or below which a node is under-used.
    A node is a candidate if it is under-used in all resources here. Empty: every node is a candidate, the plan alone
    decides."""
    under_count: int = 1
    """The number of nodes that must be under-used before anything is planned. More than 1 only if you do not trust the
    plans."""
    under_for: int = 600
    """Seconds for which a node must have been under-used: a dip of a minute does not make it idle."""
    node_age: int = 1200
    """Seconds that a node must exist before it is drained: a node that was just added is needed."""
    receiver_age: int = 60
    """Seconds that a node must exist before it can receive pods: a younger one may not be complete."""
    quiet: int = 600
    """Seconds without a new node in the pool before anything is planned (the autoscaler's delay-after-add)."""
    pending_limit: int = 3600
    """Seconds a pod may wait for a node before it no longer keeps the pool from shrinking."""

    min_nodes: int = 1
    """The pool never has fewer nodes; drained ones do not count."""
    min_per_zone: int = 0
    """None of its zones ever has fewer nodes."""
    headroom: Headroom = Headroom()
    spare: Spare = Spare.NONE
    """Free capacity for the pods of the fullest node (or zone) among those that stay."""

    drains: int = 1
    """Nodes of this pool that are drained at the same time."""
    evictions_per_hour: int = 200
    """The maximum rate of evictions."""
    openings_per_hour: int = 20
    """Drained nodes per hour that are uncordoned again for pending pods."""
    least_gain: int = 0
    """Thousandths of an average node's price that one eviction must save at least. 0: any saving is enough."""
    resize_canary: int = 10
    """Percent of a workload's pods that are resized first, at least one. Each verified wave doubles it."""
    resize_verify: int = 600
    """Seconds for which a resized pod is watched before what it gave up counts as free."""
    resizes_per_hour: int = 60
    """Pods that are resized in an hour at most; reverts do not count. 0: none is."""
    prices: Mapping[str, int] = field(default_factory=dict)
    """Instance type → micro-dollars an hour, before any price table."""
    commitments: Mapping[str, int] = field(default_factory=dict)
    """Instance type → number of its nodes that are paid for whether they run or not: the removal of that many saves no
    money."""
    autoscaler: Precedence = Precedence.FOLLOW
    lead_max_threshold: int = 50
    """Percent: while the autoscaler's own threshold is above it, a pool with `lead` and `act` starts no drain."""
    group_options: Mapping[str, str] = field(default_factory=dict)
    """The autoscaler's flag → its value for the pool's own node group, where the group's options differ from the flag.
    They are set on the cloud's group, and the API server does not show them."""
    schedulers: Mapping[str, SchedulerPlacement] = field(default_factory=dict)
    """`spec.schedulerName` → how that scheduler places pods; it overrides what Trimtab knows or detects."""
    windows: tuple[WeeklyWindow, ...] = ()
    """The times in which the compactor may act; empty is always."""

    keep_nodes: tuple[str, ...] = ()
    """More node annotations that mean "leave it" (value "true")."""
    keep_pods: tuple[str, ...] = ()
    """More pod annotations that mean "leave it" (value "true")."""
    single_replicas: bool = False
    """Whether the only replica of a workload may be evicted. The workload is down until the successor is ready."""
    scale_namespaces: frozenset[str] | None = None
    """Namespaces in which the compactor may give a workload a second replica. None: unknown, as in an offline plan, and
    taken as all namespaces. It is not a pool setting: the permissions of the compactor's service account decide."""
    jobs: bool = False
    """Whether pods of Jobs may be evicted. The work that they have done is lost."""
    not_ready: bool = True
    """Whether pods that are not ready may be evicted if their budget allows it."""
    unready: ProtectUnready = ProtectUnready.BUDGET
    critical_pods: ProtectCritical = ProtectCritical.WITHOUT_BUDGET
    min_pod_age: int = 0
    """Seconds that a pod must have run before it may be evicted."""

    def has_node(self, node: NodeInfo) -> bool:
        """Returns whether the node belongs to this pool."""
        if self.everything:
            return True
        if self.labels:
            # A selector replaces the platform's pool label; it does not add to it.
            return all(node.labels.get(k) == v for k, v in self.labels.items())
        return pool_name(node) == self.name


class PoolIndex:
    """Finds the pools of a node as the pool itself decides, without a call for every pool: a pool without a selector
    has the nodes that name it."""

    __slots__ = ("_by_name", "_with_selector")

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._with_selector: list[tuple[int, Pool]] = []
        self._by_name: dict[str, list[tuple[int, Pool]]] = {}
        for number, pool in enumerate(pools):
            is_selecting = pool.everything or pool.labels
            # The number keeps the order of the pools: the first match depends on it.
            (self._with_selector if is_selecting else self._by_name.setdefault(pool.name, [])).append((number, pool))

    def pools_of(self, node: NodeInfo) -> tuple[Pool, ...]:
        """Returns all pools that have the node, in the order of the constructor's argument."""
        numbered_pools = [one for one in self._with_selector if one[1].has_node(node)]
        numbered_pools += self._by_name.get(pool_name(node), ()) if self._by_name else ()
        return tuple(pool for _, pool in sorted(numbered_pools, key=lambda one: one[0]))

    def only_pool_of(self, node: NodeInfo) -> Pool | None:
        """Returns the one pool that has the node, or None if no pool or several pools have it."""
        pools = self.pools_of(node)
        return pools[0] if len(pools) == 1 else None

    def first_pool_of(self, node: NodeInfo) -> Pool | None:
        """Returns the first pool that has the node, or None if no pool has it."""
        return next(iter(self.pools_of(node)), None)


def pool_name(node: NodeInfo) -> str:
    """Returns the pool that the node's own labels or annotations name, or an empty string if none does."""
    return pool_source(node)[0]


def pool_source(node: NodeInfo) -> tuple[str, str]:
    """Returns (the node's pool, the label or annotation that names it); both empty if none does.

    A label counts before an annotation: a person or the platform set it to select nodes.
    """
    # The first label that exists counts, even if it is empty.
    for key in POOL_LABELS:
        if key in node.labels:
            return node.labels[key], key
    annotations = node.annotations
    # Cluster API's Machine controller writes these annotations on the Node (machine_controller_noderef.go).
    if annotations.get(CAPI_OWNER_KIND) == "MachineSet" and annotations.get(CAPI_OWNER):
        return annotations[CAPI_OWNER], CAPI_OWNER
    machine_set = machine_set_of(annotations.get(OPENSHIFT_MACHINE, ""))
    return (machine_set, OPENSHIFT_MACHINE) if machine_set else ("", "")


def machine_set_of(machine: str) -> str:
    """Returns the MachineSet of a Machine given as namespace/name, or an empty string if the name shows that the
    Machine has none."""
    match = _GENERATED.fullmatch(machine.rpartition("/")[2])
    return match[1] if match else ""


def schedulers_of(
    pools: Iterable[Pool], base: Mapping[str, SchedulerPlacement] = KNOWN_SCHEDULERS
) -> dict[str, SchedulerPlacement]:
    """Returns `base` overridden by the pools' settings; a name for which two pools have different values is UNKNOWN."""
    placements: dict[str, SchedulerPlacement] = {}
    for pool in pools:
        for name, placement in pool.schedulers.items():
            same = placements.setdefault(name, placement) is placement
            # Pods of all pools are placed together, so a scheduler cannot have two meanings in one plan.
            placements[name] = placement if same else SchedulerPlacement.UNKNOWN
    return {**base, **placements}


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


def pool_from_preset(name: str, pool: str) -> Pool:
    """Returns the settings of the preset as a pool of this name."""
    return replace(PRESETS[name], name=pool)


PAUSED_MARK = "trimtab.dev/paused"
"""A label or annotation; any value but `false` pauses."""


def pause_reason(metadata: Metadata) -> str:
    """Returns a sentence that says which mark pauses Trimtab, or an empty string if none does."""
    # Both are read: in an emergency, a person may use `kubectl label` or `kubectl annotate`.
    for marks in (value_or(metadata.labels, {}), value_or(metadata.annotations, {})):
        if PAUSED_MARK in marks and marks[PAUSED_MARK].lower() != "false":
            return f"namespace {metadata.name} has {PAUSED_MARK}: {marks[PAUSED_MARK]}"
    return ""


def pause_reason_in(namespaces: Iterable[Namespace], name: str) -> str:
    """Returns a sentence that says which mark on this namespace pauses Trimtab, or an empty string if none does, or if
    the namespace is missing."""
    return next((pause_reason(namespace.metadata) for namespace in namespaces if namespace.metadata.name == name), "")
