"""Executes the next step of every drain in progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain import annotation as notes
from trimtab.compaction.drain.actions import Action, FailureCause
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.backoff import Setback, emptied_node, find_setbacks
from trimtab.compaction.drain.cluster_view import ClusterView, is_gone
from trimtab.compaction.drain.drain_order import order_drains
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.reasons import AHEAD, CLOSED, FAULT, FORBIDDEN, ODD_NOTE, STOPPING, UNKNOWN
from trimtab.compaction.drain.start import ActiveDrains, backoff_reason, describe_strikes, find_successors
from trimtab.compaction.drain.state_machine import DrainPlanner, mark_emptied
from trimtab.compaction.drain.timeouts import DrainTimeouts, delay_after_add
from trimtab.compaction.long_graces import is_only_stopping
from trimtab.compactor.actuator import Actuator, ActuatorForbidden, ErrorCollector, EvictionResponse, EvictionResult
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.reasons import EVICTED, IS_EMPTY, REFUSED, SCALED
from trimtab.compactor.removed_nodes import RETRY_SECONDS, RemovedNodes
from trimtab.runtime.graceful_shutdown import GracefulShutdown

MAX_VIEW_AGE_SECONDS = 15.0
"""If the view is older than this many seconds, nothing is evicted, because `paused` and other changes must take effect
even while writes are slow."""
UNOBSERVED_SECONDS = 60.0
"""An eviction that has not been observed counts as failed after the maximum age of the data plus this many seconds."""


@dataclass(slots=True)
class Drainer:
    """Executes the next steps of all drains. Only the leader uses it."""

    actuator: Actuator
    pool_states: PoolStates
    timeouts: DrainTimeouts
    shutdown: GracefulShutdown
    error_guard: ErrorGuard
    elapsed: Callable[[], float] | None = None
    """Returns the present time of the monotonic clock in seconds, which is compared with the age of the view. If None,
    the view never counts as too old."""
    unobserved_seconds: float = 120.0 + UNOBSERVED_SECONDS
    """After how many seconds an eviction that was not observed counts as failed."""
    retry_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod, name of a node, or namespace/name of a Deployment → the monotonic time before which no write to it
    is tried again."""
    evicted_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → when it was evicted. The entry is kept until the pod's deletion is observed."""
    first_observed: dict[str, float] = field(default_factory=dict)
    """Drain → when this process first observed it."""
    rejected_uids: set[str] = field(default_factory=set)
    """Uids of the pods whose rejected eviction is already in the history."""
    moved_twice: int = 0
    """The number of evicted pods that were themselves successors of recently evicted pods."""
    removed_nodes: RemovedNodes = field(init=False)

    def __post_init__(self) -> None:
        self.removed_nodes = RemovedNodes(
            self.actuator, self.pool_states, self.error_guard.log, self.unobserved_seconds
        )

    def active_drains(self, view: ClusterView) -> ActiveDrains:
        """Returns the drains in progress, according to the annotations on the nodes."""
        active = [
            (node.name, note)
            for node, note in view.annotated_nodes()
            if isinstance(note, DrainAnnotation) and self._is_known(node, note)
        ]
        pods = {pod.uid: pod for pod in view.inventory.pods if pod.node}
        stopping = frozenset(
            name
            for name, note in active
            if note.emptied is None
            and is_only_stopping(pod for move in note.moves if (pod := pods.get(move.uid)) and pod.node == name)
        )
        return ActiveDrains(
            emptying={name: note.pool for name, note in active if note.emptied is None},
            stopping=stopping,
            emptied={name: note.pool for name, note in active if note.emptied is not None},
            deleted=view.autoscaler_deletions,
            owed=_count_owed([note for _, note in active if note.emptied is None], view),
        )

    def executed_seconds(self, view: ClusterView, now: float) -> dict[str, float]:
        """Returns drain → seconds for which this process has executed it."""
        drains = {note.drain for _, note in view.annotated_nodes() if isinstance(note, DrainAnnotation)}
        self.first_observed = {drain: self.first_observed.get(drain, now) for drain in drains}
        return {drain: now - since for drain, since in self.first_observed.items()}

    def opened_counts(self, view: ClusterView) -> dict[str, int]:
        """Returns pool → the number of its drained nodes that were uncordoned in the last hour."""
        return {pool: memory.recent_openings(view.now) for pool, memory in self.pool_states.states.items()}

    def settle_flight(self, view: ClusterView, now: float) -> frozenset[str]:
        """Returns the uids of evicted pods that the view still shows unchanged, and forgets the other evicted pods."""
        existing = {pod.uid for pod in view.inventory.pods if pod.deletion_requested_at is None}
        self.evicted_at = {
            uid: at for uid, at in self.evicted_at.items() if uid in existing and now - at < self.unobserved_seconds
        }
        self.retry_at = {uid: until for uid, until in self.retry_at.items() if until > now}
        self.rejected_uids &= existing
        return frozenset(self.evicted_at)

    def run_drains(self, planner: DrainPlanner, now: float) -> None:
        """Executes one step of each drain. If the next step of a drain fails unexpectedly, its node is released.

        Raises ActuatorUnavailable after all drains were tried, so that the error of one does not prevent the others.
        """
        collector = ErrorCollector()
        for node, note in order_drains(planner.view):
            if node.name not in self.retry_at:
                with collector.collect_errors():
                    self._run_drain(planner, node, note, now)
        self.removed_nodes.end_drains(planner.view, self.retry_at, now)
        collector.raise_error()

    def _run_drain(self, planner: DrainPlanner, node: NodeInfo, note: DrainAnnotation | Unreadable, now: float) -> None:
        try:
            if not self.error_guard.run_guarded(
                "drain", partial(self._run_next_step, planner, node, note, now), about=node.name
            ):
                self._release_failed(planner.view, node, note)
        except ActuatorForbidden:
            self.retry_at[node.name] = now + RETRY_SECONDS
            raise

    def _release_failed(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation | Unreadable) -> None:
        """Releases a node for which the next step cannot be decided."""
        if not isinstance(note, DrainAnnotation) or _is_deleted(node):
            return
        step = a.Release(
            FAULT(f"the drain of node {node.name} failed because of a bug in Trimtab: {self.error_guard.last_error}"),
            FailureCause.NODE,
        )
        before = self.error_guard.error_count
        self.error_guard.run_guarded("drain", partial(self._release, view, node, note, step), about=node.name)
        if self.error_guard.error_count != before:
            self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)

    def release_all(self, view: ClusterView, why: str = "the compactor is stopping") -> None:
        """Releases every node that is not empty yet, because the process ends. Nodes that another client is deleting
        are left alone.

        Raises ActuatorUnavailable after all nodes were tried.
        """
        apart = ErrorCollector()
        for node, note in view.annotated_nodes():
            if (
                isinstance(note, DrainAnnotation)
                and note.emptied is None
                and not _is_deleted(node)
                and self._is_known(node, note)
            ):
                reason = STOPPING(f"{why}, so node {node.name} is uncordoned again")
                with apart.collect_errors():
                    self.error_guard.run_guarded(
                        "end", partial(self._release_drain, view, node, note, reason), about=node.name
                    )
        apart.raise_error()

    def _release_drain(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, reason: Reason) -> None:
        agreed_annotation = self._with_agreed_surges(note)
        undo = DrainPlanner(view, self.timeouts).undo_actions(agreed_annotation)
        self._execute_steps(view, node, agreed_annotation, (*undo, a.Release(reason)), 0.0)

    def _run_next_step(
        self, planner: DrainPlanner, node: NodeInfo, note: DrainAnnotation | Unreadable, now: float
    ) -> bool:
        """Executes the next step of one drain. Always returns True."""
        view = planner.view
        if isinstance(note, Unreadable):
            self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)
            self.pool_states.record_decision("released", ODD_NOTE(str(note)), pool="", at=view.now, node=node.name)
            return True
        if not self._is_known(node, note):
            self._release_unknown(view, node, note)
            return True
        if node.is_cordoned and notes.is_ahead(note, view.now) and not _is_deleted(node):
            self._correct_time(view, node, note)
            return True
        if node.is_cordoned and node.name in view.annotations.outdated and not _is_deleted(node):
            # Signs the annotation again, before the previous key is removed.
            self.actuator.cordon_node(node, view.versions[node.name], note)
            return True
        note = self._with_agreed_surges(note)
        actions = planner.next_actions(node, note)
        has_ended = note.drain in self.pool_states.state_of(note.pool).ended
        if has_ended and not isinstance(actions[-1], a.Abandon):
            self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)
        elif not has_ended:
            self._update_state(node, note, view)
            self._execute_steps(view, node, note, actions, now)
        return True

    def _is_known(self, node: NodeInfo, note: DrainAnnotation) -> bool:
        return self.pool_states.state_of(note.pool).knows_drain(node.name, note.drain)

    def _with_agreed_surges(self, note: DrainAnnotation) -> DrainAnnotation:
        """Returns the annotation with only those surges that the pool's state also has, because only a surge that both
        have may be undone."""
        state = self.pool_states.state_of(note.pool).surged
        surged = {name: at for name, at in note.surged.items() if state.get(name) == note.drain}
        self.removed_nodes.agreed_surges |= dict.fromkeys(surged, note.drain)
        return note if surged == note.surged else change(note, surged=surged)

    def _release_unknown(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation) -> None:
        """Releases a node with an authentic annotation of a drain that is not in the state. No Deployment is scaled,
        and no failure is counted.

        Either the state was lost, or another client has restored an old annotation.
        """
        if _is_deleted(node):
            return
        self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)
        reason = UNKNOWN(
            f"node {node.name} is uncordoned again, because the state of pool {note.pool} does not contain drain "
            f"{note.drain}"
        )
        self.pool_states.record_decision("released", reason, pool="", at=view.now, node=node.name, drain=note.drain)

    def _correct_time(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation) -> None:
        self.actuator.cordon_node(node, view.versions[node.name], notes.clamp_to_now(note, view.now))
        reason = AHEAD(
            f"the time of the annotation on node {node.name} is in the future, so the time-outs of the drain "
            "count from now"
        )
        self._record("corrected", reason, view, node, note)

    def _update_state(self, node: NodeInfo, note: DrainAnnotation, view: ClusterView) -> None:
        memory = self.pool_states.state_of(note.pool).with_successors(
            find_successors(note, view), view.now, self.timeouts.rest
        )
        if _is_cleared(note, view):
            memory = memory.with_empty_node(node.name, emptied_node(node, view.now))
        if note.emptied is not None:
            memory = memory.without_surges(*_surges_of(memory, note.drain))
        self.pool_states.set_state(note.pool, memory)

    def _execute_steps(
        self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, steps: tuple[Action, ...], now: float
    ) -> None:
        """Executes the steps in order, until one fails that the next depends on. If a surge cannot be undone, the other
        steps are executed, and the undo is tried again later."""
        apart = ErrorCollector()
        for step in steps:
            if isinstance(step, a.Evict):
                if not self._evict_pod(view, node, note, step.move, now):
                    return
            elif isinstance(step, a.SetReplicas) and step.replicas < step.before:
                with apart.collect_errors():
                    self._scale_deployment(view, node, note, step)
            elif isinstance(step, a.SetReplicas):
                self._scale_deployment(view, node, note, step)
            else:
                self._change_state(view, node, note, step)
        apart.raise_error()

    def _change_state(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: Action) -> None:
        """Executes the steps that change the state of the drain."""
        if isinstance(step, a.MarkEmptied):
            self.actuator.cordon_node(node, view.versions[node.name], mark_emptied(note, view.now))
            self._record("emptied", IS_EMPTY(f"node {node.name} has no more pods to evict"), view, node, note)
        elif isinstance(step, a.Release):
            self._release(view, node, note, step)
        elif isinstance(step, a.Abandon) and note.emptied is None:
            self._record_end(view, node, note, step.reason, FailureCause.NOBODY, "abandoned")

    def _scale_deployment(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: a.SetReplicas) -> None:
        """Scales a Deployment. Before a replica is added, this is recorded in the state and then on the node.

        A second replica without such a record was added by another client, and is not removed.
        """
        if step.replicas > step.before and step.deployment not in note.surged:
            # The order matters: state, annotation, Deployment. A crash in between leaves an announced surge that was
            # not made, which is harmless; the other way round it would leave a second replica that nobody removes.
            self.pool_states.set_state(
                note.pool, self.pool_states.state_of(note.pool).with_surge(step.deployment, note.drain)
            )
            self.pool_states.save_states((note.pool,))
            announced = change(note, surged={**note.surged, step.deployment: view.now})
            self.actuator.cordon_node(node, view.versions[node.name], announced)
            self.removed_nodes.agreed_surges[step.deployment] = note.drain
        done = self.actuator.scale_deployment(step.deployment, step.before, step.replicas)
        if step.replicas < step.before:
            self.pool_states.set_state(note.pool, self.pool_states.state_of(note.pool).without_surges(step.deployment))
        if done:
            replicas = f"{step.replicas} replica{'' if step.replicas == 1 else 's'}"
            reason = SCALED(f"Deployment {step.deployment} now has {replicas} instead of {step.before}")
            self._record("scaled", reason, view, node, note)

    def _evict_pod(
        self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, move: PodToEvict, now: float
    ) -> bool:
        """Evicts one pod. Returns False if no further eviction of this drain should be made in this round."""
        if self.shutdown.is_requested or (self.elapsed is not None and self.elapsed() - now > MAX_VIEW_AGE_SECONDS):
            return False
        if move.uid in self.retry_at:
            return True
        answer = self.actuator.evict_pod(move)
        if answer.became is not EvictionResult.EVICTED:
            return self._record_rejection(view, node, note, move, answer, now)
        self.evicted_at[move.uid] = now
        memory = self.pool_states.state_of(note.pool)
        self.moved_twice += move.pod in memory.moved
        self.pool_states.set_state(note.pool, memory.with_eviction(view.now))
        reason = EVICTED(f"pod {move.pod} was evicted to drain node {node.name}")
        self._record("evicted", reason, view, node, note, move)
        return True

    def _record_rejection(
        self,
        view: ClusterView,
        node: NodeInfo,
        note: DrainAnnotation,
        move: PodToEvict,
        answer: EvictionResponse,
        now: float,
    ) -> bool:
        reason = REFUSED(f"pod {move.pod} was not evicted: {answer.message}")
        self._record("refused", reason, view, node, note, move, again=move.uid in self.rejected_uids)
        self.rejected_uids.add(move.uid)
        if answer.became is EvictionResult.NEVER:
            self._release(view, node, note, a.Release(FORBIDDEN(reason.sentence), FailureCause.NODE))
            return False
        self.retry_at[move.uid] = now + (answer.retry_after or RETRY_SECONDS)
        return True

    def _release(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: a.Release) -> None:
        """Saves the end of the drain and then uncordons the node, so that the end is not counted twice if the process
        crashes in between.

        The node is uncordoned even if the states cannot be saved.
        """
        self._record_end(view, node, note, step.reason, step.blame, "released", step.namespace)
        if step.opened:
            quiet = delay_after_add(view.autoscaler)
            self.pool_states.set_state(note.pool, self.pool_states.state_of(note.pool).with_opening(view.now, quiet))
        if step.setback:
            self.back_off(Setback(note.pool, note.drain, step.setback), view)
        try:
            self.pool_states.save_states((note.pool,))
        finally:
            self.actuator.release_node(node.name, view.versions[node.name], uncordon=node.is_cordoned)

    def _record_end(
        self,
        view: ClusterView,
        node: NodeInfo,
        note: DrainAnnotation,
        reason: Reason,
        blame: FailureCause,
        what: str,
        namespace: str = "",
    ) -> None:
        memory = self.pool_states.state_of(note.pool)
        if note.drain in memory.ended:
            return
        if blame is not FailureCause.NOBODY:
            is_strike = blame is FailureCause.POOL
            memory = memory.with_failure(node.name, view.now, strike=is_strike, namespace=namespace)
        # The surge was saved in the state, and the process ended before the annotation: it was never made.
        unannounced = (name for name in _surges_of(memory, note.drain) if name not in note.surged)
        memory = memory.with_ended_drain(node.name, note.drain, view.now).without_surges(*unannounced)
        self.pool_states.set_state(note.pool, memory)
        self._record(what, reason, view, node, note)
        if memory.strikes >= self.timeouts.strikes and memory.closed is None:
            self._close_pool(note.pool, view)

    def count_deletions(self, view: ClusterView) -> None:
        """Records the nodes that the autoscaler has begun to delete: all such nodes in pools with `autoscaler: lead`,
        and in other pools those with a drain."""
        by_pool: dict[str, dict[str, int]] = {}
        going = [node.name for node in view.inventory.nodes if node.removal_taint is not None]
        ours = {
            name: note.pool for name in going if isinstance(note := view.annotations.ours.get(name), DrainAnnotation)
        }
        leading = view.autoscaler_deletions
        for name in going:
            if (pool := leading.get(name) or ours.get(name)) is not None:
                by_pool.setdefault(pool, {})[name] = _count_evictions(name, view) if name not in ours else 0
        for pool, evictions in by_pool.items():
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).with_deletions(evictions, view.now))

    def deleting_nodes(self) -> frozenset[str]:
        """Returns the nodes that the autoscaler began to delete recently."""
        return frozenset(name for memory in self.pool_states.states.values() for name in memory.deleting)

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
        self,
        what: str,
        reason: Reason,
        view: ClusterView,
        node: NodeInfo,
        note: DrainAnnotation,
        move: PodToEvict | None = None,
        *,
        again: bool = False,
    ) -> None:
        pod, owner = (move.pod, f"{move.kind}/{move.owner}" if move.owner else "") if move else ("", "")
        self.pool_states.record_decision(
            what,
            reason,
            pool=note.pool,
            at=view.now,
            node=node.name,
            pod=pod,
            owner=owner,
            drain=note.drain,
            again=again,
        )


