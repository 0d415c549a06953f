"""A node pool: which nodes belong to it, and the settings that limit its compaction.

A setting is declared once, at its field: `pool_config` reads the pool's ConfigMap by these declarations, and the JSON
Schema and the reference page follow from them, in this order. Absent settings get the values of the preset that the
ConfigMap names, or of `balanced` if it names none. The label or annotation `trimtab.dev/paused` on Trimtab's own
namespace stops all changes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, get_args

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster import pool_values as v
from trimtab.cluster.documents.declared_fields import DocumentField, KeyRule, iterate_fields
from trimtab.cluster.documents.value_types import (
    DURATION,
    FLAG,
    LABELS,
    NAMES,
    PERCENT,
    one_of,
    whole_number,
    word_of,
)
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool_labels import POOL_ANNOTATIONS, POOL_LABELS
from trimtab.cluster.pool_values import GroupMode, ReplaceAcross, ReplaceMode
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


MAX_SURGE = 3
"""The largest number of pods that a Deployment may have for a while in addition to those that it wants."""


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


ALL_NODES = DocumentField(
    "nodes",
    v.ALL,
    default="the platform's [pool label](nodes.md#labels-that-name-pools), or without one the MachineSet in the "
    "annotations of OpenShift or Cluster API, says NAME",
)
NODE_LABELS = DocumentField("nodes.labels", LABELS)
MODE = DocumentField("mode", v.MODE)
DRY_RUN = DocumentField("dryRun", FLAG, instead_of=MODE.key)
"""Says the same as `mode`."""
PLACEMENTS = DocumentField("schedulers", v.SCHEDULERS)
_RESOURCES = KeyRule(
    names=("cpu", "memory", "pods", "ephemeral-storage"),
    # Extended resources have a domain in their name (Kubernetes' rule), so any name with a slash may be one.
    mark="/",
    placeholder="<extended resource>",
    expected="a resource such as cpu or memory, or `count` or `for`",
    expected_section="a mapping of resources to percentages",
)


@dataclass(frozen=True, slots=True, eq=False)
class NodeLimit:
    """Marks a setting for which nodes stay that the plan would drain without it."""

    reason: str
    """The name of the code with which these nodes stay."""
    without: Any
    """The value of the setting that keeps no node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Capacity that is kept free on purpose, on the pool's nodes that are not drained."""

    percent: Annotated[int, DocumentField("keep.headroom.percent", PERCENT)] = 0
    """of cpu and of memory, on the nodes that stay; an empty node stays too where it is the room, and pods of another
    pool come only where it is left"""
    nodes: Annotated[int, DocumentField("keep.headroom.nodes", whole_number())] = 0
    """the room of so many average nodes"""
    largest_pod: Annotated[bool, DocumentField("keep.headroom.largestPod", FLAG)] = False
    """The pool keeps room on one node for one more pod as large as the largest pod that may move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The settings of one node pool.

    The docstrings are the rows of the reference page. Durations are in seconds, prices in micro-dollars an hour, and
    flags under `protect` have the opposite value here: the field says what is permitted.
    """

    name: str
    everything: Annotated[bool, ALL_NODES] = False
    """`{labels: {…}}`: nodes with all of these labels; `all`: every node"""
    labels: Annotated[Mapping[str, str], NODE_LABELS] = field(default_factory=dict)
    under: Annotated[
        Mapping[str, int],
        DocumentField("underUsed.*", PERCENT, keys=_RESOURCES),
        NodeLimit("node-not-under-used", without={}),
    ] = field(default_factory=dict)
    """percent of allocatable that is requested (DaemonSets included) up to which a node is a candidate; all that are
    named must hold. `keen` names none: the plan alone decides"""
    under_count: Annotated[int, DocumentField("underUsed.count", whole_number(1))] = 1
    """how many nodes must be candidates before the pool is planned"""
    under_for: Annotated[int, DocumentField("underUsed.for", DURATION)] = 600
    """how long a node must have been below these thresholds"""
    goal: Annotated[Goal, DocumentField("goal", one_of(Goal))] = Goal.COST
    """`cost`: money where every node has a price, else cores. `nodes`: as few as possible"""
    autoscaler: Annotated[Precedence, DocumentField("autoscaler", one_of(Precedence))] = Precedence.FOLLOW
    """who drains a node that the cluster autoscaler would remove by itself. `follow`: the autoscaler; the plan counts
    what it leaves to it, and takes what was left for longer than its unneeded time and delays. `lead`: Trimtab, in its
    own order, also under the autoscaler's threshold; a node with the autoscaler's `DeletionCandidate` taint is neither
    drained nor given pods"""
    dry_run: Annotated[bool, DRY_RUN, MODE] = True
    """`rehearse`: plans are recorded, nothing is done. `act`: nodes are drained. (`dryRun: true`, `false` say the
    same)"""
    enabled: Annotated[bool, DocumentField("enabled", FLAG)] = True
    """`false`: the pool is left alone"""
    quiet: Annotated[int, DocumentField("quiet", DURATION)] = 600
    """how long the pool waits after a new node"""
    pending_limit: Annotated[int, DocumentField("pendingLimit", DURATION)] = 3600
    """while a pod waits for a node and a node of the pool could hold it, nothing is planned in the pool
    (`pods-waiting`); one that has waited for longer stops it no more, nor does one that fits on no node, not even an
    empty one. The plan's notes name both"""
    prices: Annotated[Mapping[str, int], DocumentField("prices", v.PRICES)] = field(default_factory=dict)
    """instance type: dollars an hour; before the built-in list prices, which are of one region of each cloud, and a
    guess in its others. A node's label `trimtab.dev/price` (micro-dollars) comes first"""
    commitments: Annotated[
        Mapping[str, int],
        DocumentField("commitments", v.COMMITMENTS),
        NodeLimit("node-covered-by-commitment", without={}),
    ] = field(default_factory=dict)
    """instance type: nodes of it that are paid for whether they run or not (reserved instances, committed use). That
    many of the pool's nodes of the type stay (`node-covered-by-commitment`), those that stay anyway counted first; not
    with `goal: nodes`"""
    windows: Annotated[tuple[WeeklyWindow, ...], DocumentField("windows", v.WINDOWS, default="always")] = ()
    """`{days, from, to, timeZone}`; over midnight where `to` is not after `from`; times in quotes"""
    schedulers: Annotated[Mapping[str, SchedulerPlacement], PLACEMENTS] = field(default_factory=dict)
    """`spec.schedulerName`: `spread`, `pack` or `unknown`. Say `spread` or `pack` of a second scheduler that is a stock
    kube-scheduler; pods of an `unknown` one keep their node. Built in: `default-scheduler`, GKE's
    `gke.io/optimize-utilization-scheduler`, Gardener's `bin-packing-scheduler`; the command also reads the
    KubeSchedulerConfigurations in a snapshot"""
    node_age: Annotated[int, DocumentField("age.node", DURATION)] = 1200
    """how old a node must be before it is drained"""
    receiver_age: Annotated[int, DocumentField("age.receiver", DURATION)] = 60
    """how old a node must be before pods are planned onto it"""
    min_pod_age: Annotated[int, DocumentField("age.pod", DURATION)] = 0
    """how old a pod must be before it is moved"""
    min_nodes: Annotated[int, DocumentField("keep.nodes", whole_number()), NodeLimit("pool-at-minimum", without=0)] = 1
    """the pool, or a zone of it, never has fewer nodes that take pods: one that is cordoned, not ready, being deleted
    or unreadable does not count. The autoscaler's own minimum is kept as well: of each node group if the nodes name
    their group (address, label or annotation), and of the pool's groups together"""
    min_per_zone: Annotated[
        int,
        DocumentField("keep.nodesPerZone", whole_number(), shares_row=True),
        NodeLimit("pool-at-minimum", without=0),
    ] = 0
    spare: Annotated[Spare, DocumentField("keep.spare", one_of(Spare)), NodeLimit("headroom", without=Spare.NONE)] = (
        Spare.NONE
    )
    """`node`, `zone`: room for the pods of the largest node, or of any zone, if it fails"""
    headroom: Annotated[Headroom, NodeLimit("headroom", without=Headroom())] = Headroom()
    keeps_forecast: Annotated[bool, DocumentField("keep.forecast", FLAG)] = True
    """room is kept for what the pool's pods will request within `keep.payback`, by the compactor's own history of the
    pool (`needed-again`). It is counted once, not in addition to the headroom. Without half an hour of history, nothing
    is kept for it"""
    payback: Annotated[int, DocumentField("keep.payback", DURATION)] = 3600
    """for how long a removed node must not be needed again, so that its removal pays. Longer: fewer nodes are bought
    again, and more stay"""
    drains: Annotated[int, DocumentField("pace.drains", whole_number(1))] = 1
    """how many nodes are drained at the same time"""
    evictions_per_hour: Annotated[int, DocumentField("pace.evictionsPerHour", whole_number(1))] = 200
    """the most evictions in an hour, with those that drains in progress still need; a node with more pods goes alone"""
    openings_per_hour: Annotated[int, DocumentField("pace.openingsPerHour", whole_number())] = 20
    """how many drained nodes are uncordoned in an hour for pods that fit nowhere else; 0: none, they stay cordoned"""
    least_gain: Annotated[
        int, DocumentField("pace.leastGain", whole_number()), NodeLimit("not-worth-it", without=0)
    ] = 0
    """thousandths of an average node's price that one eviction must save"""
    replace: Annotated[ReplaceMode, DocumentField("replace", v.REPLACE)] = ReplaceMode.ADVISE
    """`advise`: `trimtab plan` also names up to four nodes whose pods fit on one cheaper new node of a node group that
    exists ([how](../how-to/replace-by-cheaper-machines.md)). No process acts on it. `off`: it does not"""
    replace_across: Annotated[frozenset[ReplaceAcross], DocumentField("replaceAcross", v.REPLACE_ACROSS)] = frozenset()
    """what a cheaper new node may have otherwise than the nodes that it replaces: `zones`, `capacityTypes` (spot or on
    demand), `architectures` (of pods that name both, or whose owner has pods on both). Without it, all three stay. For
    a new node that differs in one of them, `underUsed` does not count"""
    surge: Annotated[int, DocumentField("surge.extraPods", whole_number(0, MAX_SURGE))] = 0
    """where a disruption budget allows no eviction, so many pods more than it wants a Deployment may have for a while,
    so that the budget allows one ([how](../how-to/move-pods.md#one-pod-more-first)). The compactor does so only in the
    namespaces in which it may scale; 0: such pods stay"""
    max_term_cost: Annotated[int, DocumentField("podTerms.maxCost", whole_number())] = 20
    """as how many further evictions the pods of a node together may count in the order of drains, by their own
    annotations ([how](../how-to/terms-of-pods.md)); 0: their costs do not count"""
    max_term_delay: Annotated[int, DocumentField("podTerms.maxDelay", DURATION)] = 604_800
    """how long the windows and daily numbers that pods state may keep a node; they then do not count for as long. 0:
    they never count"""
    groups: Annotated[GroupMode, DocumentField("groups", one_of(GroupMode))] = GroupMode.STAY
    """pods that live and die together, on several nodes of the pool. `move`: one eviction of each at the same time
    ([how](../how-to/move-pods.md#a-whole-group))"""
    group_labels: Annotated[tuple[str, ...], DocumentField("groupLabels", NAMES)] = ()
    """further labels of pods that live and die together: pods of a namespace with an equal value of one of them, if one
    of these pods runs on a node of the pool ([how](../how-to/move-pods.md#pods-that-trimtab-does-not-recognise))"""
    resize_canary: Annotated[int, DocumentField("resize.canary", whole_number(1))] = 10
    """of a workload's running pods, percent that policies with `running: resize` resize first, at least one; each
    verified wave doubles it ([how](../how-to/size-requests.md#resize-running-pods))"""
    resize_verify: Annotated[int, DocumentField("resize.verify", DURATION)] = 600
    """how long a resized pod is watched before what it gave up counts as free"""
    resizes_per_hour: Annotated[int, DocumentField("resize.perHour", whole_number())] = 60
    """pods that are resized in an hour at most; reverts do not count; 0: none"""
    lead_max_threshold: Annotated[int, DocumentField("lead.maxThreshold", PERCENT)] = 50
    """percent: while the autoscaler's `--scale-down-utilization-threshold` is above it, a pool that leads and acts
    begins nothing (`autoscaler-threshold-too-high`); it still plans while it rehearses"""
    group_options: Annotated[
        Mapping[str, str],
        DocumentField("groupOptions.scaleDownUtilizationThreshold", v.GROUP_SHARE, entry=f.THRESHOLD.name),
        DocumentField("groupOptions.scaleDownGpuUtilizationThreshold", v.GROUP_SHARE, entry=f.GPU_THRESHOLD.name),
        DocumentField("groupOptions.scaleDownUnneededTime", v.GROUP_DURATION, entry=f.UNNEEDED_TIME.name),
        DocumentField("groupOptions.scaleDownUnreadyTime", v.GROUP_DURATION, entry=f.UNREADY_TIME.name),
        DocumentField("groupOptions.ignoreDaemonSetsUtilization", v.GROUP_FLAG, entry=f.IGNORE_DAEMON_SETS.name),
    ] = field(default_factory=dict)
    """the cluster autoscaler's options for the pool's own node group, where the group differs from the autoscaler's
    flags: `scaleDownUtilizationThreshold` and `scaleDownGpuUtilizationThreshold` (percent), `scaleDownUnneededTime`,
    `scaleDownUnreadyTime`, `ignoreDaemonSetsUtilization`. They stand at the cloud's group (a tag or an annotation),
    where Trimtab cannot read them"""
    keep_nodes: Annotated[tuple[str, ...], DocumentField("optOut.nodes", NAMES)] = ()
    """further annotations that mean "leave it" when `"true"` (a value other than `true` and `false` is not understood
    and also keeps it); `trimtab.dev/do-not-disrupt`, the autoscaler's, Karpenter's and the descheduler's count
    anyway"""
    keep_pods: Annotated[tuple[str, ...], DocumentField("optOut.pods", NAMES, shares_row=True)] = ()
    single_replicas: Annotated[bool, DocumentField("protect.singleReplicas", v.NEGATED_FLAG)] = False
    """the only replica of a workload stays"""
    jobs: Annotated[bool, DocumentField("protect.jobs", v.NEGATED_FLAG)] = False
    """running Jobs stay"""
    not_ready: Annotated[bool, DocumentField("protect.notReady", v.NEGATED_FLAG)] = True
    """pods that are not ready stay even where their budget lets them go"""
    unready: Annotated[ProtectUnready, DocumentField("protect.unready", one_of(ProtectUnready))] = ProtectUnready.BUDGET
    """what keeps the pods of a workload that lacks ready replicas. `budget`: its budget decides; without one, a single
    replica of three or more that was created over ten minutes ago and is not ready keeps nothing. `workload`: any
    replica that is not ready keeps them all"""
    critical_pods: Annotated[ProtectCritical, DocumentField("protect.criticalPods", one_of(ProtectCritical))] = (
        ProtectCritical.WITHOUT_BUDGET
    )
    """`system-cluster-critical` pods. `always`: they stay. `without-budget`: those with a budget that allows one, an
    owner and a second ready replica move, one such workload at a time in the whole cluster. `unless-safe-to-evict`:
    also those without a budget that say `cluster-autoscaler.kubernetes.io/safe-to-evict: "true"`.
    `system-node-critical`, static and ownerless pods and the last ready replica of Trimtab's own webhook never move"""
    max_grace: Annotated[int, DocumentField("protect.maxGrace", DURATION, default="no limit")] = 0
    """a duration such as `30m`: a pod with a longer `terminationGracePeriodSeconds` keeps its node
    (`grace-period-too-long`), because a drain lasts as long as its slowest pod. Pods of DaemonSets do not count"""
    scale_namespaces: frozenset[str] | None = None
    """Namespaces in which the compactor may temporarily add a replica to a workload. None means that they are unknown,
    as in an offline plan; then all namespaces count.

    This is not a setting of the pool: it follows from the permissions of the compactor's service account."""

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


