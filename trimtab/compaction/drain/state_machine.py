"""The state machine of a drain: decides the next step from the cluster as it is now.

It has no state of its own. The decision is in the annotation on the node, and the progress is read from the pods. So a
replica that takes over after a crash decides the same next step.

    emptying   the node is cordoned and some of its pods exist, or their successors are not ready
    emptied    all successors are ready on other nodes; the autoscaler removes the node
    over       the node is gone, or uncordoned and without the annotation
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, describe_scale_up
from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import CRITICAL_PRIORITY, PodInfo
from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP, Pool, Precedence
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.blockers import EvictionChecker
from trimtab.compaction.candidates import keep_annotations, node_keep_reason
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.actions import Action, FailureCause, Release, Wait
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.backoff import find_waiting_successor
from trimtab.compaction.drain.budget_wait import describe_budget_wait
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads, is_gone
from trimtab.compaction.drain.critical_moves import CriticalMoves
from trimtab.compaction.drain.group_evictions import DrainGroups, group_steps
from trimtab.compaction.drain.late_namespace import find_late_namespace
from trimtab.compaction.drain.overdue import PendingPods, overdue_successor, why_not_removed
from trimtab.compaction.drain.reasons import (
    CAME,
    CLAIMED,
    DELETING,
    DELETION_FAILED,
    ENDING,
    FORBIDDEN,
    KEPT,
    LEFT_EMPTY,
    NO_BUDGET,
    NODE_ILL,
    NOT_TAKEN,
    ONE_BY_ONE,
    OPENED,
    PENDING,
    SCALER_CHANGED,
    STOPPED,
    STUCK,
    SUCCESSORS,
    TOO_LONG,
    UNCORDONED,
)
from trimtab.compaction.drain.release import nodes_to_open
from trimtab.compaction.drain.surging import DrainSurges
from trimtab.compaction.drain.timeouts import DrainTimeouts, removal_timeout
from trimtab.compaction.terms.term_ledger import EMPTY_LEDGER, TermLedger
from trimtab.compaction.terms.term_obstacles import counted_workload, find_term_obstacle

MISSING_FRACTION = 4
"""A divisor: a workload without a PodDisruptionBudget may lack a quarter of its pods at a time, and at least one
pod."""


@dataclass(slots=True)
class DrainPlanner:
    """Decides the next steps of all drains in one view. The drains share the disruptions that PodDisruptionBudgets
    allow."""

    view: ClusterView
    timeouts: DrainTimeouts
    term_ledger: TermLedger = EMPTY_LEDGER
    """What was recorded about the terms that pods state."""
    workloads: Workloads = field(init=False)
    pending_pods: PendingPods = field(init=False)
    pdb_index: PdbIndex = field(init=False)
    eviction_checker: EvictionChecker = field(init=False)
    pods_on_node: Mapping[str, Sequence[PodInfo]] = field(init=False)
    """Node → its pods that have not finished."""
    deletions: Mapping[str, str] = field(init=False)
    """Node → pool, for nodes that the autoscaler is removing from pools with `autoscaler: lead`."""
    critical_moves: CriticalMoves = field(init=False)
    spent_disruptions: Counter[int] = field(init=False)
    """Budget → the number of evictions that were chosen in this round, or made and not yet in the budget's status."""
    chosen_evictions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Workload (the Deployment, if there is one) → the number of evictions chosen in this round."""
    chosen_disruptions: Counter[str] = field(default_factory=Counter)
    """Workload whose pods limit its evictions in a day → the number of evictions chosen in this round."""
    _nodes_to_open: dict[str, str] | None = None
    """Drained node → the pod for which it is uncordoned; computed once for all drains."""

    def __post_init__(self) -> None:
        self.workloads = Workloads(self.view)
        self.pending_pods = PendingPods(self.view, self.timeouts)
        self.eviction_checker = EvictionChecker.for_inventory(self.view.inventory, self.view.now, self.view.autoscaler)
        self.pdb_index = self.eviction_checker.pdb_index
        self.pods_on_node = self.view.inventory.pod_index.by_node
        self.critical_moves = CriticalMoves(self.view, self.workloads, self.pods_on_node)
        self.spent_disruptions = Counter()
        self.deletions = self.view.autoscaler_deletions
        evicted = self.view.evicted_uids
        for pod in self.view.inventory.pods if evicted or self.deletions else ():
            if pod.deletion_requested_at is None and (pod.uid in evicted or self._is_evicted_soon(pod)):
                self.spent_disruptions.update(self._budgets_of(pod))

    def next_actions(self, node: NodeInfo, annotation: DrainAnnotation) -> tuple[Action, ...]:
        """Returns the next actions of this drain. There is always at least one."""
        if node.removal_taint is not None:
            return (
                *self.surges_of(annotation).undo_steps(),
                a.Abandon(DELETING(f"node {node.name} is being deleted (taint {node.removal_taint.key})")),
            )
        stop = (
            self._node_failure(node, annotation)
            or self._autoscaler_claim(node, annotation)
            or self._stop_request(node, annotation)
            or self._disturbance(node, annotation)
        )
        if stop is not None:
            return (*self.surges_of(annotation).undo_steps(), self._with_setback(stop, node, annotation))
        if annotation.emptied is not None:
            return (self._wait_for_removal(node, annotation),)
        return self.next_evictions(node, annotation)

    def _is_evicted_soon(self, pod: PodInfo) -> bool:
        """Returns whether the autoscaler will soon evict the pod: its node belongs to a pool with `autoscaler: lead`,
        and the autoscaler is draining it."""
        return pod.node in self.deletions and not (pod.is_daemon or pod.is_static or pod.is_finished)

    def _budgets_of(self, pod: PodInfo) -> tuple[int, ...]:
        """Returns the budgets that the eviction of the pod needs."""
        if pod.is_outside_budgets:
            return ()
        return self.pdb_index.matching_numbers(pod.namespace, pod.requirements.labels)

    def surges_of(self, annotation: DrainAnnotation) -> DrainSurges:
        """Returns the surges of the drain, which say how to undo them before its node is uncordoned."""
        return DrainSurges(self.view, self.workloads, self.timeouts, annotation)

    def _with_setback(self, stop: Release, node: NodeInfo, annotation: DrainAnnotation) -> Release:
        """Returns the release of the node. For whatever reason the drain ends, a setback of the pool is added if a pod
        that the drain evicted still waits for a node."""
        # When the node was empty all successors were ready: a pod that is pending now was displaced by another cause.
        if annotation.emptied is not None or node.is_legacy:
            return stop
        pod = find_waiting_successor(annotation, self.view, self.workloads, self.timeouts.pending)
        return replace(stop, setback=f"pod {pod}, which drain {annotation.drain} moved, is Pending") if pod else stop

    # ── reasons to stop ──────────────────────────────────────────────────
    def _node_failure(self, node: NodeInfo, annotation: DrainAnnotation) -> Release | None:
        name = node.name
        if not node.is_cordoned and name in self.view.deleting_nodes:
            reason = DELETION_FAILED(f"the cluster autoscaler began to delete node {name}, and uncordoned it")
            return Release(reason, FailureCause.NODE)
        if not node.is_cordoned:
            return Release(UNCORDONED(f"another client uncordoned node {name}"), FailureCause.NODE)
        if not node.is_ready and not self._has_no_pods_left(node, annotation):
            return Release(NODE_ILL(f"node {name} stopped being ready"), FailureCause.NODE)
        if annotation.emptied is None:
            limit_seconds = self.timeouts.drain + max((move.grace for move in annotation.moves), default=0)
            if self.view.now > annotation.since + limit_seconds:
                # Half of the time without a running compactor, or an annotation by a clock that was behind: then the
                # limit says nothing about the pool.
                was_executed = 2 * self.view.executed_seconds.get(annotation.drain, limit_seconds) >= limit_seconds
                blame = FailureCause.POOL if was_executed else FailureCause.NOBODY
                pods = {pod.uid: pod for pod in self.pods_on_node.get(name, ())}
                wait = describe_budget_wait(annotation.moves, pods, self.pdb_index)
                sentence = f"the drain of node {name} took longer than {limit_seconds} s"
                late = find_late_namespace(annotation, pods, self.workloads)
                return Release(TOO_LONG(f"{sentence}; {wait}" if wait else sentence), blame, late)
        return None

    def _autoscaler_claim(self, node: NodeInfo, annotation: DrainAnnotation) -> Release | None:
        """Returns the release of the node if the autoscaler is about to remove it from a pool with `autoscaler: lead`
        and the drain is not the cause of that; otherwise None.

        A drain brings its node under the autoscaler's threshold. So once a pod has left, the autoscaler's soft taint on
        the node is a result of the drain. If the drain stopped then, the autoscaler would evict the remaining pods, and
        both would have drained the node.
        """
        pool = self.view.find_pool(annotation.pool)
        uids = {pod.uid for pod in self.pods_on_node.get(node.name, ()) if not is_gone(pod, self.view)}
        leads = pool is not None and pool.autoscaler is Precedence.LEAD
        if not leads or not node.autoscaler_candidate or not annotation.moves or annotation.emptied is not None:
            return None
        # A pod has left already: the drain itself brought the node under the autoscaler's threshold.
        if any(move.uid not in uids for move in annotation.moves):
            return None
        return Release(CLAIMED(f"the cluster autoscaler is about to remove node {node.name} (taint {CANDIDATE_TAINT})"))

    def _keep_request(self, node: NodeInfo, annotation: DrainAnnotation, pool: Pool | None) -> Release | None:
        """Returns the release of the node if an annotation now keeps it from being drained, otherwise None. For an
        empty node, only Trimtab's own annotation counts."""
        reason = node_keep_reason(
            node,
            keep_annotations(pool)
            if pool is not None and annotation.emptied is None
            else (KEEP_ANNOTATION, RENAMED_KEEP),
        )
        return Release(KEPT(f"the drain of node {node.name} was stopped: {reason}")) if reason is not None else None

    def _has_no_pods_left(self, node: NodeInfo, annotation: DrainAnnotation) -> bool:
        """Returns whether all pods of the drain have left the node. It is checked because a machine that is being
        removed becomes not ready before its Node object disappears."""
        planned = {move.uid for move in annotation.moves}
        return annotation.emptied is not None or not any(
            pod.uid in planned for pod in self.pods_on_node.get(node.name, ())
        )

    def _stop_request(self, node: NodeInfo, annotation: DrainAnnotation) -> Release | None:
        """Returns the release of the node if nothing may be drained now, otherwise None. An empty node is not released:
        it is left to the autoscaler."""
        pool = self.view.find_pool(annotation.pool)
        if (stop := self._keep_request(node, annotation, pool)) is not None or annotation.emptied is not None:
            return stop
        why = self.view.paused or _pool_stop_reason(pool, annotation.pool)
        if why:
            return Release(STOPPED(f"the drain of node {node.name} was stopped: {why}"))
        autoscaler = self.view.autoscaler_of(annotation.pool)
        if autoscaler is None:
            return None
        nodes = [member for member in self.view.inventory.nodes if pool is not None and pool.has_node(member)]
        busy = describe_scale_up(autoscaler, annotation.pool, nodes)
        silent = autoscaler.silence_reason(self.view.now) if autoscaler.is_silent(self.view.now) else ""
        if busy or not autoscaler.healthy or silent:
            if busy:
                cause = f"the cluster autoscaler is scaling up {busy}"
            else:
                cause = silent or "the cluster autoscaler is not healthy"
            return Release(SCALER_CHANGED(f"{cause} while node {node.name} is drained"))
        return None

    def _disturbance(self, node: NodeInfo, annotation: DrainAnnotation) -> Release | None:
        unplanned = self._unplanned_pods(node, annotation)
        if unplanned:
            reason = CAME(f"node {node.name} has pods that the plan does not contain: {', '.join(unplanned)}")
            return Release(reason, FailureCause.NODE)
        if annotation.emptied is not None:
            return self._opening_need(node)
        return (
            self.stuck_pod(node, annotation)
            or overdue_successor(self.view, self.workloads, node, annotation, self.timeouts)
            or self._pending_pod_needs(node)
        )

    def _unplanned_pods(self, node: NodeInfo, annotation: DrainAnnotation) -> list[str]:
        """Returns the pods on the node that would have to move and are not in the annotation, except those that are
        being deleted."""
        planned = {move.uid for move in annotation.moves}
        pods = (
            pod
            for pod in self.pods_on_node.get(node.name, ())
            if pod.uid not in planned and pod.deletion_requested_at is None
        )
        return sorted(pod.key for pod in pods if not (pod.is_daemon or pod.is_static))

    def stuck_pod(self, node: NodeInfo, annotation: DrainAnnotation) -> Release | None:
        """Returns the release of the node if an evicted pod does not terminate, otherwise None."""
        planned = {move.uid for move in annotation.moves}
        for pod in self.pods_on_node.get(node.name, ()):
            if (
                pod.uid in planned
                and pod.deletion_requested_at is not None
                and self.view.now > pod.deletion_requested_at + self.timeouts.end
            ):
                seconds = self.view.now - pod.deletion_requested_at
                reason = STUCK(f"pod {pod.key} still exists {seconds} s after its grace period")
                return Release(reason, FailureCause.POOL, pod.namespace)
        return None

    def _pending_pod_needs(self, node: NodeInfo) -> Release | None:
        pod = self.pending_pods.fits_only_on(node)
        if pod:
            return Release(PENDING(f"pod {pod} is Pending and would fit on node {node.name}"))
        return None

    def _opening_need(self, node: NodeInfo) -> Release | None:
        """Returns the release of the empty node if pods that fit on no open node need it, otherwise None."""
        if self._nodes_to_open is None:
            self._nodes_to_open = nodes_to_open(self.view, self.timeouts)
        pod = self._nodes_to_open.get(node.name)
        if pod is None:
            return None
        return Release(OPENED(f"pod {pod} fits on no open node, but fits on the drained node {node.name}"), opened=True)

    # ── emptied ──────────────────────────────────────────────────────────
    def _wait_for_removal(self, node: NodeInfo, annotation: DrainAnnotation) -> Action:
        assert annotation.emptied is not None
        waits = removal_timeout(self.timeouts, self.view.autoscaler_of(annotation.pool), ready=node.is_ready)
        if self.view.now > annotation.emptied + waits:
            why, blame = why_not_removed(node, annotation, self.view, waits)
            return Release(
                NOT_TAKEN(
                    f"node {node.name} has had no pods to evict for {waits} s, but the autoscaler has not "
                    f"removed it: {why}"
                ),
                blame,
            )
        remaining = annotation.emptied + waits - self.view.now
        return Wait(
            LEFT_EMPTY(
                f"node {node.name} has no more pods to evict; if the autoscaler does not remove it, the "
                f"compactor uncordons it in {remaining} s"
            )
        )

    # ── emptying ─────────────────────────────────────────────────────────
    def next_evictions(self, node: NodeInfo, annotation: DrainAnnotation) -> tuple[Action, ...]:
        """Returns the next steps of a drain that nothing stops."""
        pod_by_uid = {pod.uid: pod for pod in self.pods_on_node.get(node.name, ())}
        remaining = [
            move for move in annotation.moves if move.uid in pod_by_uid and not is_gone(pod_by_uid[move.uid], self.view)
        ]
        ending = [move for move in annotation.moves if move.uid in pod_by_uid and move not in remaining]
        gone_moves = [move for move in annotation.moves if move not in remaining]
        groups = DrainGroups.from_view(annotation, self.view)
        gone_moves += groups.gone_companions
        rest = tuple(
            groups.follow_wait(one.group)
            or self.member_step(one, groups.staying[one.uid], annotation, asks_terms=False)
            for one in groups.companions_left
        )
        surges = self.surges_of(annotation)
        undo = surges.undo_steps((move.uid for move in remaining), waits_for_ready=True)
        incomplete = self.incomplete_workload(gone_moves)
        if not remaining:
            if undo:
                return undo
            if rest:
                return _evictions_or_wait(rest)
            if ending:
                return (Wait(ENDING(f"pod {ending[0].pod} is still terminating")),)
            if incomplete or surges.undo_steps():
                return (Wait(SUCCESSORS(incomplete or "additional pods of a Deployment are not removed yet")),)
            return (a.MarkEmptied(),)
        turn = min(move.turn for move in remaining)
        previous_incomplete = self.incomplete_workload([move for move in gone_moves if move.turn < turn])
        if previous_incomplete:
            return (*undo, *_evictions_or_wait(rest)) if rest else (*undo, Wait(SUCCESSORS(previous_incomplete)))
        # Lowest priority first, as in the kubelet's graceful node shutdown. Equal ones keep the order of the plan:
        # it begins with the largest pod, for the reason given in `drain_order`.
        order = sorted((m for m in remaining if m.turn == turn), key=lambda move: move.priority)
        chosen = self._choose_evictions(order, pod_by_uid, annotation, groups)
        steps = _evictions_or_wait((*rest, *chosen)) if rest else chosen
        stop = next((action for action in steps if isinstance(action, Release)), None)
        return (*surges.undo_steps(), stop) if stop is not None else (*undo, *steps)

    def incomplete_workload(self, moves: Iterable[PodToEvict]) -> str:
        """Returns the first workload, among those of the pods to move, that lacks a ready pod, as text; an empty string
        if there is none."""
        for move in moves:
            missing = self.workloads.newly_missing(move) if move.owner else 0
            if missing:
                pods = "pod" if missing == 1 else "pods"
                return f"{move.kind} {move.namespace}/{move.owner} waits for {missing} {pods} to be ready"
        return ""

    def _choose_evictions(
        self,
        order: list[PodToEvict],
        pod_by_uid: dict[str, PodInfo],
        annotation: DrainAnnotation,
        groups: DrainGroups,
    ) -> tuple[Action, ...]:
        """Returns the evictions to make now, pods with a lower priority first. While a pod waits, pods with a higher
        priority wait too."""
        actions: list[Action] = []
        waiting_priority: int | None = None
        chosen_groups: set[str] = set()
        for move in order:
            if waiting_priority is not None and move.priority > waiting_priority:
                break
            if move.group in chosen_groups:
                continue
            if move.group and annotation.companions:
                chosen_groups.add(move.group)
                actions += group_steps(self, groups, move.group)
            else:
                actions.append(self._eviction_step(move, pod_by_uid[move.uid], annotation))
            if isinstance(actions[-1], Wait) and waiting_priority is None:
                waiting_priority = move.priority
        return _evictions_or_wait(actions)

    def member_step(
        self, move: PodToEvict, pod: PodInfo, annotation: DrainAnnotation, *, asks_terms: bool = True
    ) -> Action:
        """Returns the eviction of a pod that is evicted together with others of its group, or why it must wait.

        asks_terms: whether the pod's own terms count. They no longer do when the group has begun: it is stopped
        already, and a window that closes must not leave it split.
        """
        pool = self.view.find_pool(annotation.pool)
        if pool is not None:
            if (forbidden := self.eviction_checker.forbidding_annotation(pod, pool)) is not None:
                return Release(FORBIDDEN(str(forbidden)), FailureCause.NODE)
            if asks_terms and (terms := self._term_obstacle(pod, pool)) is not None:
                return Release(terms)
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            return Release(FORBIDDEN(f"{format_count(len(budgets), 'budget')} select pod {pod.key}"), FailureCause.NODE)
        refusal = self._budget_wait(pod, budgets[0]) if budgets else None
        return refusal if refusal is not None else self._chosen_eviction(move, pod, budgets)

    def _eviction_step(self, move: PodToEvict, pod: PodInfo, annotation: DrainAnnotation) -> Action:
        pool = self.view.find_pool(annotation.pool)
        forbidden = self.eviction_checker.forbidding_annotation(pod, pool) if pool is not None else None
        if forbidden is not None:
            return Release(FORBIDDEN(str(forbidden)), FailureCause.NODE)
        if pool is not None and (terms := self._term_obstacle(pod, pool)) is not None:
            return Release(terms)
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            return Release(FORBIDDEN(f"{format_count(len(budgets), 'budget')} select pod {pod.key}"), FailureCause.NODE)
        if (wait := self.critical_moves.wait_for_others(move)) is not None:
            return wait
        surge = self.surges_of(annotation).next_step(
            move, is_allowed=lambda: not budgets or self._budget_wait(pod, budgets[0]) is None
        )
        if surge is not None:
            return surge
        refusal = self._budget_wait(pod, budgets[0]) if budgets else self._disruption_wait(move)
        if refusal is not None:
            return refusal
        if move.priority >= CRITICAL_PRIORITY:
            self.critical_moves.add_workload(move.owner_key)
        return self._chosen_eviction(move, pod, budgets)

    def _chosen_eviction(self, move: PodToEvict, pod: PodInfo, budgets: tuple[int, ...]) -> a.Evict:
        # The PDB's status is updated later by the disruption controller: what this round evicts must count now.
        self.spent_disruptions.update(budgets)
        self.chosen_evictions[self.workloads.top_owner(move.owner_key)] += 1
        workload = counted_workload(pod)
        self.chosen_disruptions[workload] += 1
        return a.Evict(move, workload)

    def _term_obstacle(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """Returns why the pod's own terms forbid its eviction now, or None if they permit it."""
        if not pod.annotations:
            return None
        chosen = self.chosen_disruptions[counted_workload(pod)]
        return find_term_obstacle(pod, pool, self.term_ledger, self.view.now, chosen)

    def _budget_wait(self, pod: PodInfo, number: int) -> Wait | None:
        budget = self.view.inventory.pdbs[number]
        if not budget.allows_eviction(pod_is_ready=pod.is_ready, spent=self.spent_disruptions[number]):
            return Wait(NO_BUDGET(f"at present budget {budget.key} allows no eviction of pod {pod.key}"))
        return None

    def _disruption_wait(self, move: PodToEvict) -> Wait | None:
        key = move.owner_key
        if not move.owner:
            return None
        wanted, missing = self.workloads.replicas_and_missing(key)
        missing = max(0, missing - move.missing)
        if missing + self.chosen_evictions[self.workloads.top_owner(key)] >= max(1, wanted // MISSING_FRACTION):
            return Wait(ONE_BY_ONE(f"other pods of {move.kind} {move.namespace}/{move.owner} are not ready"))
        return None


def _evictions_or_wait(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Returns the actions that are no waits, or the first wait if there are only waits."""
    return tuple(action for action in actions if not isinstance(action, Wait)) or tuple(actions[:1])


def _pool_stop_reason(pool: Pool | None, name: str) -> str:
    if pool is None:
        return f"pool {name} no longer exists, or its settings have an error"
    if not pool.enabled:
        return f"pool {name} is disabled"
    return f"pool {name} is in mode rehearse" if pool.dry_run else ""


def mark_emptied(annotation: DrainAnnotation, at: Seconds) -> DrainAnnotation:
    """Returns the annotation with the time at which the node was empty."""
    return change(annotation, emptied=at)
