"""The next step of every drain that stands in the cluster, done."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import Node
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.compaction.candidates import DELETING
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain import note as notes
from trimtab.compaction.drain.actions import Action, Blame
from trimtab.compaction.drain.begin import CLOSED, Standing, arrivals
from trimtab.compaction.drain.conduct import Moment, emptied
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.drain.view import View
from trimtab.compactor.books import Books
from trimtab.compactor.doors import Answer, Became, Changed, Door, Gone
from trimtab.compactor.faults import Faults
from trimtab.runtime.stop import Stop

EVICTED = Code("pod-evicted", "The pod was evicted so that its node can go.", "Nothing: its successor runs elsewhere.")
REFUSED = Code("eviction-refused", "The API server refused the eviction for now.", "Nothing: it is asked again.")
IS_EMPTY = Code("node-emptied", "All its pods are ready elsewhere; it is the autoscaler's now.", "Nothing.")
SCALED = Code("workload-surged", "A workload of one replica has two while its pod moves, or one again.", "Nothing.")
AGAIN = 10.0
"""Seconds until an eviction is asked for again whose refusal did not say when (the autoscaler's own pace)."""
BLIND = 60.0
"""Seconds past the oldest data that is acted on: an eviction nobody sees anything of by then did not happen."""


@dataclass(slots=True)
class Drains:
    door: Door
    books: Books
    terms: Terms
    stop: Stop
    faults: Faults
    blind: float = 120.0 + BLIND
    """Seconds after which an eviction that nobody sees anything of is taken for one that did not happen."""
    held: dict[str, float] = field(default_factory=dict)
    """Pod uid → not before; by the clock that never goes backwards."""
    flight: dict[str, float] = field(default_factory=dict)
    """Pod uid → when we evicted it; until it is seen to go."""
    refused: set[str] = field(default_factory=set)
    """Uids of pods whose refusal stands in the history."""
    twice: int = 0
    """Pods evicted again that had come to be by an eviction of ours."""

    def standing(self, view: View) -> Standing:
        """What is under way by the notes on the nodes."""
        found = [(node.name, note) for node, note in _noted(view) if isinstance(note, Note)]
        return Standing(
            emptying={name: note.pool for name, note in found if note.emptied is None},
            emptied={name: note.pool for name, note in found if note.emptied is not None},
        )

    def of_others(self, view: View) -> dict[str, str]:
        """Nodes that a compactor of another namespace empties, or left behind → that namespace."""
        return {node.name: home for node in view.inventory.nodes if (home := notes.of_another(node, view.home))}

    def settle_flight(self, view: View, now: float) -> frozenset[str]:
        """Evicted pods that the view still shows as if nothing had happened."""
        there = {pod.uid for pod in view.inventory.pods if pod.deleted is None}
        self.flight = {uid: at for uid, at in self.flight.items() if uid in there and now - at < self.blind}
        self.held = {uid: until for uid, until in self.held.items() if until > now}
        self.refused &= there
        return frozenset(self.flight)

    def carry_on(self, moment: Moment, now: float) -> None:
        """One step of each drain. A DoorFault ends the round, but for what changed or went: that is looked at anew.

        A drain that fails for an error of ours is given back, and holds up no other.
        """
        for node, note in _noted(moment.view):
            try:
                if not self.faults.caught("drain", partial(self._one, moment, node, note, now), about=node.name):
                    self._give_up(moment.view, node, note)
            except (Changed, Gone):
                continue
        self._gone(moment.view)

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
        """Every node that is not empty yet, because the process ends; but for those somebody else deletes."""
        for node, note in _noted(view):
            if isinstance(note, Note) and note.emptied is None and not _is_deleted(node):
                reason = a.STOPPING(f"{why}: node {node.name} is open again")
                try:
                    self.faults.caught("end", partial(self._back, view, node, note, reason), about=node.name)
                except (Changed, Gone):
                    continue

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
        """Step by step, as far as one lets the next be taken."""
        for step in steps:
            if isinstance(step, a.Evict):
                if not self._evict(view, node, note, step.move, now):
                    return
            elif isinstance(step, a.Scale):
                self._scale(view, node, note, step)
            else:
                self._turn(view, node, note, step)

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
        if self.stop.begun:
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

    def _gone(self, view: View) -> None:
        """Nodes that are no longer there, or whose note somebody took away."""
        noted = {node.name for node, _ in _noted(view)}
        there = {node.name for node in view.inventory.nodes}
        for pool, memory in list(self.books.memories.items()):
            for name in sorted(set(memory.drains) - noted):
                self._over(pool, name, view, there=name in there)
            if memory.surged:
                self._unsurge(pool, view)

    def _unsurge(self, pool: str, view: View) -> None:
        """Surges whose note went with its node."""
        memory = self.books.of(pool)
        noted = {name for _, note in _noted(view) if isinstance(note, Note) for name in note.surges}
        for name, before in sorted(memory.surged.items()):
            if name not in noted:
                if self.door.scale(name, before + 1, before):
                    told = f"Deployment {name} has {before} replicas again: the drain's node is gone"
                    self.books.tell("scaled", SCALED(told), pool=pool, at=view.at)
                left = {other: n for other, n in self.books.of(pool).surged.items() if other != name}
                self.books.put(pool, change(self.books.of(pool), surged=left))

    def _over(self, pool: str, name: str, view: View, *, there: bool) -> None:
        memory = self.books.of(pool)
        drain, was_empty = memory.drains[name], name in memory.empty
        taken = was_empty and not there
        memory = memory.succeeded(name) if taken else memory
        self.books.put(pool, memory.over(name, drain, view.at))
        told = f"node {name} is gone" if not there else f"the note on node {name} was taken away"
        what, code = ("taken", a.TAKEN) if taken else ("dropped", a.UNCORDONED if there else a.VANISHED)
        self.books.tell(what, code(told), pool=pool, at=view.at, node=name, drain=drain)

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
    return any(taint.key in DELETING for taint in node.taints)


def _is_cleared(note: Note, view: View) -> bool:
    """Has every pod of it gone? Then whoever takes the node takes an empty one, be its successors ready or not."""
    if note.emptied is not None:
        return True
    leaving = {move.uid for move in note.moves}
    return not any(pod.uid in leaving and not pod.finished for pod in view.inventory.pods)


def _noted(view: View) -> list[tuple[Node, Note | Unreadable]]:
    """Nodes with a note of ours, the oldest drain first: what was begun first ends first."""
    found = [(node, note) for node in view.inventory.nodes if (note := notes.read(node)) is not None]
    found = [(node, note) for node, note in found if isinstance(note, Unreadable) or note.home == view.home]
    return sorted(found, key=lambda pair: (pair[1].since if isinstance(pair[1], Note) else 0, pair[0].name))