def values_without_limits() -> dict[str, dict[str, Any]]:
    """Returns reason → field of `Pool` → the value of that field that keeps no node, for the settings that are marked
    as a `NodeLimit`."""
    values: dict[str, dict[str, Any]] = {}
    for attribute in fields(Pool):
        for limit in get_args(attribute.type):
            if isinstance(limit, NodeLimit):
                values.setdefault(limit.reason, {})[attribute.name] = limit.without
    return values


def keys_of_limit(reason: str) -> str:
    """Returns the keys of the settings for which nodes stay with this reason, as words: "keep.nodes or
    keep.nodesPerZone", sorted. Settings of one section that limit together are named by the section."""
    keys = []
    for name, value in values_without_limits()[reason].items():
        path = next(one.document.path for one in iterate_fields(Pool) if one.target[0] == name)
        is_section = is_dataclass(value) or path.endswith(".*")
        keys.append(path.rpartition(".")[0] if is_section else path)
    return " or ".join(sorted(keys))


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

    def labels_of_groups(self, nodes: Iterable[NodeInfo]) -> dict[str, set[str]]:
        """Returns node → the labels by which its pools make groups of pods."""
        return {node.name: {label for pool in self.pools_of(node) for label in pool.group_labels} for node in nodes}


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
        replace=ReplaceMode.OFF,
        min_pod_age=300,
    ),
    "balanced": Pool(name="balanced", under={"cpu": 80, "memory": 80}, headroom=Headroom(percent=5, largest_pod=True)),
    "keen": Pool(
        name="keen", under_for=300, node_age=600, quiet=300, drains=4, evictions_per_hour=1000, single_replicas=True
    ),
}


PRESET = DocumentField(
    "preset",
    word_of({name: name for name in PRESETS}),
    default="`balanced`",
    words="`careful`: half-empty nodes only, an hour old, 15 % headroom, room for a node that fails. `balanced`. "
    "`keen`: no threshold, four drains at a time, single replicas may move",
)


def pool_from_preset(name: str, pool: str) -> Pool:
    """Returns a pool named `pool` with the settings of the preset `name`."""
    return replace(PRESETS[name], name=pool)
