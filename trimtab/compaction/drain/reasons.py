"""Reasons why a drain starts, waits, ends or is released: one code per rule."""

from trimtab.cluster.reason import Code

CLOSED = Code(
    "pool-closed",
    "Two drains of the pool failed in a row, or the stored state of the pool was lost. Failures that pods of one "
    "namespace caused count as one. The pool is closed, which means that no drain starts, for a while or until you "
    "resume it.",
    "Read `trimtab compactor history`, then run `trimtab compactor resume --pool NAME`, or wait. "
    "TRIMTAB_COMPACTOR_POOL_BACKOFF_SECONDS says for how long the pool is closed.",
)
BACKS_OFF = Code(
    "pool-backs-off",
    "Drains of the pool left pods Pending, or made the autoscaler add a node. No drain starts in the pool for an "
    "hour, and for twice as long after each repetition, up to a day.",
    "`trimtab compactor history` names the pods and nodes; `trimtab compactor resume --pool NAME` ends the back-off.",
)
JUST_OPENED = Code(
    "pool-uncordoned-recently",
    "A drained node of the pool was uncordoned for Pending pods. No drain starts for as long as the autoscaler "
    "itself waits after it added a node (--scale-down-delay-after-add).",
    "Wait, or lower --scale-down-delay-after-add of the autoscaler. pace.openingsPerHour in the pool limits how "
    "many nodes are uncordoned.",
)
PAUSED = Code("compactor-paused", "The compactor is paused.", "To end the pause, run `trimtab compactor resume`.")
PACE = Code(
    "pool-rate-limited",
    "The pool has reached its limit of nodes that are drained at the same time, or of evictions per hour.",
    "Wait, or raise pace.drains or pace.evictionsPerHour in the pool. TRIMTAB_COMPACTOR_MAX_CONCURRENT_DRAINS "
    "limits all pools together.",
)
# ── waiting ──────────────────────────────────────────────────────────────
ENDING = Code(
    "drain-pod-terminating",
    "An evicted pod is still terminating.",
    "Nothing to do: the pod may use its whole termination grace period. If the pod still exists after the additional "
    "time TRIMTAB_COMPACTOR_POD_TERMINATION_TIMEOUT_SECONDS, the compactor gives up the drain.",
)
SUCCESSORS = Code(
    "drain-waits-for-successors",
    "Successors of evicted pods are not ready yet.",
    "Wait. If it takes long, find out why the successors are slow to start. "
    "TRIMTAB_COMPACTOR_READY_TIMEOUT_SECONDS says how long the compactor waits.",
)
NO_BUDGET = Code(
    "drain-budget-spent",
    "At present the PodDisruptionBudget allows no eviction.",
    "Nothing to do: the compactor tries the eviction again, until TRIMTAB_COMPACTOR_DRAIN_TIMEOUT_SECONDS is "
    "over. No setting of the pool changes this.",
)
ONE_BY_ONE = Code(
    "drain-waits-for-workload",
    "Other pods of the workload are not ready. The compactor evicts the next pod as soon as they are ready.",
    "Nothing to do: wait until the pods are ready. No setting of the pool changes this.",
)
ONE_CRITICAL = Code(
    "drain-waits-for-critical-workload",
    "The compactor moves workloads on which the system depends one after the other, and another of them is moving.",
    "Nothing to do: such workloads move one at a time. No setting of the pool changes this.",
)
SURGING = Code(
    "drain-surging",
    "The workload has one replica, or its disruption budget allows no eviction, and the additional pods that it was "
    "given are not available yet. The compactor evicts the pod as soon as they are.",
    "Nothing to do. TRIMTAB_COMPACTOR_READY_TIMEOUT_SECONDS says how long the compactor waits.",
)
SURGE_REVERTED = Code(
    "drain-surge-reverted",
    "Another client took back the additional pods that a Deployment was given before an eviction, or changed the "
    "minReplicas of its HorizontalPodAutoscaler. The pod stays.",
    "If a tool writes the count from Git, run one replica more there, or change the budget.",
)
LEFT_EMPTY = Code(
    "drain-waits-for-autoscaler",
    "The node has no more pods to evict, and now the cluster autoscaler should remove it.",
    "Nothing to do. TRIMTAB_COMPACTOR_NODE_REMOVAL_TIMEOUT_SECONDS says how long the compactor waits.",
)
# ── ends ─────────────────────────────────────────────────────────────────
TAKEN = Code("drain-node-removed", "The drained node was removed.", "Nothing to do: the drain has reached its goal.")
VANISHED = Code("drain-node-vanished", "The node disappeared before all of its pods were evicted.", "Nothing.")
DELETING = Code("drain-deleted-by-another", "Another client is deleting the node.", "Nothing.")
UNCORDONED = Code(
    "drain-uncordoned",
    "Another client uncordoned the node, so its drain ended.",
    'If the node must not be drained again, set the annotation trimtab.dev/do-not-disrupt: "true" on it.',
)
CLAIMED = Code(
    "drain-autoscaler-removes-node",
    "The pool has `autoscaler: lead`, but the cluster autoscaler chose the node for removal before any of its "
    "pods was evicted.",
    "Nothing to do: the autoscaler drains the node itself. If Trimtab should drain such nodes, lower the "
    "autoscaler's --scale-down-utilization-threshold.",
)
DELETION_FAILED = Code(
    "drain-deletion-failed",
    "The cluster autoscaler began to delete the node, failed, and uncordoned it.",
    "See the autoscaler's log for the cause; the compactor tries the drain again later.",
)
KEPT = Code(
    "drain-node-kept",
    "An annotation on the node says that the node must not be drained.",
    "Nothing to do: the compactor uncordons the node.",
)
STOPPED = Code(
    "drain-stopped",
    "No drain may continue: the compactor is paused, or the pool is in mode rehearse, disabled or deleted.",
    "Nothing.",
)
NODE_ILL = Code(
    "drain-node-not-ready", "The node stopped being ready while it was drained.", "Repair or delete the node."
)
TOO_LONG = Code(
    "drain-too-long",
    "The drain took longer than the time-out of a drain.",
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
    "A pod of the node may no longer be evicted, although the plan assumed it.",
    "Nothing to do: the compactor makes a new plan.",
)
NOT_CREATED = Code(
    "drain-successor-not-created",
    "The API server rejects the successor of an evicted pod, for example because of a quota or a webhook.",
    "The message quotes the rejection. Correct its cause; the compactor tries the drain again later.",
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
    "Some pods fit on no open node, but on the drained node, so the compactor uncordons it before the autoscaler "
    "adds another node.",
    "Nothing to do, because the load has grown. If it happens often, keep more headroom in the pool.",
)
SCALER_CHANGED = Code(
    "drain-autoscaler-changed",
    "The cluster autoscaler is adding nodes, is not healthy, or does not report its status.",
    "See the status of the cluster autoscaler, in ConfigMap kube-system/cluster-autoscaler-status.",
)
NOT_TAKEN = Code(
    "drain-node-not-removed",
    "The cluster autoscaler did not remove the drained node in time.",
    "The message names the likely cause.",
)
AHEAD = Code(
    "drain-annotation-clock-ahead",
    "An annotation has a time in the future, because the clock of its writer was wrong. The time-outs of the "
    "drain therefore count from now.",
    "Synchronize the clocks of the nodes.",
)
ODD_NOTE = Code(
    "drain-annotation-unreadable",
    "The compactor cannot read its own annotation on the node.",
    "Nothing to do: the compactor removes the annotation.",
)
UNKNOWN = Code(
    "drain-unknown",
    "The pool's state does not contain the drain that the compactor's annotation on the node names.",
    "If the state was deleted or a signing key was replaced, do nothing. Otherwise another client restored an "
    "old annotation.",
)
NOTE_MISSING = Code(
    "drain-annotation-missing",
    "The pool's state contains a drain, but the node of the drain has no drain annotation.",
    "Nothing to do: another client removed the annotation, or the compactor ended before the cordon. Without an "
    "annotation the compactor does not undo a cordon.",
)
FAULT = Code(
    "drain-internal-error",
    "The next step of the drain could not be decided because of a bug in Trimtab, so the compactor uncordons the node.",
    "See the log for the traceback, and report the bug.",
)
ORDERED = Code(
    "drain-ordered",
    "A DrainOrder has the node, so the drain of the compactor's own wish ends. The order drains the node.",
    "Nothing to do.",
)
STOPPING = Code(
    "drain-process-stopping",
    "The compactor is stopping, or cannot read the cluster.",
    "If the compactor is stopping, do nothing. Otherwise the message names the cause.",
)

GROUP_WAITS = Code(
    "group-waits",
    "A group of pods is evicted as a whole (groups: move), and one of its pods may not be evicted now. None of them is "
    "evicted until all may be.",
    "See the message. If the time limit of the drain passes, the node is uncordoned.",
)
GROUP_REFUSED = Code(
    "group-eviction-refused",
    "Before the first eviction of a group of pods, the API server was asked about all of them (a dry run), and would "
    "refuse one. None of the group is evicted, and the compactor asks again.",
    "See the webhook, the policy or the budget that the message names.",
)
GROUP_FOLLOWS = Code(
    "group-follows-its-leader",
    "A pod was evicted with which the other pods of its group end: the pod that owns them, or a pod of a JobSet whose "
    "Job fails because of the eviction.",
    "Nothing. Pods that still exist a minute after the grace period of that pod are evicted too.",
)
GROUP_REST_WAITS = Code(
    "group-rest-waits",
    "Pods of a group were evicted, and the API server refused the eviction of another one. The rest of the group "
    "waits, and is evicted as soon as it may be.",
    "See the budget that the message names.",
)
