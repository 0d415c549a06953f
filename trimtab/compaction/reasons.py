"""Reasons why a node or a pod stays: one code per rule."""

from trimtab.cluster.pool import keys_of_limit
from trimtab.cluster.reason import Code

# ── pods ─────────────────────────────────────────────────────────────────
NO_OWNER = Code(
    "pod-without-owner",
    "No controller would recreate the pod on another node.",
    'Create it from a Deployment, or set cluster-autoscaler.kubernetes.io/safe-to-evict: "true" on it.',
)
STRANGE_OWNER = Code(
    "pod-of-unknown-owner",
    "The pod's owner is of a kind that is not known to recreate its pods.",
    'Set cluster-autoscaler.kubernetes.io/safe-to-evict: "true" on the pods if it does. If the cluster autoscaler '
    "runs with --skip-nodes-with-custom-controller-pods=false, give Trimtab this flag.",
)
OWNER_GONE = Code(
    "owner-missing",
    "The pod's owner was not read. Either the snapshot lacks it, or it does not exist, so that no controller would "
    "recreate the pod.",
    "Look for the owner, and take a snapshot of all namespaces if it exists. If it does not exist, delete nothing on "
    "that ground alone; no setting of the pool changes this.",
)
OWNER_SHORT = Code(
    "owner-not-whole",
    "The workload has fewer ready pods than replicas, and no PodDisruptionBudget allows that. A rollout or a failure "
    "is in progress.",
    "Wait until all pods are ready, or create a PodDisruptionBudget. In a workload of three or more pods, one pod "
    "that has not been ready for ten minutes does not block a drain, unless the pool has protect.unready: workload.",
)
SINGLE = Code(
    "single-replica",
    "The pod is the only replica of its workload.",
    "Run two replicas, or allow the move with protect.singleReplicas: false in the pool.",
)
NO_RIGHT_TO_SCALE = Code(
    "single-replica-without-right",
    "The pod is a single replica, and the compactor may not scale its workload to two.",
    "Run two replicas, or grant the permission: `trimtab install --scale-namespace NAMESPACE`.",
)
NO_QUOTA_FOR_SECOND_REPLICA = Code(
    "single-replica-without-quota",
    "A ResourceQuota rejects the second replica that this single one needs before it moves.",
    "Raise the quota by one pod of this size. No setting of the pool changes this.",
)
JOB = Code(
    "job-running",
    "The Job of the pod would start again from the beginning.",
    "Wait until the Job ends, or set protect.jobs: false in the pool.",
)
UNSAFE = Code(
    "not-safe-to-evict",
    "An annotation of the pod says that it must not be evicted.",
    "Remove the annotation that the message names if it is no longer intended. If the annotation is one of your "
    "own, you can also remove it from optOut.pods in the pool.",
)
LOCAL_DATA = Code(
    "local-data",
    "The pod has data on the node, in an emptyDir or a hostPath. The data would be lost, or its successor would not "
    "find it on another node.",
    "List volumes that may be lost in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes. The action "
    "`safeToEvictVolumes` of a PodPolicy does so for the pods that it matches. If the cluster autoscaler runs with "
    "--skip-nodes-with-local-storage=false, give Trimtab this flag.",
)
LOCAL_VOLUME = Code(
    "local-volume",
    "The pod's persistent volume exists only on this node.",
    "Ask the operator of the workload to move it. No setting of the pool changes this.",
)
GROUP = Code(
    "pod-group-spans-nodes",
    "The pods of the group run only together, on several nodes. The eviction of one pod would stop all of them. A "
    "group is known by its labels or annotations (LeaderWorkerSet, JobSet, Ray, Volcano, Kueue and others), or by a "
    "pod that owns the other pods.",
    "Wait for a group that ends by itself, as that of a Job. A serving group runs until it is deleted. A group whose "
    "pods are all on one node can be moved as a whole. No setting of the pool changes this.",
)
TWO_BUDGETS = Code(
    "two-budgets",
    "Several PodDisruptionBudgets select the pod, so the eviction API returns status 500.",
    "Let only one budget select the pod. No setting of the pool changes this.",
)
BUDGET_NEVER = Code(
    "budget-never-allows",
    "The PodDisruptionBudget allows no disruption even when all pods are healthy.",
    "Raise maxUnavailable, or run one replica more than minAvailable. If the message says so, surge.extraPods in the "
    "pool lets the compactor run one more for a while. A single replica does not need a budget: without one, and with "
    "protect.singleReplicas: false in the pool, the compactor starts a second replica before it evicts.",
)
BUDGET_SPENT = Code(
    "budget-spent",
    "At present the pod's PodDisruptionBudget allows no disruption.",
    "Wait until all pods that the budget selects are ready. If a pod has not been ready for ten minutes, "
    "surge.extraPods in the pool lets the compactor run one more for a while.",
)
BUDGET_STALE = Code(
    "budget-stale",
    "The status of the PodDisruptionBudget is older than the budget.",
    "Wait until the disruption controller updates the status. No setting of the pool changes this.",
)
BUDGET_BROKEN = Code(
    "budget-broken",
    "The selector of the PodDisruptionBudget is invalid.",
    "Correct the selector of the PodDisruptionBudget. No setting of the pool changes this.",
)
CRITICAL = Code(
    "system-critical",
    "The pod is system-critical, and no PodDisruptionBudget allows one of its workload to be unavailable.",
    "Run two replicas with such a budget, or set protect.criticalPods in the pool. A pod with the priority "
    "system-node-critical is never moved.",
)
OUR_WEBHOOK = Code(
    "last-webhook-replica",
    "The pod is the last ready replica of Trimtab's webhook. Without this replica, pods would be admitted unchanged.",
    "Run two replicas; the pod may move once the other one is ready. No setting of the pool changes this.",
)
SYSTEM_YOUNG = Code(
    "system-pod-without-budget",
    "The pod of kube-system has no PodDisruptionBudget and is younger than an hour.",
    "Create a budget for it, or wait until it is an hour old. You can also set the annotation "
    'cluster-autoscaler.kubernetes.io/safe-to-evict: "true" on it. If the cluster autoscaler runs with '
    "--skip-nodes-with-system-pods=false, give Trimtab this flag.",
)
TOLERATES_CORDON = Code(
    "pod-tolerates-cordon",
    "The pod tolerates cordons, so its successor may come back to the node. It tolerates the taint "
    "node.kubernetes.io/unschedulable. The scheduler even prefers this node, because it is nearly empty, and the "
    "node would never become empty.",
    "Remove the toleration of node.kubernetes.io/unschedulable, or of every taint. Replace `operator: Exists` "
    "without a key by one toleration for each taint that the pod really has to tolerate. No setting of the pool "
    "changes this.",
)
YOUNG_POD = Code("pod-too-young", "The pod is younger than the pool requires.", "Wait, or lower age.pod in the pool.")
LONG_GRACE = Code(
    "grace-period-too-long",
    "The pod's grace period is longer than the pool allows. The drain of its node could take as long.",
    "Shorten terminationGracePeriodSeconds, or raise protect.maxGrace in the pool.",
)
NOT_READY_POD = Code(
    "pod-not-ready",
    "The pod is not ready, and its PodDisruptionBudget has too few healthy pods.",
    "Repair the pod, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget. A pod without a budget can be "
    "moved with protect.notReady: false.",
)
MOVED_BEFORE = Code(
    "moved-before",
    "The compactor moved the pod a short time ago.",
    "Wait, or lower TRIMTAB_COMPACTOR_MOVE_COOLDOWN_SECONDS (an hour by default).",
)
UNSETTLED = Code(
    "workload-unsettled",
    "A pod of the workload was moved, and its successor is not ready yet.",
    "Wait until the successor is ready. No setting of the pool changes this.",
)
GOING = Code(
    "pod-terminating",
    "The pod is being deleted, and the node must wait for that.",
    "Wait. No setting of the pool changes this.",
)

