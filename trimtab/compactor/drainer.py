"""Drains whose node, or whose note, is not there any more: what they leave behind is settled by what was remembered.

The next step of every drain that stands in the cluster, done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain import annotation as notes
from trimtab.compaction.drain.actions import Action, FailureCause
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.backoff import Setback, emptied_node, find_setbacks
from trimtab.compaction.drain.cluster_view import ClusterView, is_gone
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import CLOSED, ActiveDrains, backoff_reason, find_successors
from trimtab.compaction.drain.state_machine import DrainPlanner, mark_emptied
from trimtab.compaction.drain.timeouts import DrainTimeouts, delay_after_add
from trimtab.compactor.actuator import Actuator, ActuatorForbidden, ErrorCollector, EvictionResponse, EvictionResult
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger

SCALED = Code("workload-surged", "A workload of one replica has two while its pod moves, or one again.", "Nothing.")
SURGE_LEFT = Code(
    "workload-left-surged", "A drain gave a workload a second replica, and nothing on its node says so any more.",
    "Scale the workload to one replica if it has two and you want one.",
)  # fmt: skip
AGAIN = 10.0
"""Seconds until a write is tried again whose refusal did not say when (the autoscaler's own pace)."""


@dataclass(slots=True)
class RemovedNodes:
    door: Actuator
    books: PoolStates
    log: Logger
    blind: float
    """Seconds after which a cordon that nobody sees anything of is taken for one that did not happen."""
    agreed: dict[str, str] = field(default_factory=dict)
    """namespace/Deployment → drain of which this process saw state and note agree on a second replica."""
    cordoned: dict[str, float] = field(default_factory=dict)
    """Drain → when this process cordoned its node; until the note is seen."""

    def settle(self, view: ClusterView, held: dict[str, float], now: float) -> None:
        """Ends such drains. What cannot be undone now is held for a while, and tried again."""
        noted, there = set(view.notes.ours), {node.name for node in view.inventory.nodes}
        notes = [note for note in view.notes.ours.values() if isinstance(note, DrainAnnotation)]
        standing = {note.drain for note in notes}
        self.cordoned = {
            drain: at for drain, at in self.cordoned.items() if drain not in standing and now - at < self.blind
        }
        for pool, memory in list(self.books.memories.items()):
            for name in sorted(memory.drains.keys() - noted):
                if name not in there or memory.drains[name] not in self.cordoned:
                    self._over(pool, name, view, there=name in there)
            for name, drain in sorted(self.books.of(pool).surged.items()):
                if drain not in standing and drain not in self.cordoned and name not in held:
                    self._unsurge(pool, name, view, held, now)

    def _unsurge(self, pool: str, name: str, view: ClusterView, held: dict[str, float], now: float) -> None:
        """Undoes a surge whose note went with its node, or was taken off while it could not be undone.

        Only where this process saw the note: the state alone is no reason to scale anything.
        """
        memory = self.books.of(pool)
        if self.agreed.get(name) != memory.surged[name]:
            self.books.put(pool, memory.without_surges(name))
            told = f"Deployment {name} may still have the second replica that drain {memory.surged[name]} gave it"
            self.books.tell("left", SURGE_LEFT(told), pool=pool, at=view.at)
            return
        apart, done = ErrorCollector(), False
        with apart.tried():
            if self.door.scale(name, 2, 1):
                told = f"Deployment {name} has 1 replica again: the drain is over"
                self.books.tell("scaled", SCALED(told), pool=pool, at=view.at)
            self.books.put(pool, self.books.of(pool).without_surges(name))
            done = True
        if not done:
            held[name] = now + AGAIN
        if apart.trouble is not None:
            self.log.warning("surge.not-undone", pool=pool, deployment=name, error=str(apart.trouble))

    def _over(self, pool: str, name: str, view: ClusterView, *, there: bool) -> None:
        memory = self.books.of(pool)
        drain, was_empty = memory.drains[name], name in memory.empty
        taken = was_empty and not there
        memory = memory.with_success(name) if taken else memory
        self.books.put(pool, memory.with_ended_drain(name, drain, view.at))
        told = f"node {name} is gone" if not there else f"no note of drain {drain} stands on node {name}"
        what, code = ("taken", a.TAKEN) if taken else ("dropped", a.NOTE_MISSING if there else a.VANISHED)
        self.books.tell(what, code(told), pool=pool, at=view.at, node=name, drain=drain)


EVICTED = Code("pod-evicted", "The pod was evicted so that its node can go.", "Nothing: its successor runs elsewhere.")
REFUSED = Code("eviction-refused", "The API server refused the eviction for now.", "Nothing: it is asked again.")
IS_EMPTY = Code("node-emptied", "All its pods are ready elsewhere; it is the autoscaler's now.", "Nothing.")
LOOK = 15.0
"""Seconds after which no pod is evicted on what was seen: where writes take long, a pause must not wait for all."""
BLIND = 60.0
"""Seconds past the oldest data that is acted on: an eviction nobody sees anything of by then did not happen."""


@dataclass(slots=True)
class Drainer:
    door: Actuator
    books: PoolStates
    terms: DrainTimeouts
    stop: GracefulShutdown
    faults: ErrorGuard
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
    vanished: RemovedNodes = field(init=False)

    def __post_init__(self) -> None:
        self.vanished = RemovedNodes(self.door, self.books, self.faults.log, self.blind)

    def standing(self, view: ClusterView) -> ActiveDrains:
        """What is under way by the notes on the nodes."""
        found = [
            (node.name, note)
            for node, note in view.annotated_nodes()
            if isinstance(note, DrainAnnotation) and self._knows(node, note)
        ]
        return ActiveDrains(
            emptying={name: note.pool for name, note in found if note.emptied is None},
            emptied={name: note.pool for name, note in found if note.emptied is not None},
            deleted=view.autoscaler_deletions,
            owed=_owed([note for _, note in found if note.emptied is None], view),
        )

    def led(self, view: ClusterView, now: float) -> dict[str, float]:
        """Drain → seconds for which this process has carried it on."""
        drains = {note.drain for _, note in view.annotated_nodes() if isinstance(note, DrainAnnotation)}
        self.met = {drain: self.met.get(drain, now) for drain in drains}
        return {drain: now - since for drain, since in self.met.items()}

    def opened(self, view: ClusterView) -> dict[str, int]:
        """Pool → emptied nodes that were opened in the last hour."""
        return {pool: memory.recent_openings(view.at) for pool, memory in self.books.memories.items()}

    def settle_flight(self, view: ClusterView, now: float) -> frozenset[str]:
        """Evicted pods that the view still shows as if nothing had happened."""
        there = {pod.uid for pod in view.inventory.pods if pod.deleted is None}
        self.flight = {uid: at for uid, at in self.flight.items() if uid in there and now - at < self.blind}
        self.held = {uid: until for uid, until in self.held.items() if until > now}
        self.refused &= there
        return frozenset(self.flight)

    def carry_on(self, moment: DrainPlanner, now: float) -> None:
        """One step of each drain. Raises NotNow when all had their turn: what cannot be done in one holds up no other.

        A drain that fails for an error of ours is given back.
        """
        apart = ErrorCollector()
        for node, note in moment.view.annotated_nodes():
            if node.name not in self.held:
                with apart.tried():
                    self._turn_of(moment, node, note, now)
        self.vanished.settle(moment.view, self.held, now)
        apart.tell()

    def _turn_of(self, moment: DrainPlanner, node: NodeInfo, note: DrainAnnotation | Unreadable, now: float) -> None:
        try:
            if not self.faults.caught("drain", partial(self._one, moment, node, note, now), about=node.name):
                self._give_up(moment.view, node, note)
        except ActuatorForbidden:
            self.held[node.name] = now + AGAIN
            raise

    def _give_up(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation | Unreadable) -> None:
        """Nobody knows what this drain's next step is: its node is opened."""
        if not isinstance(note, DrainAnnotation) or _is_deleted(node):
            return
        told = a.Release(
            a.FAULT(f"emptying node {node.name} failed for an error of ours: {self.faults.last}"), FailureCause.NODE
        )
        before = self.faults.count
        self.faults.caught("drain", partial(self._release, view, node, note, told), about=node.name)
        if self.faults.count != before:
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)

    def give_back(self, view: ClusterView, why: str = "the compactor stops") -> None:
        """Every node that is not empty yet, because the process ends; but for those somebody else deletes.

        Raises NotNow when all were tried.
        """
        apart = ErrorCollector()
        for node, note in view.annotated_nodes():
            if (
                isinstance(note, DrainAnnotation)
                and note.emptied is None
                and not _is_deleted(node)
                and self._knows(node, note)
            ):
                reason = a.STOPPING(f"{why}: node {node.name} is open again")
                with apart.tried():
                    self.faults.caught("end", partial(self._back, view, node, note, reason), about=node.name)
        apart.tell()

    def _back(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, reason: Reason) -> None:
        agreed = self._agreed(note)
        back = DrainPlanner(view, self.terms).undo_actions(agreed)
        self._carry_out(view, node, agreed, (*back, a.Release(reason)), 0.0)

    def _one(self, moment: DrainPlanner, node: NodeInfo, note: DrainAnnotation | Unreadable, now: float) -> bool:
        """Always true."""
        view = moment.view
        if isinstance(note, Unreadable):
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)
            self.books.tell("released", a.ODD_NOTE(str(note)), pool="", at=view.at, node=node.name)
            return True
        if not self._knows(node, note):
            self._forsake(view, node, note)
            return True
        if node.cordoned and notes.is_ahead(note, view.at) and not _is_deleted(node):
            self._catch_up(view, node, note)
            return True
        if node.cordoned and node.name in view.notes.outdated and not _is_deleted(node):
            self.door.cordon(node, view.versions[node.name], note)  # signed anew, before the previous key is forgotten
            return True
        note = self._agreed(note)
        steps = moment.next_actions(node, note)
        over = note.drain in self.books.of(note.pool).ended
        if over and not isinstance(steps[-1], a.Abandon):
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)
        elif not over:
            self._seen(node, note, view)
            self._carry_out(view, node, note, steps, now)
        return True

    def _knows(self, node: NodeInfo, note: DrainAnnotation) -> bool:
        return self.books.of(note.pool).knows(node.name, note.drain)

    def _agreed(self, note: DrainAnnotation) -> DrainAnnotation:
        """The note with those second replicas alone of which the state says the same: only they are taken back."""
        state = self.books.of(note.pool).surged
        surged = {name: at for name, at in note.surged.items() if state.get(name) == note.drain}
        self.vanished.agreed |= dict.fromkeys(surged, note.drain)
        return note if surged == note.surged else change(note, surged=surged)

    def _forsake(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation) -> None:
        """An authentic note of a drain that the state does not know: the state was lost, or the note is an old one that
        somebody wrote back. The node is opened; nothing is scaled, and nothing counts.
        """
        if _is_deleted(node):
            return
        self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)
        told = a.UNKNOWN(f"node {node.name} is open again: the state of pool {note.pool} knows no drain {note.drain}")
        self.books.tell("released", told, pool="", at=view.at, node=node.name, drain=note.drain)

    def _catch_up(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation) -> None:
        self.door.cordon(node, view.versions[node.name], notes.clamp_to_now(note, view.at))
        reason = a.AHEAD(f"the note on node {node.name} is of the future: its time counts from now on")
        self._tell("corrected", reason, view, node, note)

    def _seen(self, node: NodeInfo, note: DrainAnnotation, view: ClusterView) -> None:
        memory = self.books.of(note.pool).with_successors(find_successors(note, view), view.at, self.terms.rest)
        if _is_cleared(note, view):
            memory = memory.with_empty_node(node.name, emptied_node(node, view.at))
        if note.emptied is not None:
            memory = memory.without_surges(*_surged_by(memory, note.drain))
        self.books.put(note.pool, memory)

    def _carry_out(
        self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, steps: tuple[Action, ...], now: float
    ) -> None:
        """Step by step, as far as one lets the next be taken; a second replica can be taken back later, too."""
        apart = ErrorCollector()
        for step in steps:
            if isinstance(step, a.Evict):
                if not self._evict(view, node, note, step.move, now):
                    return
            elif isinstance(step, a.SetReplicas) and step.replicas < step.before:
                with apart.tried():
                    self._scale(view, node, note, step)
            elif isinstance(step, a.SetReplicas):
                self._scale(view, node, note, step)
            else:
                self._turn(view, node, note, step)
        apart.tell()

    def _turn(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: Action) -> None:
        """The steps from one state to another."""
        if isinstance(step, a.MarkEmptied):
            self.door.cordon(node, view.versions[node.name], mark_emptied(note, view.at))
            self._tell("emptied", IS_EMPTY(f"node {node.name} is empty"), view, node, note)
        elif isinstance(step, a.Release):
            self._release(view, node, note, step)
        elif isinstance(step, a.Abandon) and note.emptied is None:
            self._end(view, node, note, step.reason, FailureCause.NOBODY, "dropped")

    def _scale(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: a.SetReplicas) -> None:
        """One more is announced first, in the state and then on the node: what nobody announced, somebody else did, and
        is not undone.
        """
        if step.replicas > step.before and step.deployment not in note.surged:
            self.books.put(note.pool, self.books.of(note.pool).with_surge(step.deployment, note.drain))
            self.books.save((note.pool,))
            said = change(note, surged={**note.surged, step.deployment: view.at})
            self.door.cordon(node, view.versions[node.name], said)
            self.vanished.agreed[step.deployment] = note.drain
        done = self.door.scale(step.deployment, step.before, step.replicas)
        if step.replicas < step.before:
            self.books.put(note.pool, self.books.of(note.pool).without_surges(step.deployment))
        if done:
            told = f"Deployment {step.deployment} has {step.replicas} replicas instead of {step.before}"
            self._tell("scaled", SCALED(told), view, node, note)

    def _evict(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, move: PodToEvict, now: float) -> bool:
        """False where nothing more of this drain should be asked for now."""
        if self.stop.begun or (self.elapsed is not None and self.elapsed() - now > LOOK):
            return False
        if move.uid in self.held:
            return True
        answer = self.door.evict(move)
        if answer.became is not EvictionResult.EVICTED:
            return self._refused(view, node, note, move, answer, now)
        self.flight[move.uid] = now
        memory = self.books.of(note.pool)
        self.twice += move.pod in memory.moved
        self.books.put(note.pool, memory.with_eviction(view.at))
        reason = EVICTED(f"pod {move.pod} was evicted so that node {node.name} can go")
        self._tell("evicted", reason, view, node, note, move)
        return True

    def _refused(
        self,
        view: ClusterView,
        node: NodeInfo,
        note: DrainAnnotation,
        move: PodToEvict,
        answer: EvictionResponse,
        now: float,
    ) -> bool:
        reason = REFUSED(f"pod {move.pod} was not evicted: {answer.message}")
        self._tell("refused", reason, view, node, note, move, again=move.uid in self.refused)
        self.refused.add(move.uid)
        if answer.became is EvictionResult.NEVER:
            self._release(view, node, note, a.Release(a.FORBIDDEN(reason.sentence), FailureCause.NODE))
            return False
        self.held[move.uid] = now + (answer.retry_after or AGAIN)
        return True

    def _release(self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, step: a.Release) -> None:
        """What it means is kept first: should we die in between, the node is opened without being counted twice.

        Books that cannot be kept leave no node closed.
        """
        self._end(view, node, note, step.reason, step.blame, "released")
        if step.opened:
            quiet = delay_after_add(view.autoscaler)
            self.books.put(note.pool, self.books.of(note.pool).with_opening(view.at, quiet))
        if step.setback:
            self.back_off(Setback(note.pool, note.drain, step.setback), view)
        try:
            self.books.save((note.pool,))
        finally:
            self.door.release(node.name, view.versions[node.name], uncordon=node.cordoned)

    def _end(
        self, view: ClusterView, node: NodeInfo, note: DrainAnnotation, reason: Reason, blame: FailureCause, what: str
    ) -> None:
        memory = self.books.of(note.pool)
        if note.drain in memory.ended:
            return
        if blame is not FailureCause.NOBODY:
            memory = memory.with_failure(node.name, view.at, strike=blame is FailureCause.POOL)
        unannounced = (name for name in _surged_by(memory, note.drain) if name not in note.surged)
        memory = memory.with_ended_drain(node.name, note.drain, view.at).without_surges(*unannounced)
        self.books.put(note.pool, memory)
        self._tell(what, reason, view, node, note)
        if memory.strikes >= self.terms.strikes and memory.closed is None:
            self._close(note.pool, view)

    def count_deletions(self, view: ClusterView) -> None:
        """What the autoscaler has begun to delete, of pools that lead and of nodes with a drain of ours."""
        found: dict[str, dict[str, int]] = {}
        going = [node.name for node in view.inventory.nodes if node.going is not None]
        ours = {name: note.pool for name in going if isinstance(note := view.notes.ours.get(name), DrainAnnotation)}
        leading = view.autoscaler_deletions
        for name in going:
            if (pool := leading.get(name) or ours.get(name)) is not None:
                found.setdefault(pool, {})[name] = _evictions(name, view) if name not in ours else 0
        for pool, evictions in found.items():
            self.books.put(pool, self.books.of(pool).with_deletions(evictions, view.at))

    def deleting(self) -> frozenset[str]:
        """Nodes that the autoscaler has begun to delete not long ago."""
        return frozenset(name for memory in self.books.memories.values() for name in memory.deleting)

    def judge_added_nodes(self, view: ClusterView) -> None:
        """Pools back off for nodes that were added because of what was emptied."""
        memories = self.books.memories
        judged = [cause for memory in memories.values() for cause in memory.judged]
        for found in find_setbacks(view, {pool: memory.emptied for pool, memory in memories.items()}, judged):
            self.back_off(found, view)

    def back_off(self, found: Setback, view: ClusterView) -> None:
        before = self.books.of(found.pool)
        memory = before.with_setback(found.cause, view.at)
        self.books.put(found.pool, memory)
        if memory.backoff is not None and memory.backoff != before.backoff:
            told = backoff_reason(found.pool, memory.backoff, view.at, found.why)
            self.books.tell("closed", told, pool=found.pool, at=view.at)

    def _close(self, pool: str, view: ClusterView) -> None:
        memory = change(self.books.of(pool), closed=view.at)
        self.books.put(pool, memory)
        told = f"pool {pool} is closed for {self.terms.closed} s: {memory.strikes} drains in a row failed"
        self.books.tell("closed", CLOSED(told), pool=pool, at=view.at)

    def _tell(
        self, what: str, reason: Reason, view: ClusterView, node: NodeInfo, note: DrainAnnotation,
        move: PodToEvict | None = None,
        *, again: bool = False,
    ) -> None:  # fmt: skip
        pod, owner = (move.pod, f"{move.kind}/{move.owner}" if move.owner else "") if move else ("", "")
        self.books.tell(
            what, reason, pool=note.pool, at=view.at, node=node.name, pod=pod, owner=owner, drain=note.drain,
            again=again,
        )  # fmt: skip


def _surged_by(memory: PoolState, drain: str) -> tuple[str, ...]:
    """Deployments to which this drain gave a second replica, or was about to."""
    return tuple(name for name, whose in memory.surged.items() if whose == drain)


def _evictions(name: str, view: ClusterView) -> int:
    """Pods of this node that its deletion evicts."""
    pods = (pod for pod in view.inventory.pods if pod.node == name and not pod.finished)
    return sum(not (pod.daemon or pod.static) for pod in pods)


def _is_deleted(node: NodeInfo) -> bool:
    return node.going is not None


def _owed(emptying: Sequence[DrainAnnotation], view: ClusterView) -> Counter[str]:
    """Pool → pods of its drains that are there, and not on their way out."""
    there = {pod.uid for pod in view.inventory.pods if not is_gone(pod, view)} if emptying else set()
    return Counter(note.pool for note in emptying for move in note.moves if move.uid in there)


def _is_cleared(note: DrainAnnotation, view: ClusterView) -> bool:
    """Has every pod of it gone? Then whoever takes the node takes an empty one, be its successors ready or not."""
    if note.emptied is not None:
        return True
    leaving = {move.uid for move in note.moves}
    return not any(pod.uid in leaving and not pod.finished for pod in view.inventory.pods)
