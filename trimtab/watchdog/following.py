"""The watches, and what they told since the last look."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from trimtab.admission.running.submitted import Held
from trimtab.admission.running.survey import World
from trimtab.kube.client import Client
from trimtab.kube.feed import Feed
from trimtab.kube.state import Change, What
from trimtab.watchdog.seen import POD, Seen, held, slices, sources


class Following:
    """From `__enter__` to `__exit__`. Everything but the watches' own threads is for one thread."""

    def __init__(self, client: Client, base: World, configuration: str, *, policies: bool) -> None:
        own = base.terms.own_namespace
        self.seen = Seen(base, configuration, policies=policies)
        self._feed = Feed(client, sources(own, policies=policies), held(own), _is_heard)

    def __enter__(self) -> Following:
        self._feed.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.stop()

    @property
    def synced(self) -> bool:
        """Was every list read at least once?"""
        return self._feed.synced

    def hear(self) -> None:
        """Take what was told since the last time."""
        for change in self._feed.taken():
            self.seen.hear(change)
        if self._feed.follow(slices(service) for service in sorted(self.seen.services)):
            self.seen.forget_slices()

    def pods(self) -> tuple[Held, ...]:
        return self._feed.watch.held(POD)

    def age(self) -> float | None:
        """Seconds since the oldest list was known to be true; None while one was never read."""
        return self._feed.watch.age()

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return self._feed.troubles()


def _is_heard(change: Change[Any]) -> bool:
    """Of pods only that one is gone: what stands is read off the watch."""
    return change.kind != POD or change.what is What.DELETED
