"""Resizes running pods: proposes resizes, records them in the state, writes them, and follows each one to its end. Only
the leader does this.

In every round, each pool goes through the same steps. First, the next steps are decided from the records in the pool's
state and from the pods as they are (`compaction.resize.state_machine`). Then the records after these steps are saved,
and last the steps are written to the cluster. If the process ends before the write, a resize is recorded that was not
made, and the next leader removes the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from msgspec.structs import replace as change

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.owner import NO_OWNER_KEY, OwnerKey
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resizable_pod import ResizablePod, ResizeAnswer
from trimtab.cluster.resources import Amounts
from trimtab.cluster.timestamps import is_any_open
from trimtab.compaction.blockers import Blocked, Evictable, EvictionChecker
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.held import with_held_requests
from trimtab.compaction.resize.propose import ResizeContext, free_amounts, propose_resizes
from trimtab.compaction.resize.records import OpenResize, ResizeRecords
from trimtab.compaction.resize.state_machine import ResizePlanner, ResizeView
from trimtab.compaction.resize.steps import (
    Advance,
    Finish,
    Replace,
    Resize,
    ResizeStep,
    Revert,
    record_step,
    reject_step,
    writes,
)
from trimtab.compaction.resize.types import MeasuredUse, ResizeAdvice, ResizeChange, ResizeProposal, ResizeSettings
from trimtab.compactor.actuator import Actuator, ActuatorError, ActuatorForbidden, ErrorCollector, EvictionResult
from trimtab.compactor.error_guard import Ok
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.readmission_state import RunningRequests
from trimtab.compactor.step_runner import GuardedStep, StepRunner
from trimtab.kube.resize import ResizeOutcome, ResizeStatus

IN_FLIGHT_SECONDS = 30.0
"""After a pod was written, it is left alone for this many seconds as long as the watch still shows its old version."""
MAX_UNCOVERED_NAMES = 20


class ResizeSource(Protocol):
    """What the resizer reads."""

    def wanted_lookup(self) -> RunningRequests | NotYet | None:
        """Returns a function that returns what policies want for a running pod, or None if no policy wants anything."""

    def top_owner_of(self, pod: ResizablePod) -> str:
        """Returns namespace/Kind/name of the pod's topmost owner."""

    def read_pods(self) -> Mapping[str, ResizablePod] | NotYet:
        """Returns uid → running pod."""

    def find_obstacle(self) -> Reason | None:
        """Returns why nothing can be resized, or None if it can."""

    def note_missing_permission(self, message: str) -> Reason:
        """Remembers that this process may not resize pods."""

    def measure_use(self, pods: Mapping[str, ResizablePod], nodes: Collection[str]) -> MeasuredUse:
        """Returns what containers use now, and the pressure of pods on these nodes."""

    def stop(self) -> None:
        """Ends its watches."""


ResizePod = Callable[[ResizablePod, str, Sequence[ResizeChange]], ResizeOutcome]
"""A function that writes the changes into this version of the pod. It raises ActuatorUnavailable."""