def _surges_of(memory: PoolState, drain: str) -> tuple[str, ...]:
    """Returns the Deployments to which this drain has given a second replica, or was about to give one."""
    return tuple(name for name, owner in memory.surged.items() if owner == drain)


def _count_evictions(name: str, view: ClusterView) -> int:
    """Returns the number of pods on this node that are evicted when the autoscaler deletes the node."""
    pods = (pod for pod in view.inventory.pods if pod.node == name and not pod.is_finished)
    return sum(not (pod.is_daemon or pod.is_static) for pod in pods)


def _is_deleted(node: NodeInfo) -> bool:
    return node.removal_taint is not None


def _count_owed(emptying: Sequence[DrainAnnotation], view: ClusterView) -> Counter[str]:
    """Returns pool → the number of pods that its drains still have to evict."""
    uids = {pod.uid for pod in view.inventory.pods if not is_gone(pod, view)} if emptying else set()
    return Counter(note.pool for note in emptying for move in note.moves if move.uid in uids)


def _is_cleared(note: DrainAnnotation, view: ClusterView) -> bool:
    """Returns whether every pod of the drain has left the node, even if successors are not ready yet."""
    if note.emptied is not None:
        return True
    leaving = {move.uid for move in note.moves}
    return not any(pod.uid in leaving and not pod.is_finished for pod in view.inventory.pods)
