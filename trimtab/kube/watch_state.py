"""Settings of a watch, its changes, and its health."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from trimtab.kube.decode import Key

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How a list is watched. Durations are seconds."""

    idle_seconds: float = 90.0
    """The silence after which a stream counts as broken: bookmarks arrive about every minute."""
    stream_seconds: int = 300
    """The time after which the server ends the stream, so that replicas spread over API servers again."""
    page_size: int = 500
    """Objects in one response: about 5 MB of pods, the most that is in memory of a list at any time."""
    stream_initial_list: bool = False
    """Whether the first list is streamed (WatchList): least memory here, more work for the API server."""
    absent_retry_seconds: float = 30.0
    """The time between requests for a kind that the server does not serve."""


class ChangeType(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[V]):
    """A real difference, also where a new list showed it."""

    change_type: ChangeType
    kind: str
    key: Key
    before: V | None
    after: V | None


class WatchHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a watch. Times are those of `clock.elapsed_seconds`."""

    synced: bool = False
    """Whether the whole list was read at least once."""
    connected: bool = False
    """Whether a stream is open now."""
    heard: float | None = None
    """The time of the last list, event or bookmark; None: never. An open stream alone does not count."""
    absent: bool = False
    """The server does not serve this kind: the list is known to be empty."""
    lists: int = 0
    streams: int = 0
    events: int = 0
    error: str = ""
    """The last error; empty while there is none."""

    def age_seconds(self, now: float) -> float | None:
        """Returns the seconds since the content was known to be current, or None if there is no content yet."""
        return None if self.heard is None or not self.synced else max(0.0, now - self.heard)
