"""Makes plans and starts drains: makes a plan, waits, reads the cluster again, and starts the steps that are still
valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import NotYet
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.candidates import CandidateChecker, PlanningContext
from trimtab.compaction.drain import start
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.merged_states import merge_observations, moved_pods
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.drain.timeouts import DrainTimeouts, removal_timeout
from trimtab.compaction.drain.waiting import differ_much
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.recheck import Recheck
from trimtab.compaction.reserved_targets import reserved_targets
from trimtab.compaction.resize.plan_resizes import plan_with_resizes
from trimtab.compaction.resize.types import ResizeProposal
from trimtab.compaction.room_forecast import SLOT_SECONDS, NeededRoom
from trimtab.compaction.terms.reasons import is_kept_by_terms
from trimtab.compaction.terms.term_ledger import update_delays
from trimtab.compactor.actuator import (
    Actuator,
    ActuatorConflict,
    ActuatorError,
    ActuatorForbidden,
    ActuatorNotFound,
    ErrorCollector,
)
from trimtab.compactor.error_guard import ErrorGuard, Failed, Ok
from trimtab.compactor.pool_demand import forecast_pools, record_demand
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.reasons import BEGUN, NO_CORDON, ODD_POOL, PLANNED
from trimtab.runtime.clock import elapsed_seconds
from trimtab.scheduling.cluster_model import Again, ClusterModel, build_cluster_model

Readmit = Callable[[], Again | NotYet | None]
"""A function that returns another function, with which a plan finds out what pods would request if they were admitted
now.

If it returns None, pods would get the requests that they have. If it returns NotYet, the answer is not known yet."""


@dataclass(frozen=True, slots=True)
class PendingSteps:
    """Steps of the plan that will start after a while, if they are still valid then."""

    steps: tuple[DrainStep, ...]
    chosen_at: float


MAX_RANKED_NODES = 3_000
"""In clusters with more nodes than this, resizes are not ordered by the nodes that they help to empty, because two
additional plans would take too long."""
AIM = 3600
"""For how many seconds a pool's plan stays in force while its pods move; no other nodes are drained meanwhile."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The nodes that a plan drains, and when the plan was made."""

    nodes: frozenset[str]
    at: Seconds


