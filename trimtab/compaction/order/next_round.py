"""Decides the next writes of an order from the cluster as it is now.

It has no state of its own: which nodes belong to the order, which are begun and which are empty stands in the records
on the nodes, and the progress is read from the pods. So another run of the command, also by another person, goes on
where the first one ended.

    waiting    the node is to be cordoned; or it is cordoned, and waits for its wave
    draining   pods of the node move, and their successors are not ready yet
    empty      the node has no more pods to evict, and all successors are ready
    left       the node is gone, was created again, is being deleted, or was released after it was empty
    failed     another client uncordoned or released the node, or its pods cannot leave; the reason says why
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Reason
from trimtab.compaction.blockers import Blocked, Evictable
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.overdue import overdue_successor
from trimtab.compaction.drain.reasons import ENDING, NO_BUDGET, STUCK, SUCCESSORS, UNCORDONED
from trimtab.compaction.drain.start import create_annotation
from trimtab.compaction.drain.state_machine import DrainPlanner, mark_emptied
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.node_history import OrderNodeHistory
from trimtab.compaction.order.order_round import (
    LOCAL_FAILURES,
    CordonForOrder,
    DiscourageSuccessors,
    DrainOrder,
    OrderPhase,
    OrderRound,
    PlanRemaining,
    WriteRecord,
)
from trimtab.compaction.order.order_surges import OrderSurges, with_planned_surges
from trimtab.compaction.order.ordered_evictions import OrderedEvictionChecker
from trimtab.compaction.order.record import OrderRecord, order_of_taint
from trimtab.compaction.plan_types import DrainStep, Move


def next_round(
    order: DrainOrder,
    view: ClusterView,
    records: Mapping[str, OrderRecord],
    plan: PlanRemaining,
    timeouts: DrainTimeouts,
    stop: Reason | None = None,
    history: Mapping[str, OrderNodeHistory] | None = None,
    denials: Mapping[str, Reason] | None = None,
) -> OrderRound:
    """Returns the next writes of the order.

    records: node → its record, for the nodes of this order; those of other orders are left out. stop: why nothing new
    may be begun, although the cluster would allow it. history: what this run has observed of the nodes before. denials:
    uid of a pod → why it cannot be evicted, which only the API server knows. The annotations of `view` must be the
    drains in `records` (`drains_of`)."""
    return _RoundDecision(
        order, view, records, plan, timeouts, OrderRound(stop=stop), history or {}, denials or {}
    ).decide()


def drains_of(records: Mapping[str, OrderRecord]) -> dict[str, DrainAnnotation]:
    """Returns node → its drain, for the nodes whose drain has begun."""
    return {node: record.drain for node, record in records.items() if record.drain is not None}


@dataclass(slots=True, eq=False)
class _RoundDecision:
    order: DrainOrder
    view: ClusterView
    records: Mapping[str, OrderRecord]
    plan: PlanRemaining
    timeouts: DrainTimeouts
    result: OrderRound
    history: Mapping[str, OrderNodeHistory]
    denials: Mapping[str, Reason]
    nodes: dict[str, NodeInfo] = field(init=False)
    planner: DrainPlanner = field(init=False)
    checker: OrderedEvictionChecker = field(init=False)
    surges: OrderSurges = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = {node.name: node for node in self.view.inventory.nodes}
        self.planner = DrainPlanner(self.view, self.timeouts)
        inventory, pools = self.view.inventory, self.view.pools
        self.checker = OrderedEvictionChecker.for_order(inventory, self.view.now, self.order.rules, pools)
        self.surges = OrderSurges(self.planner, self.order.rules)

    def decide(self) -> OrderRound:
        """Returns the round."""
        result, order = self.result, self.order
        result.cordoned = tuple(name for name in self.records if name in self.nodes and self.nodes[name].is_cordoned)
        for name in order.nodes:
            result.phases[name] = self._phase_of(name)
            if result.phases[name] in (OrderPhase.LEFT, OrderPhase.FAILED):
                self._undo_surges(name)
        if result.stop is None and order.deadline is not None and self.view.now >= order.deadline:
            result.stop = o.TIMED_OUT(
                f"the order took longer than its {order.rules.words.timeout}, so no further pod is evicted"
            )
        for name in self._in_phase(OrderPhase.DRAINING):
            self._find_failure(name)
        result.stop = result.stop or self._failure_that_stops()
        uncordoned = [name for name in self._in_phase(OrderPhase.WAITING) if name not in self.records]
        if uncordoned and self._is_past_until():
            result.stop = result.stop or self._until_reason()
        if result.stop is None and uncordoned:
            self._cordon(uncordoned)
            if result.writes:
                return result
        for name in self._in_phase(OrderPhase.DRAINING):
            self._continue_drain(name)
        result.stop = result.stop or self._failure_that_stops()
        if result.stop is None and not self._in_phase(OrderPhase.DRAINING) and not self._has_open_surges():
            self._begin_wave()
        result.is_over = self._is_over()
        return result

    def _failure_that_stops(self) -> Reason | None:
        """Returns the first failure because of which nothing new is begun; None if there is none."""
        if self.order.rules.keeps_going:
            return None
        local = LOCAL_FAILURES if self.order.is_signed else ()
        return next((reason for reason in self.result.failures.values() if reason.code not in local), None)

    def _phase_of(self, name: str) -> OrderPhase:
        node, record = self.nodes.get(name), self.records.get(name)
        before = self.history.get(name)
        if node is None or node.removal_taint is not None or (before is not None and before.uid != node.uid):
            return OrderPhase.LEFT
        if record is None and before is not None and before.had_record:
            if before.was_emptied:
                return OrderPhase.LEFT
            self.result.failures[name] = o.RECORD_REMOVED(
                f"another client removed the record of the order from node {name}, {self.order.rules.words.release}"
            )
            return OrderPhase.FAILED
        is_skipped = before is not None and before.was_skipped
        if not self.order.is_signed:
            is_skipped = is_skipped or any(order_of_taint(taint) == self.order.name for taint in node.taints)
        if record is None and is_skipped:
            self.result.failures[name] = o.SKIPPED(f"node {name} could not be emptied when the order began")
            return OrderPhase.FAILED
        if record is not None and record.is_emptied:
            return self._phase_after_end(node)
        if record is not None and not node.is_cordoned:
            self.result.failures[name] = UNCORDONED(f"another client uncordoned node {name}")
            return OrderPhase.FAILED
        return OrderPhase.DRAINING if record is not None and record.drain is not None else OrderPhase.WAITING

    def _phase_after_end(self, node: NodeInfo) -> OrderPhase:
        """Returns the phase of a node whose record says that it is empty, which any client that may patch nodes can
        write: the pods decide."""
        if not node.is_cordoned:
            return OrderPhase.LEFT
        for pod in self.planner.pods_on_node.get(node.name, ()):
            if isinstance(self.checker.judge_ordered(pod), (Evictable, Blocked)):
                self.result.failures[node.name] = o.NOT_EMPTY(
                    f"the record of node {node.name} says that it is empty, but pod {pod.key} runs on it"
                )
                return OrderPhase.FAILED
        return OrderPhase.EMPTY

    def _in_phase(self, phase: OrderPhase) -> list[str]:
        return [name for name in self.order.nodes if self.result.phases[name] is phase]

    def _fail(self, name: str, reason: Reason) -> None:
        self.result.phases[name] = OrderPhase.FAILED
        self.result.failures[name] = reason

    # ── the beginning ────────────────────────────────────────────────────
    def _cordon(self, names: Sequence[str]) -> None:
        """Cordons all nodes of the order before the first eviction, so that no pod moves onto a node that is emptied
        later. Nodes that cannot be emptied stay open, with a soft taint."""
        for name in names:
            if (denial := self._denial_on(name)) is not None:
                self._fail(name, denial)
                self.result.writes.append((name, DiscourageSuccessors()))
        names = [name for name in names if name not in self.result.failures]
        plan = self.plan(self._in_phase(OrderPhase.WAITING))
        if plan.refusals and not self.order.rules.keeps_going:
            self.result.failures.update(plan.refusals)
            self.result.stop = next(iter(plan.refusals.values()))
            return
        for name in names:
            if name in plan.refusals:
                self._fail(name, plan.refusals[name])
                self.result.writes.append((name, DiscourageSuccessors()))
            else:
                record = OrderRecord(
                    order=self.order.name,
                    since=self.order.since,
                    by=self.order.by,
                    why=self.order.why,
                    nodes=self.order.nodes,
                    was_cordoned=self.nodes[name].is_cordoned,
                )
                self.result.writes.append((name, CordonForOrder(record)))

    def _denial_on(self, name: str) -> Reason | None:
        """Returns why a pod on the node cannot be evicted, as the API server said before; None if it said so of
        none."""
        pods = self.planner.pods_on_node.get(name, ())
        uids = (pod.uid for pod in pods if pod.uid in self.denials and pod.deletion_requested_at is None)
        return next((self.denials[uid] for uid in uids), None)

    def _begin_wave(self) -> None:
        for name in self._in_phase(OrderPhase.WAITING):
            if (denial := self._denial_on(name)) is not None:
                self._fail(name, denial)
        waiting = self._in_phase(OrderPhase.WAITING)
        if not waiting:
            return
        if self._is_past_until():
            self.result.stop = self._until_reason()
            return
        plan = self.plan(waiting)
        for name, reason in plan.refusals.items():
            self._fail(name, reason)
        if not plan.may_begin(self.order.rules):
            self.result.stop = next(iter(plan.refusals.values()), None)
            return
        for step in plan.waves[0].steps if plan.waves else ():
            drain = with_planned_surges(create_annotation(step, self.view), step)
            record = change(self.records[step.node], drain=drain)
            self.result.writes.append((step.node, WriteRecord(record)))
        for name in self._in_phase(OrderPhase.WAITING):
            self.result.waits[name] = o.WAITS_FOR_WAVE(f"node {name} waits for its wave")

    def _is_past_until(self) -> bool:
        return self.order.until is not None and self.view.now >= self.order.until

    def _until_reason(self) -> Reason:
        return o.UNTIL_REACHED(f"the time of {self.order.rules.words.until} is reached, so no further node is begun")

    # ── a drain in progress ──────────────────────────────────────────────
    def _drain_of(self, name: str) -> DrainAnnotation:
        drain = self.records[name].drain
        assert drain is not None
        return drain

    def _find_failure(self, name: str) -> None:
        drain = self._drain_of(name)
        if (overdue := self._overdue_reason(name)) is not None:
            self.result.failures[name] = overdue
            return
        if (denial := self._denial_on(name)) is not None:
            self.result.failures[name] = denial
            return
        moved_owners = {move.owner_key for move in drain.moves if move.owner}
        moved_uids = {move.uid for move in drain.moves}
        for pod in self.planner.pods_on_node.get(name, ()):
            is_new = pod.uid not in moved_uids and pod.created is not None and pod.created > drain.since
            if is_new and pod.owner in moved_owners and not (pod.is_daemon or pod.is_static):
                self.result.failures[name] = o.RETURNS(
                    f"pod {pod.key} was created on the cordoned node {name} again after a pod of its owner was evicted"
                )
                return
            verdict = self.checker.judge_ordered(pod)
            is_over = pod.uid in self.view.evicted_uids or self.surges.is_surging(drain, pod)
            if isinstance(verdict, Blocked) and not is_over:
                self.result.failures[name] = verdict.reason

    def _overdue_reason(self, name: str) -> Reason | None:
        """Returns why the pods that were evicted from the node are not waited for any longer; None if they are."""
        node, drain = self.nodes[name], self._drain_of(name)
        release = self.planner.stuck_pod(node, drain) or overdue_successor(
            self.view, self.planner.workloads, node, drain, self.timeouts
        )
        if release is not None:
            return release.reason
        for pod in self._terminating_pods(name):
            seconds = self.view.now - (pod.deletion_requested_at or self.view.now)
            if seconds > self.timeouts.end:
                return STUCK(f"pod {pod.key} still exists {seconds} s after its grace period")
        return None

    def _continue_drain(self, name: str) -> None:
        node, drain, result = self.nodes[name], self._drain_of(name), self.result
        extended = self._with_new_pods(name, drain)
        if result.stop is None and name not in result.failures and extended is not drain:
            result.writes.append((name, WriteRecord(change(self.records[name], drain=extended))))
            return
        for action in self.planner.next_evictions(node, drain):
            if isinstance(action, a.MarkEmptied) and (terminating := self._terminating_pods(name)):
                result.waits[name] = ENDING(f"pod {terminating[0].key} is still terminating")
            elif isinstance(action, a.MarkEmptied) and self._denial_on(name) is None:
                emptied = mark_emptied(drain, self.view.now)
                result.writes.append((name, WriteRecord(change(self.records[name], drain=emptied))))
            elif isinstance(action, a.Evict) and result.stop is None and name not in result.failures:
                result.writes.append((name, action))
            elif isinstance(action, a.SetReplicas):
                self._scale(name, drain, action)
            elif isinstance(action, a.Release):
                result.failures.setdefault(name, action.reason)
            elif isinstance(action, a.Wait):
                result.waits[name] = self._explain_wait(name, action.reason)
        if name in result.failures:
            result.phases[name] = OrderPhase.FAILED
        if result.stop is not None or name in result.failures:
            self._undo_surges(name)

    def _scale(self, name: str, drain: DrainAnnotation, step: a.SetReplicas) -> None:
        """Gives a Deployment more pods, or sets it back. The record says so before it gets more."""
        result = self.result
        if step.replicas < step.before:
            result.writes.append((name, step))
            return
        if result.stop is not None or name in result.failures or any(node == name for node, _ in result.writes):
            return
        if (refusal := self.surges.refusal_of(drain, step)) is not None:
            result.failures[name] = refusal
        elif (announced := self.surges.announce(drain, step)) is not None:
            result.writes.append((name, WriteRecord(change(self.records[name], drain=announced))))
        else:
            result.writes.append((name, step))

    def _undo_surges(self, name: str) -> None:
        """Undoes the surges of a node whose drain does not go on."""
        drain = self._surging_drain(name)
        steps = self.surges.undo_steps(drain) if drain is not None else ()
        self.result.writes += [(name, step) for step in steps if (name, step) not in self.result.writes]

    def _surging_drain(self, name: str) -> DrainAnnotation | None:
        """Returns the drain of a node, also if its record, or the node, is gone; None if it has not begun."""
        record, before = self.records.get(name), self.history.get(name)
        if record is not None and record.drain is not None:
            return None if record.is_emptied else record.drain
        return before.surging if before is not None else None

    def _has_open_surges(self) -> bool:
        return any(self.surges.has_open(self._surging_drain(name)) for name in self.order.nodes)

    def _terminating_pods(self, name: str) -> list[PodInfo]:
        """Returns the pods of the node that are being deleted, whoever deleted them."""
        return [
            pod
            for pod in self.planner.pods_on_node.get(name, ())
            if pod.deletion_requested_at is not None and not (pod.is_daemon or pod.is_static)
        ]

    def _explain_wait(self, name: str, reason: Reason) -> Reason:
        """Returns the reason to wait. For a pod that is not ready it names the way out, because its budget may never
        allow the eviction."""
        if reason.code is not NO_BUDGET:
            return reason
        pod = next((pod for pod in self.planner.pods_on_node.get(name, ()) if pod.key in reason.sentence.split()), None)
        if pod is None or pod.is_ready:
            return reason
        return o.UNHEALTHY_POD(
            f"{reason}, because the pod is not ready: repair or delete the pod, or set unhealthyPodEvictionPolicy: "
            "AlwaysAllow in the budget"
        )

    def _with_new_pods(self, name: str, drain: DrainAnnotation) -> DrainAnnotation:
        """Returns the drain with the pods that came to the node after it began, such as one that was being bound when
        the node was cordoned; the same drain if there are none."""
        moved_uids = {move.uid for move in drain.moves}
        added = [
            pod
            for pod in self.planner.pods_on_node.get(name, ())
            if pod.uid not in moved_uids and isinstance(self.checker.judge_ordered(pod), Evictable)
        ]
        if not added:
            return drain
        turn = max((move.turn for move in drain.moves), default=0)
        moves = tuple(
            Move(pod=pod.key, uid=pod.uid, source=name, target="", budget=None, turn=turn + number)
            for number, pod in enumerate(added, start=1)
        )
        step = DrainStep(node=name, pool="", saves=0, moves=moves, reason=o.ORDERED(f"node {name}"))
        return change(drain, moves=(*drain.moves, *create_annotation(step, self.view).moves))

    # ── the end ──────────────────────────────────────────────────────────
    def _is_over(self) -> bool:
        """Returns whether there is nothing to write and nothing to wait for. After a stop, the evictions that were made
        are waited for: until the pods are gone, and until their successors are ready."""
        if self.result.writes or self._has_open_surges():
            return False
        draining = self._in_phase(OrderPhase.DRAINING)
        failed = [name for name in self._in_phase(OrderPhase.FAILED) if self._may_still_move(name)]
        if any(self._is_moving(name) for name in failed):
            return False
        if self.result.stop is None:
            return not draining and not self._in_phase(OrderPhase.WAITING)
        return not any(self._is_moving(name) for name in draining)

    def _may_still_move(self, name: str) -> bool:
        """Returns whether pods of a failed node may be on their way: the node was begun, and they are not overdue."""
        record = self.records.get(name)
        is_begun = name in self.nodes and record is not None and record.drain is not None and not record.is_emptied
        return is_begun and self._overdue_reason(name) is None

    def _is_moving(self, name: str) -> bool:
        drain = self._drain_of(name)
        pods = {pod.uid: pod for pod in self.planner.pods_on_node.get(name, ())}
        gone = [
            move
            for move in drain.moves
            if move.uid not in pods
            or pods[move.uid].deletion_requested_at is not None
            or move.uid in self.view.evicted_uids
        ]
        ending = next((move for move in gone if move.uid in pods), None)
        incomplete = self.planner.incomplete_workload(gone)
        if ending is not None:
            self.result.waits[name] = ENDING(f"pod {ending.pod} is still terminating")
        elif incomplete:
            self.result.waits[name] = SUCCESSORS(incomplete)
        return ending is not None or bool(incomplete)
