"""Why does a node or a pod stay? One code per rule."""

from trimtab.cluster.reason import Code

# ── pods ─────────────────────────────────────────────────────────────────
NO_OWNER = Code(
    "pod-without-owner",
    "Nobody would make the pod again.",
    'Run it from a Deployment, or say cluster-autoscaler.kubernetes.io/safe-to-evict: "true".',
)
STRANGE_OWNER = Code(
    "pod-of-unknown-owner",
    "Its owner is of a kind whose behaviour is not known to us.",
    'Say safe-to-evict: "true" on its pods if they come back.',
)
OWNER_GONE = Code(
    "owner-missing",
    "The owner the pod names is not there: nobody would make it again.",
    "Delete the pod when it is not needed.",
)
OWNER_SHORT = Code(
    "owner-not-whole",
    "Its workload has fewer ready pods than it wants, and no budget that says how many may be missing: a rollout or a "
    "failure is under way.",
    "Wait until it is whole, or give it a budget. One of three or more that is not ready for ten minutes keeps none.",
)
SINGLE = Code(
    "single-replica",
    "It is the only replica of its workload.",
    "Run two, or allow it with protect.singleReplicas: false.",
)
NO_RIGHT_TO_SCALE = Code(
    "single-replica-without-right",
    "It is the only replica of its workload, and the compactor may not give that workload a second one.",
    "Run two, or grant it: `trimtab install --scale-namespace NAMESPACE`.",
)
JOB = Code(
    "job-running", "Its Job would start again from nothing.", "Wait for the Job, or allow it with protect.jobs: false."
)
UNSAFE = Code(
    "not-safe-to-evict",
    "An annotation of the pod says that it must not be evicted.",
    "Remove the annotation if it is no longer meant.",
)
LOCAL_DATA = Code(
    "local-data",
    "It keeps data on the node that would be lost.",
    "Name the volume in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes if it is scratch.",
)
LOCAL_VOLUME = Code(
    "local-volume", "Its persistent volume lives on this node only.", "Nothing moves such a pod but its own operator."
)
GROUP = Code(
    "pod-group-spans-nodes",
    "It belongs to a group of pods that run all or none, and the group is on several nodes: to move one pod of it "
    "would stop them all.",
    "Nothing moves it while the group runs; a group that is on one node moves as a whole.",
)
TWO_BUDGETS = Code(
    "two-budgets",
    "More than one PodDisruptionBudget selects it; the eviction API answers 500 then.",
    "Make the budgets' selectors distinct.",
)
BUDGET_NEVER = Code(
    "budget-never-allows",
    "Its budget allows no disruption even when all is well.",
    "Raise maxUnavailable, or run one replica more than minAvailable.",
)
BUDGET_SPENT = Code("budget-spent", "Its budget allows no disruption now.", "Wait until the missing pods are back.")
BUDGET_STALE = Code(
    "budget-stale", "The budget's status is older than the budget.", "Wait for the disruption controller."
)
BUDGET_BROKEN = Code("budget-broken", "The budget's selector cannot be understood.", "Mend the selector.")
CRITICAL = Code(
    "system-critical", "Its priority says that the system depends on it, and nothing says that one may be missing.",
    "Run two replicas and a budget that allows one, or see protect.criticalPods; system-node-critical stays always.",
)  # fmt: skip
OUR_WEBHOOK = Code(
    "last-webhook-replica", "It is the last ready replica of Trimtab's own webhook: without it pods are not admitted.",
    "Run two; it moves when the other is ready.",
)  # fmt: skip
SYSTEM_YOUNG = Code(
    "system-pod-without-budget", "A kube-system pod without budget, younger than an hour.", "Give it a budget, or wait."
)
YOUNG_POD = Code("pod-too-young", "It has not run long enough.", "Wait.")
NOT_READY_POD = Code(
    "pod-not-ready",
    "It is not ready, and its budget counts on what is.",
    "Mend the pod, or say unhealthyPodEvictionPolicy: AlwaysAllow.",
)
MOVED_BEFORE = Code("moved-before", "It was moved not long ago.", "Wait.")
UNSETTLED = Code(
    "workload-unsettled", "A pod of its workload was moved not long ago and is not ready yet.", "Wait until it is."
)
GOING = Code("pod-terminating", "It is on its way out already; the node is not empty before it is gone.", "Wait.")

