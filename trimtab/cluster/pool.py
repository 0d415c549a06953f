"""A node pool: which nodes belong to it, and the settings that limit its compaction.

`pool_config` reads the settings from the pool's ConfigMap. Absent settings get the values of the preset that the
ConfigMap names, or of `balanced` if it names none. The label or annotation `trimtab.dev/paused` on Trimtab's own
namespace stops all changes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import Metadata, value_or
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool_labels import POOL_ANNOTATIONS, POOL_LABELS
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, SchedulerPlacement
from trimtab.cluster.timestamps import WeeklyWindow

OPENSHIFT_MACHINE = "machine.openshift.io/machine"
"""The annotation of OpenShift's machine API with the node's Machine as namespace/name. The Machine's name is the name
of its MachineSet with a suffix."""
CAPI_OWNER_KIND, CAPI_OWNER = "cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name"
"""The annotations of Cluster API with the kind and the name of the owner of the node's Machine
(api/core/v1beta1/common_types.go)."""
# A name by `generateName`: five letters and digits after the MachineSet's name.
_GENERATED = re.compile(r"(.+)-[a-z0-9]{5}")
KEEP_ANNOTATION = "trimtab.dev/do-not-disrupt"
"""The annotation, with the value "true", of a node that must not be drained or a pod that must not be evicted.
Karpenter's annotation has the same name, with another prefix."""
RENAMED_KEEP = "trimtab.dev/keep"
"""The earlier name of `KEEP_ANNOTATION`. It still blocks, with a reason that names the new annotation: if it were
ignored, nodes would be drained that their owners want to keep."""


class Goal(StrEnum):
    """What the plans of a pool save: money or nodes."""

    COST = "cost"
    NODES = "nodes"


class Spare(StrEnum):
    """The failure for which a pool keeps capacity free: none, the loss of one node, or the loss of one zone."""

    NONE = "none"
    NODE = "node"
    ZONE = "zone"


class Precedence(StrEnum):
    """Whether the cluster autoscaler or Trimtab drains a node that both could drain."""

    FOLLOW = "follow"
    """The autoscaler comes first: Trimtab does not drain nodes that the autoscaler would remove by itself."""
    LEAD = "lead"
    """Trimtab comes first and drains nodes in its own order; the autoscaler removes them when they are empty."""


class ProtectUnready(StrEnum):
    """What protects the pods of a workload from eviction while one of its replicas is not ready."""

    BUDGET = "budget"
    """The workload's disruption budget decides. A workload without a budget is protected while more than one replica is
    not ready, while the unready replica is one of fewer than three, or while it is young."""
    WORKLOAD = "workload"
    """The workload is protected while any of its replicas is not ready."""


