"""The settings, the changes and the health of a watch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from trimtab.kube.decode import Key

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How a list is watched. All durations are in seconds."""

    idle_seconds: float = 90.0
    """If nothing arrives for this long, the stream counts as broken. Bookmarks arrive about every minute."""
    stream_seconds: int = 300
    """After this time the server ends the stream, so that replicas are distributed over the API servers again."""
    page_size: int = 500
    """The number of objects in one response: about 5 MB of pods, which is the most that is in memory of a list at any
    time."""
    stream_initial_list: bool = False
    """Whether the first list is streamed (WatchList). This needs the least memory in this process, but more work of the
    API server."""
    absent_retry_seconds: float = 30.0
    """The time between two requests for a kind that the server does not serve."""


class ChangeType(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[V]):
    """A change of one object in a list, found by a watch event or by comparison with a new list."""

    change_type: ChangeType
    kind: str
    key: Key
    before: V | None
    after: V | None


class WatchHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a watch. Times are values of `clock.elapsed_seconds`."""

    synced: bool = False
    """Whether the whole list has been read at least once."""
    connected: bool = False
    """Whether a stream is open now."""
    heard: float | None = None
    """When the last list, event or bookmark arrived; None: never. An open stream alone does not count."""
    absent: bool = False
    """Whether the server does not serve this kind, so that the list is known to be empty."""
    lists: int = 0
    streams: int = 0
    events: int = 0
    error: str = ""
    """The present error; empty if there is none."""

    def age_seconds(self, now: float) -> float | None:
        """Returns how many seconds ago the content was last known to be current, or None if there is no content yet."""
        return None if self.heard is None or not self.synced else max(0.0, now - self.heard)
