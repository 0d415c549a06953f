"""The plan, and the drains that begin with it: plan, wait, look afresh, begin what still holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Code, NotYet
from trimtab.compaction.candidates import Nodes, Now
from trimtab.compaction.drain import begin
from trimtab.compaction.drain import note as notes
from trimtab.compaction.drain.begin import Standing
from trimtab.compaction.drain.memory import moved, together
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.drain.view import View
from trimtab.compaction.plan import plan
from trimtab.compaction.recheck import Recheck
from trimtab.compaction.values import Plan, Step
from trimtab.compactor.books import Books
from trimtab.compactor.doors import Apart, Changed, Denied, Door, Gone
from trimtab.compactor.faults import Faults
from trimtab.packing.world import Again, World, build
from trimtab.runtime.clock import elapsed

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
class Intent:
    """Steps that begin if they still hold after a while."""

    steps: tuple[Step, ...]
    since: float


@dataclass(slots=True)
class Planning:
    door: Door
    rehearsal: Door
    books: Books
    terms: Terms
    settle: float
    faults: Faults
    readmit: Readmit = lambda: None
    plan: Plan | None = None
    seconds: float = 0.0
    """How long the last plan took."""
    intent: Intent | None = None
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

    def make(self, view: View, standing: Standing, now: float) -> Plan:
        """A plan of this view; what may begin with it is meant to."""
        started = elapsed()
        world = build(view.inventory, self._again)
        self._odd = self._observe(world, view)
        found = self._planned(world, view, self._moment(view, standing))
        self.plan, self.seconds = found, elapsed() - started
        for pool in view.pools:
            self._note_plan(pool, found, view)
        self.intent = Intent(self._meant(view, found, standing), now)
        return found

    def _planned(self, world: World, view: View, moment: Now) -> Plan:
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

    def _fails(self, pool: Pool, world: World, view: View, moment: Now) -> bool:
        others = frozenset(other.name for other in view.pools if other is not pool)
        pools = _without(view.pools, others)
        return self.faults.caught("plan", lambda: plan(world, pools, moment), about=f"pool {pool.name}") is None

    def begin(self, view: View, standing: Standing, now: float) -> int:
        """Begins what was meant and still holds, once it has settled; how many drains began.

        Raises NotNow when all were tried.
        """
        if self.intent is None or now - self.intent.since < self.settle:
            return 0
        steps, self.intent = self.intent.steps, None
        if view.paused or not steps:
            return 0
        world, moment = build(view.inventory, self._again), self._moment(view, standing)
        check, begun, apart = Recheck.of(world, _without(view.pools, self._odd), moment), 0, Apart()
        for pool in view.pools:
            mine = tuple(step for step in steps if step.pool == pool.name)
            memory, room = self.books.of(pool.name), replace(self.terms, drains=self.terms.drains - begun)
            for step in begin.due_now(mine, pool, memory, standing, view.at, room):
                with apart.tried():
                    begun += bool(
                        self.faults.caught("begin", partial(self._begin, step, pool, check, view), about=step.node)
                    )
        apart.tell()
        return begun

    def _begin(self, step: Step, pool: Pool, check: Recheck, view: View) -> bool:
        node = view.node(step.node)
        if node is None or node.cordoned:
            return False
        refusal = check.refuses(step)
        if refusal is not None:
            self.books.tell("dropped", refusal, pool=step.pool, at=view.at, node=step.node, rehearsed=pool.dry_run)
            return False
        note = begin.note(step, view, self.plan.unit if self.plan is not None else "")
        door = self.rehearsal if pool.dry_run else self.door
        try:
            door.cordon(step.node, view.versions[step.node], note)
        except (Changed, Gone):
            return False
        except Denied as error:
            self._put_off(step, view, error)
            return False
        told = f"node {step.node} is emptied: {step.reason}"
        self.books.tell(
            "begun", BEGUN(told), pool=step.pool, at=view.at, node=step.node, drain=note.drain, rehearsed=door.rehearsal
        )
        return True

    def _put_off(self, step: Step, view: View, error: Denied) -> None:
        """Else it would take the turn of every other, each time."""
        self.books.put(step.pool, self.books.of(step.pool).failed(step.node, view.at, strike=False))
        told = NO_CORDON(f"node {step.node} cannot be cordoned: {error}")
        self.books.tell("dropped", told, pool=step.pool, at=view.at, node=step.node)

    def _meant(self, view: View, found: Plan, standing: Standing) -> tuple[Step, ...]:
        meant: list[Step] = []
        for pool in view.pools:
            memory, terms = self.books.of(pool.name), self.terms
            room = replace(terms, drains=terms.drains - len(meant))
            steps = begin.due_now(found.waves[0].steps if found.waves else (), pool, memory, standing, view.at, room)
            meant += steps if not pool.dry_run else self._new(pool, steps)
        return tuple(meant)

    def _new(self, pool: Pool, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """What is only written down is written down once."""
        names = tuple(step.node for step in steps)
        if self._rehearsed.get(pool.name) == names:
            return ()
        self._rehearsed[pool.name] = names
        return steps

    def _observe(self, world: World, view: View) -> frozenset[str]:
        """Which nodes are under the line now? Pools of which an error of ours keeps us from knowing."""
        nodes = Nodes(world, view.pools, Now(at=view.at))
        standing = [note.drain for node in view.inventory.nodes if isinstance(note := notes.read(node), Note)]
        odd = set()
        for pool in view.pools:
            under = self.faults.caught("plan", partial(nodes.all_under, pool), about=f"pool {pool.name}")
            if under is None:
                odd.add(pool.name)
                continue
            memory = self.books.of(pool.name).tidied(view.at, self.terms, world.index, standing)
            since = {node: memory.under.get(node, view.at) for node in under}
            self.books.put(pool.name, change(memory, under=since))
        for gone in set(self.books.memories) - {pool.name for pool in view.pools}:  # nobody looks at their nodes now
            memory = self.books.of(gone).tidied(view.at, self.terms, world.index, standing)
            self.books.put(gone, change(memory, under={}))
        return frozenset(odd)

    def _moment(self, view: View, standing: Standing) -> Now:
        return Now(
            at=view.at, observations=together(self.books.memories, standing.emptying), autoscaler=view.autoscaler,
            moved=moved(self.books.memories.values()),
            others={node.name: home for node in view.inventory.nodes if (home := notes.of_another(node, view.home))},
        )  # fmt: skip

    def _note_plan(self, pool: Pool, found: Plan, view: View) -> None:
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
