"""Why a node or a pod stays: one code per rule."""

from trimtab.cluster.reason import Code

# ── pods ─────────────────────────────────────────────────────────────────
NO_OWNER = Code(
    "pod-without-owner",
    "No controller would recreate the pod.",
    'Run it from a Deployment, or set the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: "true".',
)
STRANGE_OWNER = Code(
    "pod-of-unknown-owner",
    "Its owner is of a kind whose behavior Trimtab does not know.",
    'Set safe-to-evict: "true" on its pods if the owner recreates them.',
)
OWNER_GONE = Code(
    "owner-missing",
    "The owner of the pod does not exist: nothing would recreate the pod.",
    "Delete the pod when it is not needed.",
)
OWNER_SHORT = Code(
    "owner-not-whole",
    "Its workload has fewer ready pods than it wants, and no PodDisruptionBudget allows that: a rollout or a failure "
    "is in progress.",
    "Wait until all pods are ready, or create a budget. In a workload of three or more, one pod that has not been "
    "ready for ten minutes keeps no node.",
)
SINGLE = Code(
    "single-replica",
    "It is the only replica of its workload.",
    "Run two, or allow it with protect.singleReplicas: false.",
)
NO_RIGHT_TO_SCALE = Code(
    "single-replica-without-right",
    "It is the only replica of its workload, and the compactor may not scale that workload to two.",
    "Run two, or grant the permission: `trimtab install --scale-namespace NAMESPACE`.",
)
JOB = Code(
    "job-running", "Its Job would start from the beginning.", "Wait for the Job, or allow it with protect.jobs: false."
)
UNSAFE = Code(
    "not-safe-to-evict",
    "An annotation of the pod says that it must not be evicted.",
    "Remove the annotation if it is no longer intended.",
)
LOCAL_DATA = Code(
    "local-data",
    "It stores data on the node that would be lost.",
    "List the volume in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes if its data may be lost.",
)
LOCAL_VOLUME = Code(
    "local-volume", "Its persistent volume is local to this node.", "Only its own operator can move such a pod."
)
GROUP = Code(
    "pod-group-spans-nodes",
    "It belongs to a group of pods that run all or none, and the group is on several nodes: the eviction of one pod "
    "would stop them all.",
    "Wait until the group ends; a group on one node moves as a whole.",
)
TWO_BUDGETS = Code(
    "two-budgets",
    "More than one PodDisruptionBudget selects it; the eviction API then returns 500.",
    "Make the selectors of the budgets distinct.",
)
BUDGET_NEVER = Code(
    "budget-never-allows",
    "Its budget allows no disruption even when all pods are healthy.",
    "Raise maxUnavailable, or run one replica more than minAvailable.",
)
BUDGET_SPENT = Code("budget-spent", "Its budget allows no disruption now.", "Wait until the missing pods are ready.")
BUDGET_STALE = Code(
    "budget-stale", "The budget's status is older than the budget.", "Wait for the disruption controller."
)
BUDGET_BROKEN = Code("budget-broken", "The budget's selector is not valid.", "Correct the selector.")
CRITICAL = Code(
    "system-critical", "Its priority says that the system depends on it, and no budget allows one of its pods to be "
    "missing.",
    "Run two replicas and a budget that allows one, or see protect.criticalPods; system-node-critical always stays.",
)  # fmt: skip
OUR_WEBHOOK = Code(
    "last-webhook-replica", "It is the last ready replica of Trimtab's own webhook: without it pods are not admitted.",
    "Run two; it can move when the other is ready.",
)  # fmt: skip
SYSTEM_YOUNG = Code(
    "system-pod-without-budget",
    "It is a kube-system pod without a budget, younger than an hour.",
    "Create a budget for it, or wait.",
)
YOUNG_POD = Code("pod-too-young", "It has not run long enough.", "Wait.")
NOT_READY_POD = Code(
    "pod-not-ready",
    "It is not ready, and its budget has too few healthy pods.",
    "Repair the pod, or set unhealthyPodEvictionPolicy: AlwaysAllow.",
)
MOVED_BEFORE = Code("moved-before", "It was moved recently.", "Wait.")
UNSETTLED = Code(
    "workload-unsettled", "A pod of its workload was moved recently and is not ready yet.", "Wait until it is ready."
)
GOING = Code("pod-terminating", "It is being deleted already; the node is not empty until it is gone.", "Wait.")

