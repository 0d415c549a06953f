"""Runs round after round: reads the cluster, continues drains, plans, starts drains, and saves the pools' states."""

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
"""Attempts at the shutdown, and the seconds between them: an uncordoned node is observed after some milliseconds, and
only then its taint can be removed."""
LOST = 5
"""The number of rounds in a row without a readable cluster after which nodes are released as they were observed
last."""
Look = Callable[[], ClusterView | NotYet]


@dataclass(slots=True)
class Loop:
    """The rounds of the leader."""

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
    """Returns whether the pool's state is still where it was saved."""
    pause: Callable[[float], None] = lambda seconds: None
    """Waits during the shutdown until writes are observed."""
    view: ClusterView | None = None
    """The view of the last round."""
    trouble: str = ""
    """The problem of the last round; empty if there was none."""
    faults: ErrorGuard = field(init=False)
    _planned_at: float | None = field(default=None)
    _reported: frozenset[str] = frozenset()
    _blind_rounds: int = 0

    def __post_init__(self) -> None:
        self.faults = self.drains.faults
        self.planning.cordoned = self._await_annotation

    def round(self) -> float:
        """Runs one round and returns the seconds until the next. Never raises: errors are logged."""
        before = self.trouble
        try:
            wait = self.faults.caught("round", self._run_round)
        except ActuatorError as error:
            if str(error) != before:
                self.log.warning("round.failed", error=str(error))
            self.trouble = str(error)
            return self.tick
        if wait is None:
            self.trouble = self.faults.last
        return self.tick if wait is None else wait

    def _run_round(self) -> float:
        now, collector = self.elapsed(), ErrorCollector()
        moment = self.faults.caught("look", lambda: self._observe(now))
        self._blind_rounds = self._blind_rounds + 1 if moment is None else 0
        if moment is None:
            return self._handle_unreadable()
        if isinstance(moment, NotYet):
            self.trouble = str(moment)
            return self.tick
        view = self.view = moment.view
        self.trouble = ""
        self.books.tell_unread(view.at, {pool.name for pool in view.pools})
        self._report_errors(view)
        self._reopen_pools(view)
        before = self.faults.count
        with collector.tried():
            self.drains.carry_on(moment, now)
        self.faults.caught("judge", lambda: self.drains.judge_added_nodes(view))
        self.faults.caught("judge", lambda: self.drains.count_deletions(view))
        active = self.drains.standing(view)
        # No drain begins while an unexpected error is unexplained, or while writes fail in general.
        if self.faults.count == before and collector.only_denied:
            with collector.tried():
                self.faults.caught("plan", lambda: self._plan_or_start(view, active, now))
        self.trouble = self.trouble or (self.faults.last if self.faults.count != before else "")
        # Saved before the taints: they cost up to a hundred writes, and the states must not wait for them.
        self._save_states(view)
        with collector.tried():
            self.steering.steer(view)
        collector.tell()
        # A drained node may be needed within seconds, before the autoscaler's next scan adds another one.
        busy = bool(active.emptying or active.emptied) or self.planning.intent is not None
        if busy or view.evicted_uids or self._planned_at is None:
            return self.tick
        return max(self.tick, self._planned_at + self.interval - now)

    def _observe(self, now: float) -> DrainPlanner | NotYet:
        """Returns a planner for the drains in the present view; NotYet while the view is incomplete."""
        observed = self.look()
        if isinstance(observed, NotYet):
            return observed
        drains = self.drains
        view = replace(
            observed,
            evicted_uids=drains.settle_flight(observed, now),
            executed_seconds=drains.led(observed, now),
            opened_counts=drains.opened(observed),
            deleting_nodes=drains.deleting(),
        )
        return DrainPlanner(view, self.drains.terms)

    def _handle_unreadable(self) -> float:
        """Counts a round without a readable cluster. After `MAX_BLIND_ROUNDS` nodes are released as they were observed
        last."""
        self.trouble = self.faults.last
        if self.view is not None and self._blind_rounds % LOST == 0:
            self.drains.give_back(self.view, "the cluster cannot be read")
        return self.tick

    def _plan_or_start(self, view: ClusterView, active: ActiveDrains, now: float) -> None:
        """Plans, or starts drains. Drains start from the view of a later round, never from the one of the plan."""
        due = self._planned_at is None or (now - self._planned_at >= self.interval and self.planning.intent is None)
        if not due and self.planning.intent is None:
            return
        unready = self.planning.unready()
        if unready is not None:
            self.trouble = str(unready)
        elif due:
            self._planned_at = now
            self.steering.aim(self.planning.make(view, active, now), view, busy=bool(active.emptying))
        else:
            # Before the start: a compactor that cannot save its states starts no drain.
            self.books.save()
            if self.planning.begin(view, active, now):
                self.books.save()

    def _await_annotation(self, drain: str) -> None:
        self.drains.vanished.cordoned[drain] = self.elapsed()

    def _report_errors(self, view: ClusterView) -> None:
        """Reports errors in pools' settings, and nodes with annotations of others or without valid signature: once
        each."""
        for error in set(view.pool_errors) - self._reported:
            self.log.warning("pool.mistake", mistake=error)
        others, doubtful = view.notes.others, view.notes.doubtful
        for node in set(others) - self._reported:
            self.log.warning("node.of-another-compactor", node=node, namespace=others[node])
        for node, problem in doubtful.items():
            if str(problem) not in self._reported:
                self.books.tell("doubted", DOUBTFUL(str(problem)), pool="", at=view.at, node=node)
        self._reported = frozenset((*view.pool_errors, *others, *map(str, doubtful.values())))

    def _save_states(self, view: ClusterView) -> None:
        for pool in view.pools:
            if not self.kept(pool.name):
                self.books.forget_saved(pool.name)
        self.books.save()

    def _reopen_pools(self, view: ClusterView) -> None:
        """Reopens closed pools: after a time, or when a user resumed them."""
        for pool, memory in list(self.books.memories.items()):
            closed, backoff = memory.closed, memory.backoff
            if closed is None and backoff is None:
                continue
            resumed = self.reopened(pool)
            is_reopened = resumed is not None and resumed >= max(
                closed or 0, backoff.last if backoff is not None else 0
            )
            if is_reopened:
                self.books.put(pool, change(memory, closed=None, strikes=0, backoff=None))
            elif closed is not None and view.at >= closed + self.drains.terms.closed:
                self.books.put(pool, change(memory, closed=None, strikes=0))

    def end(self) -> None:
        """Shuts down: releases nodes that are not empty, removes taints, and saves the states."""
        if self.view is None:
            return
        for _ in range(TRIES):
            try:
                if self.faults.caught("end", self._try_shut_down):
                    return
            except ActuatorError as error:
                self.log.warning("end.failed", error=str(error))
            self.pause(PAUSE)

    def _try_shut_down(self) -> bool:
        """Tries to shut down once. Returns whether nothing was left to undo."""
        observed = self.faults.caught("look", self.look)
        view = self.view if observed is None or isinstance(observed, NotYet) else observed
        assert view is not None
        is_unfinished = bool(self.drains.standing(view).emptying) or any(
            tainted(node, view.home) for node in view.inventory.nodes
        )
        self.drains.give_back(view)
        self.steering.undo(view)
        self.books.save()
        return not is_unfinished
