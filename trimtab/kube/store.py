"""The objects of one list, which one thread writes and any thread may read.

A new list replaces the old one at once, and only real differences are reported. If the version of an object has not
changed, its stored value is kept and not created again.
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
Transform = Callable[[ApiObject], V]
"""A function that takes an object and returns the value to store for it. It is called only in the thread that
writes."""
OnChange = Callable[[WatchEvent[V]], None]


@dataclass(slots=True)
class StoreSnapshot(Generic[V]):
    """A list that is being read, while the present one is still in use."""

    entries: dict[Key, tuple[str, V]] = field(default_factory=dict)
    unreadable: dict[Key, Unreadable] = field(default_factory=dict)
    doubt_count: int = 0
    """How often `retransform_next_list` had been called when the list was begun. It shows whether objects must be
    transformed again."""


class ObjectStore(Generic[V]):
    """The stored values by key, each with its version."""

    def __init__(
        self, kind: str, hold: Transform[V], lock: threading.RLock, on_change: OnChange[V] | None = None
    ) -> None:
        self.kind = kind
        self._hold = hold
        self._lock = lock
        self._on_change = on_change
        self._values: dict[Key, tuple[str, V]] = {}
        self._unreadable: dict[Key, Unreadable] = {}
        self._doubts = self._settled_doubts = 0
        self.skip_env = bool(getattr(hold, "skip_env", False))
        """Whether the transform reads no environment variables of pods, so that they are not decoded."""

    def retransform_next_list(self) -> None:
        """Has every object of the next list transformed again, because the transform function now returns different
        values for the same objects."""
        self._doubts += 1

    def begin_list(self) -> StoreSnapshot[V]:
        """Returns an empty list, to which the reflector adds the objects that it receives."""
        return StoreSnapshot(doubt_count=self._doubts)

    def list_values(self) -> tuple[V, ...]:
        """Returns the stored values of all objects."""
        with self._lock:
            return tuple(value for _, value in self._values.values())

    def versions_by_key(self) -> dict[Key, str]:
        """Returns key → resourceVersion of every object."""
        with self._lock:
            return {key: version for key, (version, _) in self._values.items()}

    def unreadable_objects(self) -> tuple[Unreadable, ...]:
        """Returns the objects that could not be decoded."""
        with self._lock:
            return tuple(self._unreadable.values())

    def read_item(self, raw: Raw, fresh: StoreSnapshot[V]) -> None:
        """Adds one item to a list that is being read."""
        item = decode.decode_item(self.kind, raw, skip_env=self.skip_env)
        if isinstance(item, decode.UndecodableObject):
            fresh.unreadable[decode.object_key(item.metadata)] = item.unreadable
            return
        meta: Metadata = item.metadata  # type: ignore[attr-defined]
        key = decode.object_key(meta)
        old = self._values.get(key)  # only this thread writes, so it can read without the lock
        is_unchanged = old is not None and old[0] == meta.resource_version and fresh.doubt_count == self._settled_doubts
        fresh.entries[key] = old if is_unchanged and old is not None else (meta.resource_version, self._hold(item))

    def replace_list(self, fresh: StoreSnapshot[V]) -> None:
        """Makes a list the present one, and reports the differences."""
        with self._lock:
            before, self._values, self._unreadable = self._values, fresh.entries, fresh.unreadable
        # The count of the list's start: a doubt that was raised while it was read applies to the next list.
        self._settled_doubts = fresh.doubt_count
        if self._on_change is None:
            return
        for key, old in before.items():
            if key not in fresh.entries:
                self._report_change(key, old, None)
        for key, new in fresh.entries.items():
            # Identity suffices: an unchanged object keeps its very entry (see `read_item`).
            if before.get(key) is not new:
                self._report_change(key, before.get(key), new)

    def apply_event(self, item: ApiObject | decode.UndecodableObject, *, gone: bool) -> str:
        """Applies one event, and returns the version of the list after it."""
        meta: Metadata = item.metadata  # type: ignore[union-attr]
        key = decode.object_key(meta)
        old = self._values.get(key)
        unreadable = item.unreadable if isinstance(item, decode.UndecodableObject) and not gone else None
        new = None if gone or isinstance(item, decode.UndecodableObject) else (meta.resource_version, self._hold(item))
        with self._lock:
            self._unreadable.pop(key, None)
            if unreadable:
                self._unreadable[key] = unreadable
            if new is None:
                self._values.pop(key, None)
            else:
                self._values[key] = new
        self._report_change(key, old, new)
        return meta.resource_version

    def _report_change(self, key: Key, old: tuple[str, V] | None, new: tuple[str, V] | None) -> None:
        if self._on_change is None or (old is None and new is None):
            return
        what = ChangeType.DELETED if new is None else ChangeType.ADDED if old is None else ChangeType.MODIFIED
        self._on_change(WatchEvent(what, self.kind, key, old[1] if old else None, new[1] if new else None))
