"""One round after the other: look, carry on with what is under way, plan, begin, keep the books."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from trimtab.cluster.reason import NotYet
from trimtab.compaction.begin import Standing
from trimtab.compaction.view import View
from trimtab.compactor.books import Books
from trimtab.compactor.doors import DoorFault
from trimtab.compactor.drains import Drains
from trimtab.compactor.planning import Planning
from trimtab.compactor.steering import Steering, tainted
from trimtab.runtime.log import Logger

TRIES, PAUSE = 10, 0.5
"""At the end: a node that has just been opened is seen again after some milliseconds, and then its taint goes."""
Look = Callable[[], View | NotYet]


@dataclass(slots=True)
class Loop:
    look: Look
    books: Books
    drains: Drains
    planning: Planning
    steering: Steering
    log: Logger
    interval: float
    tick: float
    elapsed: Callable[[], float]
    reopened: Callable[[str], int | None] = lambda pool: None
    kept: Callable[[str], bool] = lambda pool: True
    """Is the pool's state still where it was saved?"""
    pause: Callable[[float], None] = lambda seconds: None
    """How to wait at the end for what was written to be seen."""
    view: View | None = None
    """The last one that was acted on."""
    trouble: str = ""
    """What went wrong in the last round; empty while it goes well."""
    _planned: float | None = field(default=None)
    _told: frozenset[str] = frozenset()

    def round(self) -> float:
        """One round; seconds until the next. Trouble at the door is told and waited out, never raised."""
        try:
            return self._round()
        except DoorFault as error:
            if str(error) != self.trouble:
                self.log.warning("round.failed", error=str(error))
            self.trouble = str(error)
            return self.tick

    def _round(self) -> float:
        seen = self.look()
        if isinstance(seen, NotYet):
            self.trouble = str(seen)
            return self.tick
        now = self.elapsed()
        view = self.view = replace(seen, flight=self.drains.settle_flight(seen, now))
        self.trouble = ""
        self._mistakes(view)
        self._reopen(view)
        self.drains.carry_on(view, now)
        standing = self.drains.standing(view)
        self._further(view, standing, now)
        self._save(view)
        self.steering.steer(view)
        busy = bool(standing.emptying) or self.planning.intent is not None
        if busy or view.flight or self._planned is None:
            return self.tick
        return max(self.tick, self._planned + self.interval - now)

    def _further(self, view: View, standing: Standing, now: float) -> None:
        """What begins is decided on the view that a later round brings: never on the one it was planned on."""
        due = self._planned is None or (now - self._planned >= self.interval and self.planning.intent is None)
        if not due and self.planning.intent is None:
            return
        unready = self.planning.unready()
        if unready is not None:
            self.trouble = str(unready)
        elif due:
            self._planned = now
            self.steering.aim(self.planning.make(view, standing, now), view, busy=bool(standing.emptying))
        else:
            self.books.save()  # who cannot keep books begins nothing
            if self.planning.begin(view, standing, now):
                self.books.save()

    def _mistakes(self, view: View) -> None:
        """Of the pools' settings, told once; a pool with a mistake is as good as gone."""
        for mistake in set(view.unread) - self._told:
            self.log.warning("pool.mistake", mistake=mistake)
        self._told = frozenset(view.unread)

    def _save(self, view: View) -> None:
        for pool in view.pools:
            if not self.kept(pool.name):
                self.books.forget_saved(pool.name)
        self.books.save()

    def _reopen(self, view: View) -> None:
        """Pools that were closed and are open again: by time, or by a person's word."""
        for pool, memory in list(self.books.memories.items()):
            if memory.closed is None:
                continue
            said = self.reopened(pool)
            if view.at >= memory.closed + self.drains.terms.closed or (said is not None and said >= memory.closed):
                self.books.put(pool, change(memory, closed=None, strikes=0))

    def end(self) -> None:
        """The process stops: what is not empty is given back, taints are taken off, the books are kept."""
        if self.view is None:
            return
        for _ in range(TRIES):
            try:
                if self._ended():
                    return
            except DoorFault as error:
                self.log.warning("end.failed", error=str(error))
            self.pause(PAUSE)

    def _ended(self) -> bool:
        """One try; true when nothing was left to be undone."""
        seen = self.look()
        view = self.view if isinstance(seen, NotYet) else seen
        assert view is not None
        left = bool(self.drains.standing(view).emptying) or any(
            tainted(node, view.home) for node in view.inventory.nodes
        )
        self.drains.give_back(view)
        self.steering.undo(view)
        self.books.save()
        return not left