# ── nodes ────────────────────────────────────────────────────────────────
NO_POOL = Code(
    "node-in-no-pool",
    "No pool contains this node.",
    "Create a pool for the node, or extend the selector `nodes` of one.",
)
SHARED_POOLS = Code(
    "node-in-two-pools",
    "More than one pool contains this node.",
    "Change the selectors `nodes`, so that only one pool contains the node.",
)
POOL_OFF = Code("pool-disabled", "The pool of the node is disabled.", "Set `enabled: true` in the pool.")
UNREADABLE = Code(
    "node-unreadable",
    "Trimtab cannot read a field or an object that belongs to the node.",
    "Correct what the message names. No setting of the pool changes this.",
)
MISREAD = Code(
    "annotation-not-understood",
    "An annotation that may protect the pod or node has an unknown value.",
    "Write true, false or, for karpenter.sh/do-not-disrupt, a duration such as 4h. If the annotation is one of your "
    "own, see optOut.pods and optOut.nodes in the pool.",
)
KEPT = Code(
    "node-kept",
    "An annotation says that the node must not be drained.",
    "Remove the annotation that the message names if it is no longer intended. If the annotation is one of your "
    "own, you can also remove it from optOut.nodes in the pool.",
)
KARPENTER = Code(
    "karpenter-node",
    "The node belongs to Karpenter, which consolidates its nodes itself.",
    "Nothing to do. No setting of the pool changes this.",
)
FOREIGN_CORDON = Code(
    "cordoned-by-another",
    "A client other than Trimtab cordoned the node.",
    "Run `kubectl uncordon NODE`, or wait until the other client has finished. No setting of the pool changes this.",
)
TRIMTABS_CORDON = Code(
    "drained-by-trimtab",
    "Trimtab's compactor drains the node, according to its annotation trimtab.dev/cordoned-for. A command has no "
    "signing key, so it cannot verify the annotation.",
    "Wait; `trimtab why node NODE` shows how far the drain is. To end the drain now, run `trimtab compactor release "
    "--yes NODE`; do not uncordon the node by hand. No setting of the pool changes this.",
)
DOUBTFUL_CORDON = Code(
    "annotation-not-authentic",
    "This compactor did not sign the annotation trimtab.dev/cordoned-for on the node.",
    "`trimtab compactor release --yes NODE` removes the annotation and uncordons the node. Check the node with "
    "`trimtab doctor` first.",
)
GOING_NODE = Code(
    "node-being-deleted", "Another client is deleting the node.", "Nothing to do. No setting of the pool changes this."
)
NOT_READY = Code(
    "node-not-ready",
    "The node is not ready, so the state of its pods is not known.",
    "Repair or delete the node. No setting of the pool changes this.",
)
MAINTAINED = Code(
    "node-in-maintenance",
    "Another client drains or maintains the node, as a condition says.",
    "Wait until it has finished, and removes the condition. No setting of the pool changes this.",
)
CONTROL_PLANE = Code(
    "control-plane-node", "The node runs the control plane.", "Nothing to do. No setting of the pool changes this."
)
NO_MACHINE = Code(
    "node-is-no-machine",
    "You do not pay for the node as a machine: it is serverless, or another cluster. Such a node is never drained, "
    "counts in no sum of nodes, cores or money, and receives pods only if they select it.",
    "Nothing to do. No setting of the pool changes this.",
)
EDGE_NODE = Code(
    "edge-node",
    "The machine is outside of the data center, and no autoscaler would remove it. Such a node is never drained, and "
    "receives pods only if they select it.",
    "Nothing to do. No setting of the pool changes this.",
)
YOUNG = Code(
    "node-too-young",
    "The node is too young for a drain in this pool.",
    "Wait, or lower age.node in the pool.",
)
STARTING = Code(
    "node-starting",
    "The node has a startup taint, so it is not initialized yet.",
    "Wait. No setting of the pool changes this.",
)
BUSY = Code(
    "node-not-under-used",
    "The pods of the node request more than the pool's threshold.",
    f"Raise underUsed.cpu or underUsed.memory in the pool, or remove `{keys_of_limit('node-not-under-used')}`.",
)
NOT_LONG = Code(
    "not-under-used-long-enough",
    "The node has been under the pool's threshold for too short a time.",
    "Wait, or lower underUsed.for in the pool.",
)
FEW = Code(
    "too-few-under-used",
    "Fewer nodes are under the threshold than the pool requires (underUsed.count).",
    "Wait, or lower underUsed.count in the pool.",
)
BLOCKED = Code(
    "pod-must-stay",
    "A pod on the node may not be moved.",
    "See its reason with `trimtab why pod NAMESPACE/NAME --cluster live`. It names the setting that changes it.",
)
NO_PLACE = Code(
    "no-place",
    "The pods of the node do not all fit on other nodes.",
    "Make room on other nodes: lower requests, keep.headroom or keep.spare. Constraints of the pods may be the cause "
    "as well.",
)
UNFIT_CHOICE = Code(
    "scheduler-may-choose-unfit-node",
    "The scheduler could place a pod on a node on which it does not run or belong. It does not compare operating "
    "systems, architectures, runtime handlers and drivers.",
    "Give the workload a node selector or an affinity, or taint the unfit nodes. Use for example kubernetes.io/os or "
    "kubernetes.io/arch. No setting of the pool changes this.",
)
AT_MINIMUM = Code(
    "pool-at-minimum",
    "Without the node, the pool or its zone would fall below its minimum.",
    f"Lower {keys_of_limit('pool-at-minimum')} in the pool, or the autoscaler's minimum of the group.",
)
UNKNOWN_NODE_GROUP = Code(
    "node-group-unknown",
    "It is not known which node group the node belongs to, and one could fall under its minimum. The node matches no "
    "node group of the cluster autoscaler by name. The autoscaler would not remove the drained node.",
    "Name the pool after the node group, or label the nodes with the group's name. No setting of the pool changes "
    "this.",
)
LAST_OF_ZONE = Code(
    "last-node-of-zone",
    "The node is the last one of a zone that volumes or spread constraints need. It is the last one that accepts pods.",
    "Set keep.nodesPerZone, or delete what needs the zone.",
)
AS_A_WHOLE = Code(
    "node-group-scales-as-a-whole",
    "The node group scales only as a whole, so no single node is removed. It is a slice of accelerators.",
    "Scale the whole group to zero, if you can. No setting of the pool changes this.",
)
NO_HEADROOM = Code(
    "headroom",
    "The drain would use the free capacity that the pool reserves.",
    f"Lower the pool's {keys_of_limit('headroom')}.",
)
NEEDED_AGAIN = Code(
    "needed-again",
    "The pool will probably need the node's room again before its removal pays. The history of the pool says so.",
    "Shorten keep.payback, or set keep.forecast: false, to let more nodes go. The autoscaler would add such a node "
    "again.",
)
YOUNG_HISTORY = Code(
    "history-too-young",
    "The compactor has not observed the pool long enough to know how much room it needs.",
    "Wait: the forecast begins by itself. No setting of the pool changes this.",
)
PAID = Code(
    "node-covered-by-commitment",
    "You pay for the node whether it runs or not, by a commitment of the pool.",
    f"Lower `{keys_of_limit('node-covered-by-commitment')}` in the pool when they end.",
)
NO_GAIN = Code(
    "not-worth-it",
    "The drain would save too little for the pods that it moves.",
    f"Lower {keys_of_limit('not-worth-it')} in the pool to allow such drains.",
)
BACK_OFF = Code(
    "drain-failed-before",
    "A drain of the node failed recently, or pods of a namespace on it made several drains of the pool fail.",
    "Wait; the compactor waits twice as long after each failure. No setting of the pool changes this.",
)
AUTOSCALERS = Code(
    "autoscaler-removes-node",
    "The cluster autoscaler will probably remove the node by itself.",
    "Set `autoscaler: lead` in the pool if Trimtab should drain such nodes in its own order.",
)
NOT_TRIED = Code(
    "node-not-evaluated",
    "The search reached its limit before the node was tried.",
    "Nothing to do: the next plan starts anew. No setting of the pool changes this.",
)
NOT_AIMED_AT = Code(
    "not-in-the-plan-under-way",
    "Pods of the pool are still moving, and their plan keeps this node.",
    "Nothing to do: the next plan is made when the pods are ready. No setting of the pool changes this.",
)
WORTH_KEEPING = Code(
    "receives-pods",
    "The plan places pods of other nodes on this node. No rule prevents its drain.",
    "`trimtab why node NAME --cluster live` says whether it could be drained instead. No setting of the pool changes "
    "this.",
)
PROMISED = Code(
    "capacity-reserved",
    "Capacity on the node is reserved for a pod that does not run yet.",
    "The message names the pod. If the capacity is kept for one more pod of the pool's largest size, set "
    "`keep.headroom.largestPod` to false in the pool. If it is kept for a pod of a CapacityBuffer, lower the "
    "buffer's replicas. If it is kept for any other pod, wait until that pod runs.",
)
GOES = Code("node-removable", "All pods of the node fit together on other nodes.", "Nothing.")