# ── nodes ────────────────────────────────────────────────────────────────
NO_POOL = Code("node-in-no-pool", "No pool of ours has this node.", "Make a pool for it if it should be compacted.")
SHARED_POOLS = Code("node-in-two-pools", "More than one pool has this node.", "Make the pools' selectors distinct.")
POOL_OFF = Code("pool-disabled", "Its pool is switched off.", "Set enabled: true.")
UNREADABLE = Code("node-unreadable", "Something about the node cannot be understood.", "See the sentence.")
MISREAD = Code(
    "annotation-not-understood",
    "An annotation that may mean that the pod or node stays has a value that we do not understand.",
    "Write true, false, or (karpenter.sh/do-not-disrupt) a duration such as 4h.",
)
KEPT = Code("node-kept", "An annotation says that the node stays.", "Remove the annotation if it is no longer meant.")
KARPENTER = Code(
    "karpenter-node", "It belongs to Karpenter, which compacts its nodes itself.", "Use Karpenter's own consolidation."
)
FOREIGN_CORDON = Code("cordoned-by-another", "Somebody else cordoned it.", "Uncordon it, or let them finish.")
DOUBTFUL_CORDON = Code(
    "annotation-not-authentic",
    "Its annotation trimtab.dev/cordoned-for was not signed by this compactor for this node.",
    "See `trimtab doctor`; `trimtab compactor release NODE` takes the annotation off and opens the node.",
)  # fmt: skip
GOING_NODE = Code("node-being-deleted", "Its deletion has been decided by somebody else.", "Nothing.")
NOT_READY = Code("node-not-ready", "It is not ready; what runs there is not known.", "Mend or delete the node.")
MAINTAINED = Code(
    "node-in-maintenance", "A node condition says that another client drains or maintains it.",
    "Wait until that client is done; it takes the condition back.",
)  # fmt: skip
CONTROL_PLANE = Code("control-plane-node", "It runs the control plane.", "Nothing.")
YOUNG = Code("node-too-young", "It is younger than the pool wants before it is emptied.", "Wait.")
STARTING = Code("node-starting", "It carries a startup taint: it is not whole yet.", "Wait.")
BUSY = Code(
    "node-not-under-used",
    "It is used more than the pool's threshold.",
    "Raise or leave out the pool's underUsed if the plan may take it.",
)
NOT_LONG = Code("not-under-used-long-enough", "It has not been under-used for long enough.", "Wait.")
FEW = Code(
    "too-few-under-used", "Fewer nodes are under-used than the pool wants to see.", "Wait, or lower underUsed.count."
)
BLOCKED = Code("pod-must-stay", "A pod on it may not move.", "See the pod's own reason.")
NO_PLACE = Code(
    "no-place",
    "Not all of its pods find a place elsewhere, together.",
    "Keep it, or make room: lower requests, fewer constraints.",
)
AT_MINIMUM = Code(
    "pool-at-minimum",
    "The pool (or its zone) would be smaller than its minimum.",
    "Lower keep.nodes or keep.nodesPerZone, or the autoscaler's minimum of the group.",
)
LAST_OF_ZONE = Code(
    "last-node-of-zone",
    "It is the last node of its zone that takes pods, and volumes or spread constraints need the zone.",
    "Keep one node per zone (keep.nodesPerZone), or delete the volumes and workloads that need the zone.",
)
AS_A_WHOLE = Code(
    "node-group-scales-as-a-whole",
    "Its node group grows and shrinks only as a whole (a slice of accelerators): a single empty node stays for ever.",
    "Nothing, or scale the whole group to zero.",
)
NO_HEADROOM = Code(
    "headroom", "The room the pool keeps free would be used up.", "Lower the pool's keep.headroom or keep.spare."
)
PAID = Code(
    "node-covered-by-commitment", "A commitment of its pool covers it: it is paid for whether it runs or not.",
    "Lower the pool's commitments when they end.",
)  # fmt: skip
NO_GAIN = Code("not-worth-it", "It saves too little for the pods that would move.", "Lower the pool's pace.leastGain.")
BACK_OFF = Code("drain-failed-before", "Emptying it failed not long ago.", "Wait; the wait doubles with each failure.")
AUTOSCALERS = Code("autoscaler-removes-node", "The cluster autoscaler will remove it by itself.", "Nothing.")
NOT_TRIED = Code(
    "node-not-evaluated", "The plan's effort was spent before anybody asked whether the node can go.",
    "Nothing: the next plan begins with the cluster as it is then.",
)  # fmt: skip
NOT_AIMED_AT = Code(
    "not-in-the-plan-under-way", "Pods of its pool are on the move, and the plan they move by keeps the node.",
    "Nothing: the next plan is made when they have settled.",
)  # fmt: skip
WORTH_KEEPING = Code(
    "receives-pods", "It stays because the plan puts pods there, not because a rule keeps it.",
    "`trimtab plan --explain node NAME` says whether it could have gone instead of others.",
)  # fmt: skip
PROMISED = Code("capacity-reserved", "It keeps room for a pod that is not there yet.", "Wait until that pod runs.")
GOES = Code("node-removable", "All its pods have a place elsewhere, together.", "Nothing.")

# ── pools ────────────────────────────────────────────────────────────────
EMPTY_POOL = Code("pool-matches-nothing", "No node belongs to the pool.", "Mend its labels.")
CLOSED_WINDOW = Code("outside-window", "It is not the time the pool may act.", "Wait, or widen the windows.")
NOT_QUIET = Code("pool-not-quiet", "A node was added not long ago.", "Wait.")
PODS_WAIT = Code(
    "pods-waiting", "Pods that could use the pool wait for a node.", "Wait until they run, or lower pendingLimit."
)
NO_AUTOSCALER = Code(
    "autoscaler-silent",
    "The cluster autoscaler has not reported for two minutes, or by a clock that differs by more from ours: an emptied "
    "node might stay for ever.",
    "Mend the autoscaler, or the clocks.",
)
AUTOSCALER_ILL = Code("autoscaler-unhealthy", "The cluster autoscaler calls the cluster unhealthy.", "See its status.")
SCALING_UP = Code("scaling-up", "The cluster autoscaler is adding nodes.", "Wait.")
NO_SCALE_DOWN = Code(
    "scale-down-disabled",
    "The cluster autoscaler never removes nodes (scale-down-enabled=false).",
    "Enable it, or don't compact.",
)
THRESHOLD_TOO_HIGH = Code(
    "autoscaler-threshold-too-high",
    "The pool leads, but the cluster autoscaler would empty the same nodes in its own order: pods would move twice.",
    "Start the autoscaler with --scale-down-utilization-threshold=0.3 or less, or raise lead.maxThreshold.",
)
UNWELL = Code("too-many-nodes-not-ready", "Too many nodes are not ready.", "Mend them first.")
