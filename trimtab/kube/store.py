"""What is held of one list: written by one thread, read by any.

A new list comes into force at once; of it only what really differs is reported. An object whose version has not
changed stays the very same value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject, Metadata
from trimtab.cluster.reason import Unreadable
from trimtab.kube import decode
from trimtab.kube.decode import Key
from trimtab.kube.watch_state import ChangeType, WatchEvent

V = TypeVar("V")
Hold = Callable[[ApiObject], V]
"""What is held of an object; called in the writer's thread alone."""
Told = Callable[[WatchEvent[V]], None]


@dataclass(slots=True)
class StoreSnapshot(Generic[V]):
    """A list that is being read beside the one in force."""

    held: dict[Key, tuple[str, V]] = field(default_factory=dict)
    broken: dict[Key, Unreadable] = field(default_factory=dict)
    doubts: int = 0
    """Of the store, when the list was begun."""


class ObjectStore(Generic[V]):
    """Values by key, each with the version it had."""

    def __init__(self, kind: str, hold: Hold[V], lock: threading.RLock, told: Told[V] | None = None) -> None:
        self.kind = kind
        self._hold = hold
        self._lock = lock
        self._told = told
        self._held: dict[Key, tuple[str, V]] = {}
        self._broken: dict[Key, Unreadable] = {}
        self._doubts = self._answered = 0

    def doubt(self) -> None:
        """From the next list on, everything is held anew: `hold` makes something else of the same objects now."""
        self._doubts += 1

    def fresh(self) -> StoreSnapshot[V]:
        """A list that begins to be read."""
        return StoreSnapshot(doubts=self._doubts)

    def values(self) -> tuple[V, ...]:
        with self._lock:
            return tuple(value for _, value in self._held.values())

    def versions(self) -> dict[Key, str]:
        """Key → resourceVersion of everything held."""
        with self._lock:
            return {key: version for key, (version, _) in self._held.items()}

    def unreadable(self) -> tuple[Unreadable, ...]:
        """What is there and could not be decoded."""
        with self._lock:
            return tuple(self._broken.values())

    def read(self, raw: Raw, fresh: StoreSnapshot[V]) -> None:
        """One more item of a list that is being read."""
        item = decode.item(self.kind, raw)
        if isinstance(item, decode.UndecodableObject):
            fresh.broken[decode.key(item.metadata)] = item.why
            return
        meta: Metadata = item.metadata  # type: ignore[attr-defined]
        key = decode.key(meta)
        old = self._held.get(key)  # only this thread writes, so it may read without the lock
        is_kept = old is not None and old[0] == meta.resource_version and fresh.doubts == self._answered
        fresh.held[key] = old if is_kept and old is not None else (meta.resource_version, self._hold(item))

    def replace(self, fresh: StoreSnapshot[V]) -> None:
        """The list that was read comes into force."""
        with self._lock:
            before, self._held, self._broken = self._held, fresh.held, fresh.broken
        self._answered = fresh.doubts
        if self._told is None:
            return
        for key, old in before.items():
            if key not in fresh.held:
                self._tell(key, old, None)
        for key, new in fresh.held.items():
            if before.get(key) is not new:
                self._tell(key, before.get(key), new)

    def apply(self, item: ApiObject | decode.UndecodableObject, *, gone: bool) -> str:
        """One event; the version the list has now."""
        meta: Metadata = item.metadata  # type: ignore[union-attr]
        key, old = decode.key(meta), self._held.get(decode.key(meta))
        why = item.why if isinstance(item, decode.UndecodableObject) and not gone else None
        new = None if gone or isinstance(item, decode.UndecodableObject) else (meta.resource_version, self._hold(item))
        with self._lock:
            self._broken.pop(key, None)
            if why:
                self._broken[key] = why
            if new is None:
                self._held.pop(key, None)
            else:
                self._held[key] = new
        self._tell(key, old, new)
        return meta.resource_version

    def _tell(self, key: Key, old: tuple[str, V] | None, new: tuple[str, V] | None) -> None:
        if self._told is None or (old is None and new is None):
            return
        what = ChangeType.DELETED if new is None else ChangeType.ADDED if old is None else ChangeType.MODIFIED
        self._told(WatchEvent(what, self.kind, key, old[1] if old else None, new[1] if new else None))
