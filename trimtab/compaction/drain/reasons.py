"""Reasons why a drain starts, waits, ends or is released: one code per rule."""

from trimtab.cluster.reason import Code

CLOSED = Code(
    "pool-closed",
    "No drain starts in the pool after two failed drains, or after its state was lost. Failures that pods of one "
    "namespace caused count as one. The pool is closed for a while or until you resume it.",
    "Read `trimtab compactor history`, then run `trimtab compactor resume --pool NAME`, or wait. "
    "TRIMTAB_COMPACTOR_POOL_BACKOFF_SECONDS says for how long the pool is closed.",
)
BACKS_OFF = Code(
    "pool-backs-off",
    "Drains of the pool left pods Pending, or made the autoscaler add a node. No drain starts in the pool for an "
    "hour, and for twice as long after each repetition, up to a day.",
    "`trimtab compactor resume --pool NAME` ends the back-off. `trimtab compactor history` names the pods and nodes.",
)
JUST_OPENED = Code(
    "pool-uncordoned-recently",
    "A drained node of the pool was uncordoned for Pending pods. No drain starts for as long as the autoscaler "
    "itself waits after it added a node (--scale-down-delay-after-add).",
    "Wait, or lower --scale-down-delay-after-add of the autoscaler. pace.openingsPerHour in the pool limits how many "
    "nodes are uncordoned.",
)
PAUSED = Code("compactor-paused", "The compactor is paused.", "To end the pause, run `trimtab compactor resume`.")
PACE = Code(
    "pool-rate-limited",
    "The pool has reached its limit of simultaneous drains or of evictions per hour.",
    "Wait, or raise pace.drains or pace.evictionsPerHour. TRIMTAB_COMPACTOR_MAX_CONCURRENT_DRAINS limits all pools "
    "together.",
)
# ── waiting ──────────────────────────────────────────────────────────────
ENDING = Code(
    "drain-pod-terminating",
    "An evicted pod is still terminating.",
    "Nothing to do: the pod may use its whole grace period. If the pod still exists after the additional time "
    "TRIMTAB_COMPACTOR_POD_TERMINATION_TIMEOUT_SECONDS, the compactor gives up the drain.",
)
SUCCESSORS = Code(
    "drain-waits-for-successors",
    "Successors of evicted pods are not ready yet.",
    "Wait, or find out why the successors start slowly. TRIMTAB_COMPACTOR_READY_TIMEOUT_SECONDS limits the wait.",
)
NO_BUDGET = Code(
    "drain-budget-spent",
    "At present the PodDisruptionBudget allows no eviction.",
    "Nothing to do: the compactor tries again until the drain's time-out. That is "
    "TRIMTAB_COMPACTOR_DRAIN_TIMEOUT_SECONDS. No setting of the pool changes this.",
)
ONE_BY_ONE = Code(
    "drain-waits-for-workload",
    "Other pods of the workload are not ready. The compactor evicts the next pod as soon as they are ready.",
    "Nothing to do: wait until the pods are ready. No setting of the pool changes this.",
)
ONE_CRITICAL = Code(
    "drain-waits-for-critical-workload",
    "Another workload on which the system depends is moving. Such workloads move one at a time.",
    "Nothing to do. No setting of the pool changes this.",
)
SURGING = Code(
    "drain-surging",
    "The pod is evicted as soon as additional pods of its workload are available. The workload has one replica, or "
    "its disruption budget allows no eviction.",
    "Nothing to do: TRIMTAB_COMPACTOR_READY_TIMEOUT_SECONDS limits the wait.",
)
SURGE_REVERTED = Code(
    "drain-surge-reverted",
    "Another client removed the additional pods of a Deployment, or set the HPA's minReplicas back, so the pod stays.",
    "Run one replica more where the count is written (in Git, for example), or change the budget.",
)
LEFT_EMPTY = Code(
    "drain-waits-for-autoscaler",
    "The drained node waits for its removal by the cluster autoscaler. It has no more pods to evict.",
    "Nothing to do: TRIMTAB_COMPACTOR_NODE_REMOVAL_TIMEOUT_SECONDS limits the wait.",
)
# ── ends ─────────────────────────────────────────────────────────────────
TAKEN = Code("drain-node-removed", "The drained node was removed.", "Nothing to do: the drain has reached its goal.")
VANISHED = Code("drain-node-vanished", "The node disappeared before all of its pods were evicted.", "Nothing.")
DELETING = Code("drain-deleted-by-another", "Another client is deleting the node.", "Nothing.")
UNCORDONED = Code(
    "drain-uncordoned",
    "Another client uncordoned the node, so its drain ended.",
    'Set trimtab.dev/do-not-disrupt: "true" on the node if it must not be drained again.',
)
CLAIMED = Code(
    "drain-autoscaler-removes-node",
    "The cluster autoscaler chose the node for removal first, and drains it itself. The pool has `autoscaler: lead`, "
    "but no pod of the node was evicted yet.",
    "Lower the autoscaler's --scale-down-utilization-threshold if Trimtab should drain such nodes.",
)
DELETION_FAILED = Code(
    "drain-deletion-failed",
    "The cluster autoscaler could not delete the node, and uncordoned it.",
    "See the autoscaler's log; the compactor tries again later.",
)
KEPT = Code(
    "drain-node-kept",
    "An annotation on the node says that the node must not be drained.",
    "Nothing to do: the compactor uncordons the node.",
)
STOPPED = Code(
    "drain-stopped",
    "The compactor is paused, or the pool rehearses, is disabled or deleted. So no drain may continue.",
    "Nothing.",
)
NODE_ILL = Code(
    "drain-node-not-ready", "The node stopped being ready while it was drained.", "Repair or delete the node."
)
TOO_LONG = Code(
    "drain-too-long",
    "The drain took longer than its time-out.",
    "Find out what delayed the pods, or raise TRIMTAB_COMPACTOR_DRAIN_TIMEOUT_SECONDS.",
)
STUCK = Code("drain-pod-stuck", "An evicted pod does not terminate.", "Check the finalizers of the pod, and its node.")
CAME = Code(
    "drain-pods-added",
    "The node has pods that the plan does not contain.",
    "Nothing to do: the compactor makes a new plan.",
)
FORBIDDEN = Code(
    "drain-pod-not-evictable",
    "A pod of the node may no longer be evicted. The plan assumed that it may.",
    "Nothing to do: the compactor makes a new plan.",
)
NOT_CREATED = Code(
    "drain-successor-not-created",
    "The API server rejects the successor of an evicted pod. The cause may be a quota or a webhook.",
    "Correct the cause of the rejection, which the message quotes. The compactor tries the drain again later.",
)
NOT_PLACED = Code(
    "drain-successor-not-placed",
    "The successor of an evicted pod fits on no node.",
    "See the Events of the successor pod.",
)
NOT_STARTED = Code(
    "drain-successor-not-ready",
    "The successor of an evicted pod does not become ready.",
    "See the Events of the successor pod.",
)
PENDING = Code(
    "drain-pods-pending", "Pending pods would fit on this node.", "Nothing to do: the compactor uncordons the node."
)
OPENED = Code(
    "drain-node-uncordoned-for-pods",
    "Some pods fit only on the drained node, so the compactor uncordons it. Otherwise the autoscaler would add "
    "another node.",
    "Keep more headroom in the pool if this happens often. The load has grown.",
)
SCALER_CHANGED = Code(
    "drain-autoscaler-changed",
    "The cluster autoscaler is adding nodes, is unhealthy, or reports no status.",
    "See its status in ConfigMap kube-system/cluster-autoscaler-status.",
)
NOT_TAKEN = Code(
    "drain-node-not-removed",
    "The cluster autoscaler did not remove the drained node in time.",
    "The message names the likely cause.",
)
AHEAD = Code(
    "drain-annotation-clock-ahead",
    "An annotation has a time in the future, so its time-outs count from now. The clock of its writer was wrong.",
    "Synchronize the clocks of the nodes.",
)
ODD_NOTE = Code(
    "drain-annotation-unreadable",
    "The compactor cannot read its own annotation on the node.",
    "Nothing to do: the compactor removes the annotation.",
)
UNKNOWN = Code(
    "drain-unknown",
    "The pool's state lacks the drain that the annotation on the node names.",
    "Nothing to do after the state was deleted or a signing key replaced. Otherwise another client restored an old "
    "annotation.",
)
NOTE_MISSING = Code(
    "drain-annotation-missing",
    "The node of a drain has no drain annotation. The pool's state contains the drain.",
    "Nothing to do: without an annotation the compactor does not undo a cordon. Another client removed the "
    "annotation, or the compactor ended before the cordon.",
)
FAULT = Code(
    "drain-internal-error",
    "A bug in Trimtab stopped the drain, and the compactor uncordons the node. It could not decide the next step.",
    "See the log for the traceback, and report the bug.",
)
ORDERED = Code(
    "drain-ordered",
    "A DrainOrder has the node, so the compactor's own drain of it ends. The order drains the node.",
    "Nothing to do.",
)
STOPPING = Code(
    "drain-process-stopping",
    "The compactor is stopping, or cannot read the cluster.",
    "The message names the cause, if the compactor is not stopping.",
)

GROUP_WAITS = Code(
    "group-waits",
    "One pod of the group may not be evicted now, so none of them is. A group is evicted as a whole (groups: move).",
    "See the message. If the time limit of the drain passes, the node is uncordoned.",
)
GROUP_REFUSED = Code(
    "group-eviction-refused",
    "The API server would refuse the eviction of one pod of a group. None of the group is evicted. The compactor "
    "asked before the first eviction (a dry run), and asks again.",
    "See the webhook, the policy or the budget that the message names.",
)
GROUP_FOLLOWS = Code(
    "group-follows-its-leader",
    "A pod was evicted with which the other pods of its group end: the pod that owns them, or a pod of a JobSet whose "
    "Job fails because of the eviction.",
    "Nothing to do: pods that are left a minute after its grace period are evicted too.",
)
GROUP_REST_WAITS = Code(
    "group-rest-waits",
    "The API server refused the eviction of one pod of a group that is moving. The rest of the group waits, and is "
    "evicted as soon as it may be.",
    "See the budget that the message names.",
)