class ProtectCritical(StrEnum):
    """Which pods of the priority class system-cluster-critical must not be evicted."""

    ALWAYS = "always"
    WITHOUT_BUDGET = "without-budget"
    """Pods without a disruption budget, and pods without a second ready replica, must not be evicted."""
    UNLESS_SAFE = "unless-safe-to-evict"
    """As with `without-budget`, but a pod without a budget may be evicted if it has the annotation safe-to-evict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Capacity that is kept free on purpose, on the pool's nodes that are not drained."""

    percent: int = 0
    """The free share of the allocatable cpu and memory of these nodes, in percent. 0: none."""
    nodes: int = 0
    """The free capacity as a number of average nodes. 0: none."""
    largest_pod: bool = False
    """Whether at least one of the nodes that are not drained must have room for another pod as large as the largest pod
    that may move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The settings of one node pool."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """The nodes that have all of these labels belong to the pool. If there are none, the nodes whose pool label
    (`POOL_LABELS`) has the value `name` belong to it."""
    everything: bool = False
    """Whether all nodes of the cluster belong to the pool."""
    goal: Goal = Goal.COST
    """What a plan saves: with `cost`, money (or cores where prices are unknown); with `nodes`, nodes."""
    dry_run: bool = True
    """Whether plans are only reported and not carried out. True by default: you turn it off when you trust the
    plans."""
    enabled: bool = True
    """If False, nothing is drained in the pool, and the report gives this as the reason."""

    under: Mapping[str, int] = field(default_factory=dict)
    """Resource → percentage of a node's allocatable amount. A node is a candidate if, for every resource here, the
    requests on it (DaemonSets included) are at or below the percentage. Empty: every node is a candidate, and the plan
    alone decides."""
    under_count: int = 1
    """The number of nodes that must be candidates before anything is planned. More than 1 is only useful if you do not
    trust the plans."""
    under_for: int = 600
    """The number of seconds for which a node must have been under-used, so that a dip of a minute does not count."""
    node_age: int = 1200
    """The minimum age of a node, in seconds, before it is drained: a node that was just added is needed."""
    receiver_age: int = 60
    """The minimum age of a node, in seconds, before it can receive pods: a younger node may not be complete."""
    quiet: int = 600
    """The number of seconds without a new node in the pool before anything is planned (the autoscaler's
    delay-after-add)."""
    pending_limit: int = 3600
    """The number of seconds for which a pod that waits for a node prevents drains in the pool. A pod that waits longer
    is ignored."""

    min_nodes: int = 1
    """The smallest number of nodes that the pool keeps. Drained nodes are not counted."""
    min_per_zone: int = 0
    """The pool keeps at least this number of nodes in each of its zones."""
    headroom: Headroom = Headroom()
    spare: Spare = Spare.NONE
    """Whether the remaining nodes keep enough capacity free for the pods of the fullest node, or of the fullest
    zone."""

    drains: int = 1
    """How many nodes of this pool may be drained at the same time."""
    evictions_per_hour: int = 200
    """The largest number of evictions in an hour."""
    openings_per_hour: int = 20
    """The largest number of drained nodes in an hour that are uncordoned again for pending pods."""
    least_gain: int = 0
    """The saving that each eviction must bring at least, in thousandths of an average node's price. 0: any saving is
    enough."""
    resize_canary: int = 10
    """The percentage of a workload's pods that are resized first (at least one pod). Each batch of resizes that
    succeeds doubles the size of the next batch."""
    resize_verify: int = 600
    """The number of seconds for which a resized pod is watched before the resources that it no longer requests count as
    free."""
    resizes_per_hour: int = 60
    """The largest number of pods that are resized in an hour; resizes that undo an earlier one do not count. 0: no pod
    is resized."""
    prices: Mapping[str, int] = field(default_factory=dict)
    """Instance type → micro-dollars an hour. These prices take precedence over those of a price table."""
    commitments: Mapping[str, int] = field(default_factory=dict)
    """Instance type → number of its nodes that are paid for whether they run or not. To remove one of these saves no
    money."""
    autoscaler: Precedence = Precedence.FOLLOW
    lead_max_threshold: int = 50
    """A percentage. While the autoscaler's own scale-down threshold is above it, a pool with `autoscaler: lead` and
    `mode: act` starts no drain."""
    group_options: Mapping[str, str] = field(default_factory=dict)
    """Flag of the autoscaler → the value that the pool's node group has in place of the flag's value. Such an option is
    set on the group in the cloud, where Trimtab cannot read it."""
    schedulers: Mapping[str, SchedulerPlacement] = field(default_factory=dict)
    """`spec.schedulerName` → how that scheduler places pods; it overrides what Trimtab knows or detects."""
    windows: tuple[WeeklyWindow, ...] = ()
    """The weekly times in which the compactor may act; if there are none, it may always act."""

    keep_nodes: tuple[str, ...] = ()
    """Further annotations that keep a node from being drained, if their value is "true"."""
    keep_pods: tuple[str, ...] = ()
    """Further annotations that keep a pod from being evicted, if their value is "true"."""
    single_replicas: bool = False
    """Whether the only replica of a workload may be evicted. The workload is then unavailable until the successor is
    ready."""
    scale_namespaces: frozenset[str] | None = None
    """Namespaces in which the compactor may temporarily add a replica to a workload. None means that they are unknown,
    as in an offline plan; then all namespaces count.

    This is not a setting of the pool: it follows from the permissions of the compactor's service account."""
    jobs: bool = False
    """Whether the pods of Jobs may be evicted. The work that they have done is lost."""
    not_ready: bool = True
    """Whether pods that are not ready may be evicted, if their disruption budget allows it."""
    unready: ProtectUnready = ProtectUnready.BUDGET
    critical_pods: ProtectCritical = ProtectCritical.WITHOUT_BUDGET
    min_pod_age: int = 0
    """The number of seconds that a pod must have run before it may be evicted."""
    max_grace: int = 0
    """The longest termination grace period, in seconds, of a pod that may be evicted. A pod with a longer one keeps its
    node. 0: no limit."""

    def has_node(self, node: NodeInfo) -> bool:
        """Returns whether the node belongs to this pool. Only machines belong to pools."""
        if not node.nature.is_machine:
            return False
        if self.everything:
            return True
        if self.labels:
            # A selector replaces the platform's pool label; it does not add to it.
            return all(node.labels.get(k) == v for k, v in self.labels.items())
        return pool_name(node) == self.name


