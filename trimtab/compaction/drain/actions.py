"""What can be done about a drain next? Values only; a door does them."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.drain.annotation import PodToEvict


class FailureCause(StrEnum):
    """Whose fault was it that a drain ended early?"""

    NOBODY = "nobody"
    """Things changed: it may be tried again as soon as the plan says so."""
    NODE = "node"
    """This node waits before it is tried again, twice as long each time."""
    POOL = "pool"
    """And it counts against the pool: two in a row close it."""


@dataclass(frozen=True, slots=True)
class Evict:
    move: PodToEvict


@dataclass(frozen=True, slots=True)
class Wait:
    reason: Reason


@dataclass(frozen=True, slots=True)
class MarkEmptied:
    """Nothing is left to move, and all successors are ready: write the time on the node."""


@dataclass(frozen=True, slots=True)
class Release:
    """Open the node again and take our note off."""

    reason: Reason
    blame: FailureCause = FailureCause.NOBODY
    setback: str = ""
    """Why the whole pool backs off, in words; empty where it does not."""
    opened: bool = False
    """It was empty, and pods need it: the pool begins nothing for a while, as after any node that is added."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Somebody else has begun to delete it: nothing is written on it any more."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set a Deployment's replicas: one more while its only pod moves, or back again."""

    deployment: str
    """namespace/name."""
    before: int
    """Only if it has so many now."""
    replicas: int


Action = Evict | Wait | MarkEmptied | Release | Abandon | SetReplicas

# ── waiting ──────────────────────────────────────────────────────────────
ENDING = Code("drain-pod-terminating", "An evicted pod is still ending.", "Nothing: it has its grace period.")
SUCCESSORS = Code(
    "drain-waits-for-successors",
    "Successors of evicted pods are not ready yet.",
    "Nothing, or see why they start slowly.",
)
NO_BUDGET = Code("drain-budget-spent", "The budget allows no eviction now.", "Nothing: it is asked again.")
ONE_BY_ONE = Code(
    "drain-waits-for-workload", "Other pods of the workload are missing; the next goes when they are back.", "Nothing."
)
ONE_CRITICAL = Code(
    "drain-waits-for-critical-workload", "Another workload that the system depends on moves; this one's turn is next.",
    "Nothing.",
)  # fmt: skip
SURGING = Code("drain-surging", "The workload's second pod is not ready yet; the first goes then.", "Nothing.")
LEFT_EMPTY = Code("drain-waits-for-autoscaler", "The node is empty and is left to the cluster autoscaler.", "Nothing.")

# ── ends ─────────────────────────────────────────────────────────────────
TAKEN = Code("drain-node-removed", "The emptied node was removed.", "Nothing: this is the aim.")
VANISHED = Code("drain-node-vanished", "The node disappeared before it was empty.", "Nothing.")
DELETING = Code("drain-deleted-by-another", "Somebody else has begun to delete the node.", "Nothing.")
UNCORDONED = Code(
    "drain-uncordoned", "Somebody opened the node again: that is taken as a no.",
    "Put trimtab.dev/do-not-disrupt: \"true\" on the node if it shall stay.",
)  # fmt: skip
CLAIMED = Code(
    "drain-autoscaler-removes-node",
    "The pool leads, and the cluster autoscaler chose the node for removal before a pod of it was evicted.",
    "Nothing: it empties the node itself. Lower its --scale-down-utilization-threshold if the pool shall lead.",
)  # fmt: skip
DELETION_FAILED = Code(
    "drain-deletion-failed", "The cluster autoscaler began to delete the node, failed, and opened it again.",
    "See its log for why; the node is tried again later.",
)  # fmt: skip
KEPT = Code("drain-node-kept", "Somebody wrote on the node that it shall stay.", "Nothing: it is open again.")
STOPPED = Code(
    "drain-stopped", "Nothing may be done any more: paused, a rehearsal, or the pool is off or gone.", "Nothing."
)
NODE_ILL = Code("drain-node-not-ready", "The node became not ready while it was emptied.", "Mend or delete the node.")
TOO_LONG = Code(
    "drain-too-long",
    "It took longer than a drain may.",
    "See what kept the pods; raise TRIMTAB_COMPACTOR_DRAIN_TIMEOUT_SECONDS.",
)
STUCK = Code("drain-pod-stuck", "An evicted pod does not end.", "See its finalizers and its node.")
CAME = Code("drain-pods-added", "Pods came to the node that the plan did not speak of.", "Nothing: it is planned anew.")
FORBIDDEN = Code("drain-pod-not-evictable", "A pod of it may not be evicted any more.", "Nothing: it is planned anew.")
NOT_CREATED = Code(
    "drain-successor-not-created", "The API server refuses a successor: a quota, or somebody's webhook.",
    "See the sentence, which quotes the refusal; the node is tried again later.",
)  # fmt: skip
NOT_PLACED = Code("drain-successor-not-placed", "A successor finds no node.", "See the pod's events.")
NOT_STARTED = Code("drain-successor-not-ready", "A successor does not become ready.", "See the pod's events.")
PENDING = Code("drain-pods-pending", "Pods wait for a node and would fit on this one.", "Nothing: it is open again.")
OPENED = Code(
    "drain-node-uncordoned-for-pods",
    "Pods that no open node takes fit on the emptied one: it is open again before the autoscaler adds another.",
    "Nothing: the load has grown. Keep more headroom in the pool if it happens often.",
)  # fmt: skip
SCALER_CHANGED = Code(
    "drain-autoscaler-changed", "The cluster autoscaler adds nodes, is ill, or is silent.", "See its status."
)
NOT_TAKEN = Code("drain-node-not-removed", "The cluster autoscaler did not remove the empty node.", "See the sentence.")
AHEAD = Code(
    "drain-annotation-clock-ahead",
    "An annotation was written by a clock that was ahead of this one: its deadlines count from now on.",
    "Keep the nodes' clocks in step.",
)  # fmt: skip
ODD_NOTE = Code(
    "drain-annotation-unreadable", "Our own note on the node cannot be understood.", "Nothing: it is taken off."
)
UNKNOWN = Code(
    "drain-unknown", "The pool's state does not know the drain that an annotation of ours on the node speaks of.",
    "Nothing, where a state was deleted or a key replaced; else somebody wrote an old annotation back.",
)  # fmt: skip
NOTE_MISSING = Code(
    "drain-annotation-missing", "A drain was written down, and no annotation of it stands on its node.",
    "Nothing: somebody took it off, or the process died before the cordon. A cordon that is there is nobody's of ours.",
)  # fmt: skip
FAULT = Code(
    "drain-internal-error", "Deciding on the drain failed for an error of ours: it is given back.",
    "See the log for the traceback, and tell us.",
)  # fmt: skip
STOPPING = Code(
    "drain-process-stopping", "The compactor was asked to stop, or does not understand what it sees.",
    "Nothing, or see the sentence.",
)  # fmt: skip
