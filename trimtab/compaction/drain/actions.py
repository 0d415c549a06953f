"""The next steps that a drain can take, as values. An `Actuator` executes them."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.reason import Reason
from trimtab.compaction.drain.annotation import PodToEvict


class FailureCause(StrEnum):
    """Whether the failure of a drain counts against the node, against its pool too, or against neither."""

    NOBODY = "nobody"
    """Nothing: the cluster has changed, and the drain may be tried again as soon as a plan contains it."""
    NODE = "node"
    """The node: it waits before the drain is tried again, twice as long after each failure."""
    POOL = "pool"
    """The node and its pool. After two drains in a row that failed in this way, no drain starts in the pool for a
    while. Failures that pods of one namespace caused count as one (`Release.namespace`)."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict one pod."""

    move: PodToEvict
    counted_workload: str = ""
    """The workload of which the eviction is counted for 24 hours, because the pod limits this; otherwise empty."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing now; `reason` says for what the drain waits."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class MarkEmptied:
    """Write into the node's annotation the time at which the node was empty: all its pods have moved, and all
    successors are ready."""


@dataclass(frozen=True, slots=True)
class Release:
    """Uncordon the node and remove the compactor's annotation."""

    reason: Reason
    blame: FailureCause = FailureCause.NOBODY
    """Whether the end of the drain counts as a failure of the node, of its pool too, or of neither."""
    namespace: str = ""
    """The namespace whose pods alone made the drain fail; empty if there is none, or if there are several."""
    setback: str = ""
    """Why the whole pool must start no drain for a while (back off), as a sentence; empty if there is no such
    reason."""
    reverted: str = ""
    """The Deployment (namespace/name) whose additional pods another client took back; empty if there is none."""
    opened: bool = False
    """Whether an empty node is uncordoned because pending pods need it. The pool then starts no drain for a while, as
    after the autoscaler has added a node."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Stop the drain without writing to the node again, because another client has begun to delete it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set the replicas of a Deployment: to more while a pod of it moves, or back to the original number."""

    deployment: str
    """The Deployment as namespace/name."""
    before: int
    """The number of replicas that the Deployment must have now; otherwise nothing is written."""
    replicas: int
    autoscaler: str = ""
    """The HorizontalPodAutoscaler (namespace/name) that writes the count. If it is not empty, both numbers are those of
    its `minReplicas`, and the count itself is not written."""


Action = Evict | Wait | MarkEmptied | Release | Abandon | SetReplicas
