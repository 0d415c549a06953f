"""The cluster, followed: watches in threads, one more thread that makes a World of what they tell.

Decisions read `world`, one attribute, replaced as a whole; nothing of this runs on the event loop. What is held is
used however old it is, and its age is told: a webhook that stops deciding when the API server is slow would be the
next failure.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from trimtab.cluster.reason import Unreadable
from trimtab.kube.client import Client
from trimtab.kube.feed import Feed
from trimtab.kube.state import Change
from trimtab.runtime import memory
from trimtab.runtime.clock import elapsed
from trimtab.runtime.stop import Stop
from webhook.seen import Seen, held, slices, sources
from webhook.world import World

SETTLE = 0.05
"""Seconds to wait for what comes together: a rollout is dozens of changes, and one new World."""
LOOK = 0.5
"""Seconds between looks at how things stand, when nothing changes."""


class Hears(Protocol):
    """Who is told."""

    def changed(self, before: World, after: World, /) -> None: ...
    def look(self, live: Live, /) -> None: ...
    def failed(self, what: str, error: Exception, /) -> None: ...


class Live:
    """Begin it with `start`; `stop` ends it within a second or so."""

    def __init__(self, client: Client, base: World, *, policies: bool, hears: Hears) -> None:
        """`policies`: they come from the cluster, too. `base` is in force until everything was listed once."""
        own = base.terms.own_namespace
        self.world = base
        """Read it once per decision: it is replaced at any moment."""
        self.complete = False
        """Was everything listed at least once, and made a World of? It stays true."""
        self._client = client
        self._seen = Seen(base, policies=policies)
        self._hears = hears
        self._feed = Feed(client, sources(own, policies=policies), held(own))
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)
        self._begun = elapsed()

    def start(self) -> Live:
        """Returns at once."""
        self._feed.start()
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.begin()
        self._feed.stop()
        self._thread.join(2.0)
        self._client.close()

    def age(self) -> float | None:
        """Seconds since the oldest list was known to be true; None while one was never read."""
        return self._feed.watch.age()

    @property
    def waited(self) -> float:
        """Seconds since the start."""
        return elapsed() - self._begun

    def missing(self) -> tuple[str, ...]:
        """Lists never read so far."""
        return tuple(name for name, state in self._feed.watch.states().items() if not state.synced)

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return self._feed.troubles()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Objects that are there and cannot be decoded: facts are without them."""
        return self._feed.watch.unreadable()

    def problems(self) -> int:
        """Objects that make no sense as they stand: those, and what keeps what it said before."""
        return len(self.unreadable()) + len(self.world.facts.problems) + len(self.world.broken)

    def _run(self) -> None:
        while not self._stop.begun:
            try:
                self._step()
            except Exception as error:  # noqa: BLE001  what is in force must stay in force, and be mended by what comes
                self._hears.failed("facts", error)
                self._stop.wait(LOOK)

    def _step(self) -> None:
        complete = self._feed.watch.synced  # before the changes are taken: whatever was listed is among them
        for change in self._feed.taken(LOOK if self.complete else SETTLE, SETTLE):
            self._hear(change)
        if self._feed.follow(slices(service) for service in sorted(self._seen.services)):
            self._seen.forget_slices()
        if complete:
            self._publish()
        self._hears.look(self)

    def _hear(self, change: Change[Any]) -> None:
        try:
            self._seen.hear(change)
        except Exception as error:  # noqa: BLE001  one object nobody foresaw must not hide the others
            self._hears.failed(f"facts: {change.kind} {change.key}", error)

    def _publish(self) -> None:
        before, after = self.world, self._seen.world()
        if after is not before:
            self.world = after
            self._hears.changed(before, after)
        if not self.complete:
            memory.settle()
            self.complete = True
