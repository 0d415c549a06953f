"""One round after the other: look, carry on with what is under way, plan, begin, keep the books."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from trimtab.cluster.reason import NotYet
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.drain.state_machine import DrainPlanner
from trimtab.compaction.reasons import DOUBTFUL_CORDON as DOUBTFUL
from trimtab.compactor.actuator import ActuatorError, ErrorCollector
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.soft_taint import LeavingTaint, tainted
from trimtab.runtime.log import Logger

TRIES, PAUSE = 10, 0.5
"""At the end: a node that has just been opened is seen again after some milliseconds, and then its taint goes."""
LOST = 5
"""Rounds in a row that cannot look, for an error of ours, after which nodes are given back as they were seen last."""
Look = Callable[[], ClusterView | NotYet]


@dataclass(slots=True)
class Loop:
    look: Look
    books: PoolStates
    drains: Drainer
    planning: CompactionPlanner
    steering: LeavingTaint
    log: Logger
    interval: float
    tick: float
    elapsed: Callable[[], float]
    reopened: Callable[[str], int | None] = lambda pool: None
    kept: Callable[[str], bool] = lambda pool: True
    """Is the pool's state still where it was saved?"""
    pause: Callable[[float], None] = lambda seconds: None
    """How to wait at the end for what was written to be seen."""
    view: ClusterView | None = None
    """The last one that was acted on."""
    trouble: str = ""
    """What went wrong in the last round; empty while it goes well."""
    faults: ErrorGuard = field(init=False)
    _planned: float | None = field(default=None)
    _told: frozenset[str] = frozenset()
    _lost: int = 0

    def __post_init__(self) -> None:
        self.faults = self.drains.faults
        self.planning.cordoned = self._await_note

    def round(self) -> float:
        """One round; seconds until the next. Never raises: trouble at the door, and errors of ours, are told."""
        before = self.trouble
        try:
            found = self.faults.caught("round", self._round)
        except ActuatorError as error:
            if str(error) != before:
                self.log.warning("round.failed", error=str(error))
            self.trouble = str(error)
            return self.tick
        if found is None:
            self.trouble = self.faults.last
        return self.tick if found is None else found

    def _round(self) -> float:
        now, apart = self.elapsed(), ErrorCollector()
        moment = self.faults.caught("look", lambda: self._seen(now))
        self._lost = self._lost + 1 if moment is None else 0
        if moment is None:
            return self._unseen()
        if isinstance(moment, NotYet):
            self.trouble = str(moment)
            return self.tick
        view = self.view = moment.view
        self.trouble = ""
        self.books.tell_unread(view.at, {pool.name for pool in view.pools})
        self._mistakes(view)
        self._reopen(view)
        before = self.faults.count
        with apart.tried():
            self.drains.carry_on(moment, now)
        self.faults.caught("judge", lambda: self.drains.judge_added_nodes(view))
        self.faults.caught("judge", lambda: self.drains.count_deletions(view))
        standing = self.drains.standing(view)
        if self.faults.count == before and apart.only_denied:  # nothing begins beside what we do not understand
            with apart.tried():
                self.faults.caught("plan", lambda: self._further(view, standing, now))
        self.trouble = self.trouble or (self.faults.last if self.faults.count != before else "")
        self._save(view)
        with apart.tried():
            self.steering.steer(view)
        apart.tell()
        # An emptied node may be needed within seconds: before the autoscaler's next scan.
        busy = bool(standing.emptying or standing.emptied) or self.planning.intent is not None
        if busy or view.evicted_uids or self._planned is None:
            return self.tick
        return max(self.tick, self._planned + self.interval - now)

    def _seen(self, now: float) -> DrainPlanner | NotYet:
        """What is there now, as drains look at it."""
        seen = self.look()
        if isinstance(seen, NotYet):
            return seen
        drains = self.drains
        known = replace(
            seen,
            evicted_uids=drains.settle_flight(seen, now),
            executed_seconds=drains.led(seen, now),
            opened_counts=drains.opened(seen),
            deleting_nodes=drains.deleting(),
        )
        return DrainPlanner(known, self.drains.terms)

    def _unseen(self) -> float:
        """Nobody knows how the drains go on: before long they end, by what was seen last."""
        self.trouble = self.faults.last
        if self.view is not None and self._lost % LOST == 0:
            self.drains.give_back(self.view, "what is there cannot be understood")
        return self.tick

    def _further(self, view: ClusterView, standing: ActiveDrains, now: float) -> None:
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

    def _await_note(self, drain: str) -> None:
        self.drains.vanished.cordoned[drain] = self.elapsed()

    def _mistakes(self, view: ClusterView) -> None:
        """Of the pools' settings, and nodes that are not ours to empty or to open: told once."""
        for mistake in set(view.pool_errors) - self._told:
            self.log.warning("pool.mistake", mistake=mistake)
        others, doubtful = view.notes.others, view.notes.doubtful
        for node in set(others) - self._told:
            self.log.warning("node.of-another-compactor", node=node, namespace=others[node])
        for node, found in doubtful.items():
            if str(found) not in self._told:
                self.books.tell("doubted", DOUBTFUL(str(found)), pool="", at=view.at, node=node)
        self._told = frozenset((*view.pool_errors, *others, *map(str, doubtful.values())))

    def _save(self, view: ClusterView) -> None:
        for pool in view.pools:
            if not self.kept(pool.name):
                self.books.forget_saved(pool.name)
        self.books.save()

    def _reopen(self, view: ClusterView) -> None:
        """Pools that were closed and are open again: by time, or by a person's word."""
        for pool, memory in list(self.books.memories.items()):
            closed, backoff = memory.closed, memory.backoff
            if closed is None and backoff is None:
                continue
            said = self.reopened(pool)
            is_reopened = said is not None and said >= max(closed or 0, backoff.last if backoff is not None else 0)
            if is_reopened:
                self.books.put(pool, change(memory, closed=None, strikes=0, backoff=None))
            elif closed is not None and view.at >= closed + self.drains.terms.closed:
                self.books.put(pool, change(memory, closed=None, strikes=0))

    def end(self) -> None:
        """The process stops: what is not empty is given back, taints are taken off, the books are kept."""
        if self.view is None:
            return
        for _ in range(TRIES):
            try:
                if self.faults.caught("end", self._ended):
                    return
            except ActuatorError as error:
                self.log.warning("end.failed", error=str(error))
            self.pause(PAUSE)

    def _ended(self) -> bool:
        """One try; true when nothing was left to be undone."""
        seen = self.faults.caught("look", self.look)
        view = self.view if seen is None or isinstance(seen, NotYet) else seen
        assert view is not None
        left = bool(self.drains.standing(view).emptying) or any(
            tainted(node, view.home) for node in view.inventory.nodes
        )
        self.drains.give_back(view)
        self.steering.undo(view)
        self.books.save()
        return not left
