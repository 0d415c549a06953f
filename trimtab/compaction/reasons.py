"""Reasons why a node or a pod stays: one code per rule."""

from trimtab.cluster.pool import keys_of_limit
from trimtab.cluster.reason import Code

# ── pods ─────────────────────────────────────────────────────────────────
NO_OWNER = Code(
    "pod-without-owner",
    "The pod has no controller that would recreate it on another node.",
    'Create the pod from a Deployment, or set the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: "true".',
)
STRANGE_OWNER = Code(
    "pod-of-unknown-owner",
    "The owner of the pod is of a kind that is not known to recreate its pods.",
    'If the owner recreates its pods, set the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: "true" '
    "on the pods. If the cluster autoscaler runs with --skip-nodes-with-custom-controller-pods=false, give Trimtab "
    "this flag.",
)
OWNER_GONE = Code(
    "owner-missing",
    "The owner of the pod is not among the objects of its kind that were read. Either the snapshot lacks it, or it "
    "does not exist, so that no controller would recreate the pod.",
    "Look for the owner with kubectl. If it exists, take a snapshot of all namespaces. If it does not exist, "
    "delete nothing on that ground alone; no setting of the pool changes this.",
)
OWNER_SHORT = Code(
    "owner-not-whole",
    "The workload of the pod has fewer ready pods than its number of replicas, and no PodDisruptionBudget allows "
    "that: a rollout or a failure is in progress.",
    "Wait until all pods are ready, or create a PodDisruptionBudget. In a workload of three or more pods, one "
    "pod that has not been ready for ten minutes does not block a drain, unless the pool has protect.unready: "
    "workload.",
)
SINGLE = Code(
    "single-replica",
    "The pod is the only replica of its workload.",
    "Run two replicas, or allow the move with protect.singleReplicas: false in the pool.",
)
NO_RIGHT_TO_SCALE = Code(
    "single-replica-without-right",
    "The pod is the only replica of its workload, and the compactor may not scale that workload to two.",
    "Run two replicas, or grant the permission: `trimtab install --scale-namespace NAMESPACE`.",
)
NO_QUOTA_FOR_SECOND_REPLICA = Code(
    "single-replica-without-quota",
    "The pod is the only replica of its workload, and a ResourceQuota of its namespace rejects the second replica that "
    "the compactor would add before the eviction.",
    "Raise the quota by one pod of this size. No setting of the pool changes this.",
)
JOB = Code(
    "job-running",
    "The Job of the pod would start again from the beginning.",
    "Wait until the Job ends, or allow the eviction with protect.jobs: false in the pool.",
)
UNSAFE = Code(
    "not-safe-to-evict",
    "An annotation of the pod says that it must not be evicted.",
    "Remove the annotation that the message names if it is no longer intended. If the annotation is one of your "
    "own, you can also remove it from optOut.pods in the pool.",
)
LOCAL_DATA = Code(
    "local-data",
    "The pod has an emptyDir on the node, whose data would be lost, or uses a path of the node (hostPath), which its "
    "successor would not find with the same content on another node.",
    "If the data may be lost, list the volume in cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes; the "
    "action `safeToEvictVolumes` of a PodPolicy does so for the pods that it matches. If the cluster autoscaler runs "
    "with --skip-nodes-with-local-storage=false, give Trimtab this flag.",
)
LOCAL_VOLUME = Code(
    "local-volume",
    "The persistent volume of the pod exists only on this node.",
    "Only the operator of the workload can move such a pod. No setting of the pool changes this.",
)
GROUP = Code(
    "pod-group-spans-nodes",
    "The pod belongs to a group of pods that run only together, and the group is spread over several nodes, so "
    "the eviction of one pod would stop all of them. A group is known by its labels or annotations "
    "(LeaderWorkerSet, JobSet, Ray, Volcano, Kueue and others), or by a pod that owns the other pods.",
    "If the group ends by itself, as that of a Job, wait for it. A serving group runs until it is deleted. A group "
    "whose pods are all on one node can be moved as a whole. No setting of the pool changes this.",
)
TWO_BUDGETS = Code(
    "two-budgets",
    "More than one PodDisruptionBudget selects the pod, and for such pods the eviction API returns status 500.",
    "Change the selectors of the budgets, so that only one budget selects the pod. No setting of the pool "
    "changes this.",
)
BUDGET_NEVER = Code(
    "budget-never-allows",
    "The PodDisruptionBudget of the pod allows no disruption even when all pods are healthy.",
    "Raise maxUnavailable, or run one replica more than minAvailable. If the message says so, surge.extraPods in the "
    "pool lets the compactor run one more for a while. A single replica does not need a budget: without one, and with "
    "protect.singleReplicas: false in the pool, the compactor starts a second replica before it evicts.",
)
BUDGET_SPENT = Code(
    "budget-spent",
    "At present the PodDisruptionBudget of the pod allows no disruption.",
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
    "The pod has a system-critical priority, and no PodDisruptionBudget allows one pod of "
    "its workload to be unavailable.",
    "Run two replicas and create a budget that allows one disruption, or set protect.criticalPods in the pool. A "
    "pod with the priority system-node-critical is never moved.",
)
OUR_WEBHOOK = Code(
    "last-webhook-replica",
    "The pod is the last ready replica of Trimtab's webhook. Without this replica, pods would be admitted unchanged.",
    "Run two replicas; the pod can be moved as soon as the other replica is ready. No setting of the pool "
    "changes this.",
)
SYSTEM_YOUNG = Code(
    "system-pod-without-budget",
    "The pod is a kube-system pod without a PodDisruptionBudget and younger than an hour.",
    "Create a PodDisruptionBudget for the pod, wait until the pod is an hour old, or set the annotation "
    'cluster-autoscaler.kubernetes.io/safe-to-evict: "true" on it. If the cluster autoscaler runs with '
    "--skip-nodes-with-system-pods=false, give Trimtab this flag.",
)
TOLERATES_CORDON = Code(
    "pod-tolerates-cordon",
    "The pod tolerates the taint node.kubernetes.io/unschedulable, so the scheduler may place its successor on the "
    "cordoned node that the pod leaves. The scheduler even prefers this node, because it is nearly empty, and the node "
    "would never become empty.",
    "Narrow the tolerations of the pod: replace `operator: Exists` without a key by one toleration for each taint that "
    "the pod really has to tolerate, and remove a toleration of node.kubernetes.io/unschedulable. No setting of the "
    "pool changes this.",
)
YOUNG_POD = Code(
    "pod-too-young", "The pod has run for less time than the pool requires.", "Wait, or lower age.pod in the pool."
)
LONG_GRACE = Code(
    "grace-period-too-long",
    "The termination grace period of the pod is longer than the pool allows, so the drain of its node could take as "
    "long.",
    "Shorten terminationGracePeriodSeconds of the pod, or raise protect.maxGrace in the pool.",
)
NOT_READY_POD = Code(
    "pod-not-ready",
    "The pod is not ready, and its PodDisruptionBudget has too few healthy pods.",
    "Repair the pod, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget. A pod without a budget can be "
    "moved with protect.notReady: false.",
)
MOVED_BEFORE = Code(
    "moved-before",
    "The compactor moved the pod only a short time ago.",
    "Wait, or lower TRIMTAB_COMPACTOR_MOVE_COOLDOWN_SECONDS of the compactor (default: 3600, one hour).",
)
UNSETTLED = Code(
    "workload-unsettled",
    "A pod of the same workload was moved recently, and its successor is not ready yet.",
    "Wait until the successor is ready. No setting of the pool changes this.",
)
GOING = Code(
    "pod-terminating",
    "The pod is already being deleted, but the node cannot be removed before the pod is gone.",
    "Wait. No setting of the pool changes this.",
)

