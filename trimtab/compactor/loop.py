"""Runs round after round: reads the cluster, continues drains, plans, starts drains, and saves the pools' states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from trimtab.cluster.reason import NotYet
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.merged_states import merge_terms
from trimtab.compaction.drain.moves_by_others import MovesByOthers
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.drain.state_machine import DrainPlanner
from trimtab.compaction.reasons import DOUBTFUL_CORDON as DOUBTFUL
from trimtab.compactor.actuator import ActuatorError, ErrorCollector
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard, Failed, Ok
from trimtab.compactor.order.order_keeper import POLL_SECONDS, OrderKeeper
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.resizer import Resizer
from trimtab.compactor.soft_taint import SoftTaints, has_soft_taint
from trimtab.runtime.log import Logger

MAX_SHUTDOWN_ATTEMPTS, SHUTDOWN_PAUSE_SECONDS = 10, 0.5
"""The maximum number of attempts at the shutdown, and the seconds between them. A taint can be removed only after the
uncordon of its node has been observed, which takes some milliseconds."""
MAX_BLIND_ROUNDS = 5
"""After this many rounds in a row in which the cluster could not be read, nodes are released as they were last
observed."""
Look = Callable[[], ClusterView | NotYet]


@dataclass(slots=True)
class Loop:
    """Runs the rounds of the leader, one after the other."""

    read_view: Look
    pool_states: PoolStates
    drainer: Drainer
    planner: CompactionPlanner
    soft_taints: SoftTaints
    log: Logger
    interval: float
    tick: float
    elapsed: Callable[[], float]
    reopened_at: Callable[[str], int | None] = lambda pool: None
    has_state: Callable[[str], bool] = lambda pool: True
    """Returns whether the pool's state still exists where it was saved."""
    pause: Callable[[float], None] = lambda seconds: None
    """Waits, during the shutdown, until writes can be observed."""
    orders: OrderKeeper | None = None
    """Carries out DrainOrders, or None if there are none."""
    resizer: Resizer | None = None
    """Resizes running pods, or None if pods are not to be resized."""
    view: ClusterView | None = None
    """The view of the last round, or None before the first."""
    problem: str = ""
    """The problem of the last round; empty if there was none."""
    moves_by_others: MovesByOthers = field(default_factory=MovesByOthers)
    error_guard: ErrorGuard = field(init=False)
    _planned_at: float | None = field(default=None)
    _reported: frozenset[str] = frozenset()
    _blind_rounds: int = 0
    _idle_until: float | None = None
    """When the next round is due, if no order needs an earlier one; None: now."""

    def __post_init__(self) -> None:
        self.error_guard = self.drainer.error_guard
        self.planner.on_cordon = self._await_annotation

    def run_round(self) -> float:
        """Runs one round, and returns the seconds until the next. Raises nothing: errors are logged."""
        before, now = self.problem, self.elapsed()
        if self._idle_until is not None and now < self._idle_until and not self._has_orders(now):
            return min(POLL_SECONDS, self._idle_until - now)
        self._idle_until = None
        try:
            outcome = self.error_guard.run_guarded("round", self._run_round)
        except ActuatorError as error:
            if str(error) != before:
                self.log.warning("round.failed", error=str(error))
            self.problem = str(error)
            return self.tick
        if isinstance(outcome, Failed):
            self.problem = outcome.error
            return self.tick
        return outcome.result

    def _run_round(self) -> float:
        now, collector = self.elapsed(), ErrorCollector()
        outcome = self.error_guard.run_guarded("look", lambda: self._observe(now))
        if isinstance(outcome, Failed):
            return self._handle_unreadable(outcome)
        self._blind_rounds, moment = 0, outcome.result
        if isinstance(moment, NotYet):
            self.problem = str(moment)
            return self.tick
        view = self.view = moment.view
        self.problem = ""
        self.pool_states.report_unreadable(view.now, {pool.name for pool in view.pools})
        self._report_errors(view)
        self._reopen_pools(view)
        self.moves_by_others = self.moves_by_others.observe(view, self.drainer.timeouts.rest)
        if self.orders is not None:
            self.planner.ordered_nodes = self.orders.ledger.ordered_nodes()
            self.drainer.ordered_nodes = self.orders.begun_nodes()
        self.planner.moved_by_others = frozenset(self.moves_by_others.moved)
        before = self.error_guard.error_count
        with collector.collect_errors():
            self.drainer.run_drains(moment, now)
        self.error_guard.run_guarded("judge", lambda: self.drainer.judge_added_nodes(view))
        self.error_guard.run_guarded("judge", lambda: self.drainer.removed_nodes.count_deletions(view))
        active = self.drainer.active_drains(view)
        orders = self.orders
        if orders is not None:
            with collector.collect_errors():
                self.error_guard.run_guarded("orders", lambda: orders.run_round(view, active, now))
            self.problem = self.problem or orders.problem
        resizer = self.resizer
        if resizer is not None:
            leaving = frozenset((*active.emptying, *active.emptied))
            with collector.collect_errors():
                self.error_guard.run_guarded("resize", lambda: resizer.run_round(view, leaving, now))
            self.problem = self.problem or resizer.problem
        # No drain begins while an unexpected error is unexplained, or while writes fail in general.
        if self.error_guard.error_count == before and collector.has_only_rejections:
            with collector.collect_errors():
                self.error_guard.run_guarded("plan", lambda: self._plan_or_start(view, active, now))
        self.problem = self.problem or (self.error_guard.last_error if self.error_guard.error_count != before else "")
        # Saved before the taints: they cost up to a hundred writes, and the states must not wait for them.
        self._save_states(view)
        with collector.collect_errors():
            self.soft_taints.update_taints(view)
        collector.raise_error()
        # A drained node may be needed within seconds, before the autoscaler's next scan adds another one.
        busy = bool(active.emptying or active.emptied) or self.planner.pending_steps is not None
        busy = busy or (self.resizer is not None and self.resizer.is_busy)
        busy = busy or (orders is not None and orders.has_orders)
        if busy or view.evicted_uids or self._planned_at is None:
            return self.tick
        wait = max(self.tick, self._planned_at + self.interval - now)
        if orders is None or wait <= POLL_SECONDS:
            return wait
        # A new order is noticed meanwhile, without a view of the whole cluster.
        self._idle_until = now + wait
        return POLL_SECONDS

    def _has_orders(self, now: float) -> bool:
        return self.orders is not None and self.orders.needs_round(now)

    def _observe(self, now: float) -> DrainPlanner | NotYet:
        """Returns a planner for the drains in the present view; NotYet while the view is incomplete."""
        observed = self.read_view()
        if isinstance(observed, NotYet):
            return observed
        if self.resizer is not None:
            observed = self.resizer.hold(observed)
        drains = self.drainer
        inventory, reverted = observed.inventory, drains.reverted_surges(observed.now)
        if reverted:
            inventory = replace(inventory, deployments=replace(inventory.deployments, reverted=reverted))
        view = replace(
            observed,
            inventory=inventory,
            evicted_uids=drains.settle_flight(observed, now),
            executed_seconds=drains.executed_seconds(observed, now),
            opened_counts=drains.opened_counts(observed),
            deleting_nodes=drains.removed_nodes.deleting_nodes(),
        )
        return DrainPlanner(view, self.drainer.timeouts, merge_terms(self.pool_states.states.values()))

    def _handle_unreadable(self, failed: Failed) -> float:
        """Counts a round in which the cluster could not be read. After `MAX_BLIND_ROUNDS` of them, nodes are released
        as they were last observed."""
        self._blind_rounds += 1
        self.problem = failed.error
        if self.view is not None and self._blind_rounds % MAX_BLIND_ROUNDS == 0:
            self.drainer.release_all(self.view, "the cluster cannot be read")
        return self.tick

    def _plan_or_start(self, view: ClusterView, active: ActiveDrains, now: float) -> None:
        """Makes a plan, or starts the drains of an earlier plan. Drains are started with the view of a later round than
        the plan's."""
        due = self._planned_at is None or (
            now - self._planned_at >= self.interval and self.planner.pending_steps is None
        )
        if not due and self.planner.pending_steps is None:
            return
        unready = self.planner.not_ready_reason()
        if unready is not None:
            self.problem = str(unready)
        elif due:
            self._planned_at = now
            new_plan = self.planner.make_plan(view, active, now)
            self.soft_taints.choose_nodes(new_plan, self.planner.reserved_targets, view, busy=bool(active.emptying))
        else:
            # Before the start: a compactor that cannot save its states starts no drain.
            self.pool_states.save_states()
            if self.planner.start_drains(view, active, now):
                self.pool_states.save_states()

    def _await_annotation(self, drain: str) -> None:
        self.drainer.removed_nodes.cordoned_at[drain] = self.elapsed()

    def _report_errors(self, view: ClusterView) -> None:
        """Reports mistakes in pools' settings, and nodes with annotations of other compactors or without valid
        signatures; each once."""
        for error in set(view.pool_errors) - self._reported:
            self.log.warning("pool.mistake", mistake=error)
        others, doubtful = view.annotations.others, view.annotations.doubtful
        for node in set(others) - self._reported:
            self.log.warning("node.of-another-compactor", node=node, namespace=others[node])
        for node, problem in doubtful.items():
            if str(problem) not in self._reported:
                self.pool_states.record_decision(
                    "not-authentic", DOUBTFUL(str(problem)), pool="", at=view.now, node=node
                )
        self._reported = frozenset((*view.pool_errors, *others, *map(str, doubtful.values())))

    def _save_states(self, view: ClusterView) -> None:
        for pool in view.pools:
            if not self.has_state(pool.name):
                self.pool_states.forget_saved(pool.name)
        orders = self.pool_states.state_of(ORDERS)
        if (orders.orders or orders.author_policy is not None) and not self.has_state(ORDERS):
            self.pool_states.forget_saved(ORDERS)
        self.pool_states.save_states()

    def _reopen_pools(self, view: ClusterView) -> None:
        """Reopens closed pools, after some time or when a user has resumed them. The failures of namespaces before a
        user resumed a pool no longer count."""
        for pool, memory in list(self.pool_states.states.items()):
            closed, backoff = memory.closed, memory.backoff
            if closed is None and backoff is None and not memory.failing:
                continue
            resumed = self.reopened_at(pool)
            if resumed is not None:
                memory = memory.without_failing_namespaces(resumed)
                self.pool_states.set_state(pool, memory)
            if closed is None and backoff is None:
                continue
            is_reopened = resumed is not None and resumed >= max(
                closed or 0, backoff.last if backoff is not None else 0
            )
            if is_reopened:
                self.pool_states.set_state(pool, change(memory.without_strikes(), closed=None, backoff=None))
            elif closed is not None and view.now >= closed + self.drainer.timeouts.closed:
                self.pool_states.set_state(pool, change(memory.without_strikes(), closed=None))

    def shut_down(self) -> None:
        """Shuts down: releases nodes that are not empty, removes taints, and saves the states of pools."""
        if self.view is None:
            return
        for _ in range(MAX_SHUTDOWN_ATTEMPTS):
            try:
                if self.error_guard.run_guarded("end", self._try_shut_down) == Ok(True):
                    return
            except ActuatorError as error:
                self.log.warning("end.failed", error=str(error))
            self.pause(SHUTDOWN_PAUSE_SECONDS)

    def _try_shut_down(self) -> bool:
        """Tries once to shut down. Returns whether nothing remains to be undone."""
        outcome = self.error_guard.run_guarded("look", self.read_view)
        view = self.view if isinstance(outcome, Failed) or isinstance(outcome.result, NotYet) else outcome.result
        assert view is not None
        # The nodes of orders stay cordoned: the next leader continues them.
        is_unfinished = bool(self.drainer.active_drains(view).emptying.keys() - view.annotations.ordered.keys()) or any(
            has_soft_taint(node, view.namespace) for node in view.inventory.nodes
        )
        self.drainer.release_all(view)
        self.soft_taints.remove_taints(view)
        self.pool_states.save_states()
        return not is_unfinished
