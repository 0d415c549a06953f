"""The answer to a search for room: places and moves, or why there is none."""

from dataclasses import dataclass

from trimtab.cluster.reason import Reason
from trimtab.compaction.plan_types import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPlace:
    """The node for a pod that wants to run."""

    pod: str
    """The pod as namespace/name."""
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPlan:
    """The places of all pods, and the moves that make them free."""

    places: tuple[RoomPlace, ...]
    moves: tuple[Move, ...]
    """The evictions in the order of their turns. A turn begins when the successors of the previous one are ready."""
    freed_node: str = ""
    """The node that has no pods of a workload afterwards, if a whole node was wanted."""
    preempted: tuple[str, ...] = ()
    """Pods (namespace/name) that only keep room free for others, and that the scheduler preempts. They are not moved,
    and wait afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom:
    """Why there is no room for a pod, with the node that lacks least. Without a name, a whole node was wanted."""

    pod: str
    reason: Reason
    placed: int
    """The number of the pods that found a place before this one."""