# ── pools ────────────────────────────────────────────────────────────────
EMPTY_POOL = Code(
    "pool-matches-nothing",
    "No node belongs to the pool.",
    "Correct the nodes' labels, or the selector `nodes` of the pool.",
)
CLOSED_WINDOW = Code(
    "outside-window", "The time is outside the pool's windows.", "Wait, or widen `windows` in the pool."
)
NOT_QUIET = Code(
    "pool-not-quiet", "A node was added to the pool a short time ago.", "Wait, or lower `quiet` in the pool."
)
PODS_WAIT = Code(
    "pods-waiting",
    "Pods that could run in the pool are Pending.",
    "Wait until the pods run, or lower `pendingLimit` in the pool.",
)
NO_AUTOSCALER = Code(
    "autoscaler-silent",
    "The cluster autoscaler has not reported its status for two minutes. Drained nodes might never be removed. The "
    "cause may also be a clock that is wrong by more than that.",
    "Repair the autoscaler, or synchronize the clocks. If the autoscaler writes no status at all, set "
    "TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS=false for the compactor.",
)
AUTOSCALER_ILL = Code(
    "autoscaler-unhealthy",
    "The cluster autoscaler reports the cluster as unhealthy.",
    "See the autoscaler's status. No setting of the pool changes this.",
)
SCALING_UP = Code("scaling-up", "The cluster autoscaler is adding nodes.", "Wait. No setting of the pool changes this.")
NO_SCALE_DOWN = Code(
    "scale-down-disabled",
    "The cluster autoscaler never removes nodes (--scale-down-enabled=false).",
    "Start it with --scale-down-enabled=true, or set `enabled: false` in the pool.",
)
THRESHOLD_TOO_HIGH = Code(
    "autoscaler-threshold-too-high",
    "The pool has `autoscaler: lead`, but the autoscaler's threshold is above the pool's limit. The cluster "
    "autoscaler would drain the same nodes in its own order, so pods would move twice.",
    "Start the autoscaler with --scale-down-utilization-threshold=0.3 or less, or raise lead.maxThreshold.",
)
UNWELL = Code(
    "too-many-nodes-not-ready",
    "Too many nodes of the cluster are not ready.",
    "Repair the nodes first. No setting of the pool changes this.",
)

NODE_GONE = Code(
    "node-not-found",
    "The plan contains a node that no longer exists.",
    "Nothing to do. No setting of the pool changes this.",
)
NODE_CHANGED = Code(
    "node-changed",
    "The node has other pods than those for which the plan was made.",
    "Wait for the next plan. No setting of the pool changes this.",
)
