"""What can be done to a cluster? Two implementations: one does it, the other does nothing.

DoorFault          all of them
├── Changed        the object changed since it was looked at: look again
├── Gone           it is not there any more
└── NotNow         anything else: no answer, too much to do, not the leader; the text says what was being done
    └── Denied     the server said no to this very write: a webhook of somebody's, or a right that is missing

The door that does nothing. What it was asked to do stands in the records, as for the other one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.pool_state import HistoryEntry


class ActuatorError(Exception):
    """Something could not be done."""


class ActuatorConflict(ActuatorError):
    """It changed since it was looked at."""


class ActuatorNotFound(ActuatorError):
    """It is not there any more."""


class ActuatorUnavailable(ActuatorError):
    """It did not work, or nobody knows whether it did."""


class ActuatorForbidden(ActuatorUnavailable):
    """This very write is refused, and may be for ever; another one may well be done."""


@dataclass(slots=True)
class ErrorCollector:
    """Writes that have nothing to do with each other: the trouble of one keeps no other from being done."""

    trouble: ActuatorUnavailable | None = None
    """The first; but one that says more than no to one write before one that does not."""

    @property
    def only_denied(self) -> bool:
        """Is nothing wrong but that single writes are refused?"""
        return self.trouble is None or isinstance(self.trouble, ActuatorForbidden)

    @contextmanager
    def tried(self) -> Iterator[None]:
        """What changed or went is looked at anew, and no trouble."""
        try:
            yield
        except (ActuatorConflict, ActuatorNotFound):
            pass
        except ActuatorUnavailable as error:
            if self.trouble is None or (self.only_denied and not isinstance(error, ActuatorForbidden)):
                self.trouble = error

    def tell(self) -> None:
        """Once all were tried. Raises the trouble there was."""
        if self.trouble is not None:
            raise self.trouble


class EvictionResult(StrEnum):
    """What became of an eviction."""

    EVICTED = "evicted"
    REFUSED = "refused"
    """Its budget has no room, or asks to wait."""
    NEVER = "never"
    """The API cannot evict it at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionResponse:
    became: EvictionResult
    message: str = ""
    retry_after: float | None = None
    """Seconds; None where the server does not say."""


class Actuator(Protocol):
    """Each verb does one write, or raises a DoorFault; what was done is visible in the cluster afterwards."""

    @property
    def rehearsal(self) -> bool:
        """Is nothing done here?"""

    def cordon(self, node: NodeInfo, version: str, note: DrainAnnotation) -> None:
        """No new pods on it, our note beside it, signed, in one write; again with a changed note."""

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        """Our note off, and the node open again where it was ours to open."""

    def evict(self, move: PodToEvict) -> EvictionResponse:
        """This very pod, by the eviction API."""

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        """False where it had another number of replicas."""

    def steer(self, node: NodeInfo, version: str, *, leaving: bool) -> None:
        """Our soft taint on the node, or off it."""

    def tell(self, record: HistoryEntry) -> None:
        """To the people concerned. Never raises."""


class DryRunActuator:
    """Takes everything for done."""

    @property
    def rehearsal(self) -> bool:
        return True

    def cordon(self, node: NodeInfo, version: str, note: DrainAnnotation) -> None:
        pass

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        pass

    def evict(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        return True

    def steer(self, node: NodeInfo, version: str, *, leaving: bool) -> None:
        pass

    def tell(self, record: HistoryEntry) -> None:
        pass
