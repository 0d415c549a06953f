"""The watches, and what they told since the last look."""

from __future__ import annotations

from queue import SimpleQueue
from types import TracebackType
from typing import Any

from trimtab.admission.running.submitted import Held
from trimtab.admission.running.survey import World
from trimtab.kube.client import Client
from trimtab.kube.state import Change, Terms, What
from trimtab.kube.watch import Watch
from trimtab.policy.vpa_webhook import Service
from trimtab.watchdog.seen import POD, Seen, held, slices, sources

TERMS = Terms(absent=10.0)
"""A CustomResourceDefinition that is installed while we run is noticed within ten seconds."""


class Following:
    """From `__enter__` to `__exit__`. Everything but the watches' own threads is for one thread."""

    def __init__(self, client: Client, base: World, configuration: str, *, policies: bool) -> None:
        own = base.terms.own_namespace
        self.seen = Seen(base, configuration, policies=policies)
        self._client = client
        self._holds = held(own)
        self._changes: SimpleQueue[Change[Any]] = SimpleQueue()
        self._watch = Watch(client, sources(own, policies=policies), terms=TERMS, holds=self._holds, told=self._told)
        self._endpoints: Watch | None = None
        self._services: frozenset[Service] = frozenset()

    def __enter__(self) -> Following:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.stop()
        if self._endpoints is not None:
            self._endpoints.stop()

    @property
    def synced(self) -> bool:
        """Was every list read at least once?"""
        return self._watch.synced and (self._endpoints is None or self._endpoints.synced)

    def hear(self) -> None:
        """Take what was told since the last time."""
        for _ in range(self._changes.qsize()):
            self.seen.hear(self._changes.get())
        self._follow(self.seen.services)

    def _told(self, change: Change[Any]) -> None:
        """Of pods only that one is gone: what stands is read off the watch."""
        if change.kind != POD or change.what is What.DELETED:
            self._changes.put(change)

    def pods(self) -> tuple[Held, ...]:
        return self._watch.held(POD)

    def age(self) -> float | None:
        """Seconds since the oldest list was known to be true; None while one was never read."""
        return self._watch.age()

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return {**self._watch.troubles(), **(self._endpoints.troubles() if self._endpoints else {})}

    def _follow(self, services: frozenset[Service]) -> None:
        """Watch the endpoints of these Services, if they are not watched already."""
        if services == self._services:
            return
        if self._endpoints is not None:
            self._endpoints.stop()
        self._services = services
        self.seen.forget_slices()
        wanted = [slices(service) for service in sorted(services)]
        self._endpoints = Watch(self._client, wanted, terms=TERMS, holds=self._holds, told=self._changes.put)
        self._endpoints.start()
