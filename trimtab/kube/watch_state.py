"""How is a list watched, what changed in it, and how well does it go?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from trimtab.kube.decode import Key

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How a list is watched. Seconds."""

    idle: float = 90.0
    """Silence after which a stream is taken for dead: bookmarks come about every minute."""
    turn: int = 300
    """After so long the server is asked to end the stream, so that replicas spread over API servers again."""
    page: int = 500
    """Objects in one answer: about 5 MB of pods, which is what is held of a list at any time."""
    streaming: bool = False
    """Have the first list streamed (WatchList): least memory here, more work for the API server."""
    absent: float = 30.0
    """Between looks for a kind that the server does not serve."""


class ChangeType(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[V]):
    """A real difference: also when it was found by listing anew."""

    what: ChangeType
    kind: str
    key: Key
    before: V | None
    after: V | None


class WatchHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of how well it goes. Times are `clock.elapsed`'s."""

    synced: bool = False
    """Was the whole list read at least once?"""
    connected: bool = False
    """Is a stream open now?"""
    heard: float | None = None
    """When a list, an event or a bookmark last told how things stand; None: never. An open stream tells nothing."""
    absent: bool = False
    """The server does not serve this kind: the list is known to be empty."""
    lists: int = 0
    streams: int = 0
    events: int = 0
    error: str = ""
    """What went wrong last; empty while it goes well."""

    def age(self, now: float) -> float | None:
        """Seconds since what is held was known to be true; None: nothing is held yet."""
        return None if self.heard is None or not self.synced else max(0.0, now - self.heard)
