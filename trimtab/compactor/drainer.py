"""Executes the next step of every drain in progress."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.actions import Action, FailureCause
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, clamp_to_now, deployment_key, is_ahead
from trimtab.compaction.drain.backoff import Setback, emptied_node, find_setbacks
from trimtab.compaction.drain.cluster_view import ClusterView, is_gone
from trimtab.compaction.drain.drain_order import order_drains
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.reasons import (
    AHEAD,
    CLOSED,
    FAULT,
    FORBIDDEN,
    GROUP_REFUSED,
    GROUP_REST_WAITS,
    ODD_NOTE,
    ORDERED,
    STOPPING,
    UNKNOWN,
)
from trimtab.compaction.drain.start import ActiveDrains, backoff_reason, describe_strikes, find_successors
from trimtab.compaction.drain.state_machine import DrainPlanner, mark_emptied
from trimtab.compaction.drain.timeouts import DrainTimeouts, delay_after_add
from trimtab.compaction.long_graces import is_only_stopping
from trimtab.compaction.terms.reasons import TERM_CODES
from trimtab.compactor.actuator import Actuator, ErrorCollector, EvictionResponse, EvictionResult
from trimtab.compactor.drain_in_progress import DrainInProgress, drains_in, drains_of_orders
from trimtab.compactor.error_guard import ErrorGuard, Failed
from trimtab.compactor.group_dry_run import find_refused_groups, has_begun
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.reasons import EVICTED, IS_EMPTY, REFUSED, SCALED
from trimtab.compactor.removed_nodes import AgreedSurge, RemovedNodes, apply_step, describe_step
from trimtab.compactor.step_runner import GuardedStep, StepRunner

UNOBSERVED_SECONDS = 60.0
"""An eviction that has not been observed counts as failed after the maximum age of the data plus this many seconds."""


@dataclass(slots=True)
class Drainer:
    """Executes the next steps of all drains. Only the leader uses it."""

    actuator: Actuator
    pool_states: PoolStates
    timeouts: DrainTimeouts
    steps: StepRunner
    unobserved_seconds: float = 120.0 + UNOBSERVED_SECONDS
    """After how many seconds an eviction that was not observed counts as failed."""
    evicted_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → when it was evicted. The entry is kept until the pod's deletion is observed."""
    first_observed: dict[str, float] = field(default_factory=dict)
    """Drain → when this process first observed it."""
    rejected_uids: set[str] = field(default_factory=set)
    """Uids of the pods whose rejected eviction is already in the history."""
    ordered_nodes: frozenset[str] = frozenset()
    """The nodes of DrainOrders that are carried out. A drain of such a node to save it is ended."""
    moved_twice: int = 0
    """The number of evicted pods that were themselves successors of recently evicted pods."""
    removed_nodes: RemovedNodes = field(init=False)

    def __post_init__(self) -> None:
        self.removed_nodes = RemovedNodes(
            self.actuator, self.pool_states, self.error_guard.log, self.unobserved_seconds, self.steps
        )

    @property
    def error_guard(self) -> ErrorGuard:
        """Counts the unexpected errors of the drains and of the rounds around them."""
        return self.steps.error_guard

    def active_drains(self, view: ClusterView) -> ActiveDrains:
        """Returns the drains in progress, according to the annotations on the nodes."""
        active = [drain for drain in drains_in(view) if self._is_known(drain)]
        emptying = [drain for drain in active if drain.is_emptying]
        pods = view.inventory.pod_index.by_uid
        stopping = frozenset(
            drain.node.name
            for drain in emptying
            if is_only_stopping(
                pod for move in drain.annotation.moves if (pod := pods.get(move.uid)) and pod.node == drain.node.name
            )
        )
        ordered = drains_of_orders(self.pool_states.state_of(ORDERS).orders, view)
        annotations = [*(drain.annotation for drain in emptying), *ordered.values()]
        return ActiveDrains(
            emptying={
                **{drain.node.name: drain.pool for drain in emptying},
                **{node: annotation.pool for node, annotation in ordered.items()},
            },
            stopping=stopping,
            emptied={drain.node.name: drain.pool for drain in active if not drain.is_emptying},
            deleted=view.autoscaler_deletions,
            owed=Counter(
                one.pool
                for one in annotations
                for move in (*one.moves, *one.companions)
                if (pod := pods.get(move.uid)) is not None and not is_gone(pod, view)
            ),
        )

    def executed_seconds(self, view: ClusterView, now: float) -> dict[str, float]:
        """Returns drain → seconds for which this process has executed it."""
        drains = {drain.name for drain in drains_in(view)}
        self.first_observed = {drain: self.first_observed.get(drain, now) for drain in drains}
        return {drain: now - since for drain, since in self.first_observed.items()}

    def opened_counts(self, view: ClusterView) -> dict[str, int]:
        """Returns pool → the number of its drained nodes that were uncordoned in the last hour."""
        return {pool: memory.recent_openings(view.now) for pool, memory in self.pool_states.states.items()}

    def reverted_surges(self, now: Seconds) -> frozenset[OwnerKey]:
        """Returns the Deployments whose additional pods another client took back a short time ago."""
        states = self.pool_states.states.values()
        return frozenset(deployment_key(name) for state in states for name in state.reverted_surges(now))

    def settle_flight(self, view: ClusterView, now: float) -> frozenset[str]:
        """Returns the uids of evicted pods that the view still shows unchanged, and forgets the other evicted pods."""
        pods = view.inventory.pod_index.by_uid
        evicted = {uid: at for uid, at in self.evicted_at.items() if now - at < self.unobserved_seconds}
        uids = evicted.keys() | self.rejected_uids
        existing = {uid for uid in uids if uid in pods and pods[uid].deletion_requested_at is None}
        self.evicted_at = {uid: at for uid, at in evicted.items() if uid in existing}
        self.steps.forget_past_waits(now)
        self.rejected_uids &= existing
        return frozenset(self.evicted_at)

    def run_drains(self, planner: DrainPlanner, now: float) -> None:
        """Executes one step of each drain. If the next step of a drain fails unexpectedly, its node is released.

        Raises ActuatorUnavailable after all drains were tried, so that the error of one does not prevent the others.
        """
        view = planner.view
        errors = self.steps.run_steps(
            "drain",
            (
                self._next_step(planner, node, annotation, now)
                for node, annotation in order_drains(view)
                if not self.steps.is_postponed(node.name)
            ),
            now,
        )
        self.removed_nodes.end_drains(view, now)
        errors.raise_error()

    def _next_step(
        self, planner: DrainPlanner, node: NodeInfo, annotation: DrainAnnotation | Unreadable, now: float
    ) -> GuardedStep:
        if isinstance(annotation, Unreadable):
            run = partial(self._release_unreadable, planner.view, node, annotation)
            return GuardedStep(node.name, run, waits_if_forbidden=True)
        drain = DrainInProgress(planner.view, node, annotation)
        return GuardedStep(
            node.name,
            partial(self._run_next_step, planner, drain, now),
            recover=partial(self._release_failed, drain),
            waits_if_forbidden=True,
        )

    def _release_failed(self, drain: DrainInProgress, failed: Failed) -> None:
        """Releases a node for which the next step cannot be decided."""
        if drain.is_deleted:
            return
        node = drain.node.name
        step = a.Release(
            FAULT(f"the drain of node {node} failed because of a bug in Trimtab: {failed.error}"), FailureCause.NODE
        )
        outcome = self.error_guard.run_guarded("drain", partial(self._release, drain, step), about=node)
        if isinstance(outcome, Failed):
            self._release_node(drain)

    def release_all(self, view: ClusterView, why: str = "the compactor is stopping") -> None:
        """Releases every node that is not empty yet, because the process ends. Nodes that another client is deleting
        are left alone.

        Raises ActuatorUnavailable after all nodes were tried.
        """
        steps = (
            GuardedStep(
                drain.node.name,
                partial(self._release_drain, drain, STOPPING(f"{why}, so node {drain.node.name} is uncordoned again")),
            )
            for drain in drains_in(view)
            if drain.is_emptying and not drain.is_deleted and self._is_known(drain)
        )
        self.steps.run_steps("end", steps, 0.0).raise_error()

    def _release_drain(self, drain: DrainInProgress, reason: Reason) -> None:
        agreed_drain = self._with_agreed_surges(drain)
        undo = DrainPlanner(drain.view, self.timeouts).surges_of(agreed_drain.annotation).undo_steps()
        self._execute_steps(agreed_drain, (*undo, a.Release(reason)), 0.0)

    def _release_unreadable(self, view: ClusterView, node: NodeInfo, problem: Unreadable) -> None:
        self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)
        self.pool_states.record_decision("released", ODD_NOTE(str(problem)), pool="", at=view.now, node=node.name)

    def _run_next_step(self, planner: DrainPlanner, drain: DrainInProgress, now: float) -> None:
        """Executes the next step of one drain."""
        node = drain.node
        if not self._is_known(drain):
            self._release_unknown(drain)
            return
        if node.name in self.ordered_nodes and not drain.is_deleted:
            self._release_drain(drain, ORDERED(f"the drain of node {node.name} was ordered, so its own drain ends"))
            return
        may_annotate = node.is_cordoned and not drain.is_deleted
        if may_annotate and is_ahead(drain.annotation, drain.view.now):
            self._correct_time(drain)
            return
        if may_annotate and node.name in drain.view.annotations.outdated:
            # Signs the annotation again, before the previous key is removed.
            self.actuator.cordon_node(node, drain.version, drain.annotation)
            return
        drain = self._with_agreed_surges(drain)
        actions = planner.next_actions(node, drain.annotation)
        has_ended = drain.name in self.pool_states.state_of(drain.pool).ended
        if has_ended and not isinstance(actions[-1], a.Abandon):
            self._release_node(drain)
        elif not has_ended:
            self._update_state(drain)
            self._execute_steps(drain, actions, now)

    def _release_node(self, drain: DrainInProgress) -> None:
        self.actuator.release_node(drain.node.name, drain.version, uncordon=drain.node.is_cordoned)

    def _is_known(self, drain: DrainInProgress) -> bool:
        return self.pool_states.state_of(drain.pool).knows_drain(drain.node.name, drain.name)

    def _with_agreed_surges(self, drain: DrainInProgress) -> DrainInProgress:
        """Returns the drain with only those surges in its annotation that the pool's state also has, because only a
        surge that both have may be undone."""
        state, annotation = self.pool_states.state_of(drain.pool).surged, drain.annotation
        surged = {name: at for name, at in annotation.surged.items() if state.get(name) == drain.name}
        self.removed_nodes.agreed_surges |= {name: AgreedSurge.of_drain(annotation, name) for name in surged}
        return drain if surged == annotation.surged else drain.with_annotation(change(annotation, surged=surged))

    def _release_unknown(self, drain: DrainInProgress) -> None:
        """Releases a node with an authentic annotation of a drain that is not in the state. No Deployment is scaled,
        and no failure is counted.

        Either the state was lost, or another client has restored an old annotation.
        """
        if drain.is_deleted:
            return
        self._release_node(drain)
        node = drain.node.name
        reason = UNKNOWN(
            f"node {node} is uncordoned again, because the state of pool {drain.pool} does not contain drain "
            f"{drain.name}"
        )
        self.pool_states.record_decision("released", reason, pool="", at=drain.view.now, node=node, drain=drain.name)

    def _correct_time(self, drain: DrainInProgress) -> None:
        corrected = clamp_to_now(drain.annotation, drain.view.now)
        self.actuator.cordon_node(drain.node, drain.version, corrected)
        reason = AHEAD(
            f"the time of the annotation on node {drain.node.name} is in the future, so the time-outs of the drain "
            "count from now"
        )
        self._record("corrected", reason, drain)

    def _update_state(self, drain: DrainInProgress) -> None:
        view = drain.view
        memory = self.pool_states.state_of(drain.pool).with_successors(
            find_successors(drain.annotation, view), view.now, self.timeouts.rest
        )
        if drain.is_cleared:
            memory = memory.with_empty_node(drain.node.name, emptied_node(drain.node, view.now))
        if not drain.is_emptying:
            for name in drain.surges_in(memory):
                surge = AgreedSurge.of_drain(drain.annotation, name)
                self.removed_nodes.report_other_count(drain.pool, name, surge, view)
            memory = memory.without_surges(*drain.surges_in(memory))
        self.pool_states.set_state(drain.pool, memory)

    def _execute_steps(self, drain: DrainInProgress, steps: tuple[Action, ...], now: float) -> None:
        """Executes the steps in order, until one fails that the next depends on. If a surge cannot be undone, the other
        steps are executed, and the undo is tried again later."""
        undo_errors = ErrorCollector()
        refused_groups = self._refused_groups(drain, steps, now)
        if refused_groups is None:
            return
        for step in steps:
            if isinstance(step, a.Evict):
                if step.move.group in refused_groups:
                    continue
                if not self._evict_pod(drain, step, now):
                    return
                if step.move.group and step.move.uid not in self.evicted_at:
                    refused_groups.add(step.move.group)
            elif isinstance(step, a.SetReplicas) and step.replicas < step.before:
                with undo_errors.collect_errors():
                    self._scale_deployment(drain, step)
            elif isinstance(step, a.SetReplicas):
                self._scale_deployment(drain, step)
            else:
                self._change_state(drain, step)
        undo_errors.raise_error()

    def _refused_groups(self, drain: DrainInProgress, steps: tuple[Action, ...], now: float) -> set[str] | None:
        """Returns the groups of which no pod is evicted now, because the API server would refuse an eviction. None if
        the drain has ended because of it."""
        refused = find_refused_groups(
            drain, steps, self.evicted_at, self.steps.is_postponed, self.actuator.try_eviction
        )
        for one in refused:
            if one.rejection is not None and not self._record_rejection(drain, *one.rejection, now, GROUP_REFUSED):
                return None
        return {one.group for one in refused}

    def _change_state(self, drain: DrainInProgress, step: Action) -> None:
        """Executes the steps that change the state of the drain."""
        if isinstance(step, a.MarkEmptied):
            emptied = mark_emptied(drain.annotation, drain.view.now)
            self.actuator.cordon_node(drain.node, drain.version, emptied)
            self._record("emptied", IS_EMPTY(f"node {drain.node.name} has no more pods to evict"), drain)
        elif isinstance(step, a.Release):
            self._release(drain, step)
        elif isinstance(step, a.Abandon) and drain.is_emptying:
            self._record_end(drain, step.reason, FailureCause.NOBODY, "abandoned")

    def _scale_deployment(self, drain: DrainInProgress, step: a.SetReplicas) -> None:
        """Scales a Deployment, or raises its HorizontalPodAutoscaler. Before a replica is added, this is recorded in
        the state and then on the node.

        A second replica without such a record was added by another client, and is not removed.
        """
        pool, annotation = drain.pool, drain.annotation
        if step.replicas > step.before and step.deployment not in annotation.surged:
            # The order matters: state, annotation, Deployment. A crash in between leaves an announced surge that was
            # not made, which is harmless; the other way round it would leave a second replica that nobody removes.
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).with_surge(step.deployment, drain.name))
            self.pool_states.save_states((pool,))
            announced = change(annotation, surged={**annotation.surged, step.deployment: drain.view.now})
            self.actuator.cordon_node(drain.node, drain.version, announced)
            self.removed_nodes.agreed_surges[step.deployment] = AgreedSurge.of_drain(announced, step.deployment)
        is_scaled = apply_step(self.actuator, step)
        if step.replicas < step.before:
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).without_surges(step.deployment))
        if is_scaled:
            self._record("scaled", SCALED(describe_step(step)), drain)

    def _evict_pod(self, drain: DrainInProgress, step: a.Evict, now: float) -> bool:
        """Evicts one pod. Returns False if no further eviction of this drain should be made in this round."""
        move = step.move
        if not self.steps.may_begin(now):
            return False
        if self.steps.is_postponed(move.uid):
            return True
        before = self.pool_states.state_of(drain.pool)
        if step.counted_workload:
            # Before the eviction: if the process is killed in between, one eviction is counted too many, not too few.
            counted = before.with_disruption(step.counted_workload, drain.view.now)
            self.pool_states.set_state(drain.pool, counted)
            self.pool_states.save_states((drain.pool,))
        answer = self.actuator.evict_pod(move)
        if answer.became is not EvictionResult.EVICTED:
            self.pool_states.set_state(drain.pool, before)
            code = GROUP_REST_WAITS if has_begun(drain, move.group, self.evicted_at) else REFUSED
            return self._record_rejection(drain, move, answer, now, code)
        self.evicted_at[move.uid] = now
        memory = self.pool_states.state_of(drain.pool)
        self.moved_twice += move.pod in memory.moved
        self.pool_states.set_state(drain.pool, memory.with_eviction(drain.view.now))
        reason = EVICTED(f"pod {move.pod} was evicted to drain node {drain.node.name}")
        self._record("evicted", reason, drain, move)
        return True

    def _record_rejection(
        self, drain: DrainInProgress, move: PodToEvict, answer: EvictionResponse, now: float, code: Code
    ) -> bool:
        """Records that a pod was not evicted. Returns False if the drain has ended because of it."""
        reason = code(f"pod {move.pod} was not evicted: {answer.message}")
        self._record("refused", reason, drain, move, again=move.uid in self.rejected_uids)
        self.rejected_uids.add(move.uid)
        if answer.became is EvictionResult.NEVER:
            self._release(drain, a.Release(FORBIDDEN(reason.sentence), FailureCause.NODE))
            return False
        self.steps.postpone(move.uid, now, answer.retry_after)
        return True

    def _release(self, drain: DrainInProgress, step: a.Release) -> None:
        """Saves the end of the drain and then uncordons the node, so that the end is not counted twice if the process
        crashes in between.

        The node is uncordoned even if the states cannot be saved.
        """
        pool, view = drain.pool, drain.view
        self._record_end(drain, step.reason, step.blame, "released", step.namespace)
        if step.reason.code in TERM_CODES:
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).with_term_stop(drain.node.name, view.now))
        if step.opened:
            quiet = delay_after_add(view.autoscaler)
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).with_opening(view.now, quiet))
        if step.reverted:
            self.pool_states.set_state(
                pool, self.pool_states.state_of(pool).with_reverted_surge(step.reverted, view.now)
            )
        if step.setback:
            self.back_off(Setback(pool, drain.name, step.setback), view)
        try:
            self.pool_states.save_states((pool,))
        finally:
            self._release_node(drain)

    def _record_end(
        self, drain: DrainInProgress, reason: Reason, blame: FailureCause, what: str, namespace: str = ""
    ) -> None:
        pool, now = drain.pool, drain.view.now
        memory = self.pool_states.state_of(pool)
        if drain.name in memory.ended:
            return
        if blame is not FailureCause.NOBODY:
            is_strike = blame is FailureCause.POOL
            memory = memory.with_failure(drain.node.name, now, strike=is_strike, namespace=namespace)
        # The surge was saved in the state, and the process ended before the annotation: it was never made.
        unannounced = (name for name in drain.surges_in(memory) if name not in drain.annotation.surged)
        memory = memory.with_unkept_promise(drain.node.name, now).without_surges(*unannounced)
        memory = memory.with_ended_drain(drain.node.name, drain.name, now)
        self.pool_states.set_state(pool, memory)
        self._record(what, reason, drain)
        if memory.strikes >= self.timeouts.strikes and memory.closed is None:
            self._close_pool(pool, drain.view)

    def judge_added_nodes(self, view: ClusterView) -> None:
        """Makes pools back off if nodes were added because of their drains."""
        memories = self.pool_states.states
        judged = [cause for memory in memories.values() for cause in memory.judged]
        for setback in find_setbacks(view, {pool: memory.emptied for pool, memory in memories.items()}, judged):
            self.back_off(setback, view)

    def back_off(self, setback: Setback, view: ClusterView) -> None:
        """Records the setback. If a back-off begins because of it, reports that."""
        before = self.pool_states.state_of(setback.pool)
        memory = before.with_setback(setback.cause, view.now)
        self.pool_states.set_state(setback.pool, memory)
        if memory.backoff is not None and memory.backoff != before.backoff:
            reason = backoff_reason(setback.pool, memory.backoff, view.now, setback.why)
            self.pool_states.record_decision("closed", reason, pool=setback.pool, at=view.now)

    def _close_pool(self, pool: str, view: ClusterView) -> None:
        memory = change(self.pool_states.state_of(pool), closed=view.now)
        self.pool_states.set_state(pool, memory)
        reason = CLOSED(f"pool {pool} is closed for {self.timeouts.closed} s, because {describe_strikes(memory)}")
        self.pool_states.record_decision("closed", reason, pool=pool, at=view.now)

    def _record(
        self, what: str, reason: Reason, drain: DrainInProgress, move: PodToEvict | None = None, *, again: bool = False
    ) -> None:
        pod, owner = (move.pod, f"{move.kind}/{move.owner}" if move.owner else "") if move else ("", "")
        self.pool_states.record_decision(
            what,
            reason,
            pool=drain.pool,
            at=drain.view.now,
            node=drain.node.name,
            pod=pod,
            owner=owner,
            drain=drain.name,
            again=again,
        )
