"""What is the next step of this drain, as the cluster stands now?

A drain is a state machine without a memory of its own. What was decided stands in the note on the node; how far it
got is read off the pods. So whoever asks after a crash gets the same answer, and goes on.

    emptying   the node is cordoned and some of its pods are there, or their successors are not ready
    emptied    all that moved is ready elsewhere; the autoscaler's turn
    over       the node is gone, or open again and without the note
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace as change

from trimtab.cluster.budget import Guard
from trimtab.cluster.moment import Seconds
from trimtab.cluster.node import Node
from trimtab.cluster.pod import Pod
from trimtab.cluster.pool import KEEP, Pool
from trimtab.compaction.blockers import Judge
from trimtab.compaction.candidates import keeping, kept
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.actions import Action, Blame, Release, Wait
from trimtab.compaction.drain.hurry import Waiting, late
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compaction.drain.terms import Terms, patience
from trimtab.compaction.drain.untaken import untaken
from trimtab.compaction.drain.view import View, Workloads, gone

QUARTER = 4
"""Without a budget, so much of a workload may be missing at a time: a quarter, but one in any case."""

TAKEN_BACK = 60
"""Seconds in which a second replica is asked for: who takes it back (an autoscaler of pods, Git) is not argued with."""


@dataclass(slots=True)
class Moment:
    """One view, with what has been chosen in it so far: drains that are asked one after the other share budgets."""

    view: View
    terms: Terms
    workloads: Workloads = field(init=False)
    waiting: Waiting = field(init=False)
    guard: Guard = field(init=False)
    judge: Judge = field(init=False)
    on: dict[str, list[Pod]] = field(init=False)
    spent: Counter[int] = field(init=False)
    """Budget → evictions chosen, or made and not seen yet."""
    chosen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Workload (the Deployment, where there is one) → evictions chosen."""

    def __post_init__(self) -> None:
        self.workloads = Workloads.of(self.view)
        self.waiting = Waiting(self.view, self.terms)
        self.guard = Guard.of(self.view.inventory.budgets)
        self.judge = Judge(self.view.inventory, self.guard, self.view.at)
        self.on = {node.name: [] for node in self.view.inventory.nodes}
        self.spent = Counter()
        for pod in self.view.inventory.pods:
            if pod.node in self.on and not pod.finished:
                self.on[pod.node].append(pod)
            if pod.uid in self.view.flight and pod.deleted is None:
                self.spent.update(self.guard.over(pod.namespace, pod.ask.labels))

    def next(self, node: Node, note: Note) -> tuple[Action, ...]:
        """What to do about this drain now; never empty."""
        if node.going is not None:
            return (
                *self._scaled_back(note),
                a.HandsOff(a.DELETING(f"node {node.name} is being deleted (taint {node.going.key})")),
            )
        stop = self._broken(node, note) or self._stopped(node, note) or self._disturbed(node, note)
        if stop is not None:
            return (*self._scaled_back(note), stop)
        if note.emptied is not None:
            return (self._empty(node, note),)
        return self._emptying(node, note)

    def undone(self, note: Note) -> tuple[Action, ...]:
        """What has to be taken back before the drain's node is opened again."""
        return self._scaled_back(note)

    # ── reasons to stop ──────────────────────────────────────────────────
    def _broken(self, node: Node, note: Note) -> Release | None:
        name = node.name
        if not node.cordoned:
            return Release(a.UNCORDONED(f"somebody opened node {name} again"), Blame.NODE)
        if not node.ready and not self._is_left(node, note):
            return Release(a.NODE_ILL(f"node {name} became not ready"), Blame.NODE)
        if note.emptied is None:
            lasts = self.terms.drain + max((move.grace for move in note.moves), default=0)
            if self.view.at > note.since + lasts:
                ours = 2 * self.view.led.get(note.drain, lasts) >= lasts
                blame = Blame.POOL if ours else Blame.NOBODY  # nobody was there, or by a clock that was behind ours
                return Release(a.TOO_LONG(f"emptying node {name} took longer than {lasts} s"), blame)
        return None

    def _kept(self, node: Node, note: Note, pool: Pool | None) -> Release | None:
        """Did somebody write on the node that it shall stay? An empty one may still be the autoscaler's to judge."""
        said = kept(node, keeping(pool) if pool is not None and note.emptied is None else (KEEP,))
        return Release(a.KEPT(f"emptying node {node.name} was stopped: {said}")) if said is not None else None

    def _is_left(self, node: Node, note: Note) -> bool:
        """Have all its pods gone? A machine that is taken away is not ready before its node disappears."""
        known = {move.uid for move in note.moves}
        return note.emptied is not None or not any(pod.uid in known for pod in self.on.get(node.name, ()))

    def _stopped(self, node: Node, note: Note) -> Release | None:
        """An empty node stays the autoscaler's while nothing else may be done."""
        pool = self.view.pool(note.pool)
        if (said := self._kept(node, note, pool)) is not None or note.emptied is not None:
            return said
        why = self.view.paused or _off(pool, note.pool)
        if why:
            return Release(a.STOPPED(f"emptying node {node.name} was stopped: {why}"))
        scaler = self.view.autoscaler
        if scaler is None:
            return None
        busy = scaler.scaling_up(note.pool)
        silent = scaler.silence(self.view.at) if scaler.silent(self.view.at) else ""
        if busy or not scaler.healthy or silent:
            how = f"is scaling up {busy}" if busy else silent or "is not healthy"
            return Release(a.SCALER_CHANGED(f"the cluster autoscaler {how} while node {node.name} was emptied"))
        return None

    def _disturbed(self, node: Node, note: Note) -> Release | None:
        strangers = self._strangers(node, note)
        if strangers:
            told = ", ".join(strangers)
            return Release(a.CAME(f"node {node.name} has pods the plan did not speak of: {told}"), Blame.NODE)
        if note.emptied is not None:
            return self._awaited(node)
        return self._stuck(node, note) or late(self.view, self.workloads, note, self.terms) or self._awaited(node)

    def _strangers(self, node: Node, note: Note) -> list[str]:
        """Pods that would have to move and are not in the note. Those on their way out are no trouble of ours."""
        known = {move.uid for move in note.moves}
        pods = (pod for pod in self.on.get(node.name, ()) if pod.uid not in known and pod.deleted is None)
        return sorted(pod.key for pod in pods if not (pod.daemon or pod.static))

    def _stuck(self, node: Node, note: Note) -> Release | None:
        known = {move.uid for move in note.moves}
        for pod in self.on.get(node.name, ()):
            if pod.uid in known and pod.deleted is not None and self.view.at > pod.deleted + self.terms.end:
                over = self.view.at - pod.deleted
                return Release(a.STUCK(f"pod {pod.key} is still there {over} s past its grace"), Blame.POOL)
        return None

    def _awaited(self, node: Node) -> Release | None:
        pod = self.waiting.only_on(node)
        if pod:
            return Release(a.PENDING(f"pod {pod} waits for a node and would fit on node {node.name}"))
        return None

    # ── emptied ──────────────────────────────────────────────────────────
    def _empty(self, node: Node, note: Note) -> Action:
        assert note.emptied is not None
        waits = patience(self.terms, self.view.autoscaler, ready=node.ready)
        if self.view.at > note.emptied + waits:
            why, blame = untaken(node, note, self.view, waits)
            return Release(a.NOT_TAKEN(f"node {node.name} was empty for {waits} s and is still there: {why}"), blame)
        left = note.emptied + waits - self.view.at
        return Wait(a.LEFT_EMPTY(f"node {node.name} is empty; it is given back in {left} s if nobody removes it"))

    # ── emptying ─────────────────────────────────────────────────────────
    def _emptying(self, node: Node, note: Note) -> tuple[Action, ...]:
        here = {pod.uid: pod for pod in self.on.get(node.name, ())}
        live = [move for move in note.moves if move.uid in here and not gone(here[move.uid], self.view)]
        ending = [move for move in note.moves if move.uid in here and move not in live]
        moved = [move for move in note.moves if move not in live]
        back = self._scaled_back(note, {move.uid for move in live})
        short = self._short(moved)
        if not live:
            if back:
                return back
            if ending:
                return (Wait(a.ENDING(f"pod {ending[0].pod} is ending")),)
            return (Wait(a.SUCCESSORS(short)),) if short else (a.Emptied(),)
        turn = min(move.turn for move in live)
        before = self._short([move for move in moved if move.turn < turn])
        if before:
            return (*back, Wait(a.SUCCESSORS(before)))
        order = sorted((m for m in live if m.turn == turn), key=lambda move: (move.priority, move.pod))
        steps = self._evictions(order, here, note)
        stop = next((act for act in steps if isinstance(act, Release)), None)
        return (*self._scaled_back(note), stop) if stop is not None else (*back, *steps)

    def _short(self, moves: Iterable[Leaving]) -> str:
        """The first workload among the moved that has not all its pods ready, in words; empty when all have."""
        for move in moves:
            missing = self.workloads.missing(move.workload) if move.owner else 0
            if missing:
                return f"{move.kind} {move.namespace}/{move.owner} waits for {missing} pods to be ready"
        return ""

    def _evictions(self, order: list[Leaving], here: dict[str, Pod], note: Note) -> tuple[Action, ...]:
        """In the order of priority: a pod that has to wait holds up those of a higher priority."""
        found: list[Action] = []
        held: int | None = None
        for move in order:
            if held is not None and move.priority > held:
                break
            found.append(self._one(move, here[move.uid], note))
            if isinstance(found[-1], Wait) and held is None:
                held = move.priority
        return tuple(act for act in found if not isinstance(act, Wait)) or tuple(found[:1])

    def _one(self, move: Leaving, pod: Pod, note: Note) -> Action:
        pool = self.view.pool(note.pool)
        forbidden = self.judge.forbidden(pod, pool) if pool is not None else None
        if forbidden is not None:
            return Release(a.FORBIDDEN(str(forbidden)), Blame.NODE)
        over = self.guard.over(pod.namespace, pod.ask.labels)
        if len(over) > 1:
            return Release(a.FORBIDDEN(f"pod {pod.key} is under {len(over)} budgets"), Blame.NODE)
        surge = self._surge(move, note)
        if surge is not None:
            return surge
        refusal = self._unaffordable(pod, over[0]) if over else self._too_many(move)
        if refusal is not None:
            return refusal
        self.spent.update(over)
        self.chosen[self.workloads.above(move.workload)] += 1
        return a.Evict(move)

    def _unaffordable(self, pod: Pod, number: int) -> Wait | None:
        budget = self.view.inventory.budgets[number]
        free = not pod.ready and (budget.always or budget.whole)
        if budget.stale or budget.broken or (not free and budget.allowed <= self.spent[number]):
            return Wait(a.NO_BUDGET(f"budget {budget.key} allows no eviction of pod {pod.key} now"))
        return None

    def _too_many(self, move: Leaving) -> Wait | None:
        key = move.workload
        if not move.owner:
            return None
        wanted, missing = self.workloads.together(key)
        if missing + self.chosen[self.workloads.above(key)] >= max(1, wanted // QUARTER):
            return Wait(a.ONE_BY_ONE(f"{move.kind} {move.namespace}/{move.owner} has other pods missing"))
        return None

    # ── one replica more, and back ───────────────────────────────────────
    def _surge(self, move: Leaving, note: Note) -> Action | None:
        """For the only pod of a Deployment: the second one first."""
        name = self._deployment(move)
        before = note.surges.get(name)
        if before is None:
            return None
        wanted = self._replicas(name)
        if wanted == before:
            if self.view.at > note.surged.get(name, self.view.at) + TAKEN_BACK:
                return Release(a.FORBIDDEN(f"somebody took Deployment {name}'s second replica back"), Blame.NODE)
            return a.Scale(name, before, before + 1)
        if self.workloads.missing(move.workload) or self.workloads.wanted(move.workload) <= before:
            return Wait(a.SURGING(f"Deployment {name} waits for its second pod"))
        return None

    def _scaled_back(self, note: Note, live: Iterable[str] = ()) -> tuple[Action, ...]:
        """Every surge of ours whose pod has gone (or will not go), undone: only where the number is the one we left."""
        staying = {self._deployment(move) for move in note.moves if move.uid in set(live)}
        return tuple(
            a.Scale(name, before + 1, before)
            for name, before in sorted(note.surges.items())
            if name in note.surged and name not in staying and self._replicas(name) == before + 1
        )

    def _deployment(self, move: Leaving) -> str:
        top = self.view.tops.get(move.workload)
        return f"{move.namespace}/{top.name}" if top is not None and top.kind == "Deployment" else ""

    def _replicas(self, name: str) -> int | None:
        namespace, _, own = name.partition("/")
        scale = self.view.inventory.owners.get((namespace, "Deployment", own))
        return scale.wanted if scale is not None else None


def _off(pool: Pool | None, name: str) -> str:
    if pool is None:
        return f"pool {name} is not there any more, or has a mistake"
    if not pool.enabled:
        return f"pool {name} is switched off"
    return f"pool {name} only rehearses" if pool.dry_run else ""


def emptied(note: Note, at: Seconds) -> Note:
    """The same note, with the time at which the node was empty."""
    return change(note, emptied=at)
