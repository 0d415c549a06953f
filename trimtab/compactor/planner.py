"""The plan, and the drains that begin with it: plan, wait, look afresh, begin what still holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, NotYet
from trimtab.compaction.candidates import CandidateChecker, PlanningContext
from trimtab.compaction.drain import start
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import moved, together
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.drain.timeouts import DrainTimeouts, removal_timeout
from trimtab.compaction.plan import plan
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.recheck import Recheck
from trimtab.compactor.actuator import (
    Actuator,
    ActuatorConflict,
    ActuatorError,
    ActuatorForbidden,
    ActuatorNotFound,
    ErrorCollector,
)
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.runtime.clock import elapsed
from trimtab.scheduling.cluster_model import Again, ClusterModel, build

PLANNED = Code("plan-made", "A plan was made that differs from the one before.", "Nothing.")
BEGUN = Code("drain-begun", "The node is cordoned, and its pods are evicted from now on.", "Nothing.")
NO_CORDON = Code(
    "cordon-refused", "The API server refuses our cordon: the node is left alone for a while.",
    "See the sentence: a webhook or a policy engine says no, or `trimtab doctor` knows of a missing right.",
)  # fmt: skip
ODD_POOL = Code(
    "pool-not-planned", "Planning in this pool failed for an error of ours: nothing of it goes.",
    "See the log for the traceback, and tell us.",
)  # fmt: skip

Readmit = Callable[[], Again | NotYet | None]
"""What pods would ask for if they were admitted again now; None: what they ask for already. NotYet: nobody knows."""


@dataclass(frozen=True, slots=True)
class PendingSteps:
    """Steps that begin if they still hold after a while."""

    steps: tuple[DrainStep, ...]
    since: float


@dataclass(slots=True)
class CompactionPlanner:
    door: Actuator
    rehearsal: Actuator
    books: PoolStates
    terms: DrainTimeouts
    settle: float
    faults: ErrorGuard
    readmit: Readmit = lambda: None
    cordoned: Callable[[str], None] = lambda drain: None
    """Is called with a drain whose node is being cordoned: its note may not be seen for a while."""
    plan: Plan | None = None
    seconds: float = 0.0
    """How long the last plan took."""
    intent: PendingSteps | None = None
    _again: Again | None = None
    _odd: frozenset[str] = frozenset()
    """Pools that an error of ours kept out of the last plan."""
    _rehearsed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool → nodes whose drains were written down last."""

    def unready(self) -> NotYet | None:
        """Why no plan can be made or begun now; None when one can. Asked before each."""
        found = self.readmit()
        if isinstance(found, NotYet):
            return found
        self._again = found
        return None

    def make(self, view: ClusterView, standing: ActiveDrains, now: float) -> Plan:
        """A plan of this view; what may begin with it is meant to."""
        started = elapsed()
        world = build(view.inventory, self._again)
        self._odd = self._observe(world, view)
        found = self._planned(world, view, self._moment(view, standing))
        self.plan, self.seconds = found, elapsed() - started
        for pool in view.pools:
            self._note_plan(pool, found, view)
            self._note_left(pool, found, view)
        self.intent = PendingSteps(self._meant(view, found, standing), now)
        return found

    def _planned(self, world: ClusterModel, view: ClusterView, moment: PlanningContext) -> Plan:
        """Of all pools together; where that fails for an error of ours, without those that fail alone."""
        if not self._odd:
            found = self.faults.caught("plan", lambda: plan(world, view.pools, moment))
            if found is not None:
                return found
            self._odd = frozenset(pool.name for pool in view.pools if self._fails(pool, world, view, moment))
        told = {
            pool: ODD_POOL(f"planning in pool {pool} failed for an error of ours; see the log") for pool in self._odd
        }
        found = plan(world, _without(view.pools, self._odd), moment)
        return replace(found, pools={**found.pools, **told})

    def _fails(self, pool: Pool, world: ClusterModel, view: ClusterView, moment: PlanningContext) -> bool:
        others = frozenset(other.name for other in view.pools if other is not pool)
        pools = _without(view.pools, others)
        return self.faults.caught("plan", lambda: plan(world, pools, moment), about=f"pool {pool.name}") is None

    def begin(self, view: ClusterView, standing: ActiveDrains, now: float) -> int:
        """Begins what was meant and still holds, once it has settled; how many drains began.

        Raises NotNow when all were tried.
        """
        if self.intent is None or now - self.intent.since < self.settle:
            return 0
        steps, self.intent = self.intent.steps, None
        if view.paused or not steps:
            return 0
        world, moment = build(view.inventory, self._again), self._moment(view, standing)
        check, begun, apart = Recheck.prepare(world, _without(view.pools, self._odd), moment), 0, ErrorCollector()
        for pool in view.pools:
            mine = tuple(step for step in steps if step.pool == pool.name)
            memory, room = self.books.of(pool.name), replace(self.terms, drains=self.terms.drains - begun)
            for step in start.steps_to_start(mine, pool, memory, standing, view.at, room):
                with apart.tried():
                    begun += bool(
                        self.faults.caught("begin", partial(self._begin, step, pool, check, view), about=step.node)
                    )
        apart.tell()
        return begun

    def _begin(self, step: DrainStep, pool: Pool, check: Recheck, view: ClusterView) -> bool:
        node = view.find_node(step.node)
        if node is None or node.cordoned:
            return False
        refusal = check.rejection_reason(step)
        if refusal is not None:
            self.books.tell("dropped", refusal, pool=step.pool, at=view.at, node=step.node, rehearsed=pool.dry_run)
            return False
        note = start.create_annotation(step, view, self.plan.unit if self.plan is not None else "")
        if pool.dry_run:
            self._tell_begun(self.rehearsal, step, note, view)
            return True
        try:
            if not self._cordoned(node, note, view):
                return False
        except ActuatorForbidden as error:
            self._put_off(step, view, error)
            return False
        self._tell_begun(self.door, step, note, view)
        return True

    def _cordoned(self, node: NodeInfo, note: DrainAnnotation, view: ClusterView) -> bool:
        """Writes the drain into the state, then the cordon with its note. False where the node changed; raises NotNow.

        Dying in between leaves a drain without a cordon in the state, which the next look clears. The other way round,
        it would leave a cordon that nobody believes.
        """
        before = self.books.of(note.pool)
        self.books.put(note.pool, before.with_drain(node.name, note.drain, (note.unit, note.saves)))
        try:
            self.books.save((note.pool,))
        except ActuatorError:
            self.books.put(note.pool, before)
            raise
        try:
            self.door.cordon(node, view.versions[node.name], note)
        except (ActuatorConflict, ActuatorNotFound, ActuatorForbidden) as error:
            self.books.put(note.pool, self.books.of(note.pool).without_drain(node.name))
            if isinstance(error, ActuatorForbidden):
                raise
            return False
        finally:
            self.cordoned(note.drain)
        return True

    def _tell_begun(self, door: Actuator, step: DrainStep, note: DrainAnnotation, view: ClusterView) -> None:
        told = f"node {step.node} is emptied: {step.reason}"
        self.books.tell(
            "begun", BEGUN(told), pool=step.pool, at=view.at, node=step.node, drain=note.drain, rehearsed=door.rehearsal
        )

    def _put_off(self, step: DrainStep, view: ClusterView, error: ActuatorForbidden) -> None:
        """Else it would take the turn of every other, each time."""
        self.books.put(step.pool, self.books.of(step.pool).with_failure(step.node, view.at, strike=False))
        told = NO_CORDON(f"node {step.node} cannot be cordoned: {error}")
        self.books.tell("dropped", told, pool=step.pool, at=view.at, node=step.node)

    def _meant(self, view: ClusterView, found: Plan, standing: ActiveDrains) -> tuple[DrainStep, ...]:
        meant: list[DrainStep] = []
        for pool in view.pools:
            memory, terms = self.books.of(pool.name), self.terms
            room = replace(terms, drains=terms.drains - len(meant))
            steps = start.steps_to_start(
                found.waves[0].steps if found.waves else (), pool, memory, standing, view.at, room
            )
            meant += steps if not pool.dry_run else self._new(pool, steps)
        return tuple(meant)

    def _new(self, pool: Pool, steps: tuple[DrainStep, ...]) -> tuple[DrainStep, ...]:
        """What is only written down is written down once."""
        names = tuple(step.node for step in steps)
        if self._rehearsed.get(pool.name) == names:
            return ()
        self._rehearsed[pool.name] = names
        return steps

    def _observe(self, world: ClusterModel, view: ClusterView) -> frozenset[str]:
        """Which nodes are under the line now? Pools of which an error of ours keeps us from knowing."""
        nodes = CandidateChecker(world, view.pools, PlanningContext(at=view.at))
        standing = [note.drain for note in view.notes.ours.values() if isinstance(note, DrainAnnotation)]
        odd = set()
        for pool in view.pools:
            under = self.faults.caught("plan", partial(nodes.nodes_under_threshold, pool), about=f"pool {pool.name}")
            if under is None:
                odd.add(pool.name)
                continue
            memory = self.books.of(pool.name).without_old_entries(view.at, self.terms, world.index, standing)
            since = {node: memory.under.get(node, view.at) for node in under}
            self.books.put(pool.name, change(memory, under=since))
        for gone in set(self.books.memories) - {pool.name for pool in view.pools}:  # nobody looks at their nodes now
            memory = self.books.of(gone).without_old_entries(view.at, self.terms, world.index, standing)
            self.books.put(gone, change(memory, under={}))
        return frozenset(odd)

    def _moment(self, view: ClusterView, standing: ActiveDrains) -> PlanningContext:
        return PlanningContext(
            at=view.at, observations=together(self.books.memories, standing.emptying), autoscaler=view.autoscaler,
            moved=moved(self.books.memories.values()), overdue=self._overdue(view),
            own_cordons=view.notes.ours, other_compactors=view.notes.others,
            unverified={name: str(found) for name, found in view.notes.doubtful.items()},
        )  # fmt: skip

    def _overdue(self, view: ClusterView) -> frozenset[str]:
        """Nodes that were left to the autoscaler for longer than its own settings imply."""
        removals = {pool: removal_timeout(DrainTimeouts(), view.autoscaler_of(pool)) for pool in self.books.memories}
        overdue = (one.overdue_nodes(view.at, removals[pool]) for pool, one in self.books.memories.items())
        return frozenset[str]().union(*overdue)

    def _note_left(self, pool: Pool, found: Plan, view: ClusterView) -> None:
        """Since when nodes are left to the autoscaler. A pool that waits as a whole says nothing of its nodes."""
        if pool.name not in found.pools:
            names = {*found.left, *found.overdue}
            mine = sorted(node.name for node in view.inventory.nodes if node.name in names and pool.has(node))
            self.books.put(pool.name, self.books.of(pool.name).with_left_nodes(mine, view.at))

    def _note_plan(self, pool: Pool, found: Plan, view: ClusterView) -> None:
        """Kept for whoever asks what would come next; told where it differs from the one before."""
        nodes = tuple(step.node for step in found.steps if step.pool == pool.name)
        memory = self.books.of(pool.name)
        refused = found.pools.get(pool.name)
        why = f"{refused.code.name}: {refused}" if refused is not None else ""
        same = memory.plan == nodes and memory.plan_why.partition(":")[0] == why.partition(":")[0]
        if same and memory.plan_at is not None:
            return
        self.books.put(pool.name, change(memory, plan=nodes, plan_why=why, plan_at=view.at))
        reason = refused or PLANNED(f"{len(nodes) or 'no'} nodes of pool {pool.name} can go")
        self.books.tell("planned", reason, pool=pool.name, at=view.at, rehearsed=pool.dry_run)


def _without(pools: Sequence[Pool], names: Collection[str]) -> tuple[Pool, ...]:
    """These pools, those of these names switched off, without a setting of theirs: their nodes are no other pool's."""
    return tuple(_bare(pool) if pool.name in names else pool for pool in pools)


def _bare(pool: Pool) -> Pool:
    return Pool(name=pool.name, labels=pool.labels, everything=pool.everything, enabled=False)
