"""The flags of the cluster autoscaler that decide which nodes it removes and when, as a table.

The table says for each flag what Trimtab does with it, and by which functions, or why Trimtab does not use it. The
reference page `docs/reference/autoscaler-flags.md` is generated from it. Source: cluster-autoscaler config/flags and
simulator/drainability (1.34 to 1.36).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.timestamps import parse_duration

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""What Go's strconv.ParseBool parses."""


class FlagKind(StrEnum):
    """The form of a flag's value, and how a sentence names it."""

    BOOLEAN = "true or false"
    DURATION = "a duration such as 10m"
    SHARE = "a number such as 0.5"
    NUMBER = "a whole number"
    PERCENT = "a number such as 45"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerFlag:
    """One flag of the cluster autoscaler."""

    name: str
    """The flag without its dashes."""
    kind: FlagKind = FlagKind.TEXT
    default: str = ""
    effect: str
    """A sentence: what Trimtab does with the flag, or why it does not use it."""
    readers: tuple[str, ...] = ()
    """The functions (module:qualified name) that follow the flag, first the one that reads it; empty if Trimtab does
    not use it."""

    def text_in(self, flags: Mapping[str, str]) -> str:
        """Returns the flag's value as text; the default if the flag is absent."""
        return flags.get(self.name, self.default)

    def is_true_in(self, flags: Mapping[str, str]) -> bool:
        """Returns the value of a boolean flag; the default if the value cannot be parsed."""
        text = self.text_in(flags)
        return text in _TRUE if text in _TRUE | _FALSE else self.default in _TRUE

    def seconds_in(self, flags: Mapping[str, str]) -> int:
        """Returns the value of a duration in seconds, which may be 0; the default if the value cannot be parsed."""
        seconds = parse_duration(self.text_in(flags))
        return (parse_duration(self.default) or 0) if seconds is None else seconds

    def number_in(self, flags: Mapping[str, str]) -> int:
        """Returns the value of a whole number, or of a number without its fraction; the default if the value cannot be
        parsed."""
        whole = self.text_in(flags).partition(".")[0]
        return int(whole if whole.isdecimal() else self.default)

    def is_valid(self, text: str) -> bool:
        """Returns whether the text is a value of this flag."""
        match self.kind:
            case FlagKind.BOOLEAN:
                return text in _TRUE | _FALSE
            case FlagKind.DURATION:
                return parse_duration(text) is not None
            case FlagKind.SHARE:
                return re.fullmatch(r"[01]?\.?\d*", text) is not None and any(one.isdigit() for one in text)
            case FlagKind.NUMBER:
                return re.fullmatch(r"-?\d+", text) is not None
            case FlagKind.PERCENT:
                return re.fullmatch(r"\d+(\.\d*)?", text) is not None
            case FlagKind.TEXT:
                return True


_B, _D, _S, _N = FlagKind.BOOLEAN, FlagKind.DURATION, FlagKind.SHARE, FlagKind.NUMBER
_RULES = "trimtab.cluster.autoscaler_evictions:read_eviction_rules"

