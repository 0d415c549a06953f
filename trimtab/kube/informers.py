"""Many lists, kept equal to the server's, and read as one Snapshot.

What watches tell, taken by one thread: some lists from the start, and more that come and go with what was heard.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import KINDS, Snapshot
from trimtab.kube.client import Client
from trimtab.kube.reflector import ReconnectGate, Reflector
from trimtab.kube.resources import ListSource, sources
from trimtab.kube.transform import FieldPruner
from trimtab.kube.watch_state import WatchEvent, WatchHealth, WatchSettings
from trimtab.runtime.clock import elapsed

Holds = Mapping[str, Callable[[ApiObject], Any]]
"""Kind → what is held of its objects instead of the shape (read them with `held`)."""


class ClusterInformers:
    """Begin it with `start`, or as a context; `stop` ends it in milliseconds."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[str] | Iterable[ListSource] = tuple(KINDS),
        *,
        terms: WatchSettings | None = None,
        holds: Holds | None = None,
        told: Callable[[WatchEvent[Any]], None] | None = None,
    ) -> None:
        """`told` hears every real difference, from several threads; `holds` must be safe to call in a thread."""
        wanted = tuple(kinds)
        lists = sources(kind for kind in wanted if isinstance(kind, str)) + tuple(
            source for source in wanted if isinstance(source, ListSource)
        )
        self._lock = threading.RLock()
        self._holds = dict(holds or {})
        road = ReconnectGate()
        self.reflectors: tuple[Reflector[Any], ...] = tuple(
            Reflector(
                client, source, self._holds.get(source.kind) or FieldPruner(), terms=terms, lock=self._lock, told=told,
                road=road,
            )
            for source in lists
        )  # fmt: skip
        self._threads: list[threading.Thread] = []

    def start(self) -> ClusterInformers:
        """Returns at once; `wait` for the first lists."""
        for reflector in self.reflectors:
            thread = threading.Thread(target=reflector.run, name=f"watch-{reflector.source}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def stop(self, within: float = 1.0) -> bool:
        """True when every thread has ended; one that is making a connection may need until its deadline."""
        for reflector in self.reflectors:
            reflector.stop()
        until = elapsed() + within
        for reflector, thread in zip(self.reflectors, self._threads, strict=False):
            while thread.is_alive() and elapsed() < until:
                thread.join(0.05)
                reflector.stop()  # again: it may just have been about to ask when it was told
        return not any(thread.is_alive() for thread in self._threads)

    def __enter__(self) -> ClusterInformers:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def read_again(self, kind: str) -> None:
        """List this kind anew and hold all of it anew, for `holds` makes something else of it now. What is held stays
        until then."""
        for reflector in self.reflectors:
            if reflector.source.kind == kind:
                reflector.store.doubt()
                reflector.again()

    @property
    def synced(self) -> bool:
        """Was every list read at least once? It stays true: how old it all is, `age` tells."""
        return all(reflector.state.synced for reflector in self.reflectors)

    def wait(self, within: float) -> bool:
        """Until everything is synced, no longer than so many seconds; whether it is."""
        until = elapsed() + within
        pause = threading.Event()
        while not self.synced and elapsed() < until:
            pause.wait(0.02)
        return self.synced

    def age(self) -> float | None:
        """Seconds since the oldest of the lists was known to be true; None while one was never read.

        A quiet cluster's is up to about a minute: that is how often the API server speaks unasked (bookmarks).
        """
        now = elapsed()
        ages = [r.state.age(now) for r in self.reflectors if not r.state.absent]
        known = [age for age in ages if age is not None]
        return None if len(known) < len(ages) else max(known, default=0.0)

    def states(self) -> dict[str, WatchHealth]:
        """By list."""
        return {str(reflector.source): reflector.state for reflector in self.reflectors}

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return {name: state.error for name, state in self.states().items() if state.error}

    def unreadable(self) -> tuple[Unreadable, ...]:
        """What is there and could not be decoded: missing from the snapshot, so nobody may act as if it were not."""
        return tuple(found for reflector in self.reflectors for found in reflector.store.unreadable())

    def held(self, kind: str) -> tuple[Any, ...]:
        """What is held of a kind."""
        with self._lock:
            return tuple(value for r in self.reflectors if r.source.kind == kind for value in r.store.values())

    def snapshot(self) -> Snapshot:
        """All kinds at one moment, apart from those held as something else."""
        with self._lock:
            kinds = dict.fromkeys(r.source.kind for r in self.reflectors if r.source.kind not in self._holds)
            found = {kind: self.held(kind) for kind in kinds}
        return Snapshot({kind: values for kind, values in found.items() if values})


TERMS = WatchSettings(absent=10.0)
"""A CustomResourceDefinition that is installed while we run is noticed within ten seconds."""


class ChangeQueue:
    """Begin it with `start`; `stop` ends it in milliseconds."""

    def __init__(
        self,
        client: Client,
        sources: Iterable[ListSource],
        holds: Holds,
        wanted: Callable[[WatchEvent[Any]], bool] = lambda _change: True,
    ) -> None:
        """`wanted` changes of `sources` are told; it is called in the watches' threads."""
        self._client, self._holds = client, holds
        self._changes: SimpleQueue[WatchEvent[Any]] = SimpleQueue()

        def told(change: WatchEvent[Any]) -> None:
            if wanted(change):
                self._changes.put(change)

        self.watch = ClusterInformers(client, sources, terms=TERMS, holds=holds, told=told)
        """Of the lists from the start."""
        self._more: ClusterInformers | None = None
        self._followed: tuple[ListSource, ...] = ()

    def start(self) -> None:
        """Returns at once."""
        self.watch.start()

    def stop(self) -> None:
        self.watch.stop()
        if self._more is not None:
            self._more.stop()

    @property
    def synced(self) -> bool:
        """Was every list read at least once, those that came later, too?"""
        return self.watch.synced and (self._more is None or self._more.synced)

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return {**self.watch.troubles(), **(self._more.troubles() if self._more else {})}

    def taken(self, within: float = 0.0, settle: float = 0.0) -> list[WatchEvent[Any]]:
        """What was told since the last time. While there is nothing, waits for it `within` so many seconds, and then
        `settle` more for what comes together with it."""
        try:
            first = self._changes.get(within > 0, within)
        except Empty:
            return []
        if settle > 0:
            threading.Event().wait(settle)
        return [first, *(self._changes.get() for _ in range(self._changes.qsize()))]

    def follow(self, more: Iterable[ListSource]) -> bool:
        """Watch these beside the others, and no longer those of before. True where they differ: what was heard of
        those is no longer told when it changes, and all there is of these will be."""
        wanted = tuple(more)
        if wanted == self._followed:
            return False
        if self._more is not None:
            self._more.stop()
        self._followed = wanted
        self._more = ClusterInformers(self._client, wanted, terms=TERMS, holds=self._holds, told=self._changes.put)
        self._more.start()
        return True
