"""What can be done about a drain next? Values only; a door does them."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.reason import Code, Reason
from trimtab.compaction.drain.note import Leaving


class Blame(StrEnum):
    """Whose fault was it that a drain ended early?"""

    NOBODY = "nobody"
    """Things changed: it may be tried again as soon as the plan says so."""
    NODE = "node"
    """This node waits before it is tried again, twice as long each time."""
    POOL = "pool"
    """And it counts against the pool: two in a row close it."""


@dataclass(frozen=True, slots=True)
class Evict:
    move: Leaving


@dataclass(frozen=True, slots=True)
class Wait:
    reason: Reason


@dataclass(frozen=True, slots=True)
class Emptied:
    """Nothing is left to move, and all successors are ready: write the time on the node."""


@dataclass(frozen=True, slots=True)
class Release:
    """Open the node again and take our note off."""

    reason: Reason
    blame: Blame = Blame.NOBODY


@dataclass(frozen=True, slots=True)
class HandsOff:
    """Somebody else has begun to delete it: nothing is written on it any more."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Scale:
    """Set a Deployment's replicas: one more while its only pod moves, or back again."""

    deployment: str
    """namespace/name."""
    before: int
    """Only if it has so many now."""
    replicas: int


Action = Evict | Wait | Emptied | Release | HandsOff | Scale

# ── waiting ──────────────────────────────────────────────────────────────
ENDING = Code("drain-pod-ending", "An evicted pod is still ending.", "Nothing: it has its grace period.")
SUCCESSORS = Code(
    "drain-successors", "Successors of evicted pods are not ready yet.", "Nothing, or see why they start slowly."
)
NO_BUDGET = Code("drain-budget-spent", "The budget allows no eviction now.", "Nothing: it is asked again.")
ONE_BY_ONE = Code(
    "drain-one-by-one", "Other pods of the workload are missing; the next goes when they are back.", "Nothing."
)
SURGING = Code("drain-surging", "The workload's second pod is not ready yet; the first goes then.", "Nothing.")
LEFT_EMPTY = Code("drain-left-empty", "The node is empty and is left to the cluster autoscaler.", "Nothing.")

# ── ends ─────────────────────────────────────────────────────────────────
TAKEN = Code("drain-node-taken", "The emptied node was removed.", "Nothing: this is the aim.")
VANISHED = Code("drain-node-vanished", "The node disappeared before it was empty.", "Nothing.")
DELETING = Code("drain-deleted-by-another", "Somebody else has begun to delete the node.", "Nothing.")
UNCORDONED = Code(
    "drain-uncordoned", "Somebody opened the node again: that is taken as a no.",
    "Put trimtab.dev/keep: \"true\" on the node if it shall stay.",
)  # fmt: skip
KEPT = Code("drain-node-kept", "Somebody wrote on the node that it shall stay.", "Nothing: it is open again.")
STOPPED = Code(
    "drain-stopped", "Nothing may be done any more: paused, a rehearsal, or the pool is off or gone.", "Nothing."
)
NODE_ILL = Code("drain-node-not-ready", "The node became not ready while it was emptied.", "Mend or delete the node.")
TOO_LONG = Code(
    "drain-too-long", "It took longer than a drain may.", "See what kept the pods; raise TRIMTAB_COMPACTOR_DRAIN."
)
STUCK = Code("drain-pod-stuck", "An evicted pod does not end.", "See its finalizers and its node.")
CAME = Code("drain-pod-came", "Pods came to the node that the plan did not speak of.", "Nothing: it is planned anew.")
FORBIDDEN = Code("drain-pod-forbidden", "A pod of it may not be evicted any more.", "Nothing: it is planned anew.")
NOT_PLACED = Code("drain-successor-not-placed", "A successor finds no node.", "See the pod's events.")
NOT_STARTED = Code("drain-successor-not-ready", "A successor does not become ready.", "See the pod's events.")
PENDING = Code("drain-pods-pending", "Pods wait for a node and would fit on this one.", "Nothing: it is open again.")
SCALER_CHANGED = Code(
    "drain-autoscaler-changed", "The cluster autoscaler adds nodes, is ill, or is silent.", "See its status."
)
NOT_TAKEN = Code("drain-not-taken", "The cluster autoscaler did not remove the empty node.", "See the sentence.")
AHEAD = Code(
    "drain-note-ahead", "A note was written by a clock that was ahead of ours: its deadlines count from now on.",
    "Keep the nodes' clocks in step.",
)  # fmt: skip
ODD_NOTE = Code("drain-note-unreadable", "Our own note on the node cannot be understood.", "Nothing: it is taken off.")
FAULT = Code(
    "drain-fault", "Deciding on the drain failed for an error of ours: it is given back.",
    "See the log for the traceback, and tell us.",
)  # fmt: skip
STOPPING = Code(
    "drain-process-stops", "The compactor was asked to stop, or does not understand what it sees.",
    "Nothing, or see the sentence.",
)  # fmt: skip
