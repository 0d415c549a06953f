"""Reasons why the compactor plans, drains, evicts or waits, one code per rule. Reasons that `trimtab.compaction`
decides are defined there."""

from trimtab.cluster.reason import Code

UNREAD = Code(
    "state-unreadable",
    "The stored state of a pool is invalid or not validly signed, so the compactor began with an empty one. It kept "
    "a copy of the state.",
    "`trimtab compactor resume --pool NAME` opens the pool at once. The message names the copy.",
)
EVICTED = Code(
    "pod-evicted", "The pod was evicted to drain its node.", "Nothing to do: its successor runs on another node."
)
REFUSED = Code(
    "eviction-refused", "The API server rejected the eviction for now.", "Nothing to do: the compactor tries again."
)
IS_EMPTY = Code(
    "node-drained",
    "All pods of the node are ready on other nodes, and the cluster autoscaler removes the node.",
    "Nothing.",
)
SCALED = Code(
    "workload-surged",
    "A workload got more replicas while a pod of it moves, or was scaled back afterwards.",
    "Nothing.",
)
SURGE_LEFT = Code(
    "workload-left-surged",
    "A workload may have kept additional replicas of a drain. The annotation that recorded them no longer exists on "
    "the node.",
    "Scale the workload down, if it has more replicas than you want.",
)
COUNT_CHANGED = Code(
    "workload-count-changed",
    "Another client has changed a count that a drain had raised, and its count stays.",
    "Check whether the count is the one that you want.",
)
POLICIES_UNSEEN = Code(
    "policies-not-synced",
    "The compactor has not read all objects on which policies depend.",
    "Wait a minute, then look for a missing permission in the compactor's log.",
)
UNSEEN = Code(
    "cluster-not-synced",
    "The compactor has not read all objects of the cluster yet.",
    "Wait a minute, then look for a missing permission in the compactor's log.",
)
STALE = Code(
    "data-too-old",
    "The API server has not answered for too long to decide anything. The compactor decides nothing with outdated "
    "data.",
    "Wait.",
)
PLANNED = Code("plan-changed", "The compactor's plan differs from the previous one.", "Nothing.")
BEGUN = Code("drain-started", "The node is cordoned, and its pods are being evicted.", "Nothing.")
NO_CORDON = Code(
    "cordon-refused",
    "The API server rejects the cordon, so the node is not drained for a while.",
    "The message names the webhook, the policy engine or the missing permission.",
)
ODD_POOL = Code(
    "pool-not-planned",
    "A bug in Trimtab stopped the plan of this pool, so no node is drained.",
    "See the log for the traceback, and report the bug.",
)