# ── nodes ────────────────────────────────────────────────────────────────
NO_POOL = Code(
    "node-in-no-pool",
    "No pool contains this node.",
    "If the node should be compacted, create a pool for it, or extend the selector `nodes` of a pool.",
)
SHARED_POOLS = Code(
    "node-in-two-pools",
    "More than one pool contains this node.",
    "Change the selectors `nodes` of the pools, so that only one pool contains the node.",
)
POOL_OFF = Code("pool-disabled", "The pool of the node is disabled.", "Set `enabled: true` in the pool.")
UNREADABLE = Code(
    "node-unreadable",
    "Trimtab cannot read a field or an object that belongs to the node.",
    "Correct what the message names. No setting of the pool changes this.",
)
MISREAD = Code(
    "annotation-not-understood",
    "An annotation that may protect the pod or node has a value that Trimtab does not understand.",
    "Use true, false, or (for karpenter.sh/do-not-disrupt) a duration such as 4h. If the annotation is one of "
    "your own, see optOut.pods and optOut.nodes in the pool.",
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
    "Nothing to do: use Karpenter's own consolidation for this node. No setting of the pool changes this.",
)
FOREIGN_CORDON = Code(
    "cordoned-by-another",
    "A client other than Trimtab cordoned the node.",
    "Uncordon the node with `kubectl uncordon NODE`, or wait until the other client has finished. No setting of "
    "the pool changes this.",
)
TRIMTABS_CORDON = Code(
    "drained-by-trimtab",
    "According to the annotation trimtab.dev/cordoned-for of the cordoned node, Trimtab's compactor drains the node. "
    "A command has no signing key, so it cannot verify the annotation.",
    "Nothing to do: wait for the end of the drain, which `trimtab why node NODE` shows. To end the drain now, run "
    "`trimtab compactor release --yes NODE`; do not uncordon the node by hand. No setting of the pool changes this.",
)
DOUBTFUL_CORDON = Code(
    "annotation-not-authentic",
    "The node has the annotation trimtab.dev/cordoned-for, but this compactor did not sign it for this node.",
    "Check the node with `trimtab doctor`; `trimtab compactor release --yes NODE` removes the annotation and "
    "uncordons the node.",
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
    "A condition of the node says that another client drains or maintains it.",
    "Wait until the other client has finished; it then removes the condition. No setting of the pool changes this.",
)
CONTROL_PLANE = Code(
    "control-plane-node", "The node runs the control plane.", "Nothing to do. No setting of the pool changes this."
)
NO_MACHINE = Code(
    "node-is-no-machine",
    "The node is not a machine that you pay for: a serverless platform bills its pods, or the node represents another "
    "cluster.",
    "Nothing to do. Such a node is never drained, counts in no sum of nodes, cores or money, and receives pods only if "
    "they select it. No setting of the pool changes this.",
)
EDGE_NODE = Code(
    "edge-node",
    "The node is a machine outside of the cluster's data center, and no autoscaler would remove it.",
    "Nothing to do. Such a node is never drained, and receives pods only if they select it. No setting of the pool "
    "changes this.",
)
YOUNG = Code(
    "node-too-young",
    "The node is younger than the age that the pool requires for a drain.",
    "Wait, or lower age.node in the pool.",
)
STARTING = Code(
    "node-starting",
    "The node has a startup taint, which means that it is not initialized yet.",
    "Wait. No setting of the pool changes this.",
)
BUSY = Code(
    "node-not-under-used",
    "The requests of the pods on the node are above the pool's threshold.",
    "To let the plan drain the node, raise underUsed.cpu or underUsed.memory in the pool, or remove "
    f"`{keys_of_limit('node-not-under-used')}`.",
)
NOT_LONG = Code(
    "not-under-used-long-enough",
    "The requests on the node have been under the pool's threshold for too short a time.",
    "Wait, or lower underUsed.for in the pool.",
)
FEW = Code(
    "too-few-under-used",
    "Fewer nodes than the pool requires (underUsed.count) have requests under the threshold.",
    "Wait, or lower underUsed.count in the pool.",
)
BLOCKED = Code(
    "pod-must-stay",
    "A pod on the node may not be moved.",
    "See the reason of the pod: `trimtab plan --explain pod NAMESPACE/NAME` names the setting that changes it.",
)
NO_PLACE = Code(
    "no-place",
    "The pods of the node do not all fit on other nodes.",
    "Keep the node, or make room on other nodes: lower requests, or remove constraints of the pods. If the room "
    "is there but reserved, lower keep.headroom or keep.spare in the pool.",
)
UNFIT_CHOICE = Code(
    "scheduler-may-choose-unfit-node",
    "The scheduler could place a pod of the node on another node on which the pod does not run or does not belong, "
    "because it does not compare operating systems, architectures, runtime handlers and drivers.",
    "Give the pods of the workload a node selector or an affinity, for example for kubernetes.io/os or "
    "kubernetes.io/arch, or taint the nodes on which they do not run. No setting of the pool changes this.",
)
AT_MINIMUM = Code(
    "pool-at-minimum",
    "Without the node, the pool (or its zone) would have fewer nodes than its minimum.",
    f"Lower {keys_of_limit('pool-at-minimum')} in the pool, or the autoscaler's minimum of the node group.",
)
UNKNOWN_NODE_GROUP = Code(
    "node-group-unknown",
    "The node matches no node group of the cluster autoscaler by name, and one of the groups to which it may belong "
    "could fall under its minimum size. The autoscaler would not remove the drained node.",
    "Name the pool after the node group, or give the nodes of the group a label whose value is the name of the group. "
    "No setting of the pool changes this.",
)
LAST_OF_ZONE = Code(
    "last-node-of-zone",
    "The node is the last one of its zone that accepts pods, and volumes or spread constraints need the zone.",
    "Keep one node for each zone (keep.nodesPerZone), or delete the volumes and workloads that need the zone.",
)
AS_A_WHOLE = Code(
    "node-group-scales-as-a-whole",
    "The node group of the node can be scaled only as a whole (a slice of accelerators), so the autoscaler would "
    "never remove a single drained node.",
    "Nothing to do, unless you can scale the whole group to zero. No setting of the pool changes this.",
)
NO_HEADROOM = Code(
    "headroom",
    "The drain would use the free capacity that the pool reserves.",
    f"Lower the pool's {keys_of_limit('headroom')}.",
)
NEEDED_AGAIN = Code(
    "needed-again",
    "The drain would use free capacity that the pods of the pool request again before a removal pays, by history.",
    "Nothing: the autoscaler would add such a node again. A shorter keep.payback lets more nodes go, and "
    "keep.forecast: false turns the forecast off.",
)
YOUNG_HISTORY = Code(
    "history-too-young",
    "The compactor has not observed the pool for long enough to know how much room it needs.",
    "Wait: the forecast begins by itself. No setting of the pool changes this.",
)
PAID = Code(
    "node-covered-by-commitment",
    "A commitment of the pool covers the node, which means that you pay for the node whether it runs or not.",
    f"When the commitments end, lower `{keys_of_limit('node-covered-by-commitment')}` in the pool.",
)
NO_GAIN = Code(
    "not-worth-it",
    "To drain the node, too many pods would have to move for the small saving.",
    f"To allow such drains, lower {keys_of_limit('not-worth-it')} in the pool.",
)
BACK_OFF = Code(
    "drain-failed-before",
    "The last drain of the node failed recently, or pods of a namespace on the node made several drains of the pool "
    "fail.",
    "Wait; the compactor waits twice as long after each failure. No setting of the pool changes this.",
)
AUTOSCALERS = Code(
    "autoscaler-removes-node",
    "The cluster autoscaler will probably remove the node by itself.",
    "Nothing to do. If Trimtab should drain such nodes in its own order, set `autoscaler: lead` in the pool.",
)
NOT_TRIED = Code(
    "node-not-evaluated",
    "The search for a plan reached its limit before the node was tried.",
    "Nothing to do: the next plan starts with the state of the cluster at that time. No setting of the pool "
    "changes this.",
)
NOT_AIMED_AT = Code(
    "not-in-the-plan-under-way",
    "Pods of the pool are still moving, and the plan that is carried out keeps this node.",
    "Nothing to do: the compactor makes the next plan when the pods are ready. No setting of the pool changes this.",
)
WORTH_KEEPING = Code(
    "receives-pods",
    "The plan places pods of other nodes on this node; no rule prevents its drain.",
    "`trimtab plan --explain node NAME` says whether this node could be drained instead of others. No setting of "
    "the pool changes this.",
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
    "Correct the labels of the nodes, or the selector `nodes` of the pool.",
)
CLOSED_WINDOW = Code(
    "outside-window", "The time is outside the pool's windows.", "Wait, or widen `windows` in the pool."
)
NOT_QUIET = Code(
    "pool-not-quiet", "A node was added to the pool only a short time ago.", "Wait, or lower `quiet` in the pool."
)
PODS_WAIT = Code(
    "pods-waiting",
    "Pods that could run in the pool are Pending.",
    "Wait until the pods run, or lower `pendingLimit` in the pool.",
)
NO_AUTOSCALER = Code(
    "autoscaler-silent",
    "The cluster autoscaler has not reported its status for two minutes, or its clock is wrong by more than "
    "that, so drained nodes might never be removed.",
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
    "Start the autoscaler with --scale-down-enabled=true, or set `enabled: false` in the pool.",
)
THRESHOLD_TOO_HIGH = Code(
    "autoscaler-threshold-too-high",
    "The pool has `autoscaler: lead`, but the cluster autoscaler would drain the same nodes in its own order, so "
    "pods would move twice.",
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
    "The pods on the node are not those for which the plan was made.",
    "Wait for the next plan. No setting of the pool changes this.",
)