@dataclass(slots=True)
class CompactionPlanner:
    """Makes plans and starts drains. Only the leader uses it."""

    actuator: Actuator
    dry_run_actuator: Actuator
    pool_states: PoolStates
    timeouts: DrainTimeouts
    settle_seconds: float
    error_guard: ErrorGuard
    readmit: Readmit = lambda: None
    on_cordon: Callable[[str], None] = lambda drain: None
    """Called with the name of a drain whose node is being cordoned, because its annotation may not be observed for a
    while."""
    moved_by_others: frozenset[str] = frozenset()
    """The pods that somebody else moved recently, and that are left in peace."""
    ordered_nodes: frozenset[str] = frozenset()
    """The nodes of DrainOrders that are carried out, which are drained for no other reason."""
    last_plan: Plan | None = None
    reserved_targets: frozenset[str] = frozenset()
    """Nodes of pools that act, which are reserved by the last plan."""
    needed_room: Mapping[str, NeededRoom] = field(default_factory=dict)
    """Pool → the room that its pods need soon, by the last forecast."""
    slot_seconds: int = SLOT_SECONDS
    """How long a slot of the pools' histories is."""
    plan_seconds: float = 0.0
    """How many seconds the last plan took."""
    pending_steps: PendingSteps | None = None
    _readmitted_requests: Again | None = None
    _failing_pools: frozenset[str] = frozenset()
    """The pools that were left out of the last plan because of an unexpected error."""
    _recorded_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool → the nodes whose drains the last dry run has recorded."""
    _aims: dict[str, Aim] = field(default_factory=dict)
    """Pool → the nodes of the last plan that was made while no pod of the pool was moving."""

    def not_ready_reason(self) -> NotYet | None:
        """Returns why no plan can be made or started now, or None if it can. It is checked before a plan is made, and
        again before it is started."""
        lookup = self.readmit()
        if isinstance(lookup, NotYet):
            return lookup
        self._readmitted_requests = lookup
        return None

    def make_plan(self, view: ClusterView, active: ActiveDrains, now: float) -> Plan:
        """Makes a plan for this view, and chooses the steps that may start."""
        started = elapsed_seconds()
        model = build_cluster_model(view.inventory, self._readmitted_requests)
        self._failing_pools = self._observe_pools(model, view)
        record_demand(self.pool_states, view, self.slot_seconds)
        self.needed_room = forecast_pools(self.pool_states, view.pools, view.now)
        context = self._planning_context(view, active)
        new_plan = self._plan_pools(model, view, context)
        self.reserved_targets = self._reserve_targets(new_plan, model, view, active)
        self.last_plan, self.plan_seconds = new_plan, elapsed_seconds() - started
        for pool in view.pools:
            self._record_plan(pool, new_plan, view)
            # Since when nodes are left to the autoscaler is recorded. For a pool in which nothing may be planned now,
            # nothing is known about its nodes, and the record is not changed.
            if pool.name not in new_plan.pools:
                names = {*new_plan.left, *new_plan.overdue}
                pool_nodes = sorted(
                    node.name for node in view.inventory.nodes if node.name in names and pool.has_node(node)
                )
                self.pool_states.set_state(
                    pool.name, self.pool_states.state_of(pool.name).with_left_nodes(pool_nodes, view.now)
                )
        self._record_delays(view, new_plan, CandidateChecker(model, view.pools, context))
        self._record_aims(view, active, new_plan)
        self.pending_steps = PendingSteps(self._choose_steps(view, new_plan, active), now)
        return new_plan

    def _reserve_targets(
        self, new_plan: Plan, model: ClusterModel, view: ClusterView, active: ActiveDrains
    ) -> frozenset[str]:
        """Returns the nodes to reserve. While pods move, those that were reserved before stay so until they are
        needed: the plan then lacks nodes whose workloads lack a pod."""
        acting = view.acting_pools
        before = self.reserved_targets if active.emptying else frozenset()
        acting_plan = new_plan.of_pools({pool.name for pool in acting})
        names = reserved_targets(acting_plan, model, active.emptying, before)
        return frozenset(
            name for name in names if any(pool.has_node(model.nodes[model.node_numbers[name]]) for pool in acting)
        )

    def _aims_in_progress(self, view: ClusterView, active: ActiveDrains) -> dict[str, frozenset[str]]:
        """Returns pool → the nodes of the plan in progress, for pools whose pods are moving.

        Many workloads of such a pool lack a pod and must not lose another, so a new plan would choose other nodes, and
        would move pods that have just arrived.
        """
        moving = set(active.emptying.values())
        return {pool: aim.nodes for pool, aim in self._aims.items() if pool in moving and view.now < aim.at + AIM}

    def _record_delays(self, view: ClusterView, new_plan: Plan, nodes: CandidateChecker) -> None:
        """Records which nodes of each pool the terms of pods keep, for pools in which something may be planned."""
        kept = {pod.node for pod in view.inventory.pods if is_kept_by_terms(new_plan.pods.get(pod.key))}
        numbers = nodes.model.node_numbers
        for pool in view.pools:
            state = self.pool_states.state_of(pool.name)
            if pool.name in new_plan.pools or not (kept or state.delays):
                continue
            own = {
                name
                for name in {*kept, *state.delays}
                if name in numbers and pool.has_node(nodes.model.nodes[numbers[name]])
            }
            # A node that may not be drained for other reasons does not show that the terms permit it.
            judged = {
                name: name in kept
                for name in own
                if name in kept or nodes.rejection_reason(numbers[name], pool) is None
            }
            delays = update_delays(state.delays, judged, view.now, pool.max_term_delay)
            self.pool_states.set_state(pool.name, change(state, delays=delays))

    def _record_aims(self, view: ClusterView, active: ActiveDrains, new_plan: Plan) -> None:
        """Records the nodes of this plan, for each pool that may be planned and has no plan in progress."""
        in_progress = self._aims_in_progress(view, active)
        for pool in view.pools:
            if pool.name not in in_progress and pool.name not in new_plan.pools:
                nodes = frozenset(step.node for step in new_plan.all_steps if step.pool == pool.name)
                self._aims[pool.name] = Aim(nodes, view.now)

    def _plan_pools(self, model: ClusterModel, view: ClusterView, context: PlanningContext) -> Plan:
        """Returns the plan for all pools. After an unexpected error, the pools whose own plan fails are left out."""
        if not self._failing_pools:
            whole = self.error_guard.run_guarded("plan", lambda: make_plan(model, view.pools, context))
            if isinstance(whole, Ok):
                return whole.result
            self._failing_pools = frozenset(
                pool.name for pool in view.pools if self._fails_alone(pool, model, view, context)
            )
        reasons = {
            pool: ODD_POOL(f"the plan for pool {pool} failed because of a bug in Trimtab; see the log")
            for pool in self._failing_pools
        }
        reduced = make_plan(model, _without(view.pools, self._failing_pools), context)
        return replace(reduced, pools={**reduced.pools, **reasons})

    def _fails_alone(self, pool: Pool, model: ClusterModel, view: ClusterView, context: PlanningContext) -> bool:
        others = frozenset(other.name for other in view.pools if other is not pool)
        pools = _without(view.pools, others)
        outcome = self.error_guard.run_guarded(
            "plan", lambda: make_plan(model, pools, context), about=f"pool {pool.name}"
        )
        return isinstance(outcome, Failed)

    def rank_resizes(self, view: ClusterView, proposals: Sequence[ResizeProposal]) -> tuple[str, ...]:
        """Returns the uids of pods whose resize makes it possible to empty a node of these pools. Resizes for the nodes
        that are drained first come first."""
        if len(view.inventory.nodes) > MAX_RANKED_NODES:
            return ()
        context = PlanningContext(now=view.now, autoscaler=view.autoscaler)
        resize_plan = plan_with_resizes(
            view.inventory, view.acting_pools, proposals, context, self._readmitted_requests
        )
        return tuple(proposal.uid for proposal in resize_plan.resizes)

    def start_drains(self, view: ClusterView, active: ActiveDrains, now: float) -> int:
        """Starts those of the chosen steps that are still valid after the waiting time. Returns how many drains began.

        Raises ActuatorUnavailable after all steps were tried.
        """
        if self.pending_steps is None or now - self.pending_steps.chosen_at < self.settle_seconds:
            return 0
        steps, self.pending_steps = self.pending_steps.steps, None
        if view.paused or not steps:
            return 0
        model, context = (
            build_cluster_model(view.inventory, self._readmitted_requests),
            self._planning_context(view, active),
        )
        check, started, collector = (
            Recheck.prepare(model, _without(view.pools, self._failing_pools), context),
            0,
            ErrorCollector(),
        )
        for pool in view.pools:
            pool_steps = tuple(step for step in steps if step.pool == pool.name)
            memory, timeouts = (
                self.pool_states.state_of(pool.name),
                replace(self.timeouts, drains=self.timeouts.drains - started),
            )
            for step in start.steps_to_start(pool_steps, pool, memory, active, view.now, timeouts):
                with collector.collect_errors():
                    outcome = self.error_guard.run_guarded(
                        "begin", partial(self._start_drain, step, pool, check, view), about=step.node
                    )
                    started += outcome == Ok(True)
        collector.raise_error()
        return started

    def _start_drain(self, step: DrainStep, pool: Pool, check: Recheck, view: ClusterView) -> bool:
        node = view.find_node(step.node)
        if node is None or node.is_cordoned or step.node in self.ordered_nodes:
            return False
        reason = check.rejection_reason(step)
        if reason is not None:
            self.pool_states.record_decision(
                "abandoned", reason, pool=step.pool, at=view.now, node=step.node, rehearsed=pool.dry_run
            )
            return False
        annotation = start.create_annotation(step, view, self.last_plan.unit if self.last_plan is not None else "")
        if pool.dry_run:
            self._record_start(self.dry_run_actuator, step, annotation, view)
            return True
        try:
            if not self._cordon_node(node, annotation, view):
                return False
        except ActuatorForbidden as error:
            self._record_rejection(step, view, error)
            return False
        self._record_start(self.actuator, step, annotation, view)
        return True

    def _cordon_node(self, node: NodeInfo, annotation: DrainAnnotation, view: ClusterView) -> bool:
        """Writes the drain into the state, and then cordons the node with its annotation. Returns False if the node has
        changed.

        If the process crashes in between, there is a drain without a cordon in the state, which the next round removes.
        In the opposite order, there would be a cordon that no compactor accepts as its own. Raises ActuatorUnavailable.
        """
        before = self.pool_states.state_of(annotation.pool)
        pods, saving = Counter(move.namespace for move in annotation.moves), (annotation.unit, annotation.saves)
        recorded = before.with_drain(node.name, annotation.drain, saving, pods).with_promise(saving, view.now)
        self.pool_states.set_state(annotation.pool, recorded)
        try:
            self.pool_states.save_states((annotation.pool,))
        except ActuatorError:
            self.pool_states.set_state(annotation.pool, before)
            raise
        try:
            self.actuator.cordon_node(node, view.versions[node.name], annotation)
        except (ActuatorConflict, ActuatorNotFound, ActuatorForbidden) as error:
            recorded = self.pool_states.state_of(annotation.pool).without_drain(node.name)
            self.pool_states.set_state(annotation.pool, recorded.without_promise(saving, view.now))
            if isinstance(error, ActuatorForbidden):
                raise
            return False
        finally:
            self.on_cordon(annotation.drain)
        return True

    def _record_start(self, door: Actuator, step: DrainStep, annotation: DrainAnnotation, view: ClusterView) -> None:
        reason = BEGUN(f"the drain of node {step.node} begins: {step.reason}")
        self.pool_states.record_decision(
            "started",
            reason,
            pool=step.pool,
            at=view.now,
            node=step.node,
            drain=annotation.drain,
            rehearsed=door.is_dry_run,
        )

    def _record_rejection(self, step: DrainStep, view: ClusterView, error: ActuatorForbidden) -> None:
        """Records a rejected cordon as a failure of the node. Otherwise every plan would choose this node in place of
        others."""
        self.pool_states.set_state(
            step.pool, self.pool_states.state_of(step.pool).with_failure(step.node, view.now, strike=False)
        )
        reason = NO_CORDON(f"node {step.node} cannot be cordoned: {error}")
        self.pool_states.record_decision("abandoned", reason, pool=step.pool, at=view.now, node=step.node)

    def _choose_steps(self, view: ClusterView, new_plan: Plan, active: ActiveDrains) -> tuple[DrainStep, ...]:
        chosen: list[DrainStep] = []
        for pool in view.pools:
            memory, drain_timeouts = self.pool_states.state_of(pool.name), self.timeouts
            timeouts = replace(drain_timeouts, drains=drain_timeouts.drains - len(chosen))
            steps = start.steps_to_start(
                new_plan.waves[0].steps if new_plan.waves else (), pool, memory, active, view.now, timeouts
            )
            chosen += steps if not pool.dry_run else self._unrecorded_steps(pool, steps)
        return tuple(chosen)

    def _unrecorded_steps(self, pool: Pool, steps: tuple[DrainStep, ...]) -> tuple[DrainStep, ...]:
        """Returns those steps of a dry run that have not been recorded before."""
        names = tuple(step.node for step in steps)
        if self._recorded_nodes.get(pool.name) == names:
            return ()
        self._recorded_nodes[pool.name] = names
        return steps

    def _observe_pools(self, model: ClusterModel, view: ClusterView) -> frozenset[str]:
        """Records which nodes are under the threshold of their pool. Returns the pools for which this failed
        unexpectedly."""
        nodes = CandidateChecker(model, view.pools, PlanningContext(now=view.now))
        annotated = [
            annotation.drain for annotation in view.annotations.ours.values() if isinstance(annotation, DrainAnnotation)
        ]
        failing = set()
        for pool in view.pools:
            under = self.error_guard.run_guarded(
                "plan", partial(nodes.nodes_under_threshold, pool), about=f"pool {pool.name}"
            )
            if isinstance(under, Failed):
                failing.add(pool.name)
                continue
            memory = self.pool_states.state_of(pool.name).without_old_entries(
                view.now, self.timeouts, model.node_numbers, annotated
            )
            since = {node: memory.under.get(node, view.now) for node in under.result}
            self.pool_states.set_state(pool.name, change(memory, under=since))
        # The nodes of a deleted pool are no longer observed: how long they were under-used is unknown.
        for deleted in set(self.pool_states.states) - {pool.name for pool in view.pools}:
            memory = self.pool_states.state_of(deleted).without_old_entries(
                view.now, self.timeouts, model.node_numbers, annotated
            )
            self.pool_states.set_state(deleted, change(memory, under={}))
        return frozenset(failing)

    def _planning_context(self, view: ClusterView, active: ActiveDrains) -> PlanningContext:
        # The nodes that were left to the autoscaler for longer than its own settings explain.
        removals = {
            pool: removal_timeout(DrainTimeouts(), view.autoscaler_of(pool)) for pool in self.pool_states.states
        }
        overdue = (one.overdue_nodes(view.now, removals[pool]) for pool, one in self.pool_states.states.items())
        return PlanningContext(
            now=view.now,
            observations=merge_observations(self.pool_states.states, active.emptying),
            autoscaler=view.autoscaler,
            moved_pods=moved_pods(self.pool_states.states.values()) | self.moved_by_others,
            overdue=frozenset[str]().union(*overdue),
            own_cordons=view.annotations.ours,
            other_compactors=view.annotations.others,
            aims=self._aims_in_progress(view, active),
            needed_room=self.needed_room,
            unverified={name: str(problem) for name, problem in view.annotations.doubtful.items()},
        )

    def _record_plan(self, pool: Pool, new_plan: Plan, view: ClusterView) -> None:
        """Records the plan for `trimtab compactor status`, and reports it if it differs from the previous one."""
        nodes = tuple(step.node for step in new_plan.all_steps if step.pool == pool.name)
        first_wave = sum(step.pool == pool.name for step in new_plan.waves[0].steps) if new_plan.waves else 0
        memory = self.pool_states.state_of(pool.name)
        refusal = new_plan.pools.get(pool.name)
        why = f"{refusal.code.name}: {refusal}" if refusal is not None else ""
        # Reason code → the number of the pool's nodes that the plan keeps for it, the largest number first.
        names = {node.name for node in view.inventory.nodes if pool.has_node(node)}
        codes = Counter(reason.code.name for name, reason in new_plan.refusals.items() if name in names)
        stays = dict(sorted(codes.items(), key=lambda item: (-item[1], item[0])))
        is_same = memory.plan == nodes and memory.plan_why.partition(":")[0] == why.partition(":")[0]
        if is_same and memory.plan_at is not None:
            if memory.plan_wave != first_wave or differ_much(memory.plan_stays, stays):
                self.pool_states.set_state(pool.name, change(memory, plan_wave=first_wave, plan_stays=stays))
            return
        plan = change(memory, plan=nodes, plan_wave=first_wave, plan_why=why, plan_stays=stays, plan_at=view.now)
        self.pool_states.set_state(pool.name, plan)
        count = f"{len(nodes) or 'no'} node{'' if len(nodes) == 1 else 's'}"
        reason = refusal or PLANNED(f"{count} of pool {pool.name} can be drained")
        self.pool_states.record_decision("planned", reason, pool=pool.name, at=view.now, rehearsed=pool.dry_run)


def _without(pools: Sequence[Pool], names: Collection[str]) -> tuple[Pool, ...]:
    """Returns the pools, with the named pools disabled and without settings. Their nodes still belong to them and to no
    other pool."""
    return tuple(
        Pool(name=pool.name, labels=pool.labels, everything=pool.everything, enabled=False)
        if pool.name in names
        else pool
        for pool in pools
    )
