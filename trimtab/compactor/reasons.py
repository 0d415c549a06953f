"""Why the compactor plans, drains, evicts or waits, as far as no pure package decides it: one code per rule."""

from trimtab.cluster.reason import Code

UNREAD = Code(
    "state-unreadable",
    "The state of a pool cannot be read, or its signature is not valid. It was copied, and a new state begins.",
    "Read the message for the place of the copy; `trimtab compactor resume --pool NAME` reopens the pool at once.",
)  # fmt: skip
EVICTED = Code("pod-evicted", "The pod was evicted to drain its node.", "Nothing: its successor runs on another node.")
REFUSED = Code("eviction-refused", "The API server rejected the eviction for now.", "Nothing: it is tried again.")
IS_EMPTY = Code("node-drained", "All its pods are ready on other nodes; the cluster autoscaler removes it.", "Nothing.")
SCALED = Code("workload-surged", "A workload of one replica has two while its pod moves, or one again.", "Nothing.")
SURGE_LEFT = Code(
    "workload-left-surged", "A drain gave a workload a second replica, and the annotation on its node is gone.",
    "Scale the workload to one replica if it has two and you want one.",
)  # fmt: skip
POLICIES_UNSEEN = Code(
    "policies-not-synced", "Not everything on which policies depend has been read yet.",
    "Wait, or see the log for a missing permission.",
)  # fmt: skip
UNSEEN = Code(
    "cluster-not-synced",
    "The compactor has not read all objects yet.",
    "Wait, or check the log for a permission that the compactor lacks.",
)
STALE = Code(
    "data-too-old",
    "The API server has not answered for too long, and the compactor does not act on old data.",
    "Wait.",
)
PLANNED = Code("plan-changed", "A plan was made that differs from the one before.", "Nothing.")
BEGUN = Code("drain-started", "The node is cordoned, and its pods are being evicted.", "Nothing.")
NO_CORDON = Code(
    "cordon-refused", "The API server rejects the cordon: the node is left alone for a while.",
    "Read the message: a webhook or a policy engine rejects it, or `trimtab doctor` reports a missing permission.",
)  # fmt: skip
ODD_POOL = Code(
    "pool-not-planned", "Planning in this pool failed because of a bug in Trimtab: none of its nodes is drained.",
    "See the log for the traceback, and report the bug.",
)  # fmt: skip