# ── nodes ────────────────────────────────────────────────────────────────
NO_POOL = Code("node-in-no-pool", "No pool contains this node.", "Create a pool for it if it should be compacted.")
SHARED_POOLS = Code(
    "node-in-two-pools", "More than one pool contains this node.", "Make the selectors of the pools distinct."
)
POOL_OFF = Code("pool-disabled", "Its pool is disabled.", "Set enabled: true.")
UNREADABLE = Code("node-unreadable", "Something about the node cannot be read.", "Read the message.")
MISREAD = Code(
    "annotation-not-understood",
    "An annotation that may keep the pod or node has a value that Trimtab does not understand.",
    "Use true, false, or (for karpenter.sh/do-not-disrupt) a duration such as 4h.",
)
KEPT = Code(
    "node-kept", "An annotation says that the node stays.", "Remove the annotation if it is no longer intended."
)
KARPENTER = Code(
    "karpenter-node", "It belongs to Karpenter, which compacts its nodes itself.", "Use Karpenter's own consolidation."
)
FOREIGN_CORDON = Code(
    "cordoned-by-another", "Another client cordoned it.", "Uncordon it, or wait until that client is done."
)
DOUBTFUL_CORDON = Code(
    "annotation-not-authentic",
    "Its annotation trimtab.dev/cordoned-for was not signed by this compactor for this node.",
    "See `trimtab doctor`; `trimtab compactor release --yes NODE` removes the annotation and uncordons the node.",
)  # fmt: skip
GOING_NODE = Code("node-being-deleted", "Another client is deleting it.", "Nothing.")
NOT_READY = Code("node-not-ready", "It is not ready; what runs on it is not known.", "Repair or delete the node.")
MAINTAINED = Code(
    "node-in-maintenance", "A node condition says that another client drains or maintains it.",
    "Wait until that client is done; it then removes the condition.",
)  # fmt: skip
CONTROL_PLANE = Code("control-plane-node", "It runs the control plane.", "Nothing.")
YOUNG = Code("node-too-young", "It is younger than the pool requires before a drain.", "Wait.")
STARTING = Code("node-starting", "It has a startup taint: it is not initialized yet.", "Wait.")
BUSY = Code(
    "node-not-under-used",
    "More of it is requested than the pool's threshold allows.",
    "Raise or remove the pool's underUsed if the plan may drain the node.",
)
NOT_LONG = Code("not-under-used-long-enough", "It has not been under-used for long enough.", "Wait.")
FEW = Code(
    "too-few-under-used", "Fewer nodes are under-used than the pool requires.", "Wait, or lower underUsed.count."
)
BLOCKED = Code("pod-must-stay", "A pod on it may not move.", "See the reason of the pod.")
NO_PLACE = Code(
    "no-place",
    "Not all of its pods fit on other nodes together.",
    "Keep the node, or free capacity: lower requests, or use fewer constraints.",
)
AT_MINIMUM = Code(
    "pool-at-minimum",
    "The pool (or its zone) would be smaller than its minimum.",
    "Lower keep.nodes or keep.nodesPerZone, or the autoscaler's minimum of the group.",
)
LAST_OF_ZONE = Code(
    "last-node-of-zone",
    "It is the last node of its zone that receives pods, and volumes or spread constraints need the zone.",
    "Keep one node per zone (keep.nodesPerZone), or delete the volumes and workloads that need the zone.",
)
AS_A_WHOLE = Code(
    "node-group-scales-as-a-whole",
    "Its node group scales only as a whole (a slice of accelerators): a single empty node would stay forever.",
    "Nothing, or scale the whole group to zero.",
)
NO_HEADROOM = Code(
    "headroom",
    "The capacity that the pool keeps free would be used up.",
    "Lower the pool's keep.headroom or keep.spare.",
)
PAID = Code(
    "node-covered-by-commitment", "A commitment of its pool covers it: it is paid for whether it runs or not.",
    "Lower the pool's commitments when they end.",
)  # fmt: skip
NO_GAIN = Code("not-worth-it", "It saves too little for the pods that would move.", "Lower the pool's pace.leastGain.")
BACK_OFF = Code("drain-failed-before", "Its drain failed recently.", "Wait; the wait doubles with each failure.")
AUTOSCALERS = Code("autoscaler-removes-node", "The cluster autoscaler will remove it.", "Nothing.")
NOT_TRIED = Code(
    "node-not-evaluated", "The search for a plan reached its limit before it tried the node.",
    "Nothing: the next plan starts with the cluster as it is then.",
)  # fmt: skip
NOT_AIMED_AT = Code(
    "not-in-the-plan-under-way", "Pods of its pool are moving, and the plan in progress keeps the node.",
    "Nothing: the next plan is made when they have settled.",
)  # fmt: skip
WORTH_KEEPING = Code(
    "receives-pods", "It stays because the plan places pods on it, not because a rule keeps it.",
    "`trimtab plan --explain node NAME` says whether it could be drained instead of others.",
)  # fmt: skip
PROMISED = Code("capacity-reserved", "It keeps capacity for a pod that does not run yet.", "Wait until that pod runs.")
GOES = Code("node-removable", "All of its pods together fit on other nodes.", "Nothing.")

# ── pools ────────────────────────────────────────────────────────────────
EMPTY_POOL = Code("pool-matches-nothing", "No node belongs to the pool.", "Correct its labels.")
CLOSED_WINDOW = Code("outside-window", "The time is outside the pool's windows.", "Wait, or widen the windows.")
NOT_QUIET = Code("pool-not-quiet", "A node was added recently.", "Wait.")
PODS_WAIT = Code(
    "pods-waiting", "Pods that could use the pool wait for a node.", "Wait until they run, or lower pendingLimit."
)
NO_AUTOSCALER = Code(
    "autoscaler-silent",
    "The cluster autoscaler has not reported for two minutes, or its clock differs by more: a drained node might stay "
    "forever.",
    "Repair the autoscaler, or synchronize the clocks.",
)
AUTOSCALER_ILL = Code(
    "autoscaler-unhealthy", "The cluster autoscaler reports the cluster as unhealthy.", "See its status."
)
SCALING_UP = Code("scaling-up", "The cluster autoscaler is adding nodes.", "Wait.")
NO_SCALE_DOWN = Code(
    "scale-down-disabled",
    "The cluster autoscaler never removes nodes (scale-down-enabled=false).",
    "Enable scale-down, or disable the pool.",
)
THRESHOLD_TOO_HIGH = Code(
    "autoscaler-threshold-too-high",
    "The pool leads, but the cluster autoscaler would drain the same nodes in its own order: pods would move twice.",
    "Start the autoscaler with --scale-down-utilization-threshold=0.3 or less, or raise lead.maxThreshold.",
)
UNWELL = Code("too-many-nodes-not-ready", "Too many nodes are not ready.", "Repair them first.")

NODE_GONE = Code("node-not-found", "The node of the plan no longer exists.", "Nothing.")
NODE_CHANGED = Code("node-changed", "The node runs other pods than the plan was made for.", "Wait for the next plan.")