@dataclass(slots=True)
class Resizer:
    """Executes the next steps of all resizes. Only the leader uses it."""

    source: ResizeSource
    resize_pod: ResizePod
    actuator: Actuator
    """Evicts pods for whose revert their node has no room."""
    pool_states: PoolStates
    settings_of: Callable[[Pool], ResizeSettings]
    steps: StepRunner
    interval: float
    """The number of seconds between two searches for pods to resize."""
    advice: ResizeAdvice = field(default_factory=ResizeAdvice)
    """The result of the last search."""
    obstacle: Reason | None = None
    """Why nothing can be resized; None if it can, or if no policy wants a resize."""
    problem: str = ""
    """What could not be read in the last round; empty if everything could."""
    priority: Callable[[ClusterView, Sequence[ResizeProposal]], Sequence[str]] = lambda view, proposals: ()
    """Returns the uids of pods whose resize makes it possible to empty a node, the most useful first."""
    _pods: Mapping[str, ResizablePod] = field(default_factory=dict)
    _observed: Inventory | None = None
    """The inventory as it is, without the requests that pods in verification may get back."""
    _searched_at: float | None = None
    _in_flight: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Uid of a pod → (the version that was changed, monotonic time)."""
    _recorded_owners: set[str] = field(default_factory=set)
    """The owners whose present wave is in the history: one entry stands for all pods of a wave."""
    _top_owners: dict[OwnerKey, str] = field(default_factory=dict)
    """(namespace, owner) → its topmost owner."""

    @property
    def is_busy(self) -> bool:
        """Whether a resize is in progress, so that the next round must be soon."""
        return any(memory.resizes.open for memory in self.pool_states.states.values())

    def hold(self, view: ClusterView) -> ClusterView:
        """Returns the view in which pods in verification also count with their earlier requests, because it must stay
        possible to revert the resize."""
        self._observed, records = view.inventory, self._all_open()
        if not records:
            return view
        return replace(view, inventory=with_held_requests(view.inventory, records, self._pods))

    def run_round(self, view: ClusterView, leaving_nodes: frozenset[str], now: float) -> None:
        """Runs one round. Raises ActuatorUnavailable after all pools were tried."""
        lookup = self.source.wanted_lookup()
        if lookup is None and not self.is_busy:
            self._rest(view)
            return
        pods = self.source.read_pods()
        if isinstance(pods, NotYet):
            self.problem = str(pods)
            return
        self._pods = pods
        # Without policies nothing starts; what is in progress is followed all the same.
        self.problem = str(lookup) if isinstance(lookup, NotYet) else ""
        lookup = None if isinstance(lookup, NotYet) else lookup
        self.obstacle = self.source.find_obstacle()
        self._in_flight = {
            uid: (version, at)
            for uid, (version, at) in self._in_flight.items()
            if uid in pods and pods[uid].version == version and now - at < IN_FLIGHT_SECONDS
        }
        self.steps.forget_past_waits(now)
        nodes = {record.node for record in self._all_open().values()}
        use = self.source.measure_use(pods, nodes | {proposal.node for proposal in self.advice.proposals})
        self._search(view, lookup, use, leaving_nodes, now)
        free, owners = free_amounts(self._observed or view.inventory), self._count_owners(view)
        # What was found at the last search may have changed since.
        staying = {node.name for node in view.inventory.nodes if node.is_staying and node.name not in leaving_nodes}
        current = [proposal for proposal in self.advice.proposals if self._is_current(proposal, staying, now)]
        steps = (
            GuardedStep(pool, partial(self._run_pool, pool, view, use, free, owners.get(pool, {}), current, now))
            for pool in self._pool_names(view)
        )
        self.steps.run_steps("resize", steps, now).raise_error()

    def _rest(self, view: ClusterView) -> None:
        """Stops all watches and reports nothing, because no policy wants a resize and none is in progress."""
        self.source.stop()
        self.advice, self.obstacle, self.problem, self._pods, self._searched_at = ResizeAdvice(), None, "", {}, None
        for pool in view.pools:
            memory = self.pool_states.state_of(pool.name)
            if memory.resizes.refusals or memory.resizes.uncovered_count:
                quiet = change(memory.resizes, refusals={}, uncovered=(), uncovered_count=0)
                self.pool_states.set_state(pool.name, change(memory, resizes=quiet))

    def _all_open(self) -> dict[str, OpenResize]:
        return {
            uid: record for memory in self.pool_states.states.values() for uid, record in memory.resizes.open.items()
        }

    # ── what may be resized ──────────────────────────────────────────────
    def _search(
        self,
        view: ClusterView,
        lookup: RunningRequests | None,
        use: MeasuredUse,
        leaving_nodes: frozenset[str],
        now: float,
    ) -> None:
        if lookup is None:
            self.advice = ResizeAdvice()
            return
        if self._searched_at is not None and now - self._searched_at < self.interval:
            return
        self._searched_at = now
        self._top_owners.clear()
        context = ResizeContext(
            now=view.now,
            top_owner=self._top_owner_of,
            open_uids=frozenset(self._all_open()),
            leaving_nodes=leaving_nodes,
            use=use,
            unsupported=self.obstacle,
        )
        settings = {pool.name: self.settings_of(pool) for pool in view.pools}
        advice = propose_resizes(list(self._pods.values()), lookup, view.inventory, view.pools, settings, context)
        self.advice = self._by_priority(view, advice)

    def _by_priority(self, view: ClusterView, advice: ResizeAdvice) -> ResizeAdvice:
        """Returns the advice with the resizes first that make it possible to empty a node."""
        acting = {pool.name for pool in view.pools if self._stop_reason(pool, view) is None}
        wanted = [proposal for proposal in advice.proposals if proposal.pool in acting and proposal.is_shrink]
        rank: dict[str, int] = {}
        if wanted:
            outcome = self.steps.error_guard.run_guarded("plan", lambda: tuple(self.priority(view, wanted)))
            first_uids = outcome.result if isinstance(outcome, Ok) else ()
            rank = {uid: number for number, uid in enumerate(first_uids)}
        ordered = sorted(advice.proposals, key=lambda each: (not each.is_shrink, rank.get(each.uid, len(rank))))
        return ResizeAdvice(tuple(ordered), advice.refusals, advice.uncovered)

    def _stop_reason(self, pool: Pool, view: ClusterView) -> Reason | None:
        if view.paused:
            return r.NOT_ACTING(f"the compactor is paused: {view.paused}")
        if pool.dry_run or not pool.enabled:
            return r.NOT_ACTING(f"pool {pool.name} {'is in dry run' if pool.enabled else 'is disabled'}")
        if not is_any_open(pool.windows, view.now):
            return r.NOT_ACTING(f"the time is outside of the windows of pool {pool.name}")
        return self.obstacle

    # ── one pool ─────────────────────────────────────────────────────────
    def _pool_names(self, view: ClusterView) -> list[str]:
        """Returns the names of the pools that exist, and of deleted pools that still have a resize in progress."""
        gone = {name for name, memory in self.pool_states.states.items() if memory.resizes.open}
        return sorted({pool.name for pool in view.pools} | gone)

    def _top_owner_of(self, pod: ResizablePod) -> str:
        """Returns namespace/Kind/name of the pod's topmost owner. The result is shared by the pods of one owner until
        the next search."""
        if pod.owner is None:
            return self.source.top_owner_of(pod)
        if pod.owner not in self._top_owners:
            self._top_owners[pod.owner] = self.source.top_owner_of(pod)
        return self._top_owners[pod.owner]

    def _count_owners(self, view: ClusterView) -> dict[str, Counter[str]]:
        """Returns pool → owner → how many of its pods run in the pool, for the owners in the proposals."""
        owners = {proposal.owner for proposal in self.advice.proposals}
        if not owners:
            return {}
        index, counts = PoolIndex(view.pools), dict[str, Counter[str]]()
        pool_of = {
            node.name: pool.name for node in view.inventory.nodes if (pool := index.only_pool_of(node)) is not None
        }
        for pod in self._pods.values():
            if pod.is_running and pod.node in pool_of and (owner := self._top_owner_of(pod)) in owners:
                counts.setdefault(pool_of[pod.node], Counter())[owner] += 1
        return counts

    def _run_pool(
        self,
        name: str,
        view: ClusterView,
        use: MeasuredUse,
        free: Mapping[str, Amounts],
        owners: Mapping[str, int],
        current: Sequence[ResizeProposal],
        now: float,
    ) -> None:
        pool = view.find_pool(name)
        memory = self.pool_states.state_of(name)
        proposals = [each for each in current if each.pool == name and each.uid not in memory.resizes.open]
        stop = self._stop_reason(pool, view) if pool is not None else r.NOT_ACTING(f"pool {name} does not exist")
        if self.steps.shutdown.is_requested:
            stop = r.NOT_ACTING("the compactor is stopping")
        resize_view = ResizeView(
            now=view.now,
            pods=self._pods,
            free=free,
            use=use,
            in_flight=frozenset(self._in_flight),
            stop=stop,
            unready_nodes=frozenset(node.name for node in view.inventory.nodes if not node.is_ready),
            eviction_refusal=partial(self._eviction_refusal, pool, view),
            pods_of_owner=owners,
        )
        settings = self.settings_of(pool) if pool is not None else ResizeSettings()
        planner = ResizePlanner(memory.resizes, resize_view, settings)
        steps = planner.next_steps(proposals)
        self._announce(name, view, steps, self._refusal_counts(name, view, planner.waiting))
        self._write(name, view, steps, now)

    def _is_current(self, proposal: ResizeProposal, staying_nodes: Collection[str], now: float) -> bool:
        """Returns whether the proposal still holds: the pod is ready, is on a node that stays, and has the same
        requests as at the time of the search. A proposal with larger requests holds only in the round of the search,
        because the room on the node is not known later.
        """
        pod = self._pods.get(proposal.uid)
        if pod is None or not (pod.is_running and pod.is_ready and pod.answer is ResizeAnswer.DONE):
            return False
        if pod.node not in staying_nodes or not (proposal.is_shrink or self._searched_at == now):
            return False
        containers = {container.name: container for container in pod.containers}
        return all(
            each.container in containers and containers[each.container].request(each.resource) == each.amount_before
            for each in proposal.changes
        )

    def _refusal_counts(self, name: str, view: ClusterView, waiting: Mapping[str, int]) -> ResizeRecords:
        """Returns the pool's records with the number of pods that are not resized, by reason. The records of the first
        pool also have the pods that are in no pool."""
        records = self.pool_states.state_of(name).resizes
        first = min((pool.name for pool in view.pools), default=name)
        counts = Counter(waiting)
        if name == first:
            counts.update(refusal.reason.code.name for refusal in self.advice.refusals)
        uncovered = self.advice.uncovered if name == first else ()
        return change(
            records,
            refusals=dict(sorted(counts.items())),
            uncovered=uncovered[:MAX_UNCOVERED_NAMES],
            uncovered_count=len(uncovered),
        )

    def _announce(self, pool: str, view: ClusterView, steps: Sequence[ResizeStep], records: ResizeRecords) -> None:
        """Records the steps in the pool's state. If at least one step will write to the cluster, saves the state
        first."""
        before = self.pool_states.state_of(pool)
        for step in steps:
            records = record_step(records, step, view.now)
        self.pool_states.set_state(pool, change(before, resizes=records))
        self._recorded_owners.clear()
        for step in steps:
            self._record_step(pool, view, step)
        if not any(map(writes, steps)):
            return
        try:
            self.pool_states.save_states((pool,))
        except ActuatorError:
            self.pool_states.set_state(pool, before)
            raise

    def _write(self, pool: str, view: ClusterView, steps: Sequence[ResizeStep], now: float) -> None:
        collector = ErrorCollector()
        self._recorded_owners.clear()
        for step in steps:
            with collector.collect_errors():
                if isinstance(step, Resize) and self.steps.may_begin(now) and self.obstacle is None:
                    self._start(pool, view, step, now)
                elif isinstance(step, Revert):
                    self._revert(pool, view, step, now)
                elif isinstance(step, Replace):
                    self._replace(pool, view, step, now)
        collector.raise_error()

    def _start(self, pool: str, view: ClusterView, resize: Resize, now: float) -> None:
        proposal, pod = resize.proposal, self._pods[resize.proposal.uid]
        # The pod's status changes all the time; what it requests is still what was decided on.
        outcome = self.resize_pod(pod, pod.version, proposal.changes)
        memory = self.pool_states.state_of(pool)
        if outcome.status is ResizeStatus.RESIZED:
            self._in_flight[proposal.uid] = (pod.version, now)
            is_repeated = resize.record.owner in self._recorded_owners
            self._record_decision("resized", resize.reason, pool, view, resize.record, pod, again=is_repeated)
            self._recorded_owners.add(resize.record.owner)
        elif outcome.status is ResizeStatus.NOT_PERMITTED:
            self.obstacle = self.source.note_missing_permission(outcome.message)
            self._set_records(pool, memory.resizes.without_open(proposal.uid))
            self._record_decision("resize-rejected", self.obstacle, pool, view, resize.record, pod)
        elif outcome.status is ResizeStatus.REJECTED:
            reason = r.REJECTED(f"the API server does not accept the resize of pod {pod.key}: {outcome.message}")
            self._set_records(pool, reject_step(memory.resizes, resize, view.now))
            self._record_decision("resize-rejected", reason, pool, view, resize.record, pod)
        else:
            # It changed since it was read, or is gone: the next round decides again.
            self._set_records(pool, memory.resizes.without_open(proposal.uid))
            self._searched_at = None

    def _revert(self, pool: str, view: ClusterView, step: Revert, now: float) -> None:
        pod = self._pods[step.uid]
        outcome = self.resize_pod(pod, step.version, step.changes)
        if outcome.status is ResizeStatus.RESIZED:
            self._in_flight[step.uid] = (pod.version, now)
        elif outcome.status in (ResizeStatus.NOT_PERMITTED, ResizeStatus.REJECTED):
            # The record stays: it is tried again in every round.
            raise ActuatorForbidden(f"the former requests of pod {pod.key} could not be restored: {outcome.message}")

    def _replace(self, pool: str, view: ClusterView, step: Replace, now: float) -> None:
        pod = self._pods[step.uid]
        owner = pod.owner or NO_OWNER_KEY
        answer = self.actuator.evict_pod(PodToEvict(pod=pod.key, uid=pod.uid, kind=owner.kind, owner=owner.name))
        self.steps.postpone(step.uid, now, answer.retry_after)
        if answer.became is EvictionResult.EVICTED:
            memory = self.pool_states.state_of(pool)
            self.pool_states.set_state(pool, memory.with_eviction(view.now))
            self._record_decision("resize-replaced", step.reason, pool, view, step.record, pod)

    def _eviction_refusal(self, pool: Pool | None, view: ClusterView, uid: str) -> Reason | None:
        """Returns why a pod for whose revert its node has no room may not be evicted now; None if it may be. The rules
        are those for a drain, and the pool must be in mode `act`."""
        pod = next((each for each in view.inventory.pods if each.uid == uid), None)
        if pool is None or pod is None or view.paused or pool.dry_run or not pool.enabled:
            return r.NOT_ACTING("at present the pool of the pod evicts no pods")
        if not is_any_open(pool.windows, view.now):
            return r.NOT_ACTING(f"the time is outside of the windows of pool {pool.name}")
        if self.steps.is_postponed(uid):
            return r.WAITS("the API server refused the eviction of the pod a moment ago")
        if (
            self.pool_states.state_of(pool.name).to_observations({}).recent_evictions(view.now)
            >= pool.evictions_per_hour
        ):
            return r.PACE(
                f"pool {pool.name} has already evicted {format_count(pool.evictions_per_hour, 'pod')} within an "
                "hour, its limit"
            )
        checker = EvictionChecker.for_inventory(view.inventory, view.now, view.autoscaler, pools=view.pools)
        verdict = checker.judge_pod(pod, pool)
        if isinstance(verdict, Blocked):
            return verdict.reason
        if not isinstance(verdict, Evictable):
            return r.CANNOT(f"the rules for drains do not allow the eviction of pod {pod.key}")
        if verdict.budget is not None and view.inventory.pdbs[verdict.budget].allowed < 1:
            return r.WAITS(f"at present budget {view.inventory.pdbs[verdict.budget].key} allows no disruption")
        return None

    # ── what is told ─────────────────────────────────────────────────────
    def _record_step(self, pool: str, view: ClusterView, step: ResizeStep) -> None:
        if isinstance(step, Finish):
            what = "resize-verified" if step.reason.code is r.VERIFIED else "resize-ended"
            remaining = self.pool_states.state_of(pool).resizes.open.values()
            is_one_of_many = any(other.owner == step.record.owner for other in remaining)
            again = what == "resize-verified" and (is_one_of_many or step.record.owner in self._recorded_owners)
            self._record_decision(what, step.reason, pool, view, step.record, None, again=again)
            if what == "resize-verified":
                self._recorded_owners.add(step.record.owner)
        elif isinstance(step, Revert) and step.is_new:
            reason = step.reason.code(f"the resize of pod {step.record.pod} is reverted, because {step.reason}")
            self._record_decision("resize-reverted", reason, pool, view, step.record, None)
        elif isinstance(step, Advance) and step.stops_pool:
            self._record_decision("resize-stopped", step.reason, pool, view, step.record, None)

    def _record_decision(
        self,
        what: str,
        reason: Reason,
        pool: str,
        view: ClusterView,
        record: OpenResize,
        pod: ResizablePod | None,
        *,
        again: bool = False,
    ) -> None:
        pod = pod or next((each for each in self._pods.values() if each.key == record.pod), None)
        owner = str(pod.owner) if pod is not None and pod.owner is not None else ""
        self.pool_states.record_decision(
            what, reason, pool=pool, at=view.now, node=record.node, pod=record.pod, owner=owner, again=again
        )

    def _set_records(self, pool: str, records: ResizeRecords) -> None:
        memory = self.pool_states.state_of(pool)
        self.pool_states.set_state(pool, change(memory, resizes=records))
