"""What can be done to a cluster? Two implementations: one does it, the other does nothing.

DoorFault          all of them
├── Changed        the object changed since it was looked at: look again
├── Gone           it is not there any more
└── NotNow         anything else: no answer, not allowed, not the leader; the text says what was being done
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from trimtab.cluster.node import Node
from trimtab.compaction.drain.memory import Record
from trimtab.compaction.drain.note import Leaving, Note


class DoorFault(Exception):
    """Something could not be done."""


class Changed(DoorFault):
    """It changed since it was looked at."""


class Gone(DoorFault):
    """It is not there any more."""


class NotNow(DoorFault):
    """It did not work, or nobody knows whether it did."""


class Became(StrEnum):
    """What became of an eviction."""

    EVICTED = "evicted"
    REFUSED = "refused"
    """Its budget has no room, or asks to wait."""
    NEVER = "never"
    """The API cannot evict it at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    became: Became
    message: str = ""
    retry_after: float | None = None
    """Seconds; None where the server does not say."""


class Door(Protocol):
    """Each verb does one write, or raises a DoorFault; what was done is visible in the cluster afterwards."""

    @property
    def rehearsal(self) -> bool:
        """Is nothing done here?"""

    def cordon(self, node: str, version: str, note: Note) -> None:
        """No new pods on it, our note beside it, in one write; again with a changed note."""

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        """Our note off, and the node open again where it was ours to open."""

    def evict(self, move: Leaving) -> Answer:
        """This very pod, by the eviction API."""

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        """False where it had another number of replicas."""

    def steer(self, node: Node, version: str, *, leaving: bool) -> None:
        """Our soft taint on the node, or off it."""

    def tell(self, record: Record) -> None:
        """To the people concerned. Never raises."""
