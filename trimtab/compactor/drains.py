"""The next step of every drain that stands in the cluster, done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import Node
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain import note as notes
from trimtab.compaction.drain.actions import Action, Blame
from trimtab.compaction.drain.begin import CLOSED, Standing, arrivals
from trimtab.compaction.drain.conduct import Moment, emptied
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.drain.view import View, gone
from trimtab.compactor.books import Books
from trimtab.compactor.doors import Answer, Apart, Became, Denied, Door
from trimtab.compactor.faults import Faults
from trimtab.compactor.vanished import AGAIN, SCALED, Vanished
from trimtab.runtime.stop import Stop

EVICTED = Code("pod-evicted", "The pod was evicted so that its node can go.", "Nothing: its successor runs elsewhere.")
REFUSED = Code("eviction-refused", "The API server refused the eviction for now.", "Nothing: it is asked again.")
IS_EMPTY = Code("node-emptied", "All its pods are ready elsewhere; it is the autoscaler's now.", "Nothing.")
LOOK = 15.0
"""Seconds after which no pod is evicted on what was seen: where writes take long, a pause must not wait for all."""
BLIND = 60.0
"""Seconds past the oldest data that is acted on: an eviction nobody sees anything of by then did not happen."""


@dataclass(slots=True)
class Drains:
    door: Door
    books: Books
    terms: Terms
    stop: Stop
    faults: Faults
    elapsed: Callable[[], float] | None = None
    """Tells how old a look has become while it was acted on; None: it never does."""
    blind: float = 120.0 + BLIND
    """Seconds after which an eviction that nobody sees anything of is taken for one that did not happen."""
    held: dict[str, float] = field(default_factory=dict)
    """Uid of a pod, name of a node, or namespace/name of a Deployment → not before; by the clock that never goes
    backwards."""
    flight: dict[str, float] = field(default_factory=dict)
    """Pod uid → when we evicted it; until it is seen to go."""
    met: dict[str, float] = field(default_factory=dict)
    """Drain → when it was first seen."""
    refused: set[str] = field(default_factory=set)
    """Uids of pods whose refusal stands in the history."""
    twice: int = 0
    """Pods evicted again that had come to be by an eviction of ours."""
    vanished: Vanished = field(init=False)

    def __post_init__(self) -> None:
        self.vanished = Vanished(self.door, self.books, self.faults.log)

    def standing(self, view: View) -> Standing:
        """What is under way by the notes on the nodes."""
        all_of_ours = notes.noted(view.inventory.nodes, view.home)
        found = [(node.name, note) for node, note in all_of_ours if isinstance(note, Note)]
        return Standing(
            emptying={name: note.pool for name, note in found if note.emptied is None},
            emptied={name: note.pool for name, note in found if note.emptied is not None},
            owed=_owed([note for _, note in found if note.emptied is None], view),
        )

    def of_others(self, view: View) -> dict[str, str]:
        """Nodes that a compactor of another namespace empties, or left behind → that namespace."""
        return {node.name: home for node in view.inventory.nodes if (home := notes.of_another(node, view.home))}

    def led(self, view: View, now: float) -> dict[str, float]:
        """Drain → seconds for which this process has carried it on."""
        drains = {note.drain for _, note in notes.noted(view.inventory.nodes, view.home) if isinstance(note, Note)}
        self.met = {drain: self.met.get(drain, now) for drain in drains}
        return {drain: now - since for drain, since in self.met.items()}

    def settle_flight(self, view: View, now: float) -> frozenset[str]:
        """Evicted pods that the view still shows as if nothing had happened."""
        there = {pod.uid for pod in view.inventory.pods if pod.deleted is None}
        self.flight = {uid: at for uid, at in self.flight.items() if uid in there and now - at < self.blind}
        self.held = {uid: until for uid, until in self.held.items() if until > now}
        self.refused &= there
        return frozenset(self.flight)

    def carry_on(self, moment: Moment, now: float) -> None:
        """One step of each drain. Raises NotNow when all had their turn: what cannot be done in one holds up no other.

        A drain that fails for an error of ours is given back.
        """
        apart = Apart()
        for node, note in notes.noted(moment.view.inventory.nodes, moment.view.home):
            if node.name not in self.held:
                with apart.tried():
                    self._turn_of(moment, node, note, now)
        self.vanished.settle(moment.view, self.held, now)
        apart.tell()

    def _turn_of(self, moment: Moment, node: Node, note: Note | Unreadable, now: float) -> None:
        try:
            if not self.faults.caught("drain", partial(self._one, moment, node, note, now), about=node.name):
                self._give_up(moment.view, node, note)
        except Denied:
            self.held[node.name] = now + AGAIN
            raise

    def _give_up(self, view: View, node: Node, note: Note | Unreadable) -> None:
        """Nobody knows what this drain's next step is: its node is opened."""
        if not isinstance(note, Note) or _is_deleted(node):
            return
        told = a.Release(
            a.FAULT(f"emptying node {node.name} failed for an error of ours: {self.faults.last}"), Blame.NODE
        )
        before = self.faults.count
        self.faults.caught("drain", partial(self._release, view, node, note, told), about=node.name)
        if self.faults.count != before:
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)

    def give_back(self, view: View, why: str = "the compactor stops") -> None:
        """Every node that is not empty yet, because the process ends; but for those somebody else deletes.

        Raises NotNow when all were tried.
        """
        apart = Apart()
        for node, note in notes.noted(view.inventory.nodes, view.home):
            if isinstance(note, Note) and note.emptied is None and not _is_deleted(node):
                reason = a.STOPPING(f"{why}: node {node.name} is open again")
                with apart.tried():
                    self.faults.caught("end", partial(self._back, view, node, note, reason), about=node.name)
        apart.tell()

    def _back(self, view: View, node: Node, note: Note, reason: Reason) -> None:
        back = Moment(view, self.terms).undone(note)
        self._carry_out(view, node, note, (*back, a.Release(reason)), 0.0)

    def _one(self, moment: Moment, node: Node, note: Note | Unreadable, now: float) -> bool:
        """Always true."""
        view = moment.view
        if isinstance(note, Unreadable):
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)
            self.books.tell("released", a.ODD_NOTE(str(note)), pool="", at=view.at, node=node.name)
            return True
        if node.cordoned and notes.ahead(note, view.at) and not _is_deleted(node):
            self._catch_up(view, node, note)
            return True
        steps = moment.next(node, note)
        over = note.drain in self.books.of(note.pool).ended
        if over and not isinstance(steps[-1], a.HandsOff):
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)
        elif not over:
            self._seen(node, note, view)
            self._carry_out(view, node, note, steps, now)
        return True

    def _catch_up(self, view: View, node: Node, note: Note) -> None:
        self.door.cordon(node.name, view.versions[node.name], notes.caught_up(note, view.at))
        reason = a.AHEAD(f"the note on node {node.name} is of the future: its time counts from now on")
        self._tell("corrected", reason, view, node, note)

    def _seen(self, node: Node, note: Note, view: View) -> None:
        memory = self.books.of(note.pool).arrived(arrivals(note, view), view.at, self.terms.rest)
        if memory.drains.get(node.name) != note.drain:
            promised = {**memory.promised, node.name: (note.unit, note.saves)}
            memory = change(memory, drains={**memory.drains, node.name: note.drain}, promised=promised)
        if node.name not in memory.empty and _is_cleared(note, view):
            memory = change(memory, empty=(*memory.empty, node.name))
        others = {name: before for name, before in memory.surged.items() if name not in note.surges}
        ours = {name: before for name, before in note.surges.items() if name in note.surged}
        surged = {**others, **ours} if note.emptied is None else others
        self.books.put(note.pool, memory if surged == memory.surged else change(memory, surged=surged))

    def _carry_out(self, view: View, node: Node, note: Note, steps: tuple[Action, ...], now: float) -> None:
        """Step by step, as far as one lets the next be taken; a second replica can be taken back later, too."""
        apart = Apart()
        for step in steps:
            if isinstance(step, a.Evict):
                if not self._evict(view, node, note, step.move, now):
                    return
            elif isinstance(step, a.Scale) and step.replicas < step.before:
                with apart.tried():
                    self._scale(view, node, note, step)
            elif isinstance(step, a.Scale):
                self._scale(view, node, note, step)
            else:
                self._turn(view, node, note, step)
        apart.tell()

    def _turn(self, view: View, node: Node, note: Note, step: Action) -> None:
        """The steps from one state to another."""
        if isinstance(step, a.Emptied):
            self.door.cordon(node.name, view.versions[node.name], emptied(note, view.at))
            self._tell("emptied", IS_EMPTY(f"node {node.name} is empty"), view, node, note)
        elif isinstance(step, a.Release):
            self._release(view, node, note, step)
        elif isinstance(step, a.HandsOff) and note.emptied is None:
            self._end(view, node, note, step.reason, Blame.NOBODY, "dropped")

    def _scale(self, view: View, node: Node, note: Note, step: a.Scale) -> None:
        """One more is announced on the node first: what nobody announced, somebody else did, and is not undone."""
        if step.replicas > step.before and step.deployment not in note.surged:
            said = change(note, surged={**note.surged, step.deployment: view.at})
            self.door.cordon(node.name, view.versions[node.name], said)
            self._seen(node, said, view)
        if self.door.scale(step.deployment, step.before, step.replicas):
            told = f"Deployment {step.deployment} has {step.replicas} replicas instead of {step.before}"
            self._tell("scaled", SCALED(told), view, node, note)

    def _evict(self, view: View, node: Node, note: Note, move: Leaving, now: float) -> bool:
        """False where nothing more of this drain should be asked for now."""
        if self.stop.begun or (self.elapsed is not None and self.elapsed() - now > LOOK):
            return False
        if move.uid in self.held:
            return True
        answer = self.door.evict(move)
        if answer.became is not Became.EVICTED:
            return self._refused(view, node, note, move, answer, now)
        self.flight[move.uid] = now
        memory = self.books.of(note.pool)
        self.twice += move.pod in memory.moved
        self.books.put(note.pool, memory.evicted(view.at))
        reason = EVICTED(f"pod {move.pod} was evicted so that node {node.name} can go")
        self._tell("evicted", reason, view, node, note, move)
        return True

    def _refused(self, view: View, node: Node, note: Note, move: Leaving, answer: Answer, now: float) -> bool:
        reason = REFUSED(f"pod {move.pod} was not evicted: {answer.message}")
        self._tell("refused", reason, view, node, note, move, again=move.uid in self.refused)
        self.refused.add(move.uid)
        if answer.became is Became.NEVER:
            self._release(view, node, note, a.Release(a.FORBIDDEN(reason.sentence), Blame.NODE))
            return False
        self.held[move.uid] = now + (answer.retry_after or AGAIN)
        return True

    def _release(self, view: View, node: Node, note: Note, step: a.Release) -> None:
        """What it means is kept first: should we die in between, the node is opened without being counted twice.

        Books that cannot be kept leave no node closed.
        """
        self._end(view, node, note, step.reason, step.blame, "released")
        try:
            self.books.save((note.pool,))
        finally:
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)

    def _end(self, view: View, node: Node, note: Note, reason: Reason, blame: Blame, what: str) -> None:
        memory = self.books.of(note.pool)
        if note.drain in memory.ended:
            return
        if blame is not Blame.NOBODY:
            memory = memory.failed(node.name, view.at, strike=blame is Blame.POOL)
        memory = memory.over(node.name, note.drain, view.at)
        self.books.put(note.pool, memory)
        self._tell(what, reason, view, node, note)
        if memory.strikes >= self.terms.strikes and memory.closed is None:
            self._close(note.pool, view)

    def _close(self, pool: str, view: View) -> None:
        memory = change(self.books.of(pool), closed=view.at)
        self.books.put(pool, memory)
        told = f"pool {pool} is closed for {self.terms.closed} s: {memory.strikes} drains in a row failed"
        self.books.tell("closed", CLOSED(told), pool=pool, at=view.at)

    def _tell(
        self, what: str, reason: Reason, view: View, node: Node, note: Note, move: Leaving | None = None,
        *, again: bool = False,
    ) -> None:  # fmt: skip
        pod, owner = (move.pod, f"{move.kind}/{move.owner}" if move.owner else "") if move else ("", "")
        self.books.tell(
            what, reason, pool=note.pool, at=view.at, node=node.name, pod=pod, owner=owner, drain=note.drain,
            again=again,
        )  # fmt: skip


def _is_deleted(node: Node) -> bool:
    return node.going is not None


def _owed(emptying: Sequence[Note], view: View) -> Counter[str]:
    """Pool → pods of its drains that are there, and not on their way out."""
    there = {pod.uid for pod in view.inventory.pods if not gone(pod, view)} if emptying else set()
    return Counter(note.pool for note in emptying for move in note.moves if move.uid in there)


def _is_cleared(note: Note, view: View) -> bool:
    """Has every pod of it gone? Then whoever takes the node takes an empty one, be its successors ready or not."""
    if note.emptied is not None:
        return True
    leaving = {move.uid for move in note.moves}
    return not any(pod.uid in leaving and not pod.finished for pod in view.inventory.pods)
