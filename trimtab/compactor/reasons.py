"""Reasons why the compactor plans, drains, evicts or waits, one code per rule. Reasons that `trimtab.compaction`
decides are defined there."""

from trimtab.cluster.reason import Code

UNREAD = Code(
    "state-unreadable",
    "The stored state of a pool cannot be read, or its signature is not valid. The compactor kept a copy of it "
    "and started with an empty state.",
    "The message names the copy. `trimtab compactor resume --pool NAME` opens the pool at once.",
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
    "A workload was given more replicas while a pod of it moves, or was scaled back to what it had.",
    "Nothing.",
)
SURGE_LEFT = Code(
    "workload-left-surged",
    "A drain gave a workload more replicas, but the annotation that recorded this no longer exists on the node.",
    "If the workload has more replicas than you want, scale it.",
)
COUNT_CHANGED = Code(
    "workload-count-changed",
    "A drain gave a workload more replicas, and another client has written the count since. That count stays.",
    "Nothing, if the count is the one that you want.",
)
POLICIES_UNSEEN = Code(
    "policies-not-synced",
    "The compactor has not yet read all objects on which policies depend.",
    "Wait. If it takes longer than a minute, check the compactor's log for a missing permission.",
)
UNSEEN = Code(
    "cluster-not-synced",
    "The compactor has not read all objects of the cluster yet.",
    "Wait. If it takes longer than a minute, check the compactor's log for a missing permission.",
)
STALE = Code(
    "data-too-old",
    "The API server has not answered for too long, and the compactor decides nothing with outdated data.",
    "Wait.",
)
PLANNED = Code("plan-changed", "The compactor made a plan that differs from the previous one.", "Nothing.")
BEGUN = Code("drain-started", "The node is cordoned, and its pods are being evicted.", "Nothing.")
NO_CORDON = Code(
    "cordon-refused",
    "The API server rejects the cordon, so the compactor does not drain the node for a while.",
    "The message names the cause: a webhook or a policy engine rejects the cordon, or `trimtab doctor` reports a "
    "missing permission.",
)
ODD_POOL = Code(
    "pool-not-planned",
    "The plan for this pool failed because of a bug in Trimtab, so none of its nodes is drained.",
    "See the log for the traceback, and report the bug.",
)
