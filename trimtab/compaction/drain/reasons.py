"""Why a drain starts, waits, ends or is released: one code per rule."""

from trimtab.cluster.reason import Code

CLOSED = Code(
    "pool-closed",
    "Two drains in a row failed, or the pool's state was lost: the pool is closed until it is resumed, or for a time.",
    "Read the history, then run `trimtab compactor resume --pool NAME`, or wait.",
)  # fmt: skip
BACKS_OFF = Code(
    "pool-backs-off",
    "Drains of the pool left pods pending, or made the autoscaler add a node: no drain begins in it for an hour, twice "
    "as long each time, at most a day.",
    "Read the history for the pods and nodes; `trimtab compactor resume --pool NAME` ends the wait.",
)  # fmt: skip
JUST_OPENED = Code(
    "pool-uncordoned-recently",
    "A drained node of the pool was uncordoned for pending pods: no drain begins for as long as the autoscaler waits "
    "after it added a node (--scale-down-delay-after-add).",
    "Wait.",
)  # fmt: skip
PAUSED = Code("compactor-paused", "Everything is paused.", "`trimtab compactor resume`.")
PACE = Code("pool-rate-limited", "As many nodes are being drained, or pods were evicted, as the pool allows.", "Wait.")
# ── waiting ──────────────────────────────────────────────────────────────
ENDING = Code("drain-pod-terminating", "An evicted pod is still ending.", "Nothing: it has its grace period.")
SUCCESSORS = Code(
    "drain-waits-for-successors",
    "Successors of evicted pods are not ready yet.",
    "Nothing, or find out why they start slowly.",
)
NO_BUDGET = Code("drain-budget-spent", "The budget allows no eviction now.", "Nothing: the eviction is tried again.")
ONE_BY_ONE = Code(
    "drain-waits-for-workload", "Other pods of the workload are missing; the next pod is evicted when they are ready.",
    "Nothing.",
)  # fmt: skip
ONE_CRITICAL = Code(
    "drain-waits-for-critical-workload", "Another workload on which the system depends is moving; this one is next.",
    "Nothing.",
)  # fmt: skip
SURGING = Code(
    "drain-surging", "The workload's second pod is not ready yet; then the first one is evicted.", "Nothing."
)
LEFT_EMPTY = Code("drain-waits-for-autoscaler", "The node is empty and is left to the cluster autoscaler.", "Nothing.")
# ── ends ─────────────────────────────────────────────────────────────────
TAKEN = Code("drain-node-removed", "The drained node was removed.", "Nothing: this is the aim.")
VANISHED = Code("drain-node-vanished", "The node disappeared before it was empty.", "Nothing.")
DELETING = Code("drain-deleted-by-another", "Another client is deleting the node.", "Nothing.")
UNCORDONED = Code(
    "drain-uncordoned", "Another client uncordoned the node, so its drain ends.",
    "Set trimtab.dev/do-not-disrupt: \"true\" on the node if it should stay.",
)  # fmt: skip
CLAIMED = Code(
    "drain-autoscaler-removes-node",
    "The pool leads, and the cluster autoscaler chose the node for removal before a pod of it was evicted.",
    "Nothing: it drains the node itself. Lower its --scale-down-utilization-threshold if the pool should lead.",
)  # fmt: skip
DELETION_FAILED = Code(
    "drain-deletion-failed", "The cluster autoscaler began to delete the node, failed, and uncordoned it.",
    "See its log for the cause; the drain is tried again later.",
)  # fmt: skip
KEPT = Code("drain-node-kept", "An annotation on the node says that it stays.", "Nothing: it is uncordoned again.")
STOPPED = Code(
    "drain-stopped", "Nothing may be drained any more: it is paused, a dry run, or the pool is disabled or gone.",
    "Nothing.",
)  # fmt: skip
NODE_ILL = Code("drain-node-not-ready", "The node became not ready while it was drained.", "Repair or delete the node.")
TOO_LONG = Code(
    "drain-too-long",
    "The drain took longer than its limit.",
    "See what kept the pods; raise TRIMTAB_COMPACTOR_DRAIN_TIMEOUT_SECONDS.",
)
STUCK = Code("drain-pod-stuck", "An evicted pod does not terminate.", "See its finalizers and its node.")
CAME = Code("drain-pods-added", "The node has pods that are not in the plan.", "Nothing: it is planned again.")
FORBIDDEN = Code("drain-pod-not-evictable", "A pod of it may not be evicted any more.", "Nothing: it is planned again.")
NOT_CREATED = Code(
    "drain-successor-not-created", "The API server rejects a successor, for example by a quota or a webhook.",
    "Read the message, which quotes the rejection; the drain is tried again later.",
)  # fmt: skip
NOT_PLACED = Code("drain-successor-not-placed", "A successor fits on no node.", "See the pod's events.")
NOT_STARTED = Code("drain-successor-not-ready", "A successor does not become ready.", "See the pod's events.")
PENDING = Code(
    "drain-pods-pending", "Pods wait for a node and would fit on this one.", "Nothing: it is uncordoned again."
)
OPENED = Code(
    "drain-node-uncordoned-for-pods",
    "Pods that fit on no open node fit on the drained one: it is uncordoned before the autoscaler adds another.",
    "Nothing: the load has grown. Keep more headroom in the pool if it happens often.",
)  # fmt: skip
SCALER_CHANGED = Code(
    "drain-autoscaler-changed", "The cluster autoscaler is adding nodes, is not healthy, or does not report.",
    "See its status.",
)  # fmt: skip
NOT_TAKEN = Code("drain-node-not-removed", "The cluster autoscaler did not remove the empty node.", "Read the message.")
AHEAD = Code(
    "drain-annotation-clock-ahead",
    "An annotation was written by a clock that is ahead: its deadlines count from now on.",
    "Synchronize the clocks of the nodes.",
)  # fmt: skip
ODD_NOTE = Code(
    "drain-annotation-unreadable",
    "The compactor's own annotation on the node cannot be read.",
    "Nothing: it is removed.",
)
UNKNOWN = Code(
    "drain-unknown", "The pool's state does not contain the drain that the compactor's annotation on the node names.",
    "Nothing, if a state was deleted or a key was replaced. Otherwise another client restored an old annotation.",
)  # fmt: skip
NOTE_MISSING = Code(
    "drain-annotation-missing", "The pool's state contains a drain, and its node has no annotation of it.",
    "Nothing: another client removed it, or the process ended before the cordon. The compactor leaves a cordon without "
    "its annotation alone.",
)  # fmt: skip
FAULT = Code(
    "drain-internal-error",
    "The next step of the drain could not be decided because of a bug in Trimtab: the node is released.",
    "See the log for the traceback, and report the bug.",
)  # fmt: skip
STOPPING = Code(
    "drain-process-stopping", "The compactor is stopping, or cannot read the cluster.", "Nothing, or read the message."
)
