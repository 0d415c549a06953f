"""The possible next steps of a drain, as values. An `Actuator` executes them."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.reason import Reason
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
    """Why the whole pool backs off, as a sentence; empty if it does not."""
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
