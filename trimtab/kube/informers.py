"""Keeps many of the API server's lists up to date, readable as one Snapshot; and queues their changes for one thread.

Some lists are watched from the start; others are added and removed while the process runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import SHAPES_BY_KIND, Snapshot
from trimtab.kube.client import Client
from trimtab.kube.reflector import ReconnectGate, Reflector
from trimtab.kube.resources import ListSource, list_sources
from trimtab.kube.transform import FieldPruner
from trimtab.kube.watch_state import WatchEvent, WatchHealth, WatchSettings
from trimtab.runtime.clock import elapsed_seconds

Holds = Mapping[str, Callable[[ApiObject], Any]]
"""Kind → a function that returns what is stored instead of an object of this kind (see
`ClusterInformers.values_of`)."""


class ClusterInformers:
    """Watches many lists. It is started by `start` or as a context manager; `stop` ends it within milliseconds."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[str] | Iterable[ListSource] = tuple(SHAPES_BY_KIND),
        *,
        terms: WatchSettings | None = None,
        holds: Holds | None = None,
        on_change: Callable[[WatchEvent[Any]], None] | None = None,
    ) -> None:
        """`on_change` is called for every real difference, from several threads. The functions in `holds` must be safe
        to call from a thread."""
        wanted = tuple(kinds)
        lists = list_sources(kind for kind in wanted if isinstance(kind, str)) + tuple(
            source for source in wanted if isinstance(source, ListSource)
        )
        self._lock = threading.RLock()
        self._holds = dict(holds or {})
        reconnect_gate = ReconnectGate()
        self.reflectors: tuple[Reflector[Any], ...] = tuple(
            Reflector(
                client,
                source,
                self._holds.get(source.kind) or FieldPruner(),
                settings=terms,
                lock=self._lock,
                on_change=on_change,
                reconnect_gate=reconnect_gate,
            )
            for source in lists
        )
        self._threads: list[threading.Thread] = []

    def start(self) -> ClusterInformers:
        """Starts all watches and returns at once. `wait_until_synced` waits for the first lists."""
        for reflector in self.reflectors:
            thread = threading.Thread(target=reflector.run, name=f"watch-{reflector.source}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def stop(self, within: float = 1.0) -> bool:
        """Stops all watches. Returns True when every thread has ended. A thread that is just connecting may need until
        its deadline."""
        for reflector in self.reflectors:
            reflector.stop()
        deadline = elapsed_seconds() + within
        for reflector, thread in zip(self.reflectors, self._threads, strict=False):
            while thread.is_alive() and elapsed_seconds() < deadline:
                thread.join(0.05)
                reflector.stop()  # again: its thread may have been about to send a request
        return not any(thread.is_alive() for thread in self._threads)

    def __enter__(self) -> ClusterInformers:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def relist_kind(self, kind: str) -> None:
        """Lists this kind again and transforms all its objects again, because the function in `holds` now returns
        different values. The earlier values stay until then."""
        for reflector in self.reflectors:
            if reflector.source.kind == kind:
                reflector.store.retransform_next_list()
                reflector.restart_from()

    @property
    def is_synced(self) -> bool:
        """Whether every list has been read at least once. It stays true after that; `oldest_age` says how old the
        content is."""
        return all(reflector.health.synced for reflector in self.reflectors)

    def wait_until_synced(self, within: float) -> bool:
        """Waits until every list has been read, at most `within` seconds. Returns whether that is so."""
        deadline = elapsed_seconds() + within
        pause = threading.Event()
        while not self.is_synced and elapsed_seconds() < deadline:
            pause.wait(0.02)
        return self.is_synced

    def oldest_age(self) -> float | None:
        """Returns how many seconds ago the most outdated list was last known to be current, or None if a list was never
        read.

        In a quiet cluster this can be about a minute, the interval at which the API server sends bookmarks.
        """
        now = elapsed_seconds()
        ages = [r.health.age_seconds(now) for r in self.reflectors if not r.health.absent]
        known_ages = [age for age in ages if age is not None]
        return None if len(known_ages) < len(ages) else max(known_ages, default=0.0)

    def health_by_list(self) -> dict[str, WatchHealth]:
        """Returns list → its health."""
        return {str(reflector.source): reflector.health for reflector in self.reflectors}

    def errors_by_list(self) -> dict[str, str]:
        """Returns list → its present error, for the lists that have one."""
        return {name: state.error for name, state in self.health_by_list().items() if state.error}

    def unreadable_objects(self) -> tuple[Unreadable, ...]:
        """Returns the objects that could not be decoded. They are missing in the snapshot, so no plan may assume that
        they do not exist."""
        return tuple(unreadable for reflector in self.reflectors for unreadable in reflector.store.unreadable_objects())

    def values_of(self, kind: str) -> tuple[Any, ...]:
        """Returns the stored value of each object of a kind."""
        with self._lock:
            return tuple(value for r in self.reflectors if r.source.kind == kind for value in r.store.list_values())

    def take_snapshot(self) -> Snapshot:
        """Returns the objects of all kinds at one moment, except the kinds in `holds`."""
        with self._lock:
            kinds = dict.fromkeys(r.source.kind for r in self.reflectors if r.source.kind not in self._holds)
            values_by_kind = {kind: self.values_of(kind) for kind in kinds}
        return Snapshot({kind: values for kind, values in values_by_kind.items() if values})


QUEUE_WATCH_SETTINGS = WatchSettings(absent_retry_seconds=10.0)
"""The settings of the watches of a `ChangeQueue`. With them, a CustomResourceDefinition that is installed later is
noticed within ten seconds."""


class ChangeQueue:
    """The changes of several lists, for one thread. It is started by `start`; `stop` ends it within milliseconds."""

    def __init__(
        self,
        client: Client,
        sources: Iterable[ListSource],
        holds: Holds,
        wanted: Callable[[WatchEvent[Any]], bool] = lambda _change: True,
    ) -> None:
        """The changes of `sources` for which `wanted` returns true are queued. `wanted` is called in the threads of the
        watches."""
        self._client, self._holds = client, holds
        self._changes: SimpleQueue[WatchEvent[Any]] = SimpleQueue()

        def on_change(change: WatchEvent[Any]) -> None:
            if wanted(change):
                self._changes.put(change)

        self.informers = ClusterInformers(client, sources, terms=QUEUE_WATCH_SETTINGS, holds=holds, on_change=on_change)
        """The informers of the lists that are watched from the start."""
        self._added: ClusterInformers | None = None
        self._added_sources: tuple[ListSource, ...] = ()

    def start(self) -> None:
        """Starts all watches and returns at once."""
        self.informers.start()

    def stop(self) -> None:
        self.informers.stop()
        if self._added is not None:
            self._added.stop()

    @property
    def is_synced(self) -> bool:
        """Whether every list has been read at least once, including lists that were added later."""
        return self.informers.is_synced and (self._added is None or self._added.is_synced)

    def errors_by_list(self) -> dict[str, str]:
        """Returns list → its present error, for the lists that have one."""
        return {**self.informers.errors_by_list(), **(self._added.errors_by_list() if self._added else {})}

    def take_changes(self, within: float = 0.0, settle: float = 0.0) -> list[WatchEvent[Any]]:
        """Returns the changes since the last call. If there are none, waits up to `within` seconds for the first, and
        then `settle` seconds more for changes that belong together."""
        try:
            first = self._changes.get(within > 0, within)
        except Empty:
            return []
        if settle > 0:
            threading.Event().wait(settle)
        # Only this thread takes changes, so the size cannot shrink in between.
        return [first, *(self._changes.get() for _ in range(self._changes.qsize()))]

    def watch_added(self, sources: Iterable[ListSource]) -> bool:
        """Watches these lists in addition to the lists from the start, and no longer those of the last call. Returns
        True if they differ from those of the last call: objects of the earlier lists are then no longer reported, and
        all objects of the new lists will be."""
        wanted = tuple(sources)
        if wanted == self._added_sources:
            return False
        if self._added is not None:
            self._added.stop()
        self._added_sources = wanted
        self._added = ClusterInformers(
            self._client, wanted, terms=QUEUE_WATCH_SETTINGS, holds=self._holds, on_change=self._changes.put
        )
        self._added.start()
        return True