ENABLED = AutoscalerFlag(
    name="scale-down-enabled",
    kind=_B,
    default="true",
    effect="With `false`, nothing is drained in the pools that this autoscaler looks after.",
    readers=("trimtab.cluster.cluster_autoscaler:parse_status", "trimtab.compaction.candidates:_member_reason"),
)
THRESHOLD = AutoscalerFlag(
    name="scale-down-utilization-threshold",
    kind=_S,
    default="0.5",
    effect="Nodes under it are left to the autoscaler, unless the pool has `autoscaler: lead`; it is compared with "
    "`lead.maxThreshold`.",
    readers=(
        "trimtab.cluster.cluster_autoscaler:parse_status",
        "trimtab.compaction.search.pool_limits:autoscaler_threshold",
    ),
)
GPU_THRESHOLD = AutoscalerFlag(
    name="scale-down-gpu-utilization-threshold",
    kind=_S,
    default="0.5",
    effect="The same for nodes with GPUs, on which only the GPUs count.",
    readers=(
        "trimtab.cluster.cluster_autoscaler:parse_status",
        "trimtab.compaction.search.pool_limits:autoscaler_threshold",
    ),
)
IGNORE_DAEMON_SETS = AutoscalerFlag(
    name="ignore-daemonsets-utilization",
    kind=_B,
    default="false",
    effect="With `true`, the pods of DaemonSets do not count when a node is compared with the threshold.",
    readers=(
        "trimtab.cluster.cluster_autoscaler:Autoscaler.ignores_daemon_sets",
        "trimtab.compaction.search.pool_limits:autoscaler_threshold",
    ),
)
IGNORE_MIRROR_PODS = AutoscalerFlag(
    name="ignore-mirror-pods-utilization",
    kind=_B,
    default="false",
    effect="With `true`, static pods do not count when a node is compared with the threshold.",
    readers=(
        "trimtab.cluster.cluster_autoscaler:Autoscaler.ignores_mirror_pods",
        "trimtab.compaction.search.pool_limits:autoscaler_threshold",
    ),
)
DYNAMIC_RESOURCES = AutoscalerFlag(
    name="enable-dynamic-resource-allocation",
    kind=_B,
    default="false",
    effect="With `true`, or if the flag is not known, a node with devices of dynamic resource allocation is compared "
    "with the threshold by its devices.",
    readers=("trimtab.compaction.search.pool_limits:counts_devices",),
)
SKIP_LOCAL_STORAGE = AutoscalerFlag(
    name="skip-nodes-with-local-storage",
    kind=_B,
    default="true",
    effect="With `false`, a pod with an emptyDir or a hostPath may move, and its node may be left to the autoscaler. "
    "A local PersistentVolume still keeps the node.",
    readers=(_RULES,),
)
SKIP_SYSTEM_PODS = AutoscalerFlag(
    name="skip-nodes-with-system-pods",
    kind=_B,
    default="true",
    effect="With `false`, a young pod in kube-system without a PodDisruptionBudget may move.",
    readers=(_RULES,),
)
SYSTEM_POD_TIMEOUT = AutoscalerFlag(
    name="blocking-system-pod-distruption-timeout",
    kind=_D,
    default="1h",
    effect="The age at which a pod in kube-system without a PodDisruptionBudget may move.",
    readers=(_RULES,),
)
SKIP_CUSTOM_CONTROLLERS = AutoscalerFlag(
    name="skip-nodes-with-custom-controller-pods",
    kind=_B,
    default="true",
    effect="With `false`, a pod whose owner is of a kind that Trimtab does not know may move.",
    readers=(_RULES,),
)
MIN_REPLICAS = AutoscalerFlag(
    name="min-replica-count",
    kind=_N,
    default="0",
    effect="A node with a pod of a ReplicaSet or ReplicationController that has fewer replicas is not left to the "
    "autoscaler, which would not remove it. Like the autoscaler, Trimtab ignores the flag where "
    "`--skip-nodes-with-custom-controller-pods` is `false`.",
    readers=(_RULES,),
)
MAX_GRACEFUL = AutoscalerFlag(
    name="max-graceful-termination-sec",
    kind=_N,
    default="600",
    effect="A plan names the nodes that are left to the autoscaler and have a pod with a longer grace period. In its "
    "own drains, Trimtab gives every pod its whole grace period; `protect.maxGrace` of the pool limits it.",
    readers=("trimtab.compaction.long_graces:note_cut_graces",),
)
DRAIN_PRIORITIES = AutoscalerFlag(
    name="drain-priority-config",
    effect="The grace periods by the priority of pods, which replace `--max-graceful-termination-sec`: the same.",
    readers=("trimtab.compaction.long_graces:note_cut_graces",),
)
UNNEEDED_TIME = AutoscalerFlag(
    name="scale-down-unneeded-time",
    kind=_D,
    default="10m",
    effect="How long an empty node waits before it counts as not removed.",
    readers=("trimtab.compaction.drain.timeouts:unneeded_time",),
)
UNREADY_TIME = AutoscalerFlag(
    name="scale-down-unready-time",
    kind=_D,
    default="20m",
    effect="The same for a node that is not ready.",
    readers=("trimtab.compaction.drain.timeouts:unneeded_time",),
)
UNREADY_ENABLED = AutoscalerFlag(
    name="scale-down-unready-enabled",
    kind=_B,
    default="true",
    effect="With `false`, it is named as the cause if an empty node that is not ready is not removed.",
    readers=("trimtab.compaction.drain.overdue:_autoscaler_cause",),
)
DELAY_AFTER_ADD = AutoscalerFlag(
    name="scale-down-delay-after-add",
    kind=_D,
    default="10m",
    effect="The longest of these delays is added to the time that an empty node waits. This one is also how long a "
    "pool waits after a scale-up.",
    readers=("trimtab.compaction.drain.timeouts:delay_after_add",),
)
DELAY_AFTER_DELETE = AutoscalerFlag(
    name="scale-down-delay-after-delete",
    kind=_D,
    default="0s",
    effect="The longest of these delays is added to the time that an empty node waits.",
    readers=("trimtab.compaction.drain.timeouts:longest_delay",),
)
DELAY_AFTER_FAILURE = AutoscalerFlag(
    name="scale-down-delay-after-failure",
    kind=_D,
    default="3m",
    effect="If it is set, it counts as one of these delays; the margin for the removal of an empty node covers the "
    "default.",
    readers=("trimtab.compaction.drain.timeouts:longest_delay",),
)
MAX_UNREADY_PERCENT = AutoscalerFlag(
    name="max-total-unready-percentage",
    kind=FlagKind.PERCENT,
    default="45",
    effect="If a larger share of the nodes is not ready, nothing is drained.",
    readers=("trimtab.compaction.candidates:_cluster_health_reason",),
)
OK_UNREADY_COUNT = AutoscalerFlag(
    name="ok-total-unready-count",
    kind=_N,
    default="3",
    effect="This number of nodes may be not ready, whatever their share is.",
    readers=("trimtab.compaction.candidates:_cluster_health_reason",),
)
STATUS_CONFIG_MAP = AutoscalerFlag(
    name="status-config-map-name",
    default="cluster-autoscaler-status",
    effect="The flags of a process belong to the status that they name.",
    readers=("trimtab.cluster.autoscaler_processes:key_of_process",),
)
NAMESPACE = AutoscalerFlag(
    name="namespace",
    default="kube-system",
    effect="The namespace of the status, and of the priorities of the expander.",
    readers=("trimtab.cluster.autoscaler_processes:key_of_process",),
)
NODES = AutoscalerFlag(
    name="nodes",
    effect="The minimum of each node group holds. The autoscaler's status is read first; this flag counts for groups "
    "that no status has.",
    readers=("trimtab.cluster.cluster_autoscaler:groups_from_flags",),
)
MAX_NODES_TOTAL = AutoscalerFlag(
    name="max-nodes-total",
    kind=_N,
    default="0",
    effect="With so many nodes in the cluster, no replacement is advised. 0 means any number.",
    readers=("trimtab.compaction.replace.node_templates:list_full_groups",),
)