class PoolIndex:
    """Finds the pools to which a node belongs, with the same result as `Pool.has_node` of each pool. It is faster than
    asking every pool, because a pool without its own selector is found by the pool name in the node's labels or
    annotations."""

    __slots__ = ("_by_name", "_with_selector")

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._with_selector: list[tuple[int, Pool]] = []
        self._by_name: dict[str, list[tuple[int, Pool]]] = {}
        for number, pool in enumerate(pools):
            is_selecting = pool.everything or pool.labels
            # The number keeps the order of the pools: the first match depends on it.
            (self._with_selector if is_selecting else self._by_name.setdefault(pool.name, [])).append((number, pool))

    def pools_of(self, node: NodeInfo) -> tuple[Pool, ...]:
        """Returns all pools to which the node belongs, in the order in which the pools were given."""
        if not node.nature.is_machine:
            return ()
        numbered_pools = [one for one in self._with_selector if one[1].has_node(node)]
        numbered_pools += self._by_name.get(pool_name(node), ()) if self._by_name else ()
        return tuple(pool for _, pool in sorted(numbered_pools, key=lambda one: one[0]))

    def only_pool_of(self, node: NodeInfo) -> Pool | None:
        """Returns the pool to which the node belongs, or None if it belongs to none or to several."""
        pools = self.pools_of(node)
        return pools[0] if len(pools) == 1 else None

    def first_pool_of(self, node: NodeInfo) -> Pool | None:
        """Returns the first pool to which the node belongs, or None if it belongs to none."""
        return next(iter(self.pools_of(node)), None)


def pool_name(node: NodeInfo) -> str:
    """Returns the name of the pool that the node's labels or annotations name, or an empty string if they name none."""
    return pool_source(node)[0]


def pool_source(node: NodeInfo) -> tuple[str, str]:
    """Returns (pool, label or annotation that names it) for a node; both are empty if the node names no pool, or is no
    machine.

    A label counts before an annotation, because a person or the platform set the label in order to select nodes.
    """
    if not node.nature.is_machine:
        return "", ""
    # The first label that exists counts, even if it is empty.
    for key in POOL_LABELS:
        if key in node.labels:
            return node.labels[key], key
    annotations = node.annotations
    for key in POOL_ANNOTATIONS:
        if annotations.get(key):
            return annotations[key], key
    # Cluster API's Machine controller writes these annotations on the Node (machine_controller_noderef.go).
    if annotations.get(CAPI_OWNER_KIND) == "MachineSet" and annotations.get(CAPI_OWNER):
        return annotations[CAPI_OWNER], CAPI_OWNER
    machine_set = machine_set_of(annotations.get(OPENSHIFT_MACHINE, ""))
    return (machine_set, OPENSHIFT_MACHINE) if machine_set else ("", "")


def machine_set_of(machine: str) -> str:
    """Returns the MachineSet of a Machine (namespace/name), or an empty string if the Machine's name shows that it was
    not created by a MachineSet."""
    match = _GENERATED.fullmatch(machine.rpartition("/")[2])
    return match[1] if match else ""


def schedulers_of(
    pools: Iterable[Pool], base: Mapping[str, SchedulerPlacement] = KNOWN_SCHEDULERS
) -> dict[str, SchedulerPlacement]:
    """Returns `base`, in which the settings of the pools replace the entries for the same scheduler. A scheduler for
    which two pools have different settings is UNKNOWN."""
    placements: dict[str, SchedulerPlacement] = {}
    for pool in pools:
        for name, placement in pool.schedulers.items():
            same = placements.setdefault(name, placement) is placement
            # Pods of all pools are placed together, so a scheduler cannot have two meanings in one plan.
            placements[name] = placement if same else SchedulerPlacement.UNKNOWN
    return {**base, **placements}


PRESETS: Mapping[str, Pool] = {
    "careful": Pool(
        name="careful",
        under={"cpu": 50, "memory": 50},
        under_for=1800,
        node_age=3600,
        quiet=1800,
        headroom=Headroom(percent=15, largest_pod=True),
        spare=Spare.NODE,
        evictions_per_hour=60,
        least_gain=10,
        min_pod_age=300,
    ),
    "balanced": Pool(name="balanced", under={"cpu": 80, "memory": 80}, headroom=Headroom(percent=5, largest_pod=True)),
    "keen": Pool(
        name="keen", under_for=300, node_age=600, quiet=300, drains=4, evictions_per_hour=1000, single_replicas=True
    ),
}


def pool_from_preset(name: str, pool: str) -> Pool:
    """Returns a pool named `pool` with the settings of the preset `name`."""
    return replace(PRESETS[name], name=pool)


PAUSED_MARK = "trimtab.dev/paused"
"""A label or annotation of a namespace. Any value but `false` pauses Trimtab."""


def pause_reason(metadata: Metadata) -> str:
    """Returns a sentence that says which label or annotation of the namespace pauses Trimtab, or an empty string if
    none does."""
    # Both are read: in an emergency, a person may use `kubectl label` or `kubectl annotate`.
    for marks in (value_or(metadata.labels, {}), value_or(metadata.annotations, {})):
        if PAUSED_MARK in marks and marks[PAUSED_MARK].lower() != "false":
            return f"namespace {metadata.name} has the annotation {PAUSED_MARK}: {marks[PAUSED_MARK]}"
    return ""


def pause_reason_in(namespaces: Iterable[Namespace], name: str) -> str:
    """Returns a sentence that says which label or annotation of this namespace pauses Trimtab, or an empty string if
    none does, or if the namespace is missing."""
    return next((pause_reason(namespace.metadata) for namespace in namespaces if namespace.metadata.name == name), "")
