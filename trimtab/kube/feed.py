"""What watches tell, taken by one thread: some lists from the start, and more that come and go with what was heard."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any

from trimtab.kube.client import Client
from trimtab.kube.kinds import Source
from trimtab.kube.state import Change, Terms
from trimtab.kube.watch import Holds, Watch

TERMS = Terms(absent=10.0)
"""A CustomResourceDefinition that is installed while we run is noticed within ten seconds."""


class Feed:
    """Begin it with `start`; `stop` ends it in milliseconds."""

    def __init__(
        self,
        client: Client,
        sources: Iterable[Source],
        holds: Holds,
        wanted: Callable[[Change[Any]], bool] = lambda _change: True,
    ) -> None:
        """`wanted` changes of `sources` are told; it is called in the watches' threads."""
        self._client, self._holds = client, holds
        self._changes: SimpleQueue[Change[Any]] = SimpleQueue()

        def told(change: Change[Any]) -> None:
            if wanted(change):
                self._changes.put(change)

        self.watch = Watch(client, sources, terms=TERMS, holds=holds, told=told)
        """Of the lists from the start."""
        self._more: Watch | None = None
        self._followed: tuple[Source, ...] = ()

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

    def taken(self, within: float = 0.0, settle: float = 0.0) -> list[Change[Any]]:
        """What was told since the last time. While there is nothing, waits for it `within` so many seconds, and then
        `settle` more for what comes together with it."""
        try:
            first = self._changes.get(within > 0, within)
        except Empty:
            return []
        if settle > 0:
            threading.Event().wait(settle)
        return [first, *(self._changes.get() for _ in range(self._changes.qsize()))]

    def follow(self, more: Iterable[Source]) -> bool:
        """Watch these beside the others, and no longer those of before. True where they differ: what was heard of
        those is no longer told when it changes, and all there is of these will be."""
        wanted = tuple(more)
        if wanted == self._followed:
            return False
        if self._more is not None:
            self._more.stop()
        self._followed = wanted
        self._more = Watch(self._client, wanted, terms=TERMS, holds=self._holds, told=self._changes.put)
        self._more.start()
        return True