OBEYED_FLAGS = (
    MAX_NODES_TOTAL,
    ENABLED,
    THRESHOLD,
    GPU_THRESHOLD,
    IGNORE_DAEMON_SETS,
    IGNORE_MIRROR_PODS,
    DYNAMIC_RESOURCES,
    SKIP_LOCAL_STORAGE,
    SKIP_SYSTEM_PODS,
    SYSTEM_POD_TIMEOUT,
    SKIP_CUSTOM_CONTROLLERS,
    MIN_REPLICAS,
    MAX_GRACEFUL,
    DRAIN_PRIORITIES,
    UNNEEDED_TIME,
    UNREADY_TIME,
    UNREADY_ENABLED,
    DELAY_AFTER_ADD,
    DELAY_AFTER_DELETE,
    DELAY_AFTER_FAILURE,
    MAX_UNREADY_PERCENT,
    OK_UNREADY_COUNT,
    STATUS_CONFIG_MAP,
    NAMESPACE,
    NODES,
)
_PACE = "The pool's `pace` limits Trimtab's own drains; the autoscaler's number only decides how fast it follows."
_SEARCH = "It limits how many nodes the autoscaler examines in one loop. An empty node is always examined."
_SOON = "It delays the removal of a node by seconds or minutes; the margin for the removal of an empty node covers it."
_EMPTYING = "It changes how the autoscaler empties a node; Trimtab cordons a node and evicts its pods itself."
_DAEMON_PODS_STAY = (
    "The pods of DaemonSets stay on a node that Trimtab drains; the autoscaler decides what becomes of them."
)
_CLUSTER_MINIMUM = (
    "At the minimum of the whole cluster, the autoscaler removes no node. Trimtab then finds that the drained node is "
    "not removed, and the pool backs off."
)
_UNREGISTERED = "It is about machines that never became nodes."
UNUSED_FLAGS = (
    AutoscalerFlag(
        name="scale-down-delay-type-local",
        kind=_B,
        default="false",
        effect="Trimtab waits as if the delays held for all node groups, which is the longer time.",
    ),
    AutoscalerFlag(name="max-scale-down-parallelism", kind=_N, default="10", effect=_PACE),
    AutoscalerFlag(name="max-drain-parallelism", kind=_N, default="1", effect=_PACE),
    AutoscalerFlag(name="max-empty-bulk-delete", kind=_N, default="10", effect=_PACE),
    AutoscalerFlag(name="scale-down-non-empty-candidates-count", kind=_N, default="30", effect=_SEARCH),
    AutoscalerFlag(name="scale-down-candidates-pool-ratio", kind=_S, default="0.1", effect=_SEARCH),
    AutoscalerFlag(name="scale-down-candidates-pool-min-count", kind=_N, default="50", effect=_SEARCH),
    AutoscalerFlag(name="scale-down-simulation-timeout", kind=_D, default="30s", effect=_SEARCH),
    AutoscalerFlag(
        name="unremovable-node-recheck-timeout",
        kind=_D,
        default="5m",
        effect="The autoscaler checks a node again only after this time; the margin for the removal of an empty "
        "node covers the default.",
    ),
    AutoscalerFlag(name="scan-interval", kind=_D, default="10s", effect=_SOON),
    AutoscalerFlag(name="node-deletion-delay-timeout", kind=_D, default="2m", effect=_SOON),
    AutoscalerFlag(name="node-deletion-batcher-interval", kind=_D, default="0s", effect=_SOON),
    AutoscalerFlag(name="node-delete-delay-after-taint", kind=_D, default="5s", effect=_SOON),
    AutoscalerFlag(name="dynamic-node-delete-delay-after-taint-enabled", kind=_B, default="false", effect=_SOON),
    AutoscalerFlag(name="node-deletion-candidate-ttl", kind=_D, default="0s", effect=_SOON),
    AutoscalerFlag(name="max-pod-eviction-time", kind=_D, default="2m", effect=_EMPTYING),
    AutoscalerFlag(name="cordon-node-before-terminating", kind=_B, default="true", effect=_EMPTYING),
    AutoscalerFlag(name="daemonset-eviction-for-empty-nodes", kind=_B, default="false", effect=_DAEMON_PODS_STAY),
    AutoscalerFlag(name="daemonset-eviction-for-occupied-nodes", kind=_B, default="true", effect=_DAEMON_PODS_STAY),
    AutoscalerFlag(
        name="max-bulk-soft-taint-count",
        kind=_N,
        default="10",
        effect="With 0, the autoscaler sets no taint on the nodes that it is about to remove. Trimtab then does not "
        "see them before they go.",
    ),
    AutoscalerFlag(
        name="max-bulk-soft-taint-time",
        kind=_D,
        default="3s",
        effect="It limits how long the autoscaler sets taints in one loop.",
    ),
    AutoscalerFlag(
        name="expendable-pods-priority-cutoff",
        kind=_N,
        default="-10",
        effect="Trimtab uses the default: a pod with a lower priority waits for no node. Where such a pod runs, it is "
        "moved like any other.",
    ),
    AutoscalerFlag(name="cores-total", effect=_CLUSTER_MINIMUM),
    AutoscalerFlag(name="memory-total", effect=_CLUSTER_MINIMUM),
    AutoscalerFlag(
        name="enforce-node-group-min-size",
        kind=_B,
        default="false",
        effect="It adds nodes and removes none. Trimtab never drains a group below its minimum.",
    ),
    AutoscalerFlag(
        name="write-status-configmap",
        kind=_B,
        default="true",
        effect="With `false`, there is no status, and no drain starts unless "
        "`TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS` is `false`.",
    ),
    AutoscalerFlag(name="force-delete-unregistered-nodes", kind=_B, default="false", effect=_UNREGISTERED),
    AutoscalerFlag(name="force-delete-failed-nodes", kind=_B, default="false", effect=_UNREGISTERED),
)
"""The flags of the cluster autoscaler about the removal of nodes that Trimtab does not use, each with the reason."""
FLAGS: Mapping[str, AutoscalerFlag] = {flag.name: flag for flag in (*OBEYED_FLAGS, *UNUSED_FLAGS)}
"""Name of a flag → the flag."""
