"""The possible next steps of a drain, as values. An `Actuator` executes them."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.drain.annotation import PodToEvict


class FailureCause(StrEnum):
    """What an early end of a drain counts against."""

    NOBODY = "nobody"
    """The cluster changed: the drain may be tried again as soon as a plan contains it."""
    NODE = "node"
    """This node waits before the drain is tried again, twice as long each time."""
    POOL = "pool"
    """The drain also counts against the pool: two in a row close it."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict one pod."""

    move: PodToEvict


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing now; `reason` says for what the drain waits."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class MarkEmptied:
    """All pods have moved and all successors are ready: write the time into the node's annotation."""


@dataclass(frozen=True, slots=True)
class Release:
    """Uncordon the node and remove the compactor's annotation."""

    reason: Reason
    blame: FailureCause = FailureCause.NOBODY
    """What the end of the drain counts against."""
    setback: str = ""
    """Why the whole pool backs off, as a sentence; empty where it does not."""
    opened: bool = False
    """The node was empty and pods need it: the pool starts no drain for a while, as after any node that is added."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Another client has begun to delete the node: the compactor no longer writes to it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set the replicas of a Deployment: one more while its only pod moves, or the original number again."""

    deployment: str
    """namespace/name."""
    before: int
    """The number of replicas that it must have now; otherwise nothing is written."""
    replicas: int


Action = Evict | Wait | MarkEmptied | Release | Abandon | SetReplicas

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
