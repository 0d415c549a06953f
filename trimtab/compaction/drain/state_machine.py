"""What is the next step of this drain, as the cluster stands now?

A drain is a state machine without a memory of its own. What was decided stands in the note on the node; how far it
got is read off the pods. So whoever asks after a crash gets the same answer, and goes on.

    emptying   the node is cordoned and some of its pods are there, or their successors are not ready
    emptied    all that moved is ready elsewhere; the autoscaler's turn
    over       the node is gone, or open again and without the note
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as change

from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, describe_scale_up
from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import CRITICAL, PodInfo
from trimtab.cluster.pool import KEEP, RENAMED_KEEP, Pool, Precedence
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.blockers import EvictionChecker
from trimtab.compaction.candidates import keeping, kept
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.actions import Action, FailureCause, Release, Wait
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.backoff import waiting_successor
from trimtab.compaction.drain.cluster_view import ClusterView, Key, Workloads, gone
from trimtab.compaction.drain.overdue import PendingPods, overdue_successor, why_not_removed
from trimtab.compaction.drain.release import nodes_to_open
from trimtab.compaction.drain.timeouts import DrainTimeouts, patience

QUARTER = 4
"""Without a budget, so much of a workload may be missing at a time: a quarter, but one in any case."""

TAKEN_BACK = 60
"""Seconds in which a second replica is asked for: who takes it back (an autoscaler of pods, Git) is not argued with."""


@dataclass(slots=True)
class DrainPlanner:
    """One view, with what has been chosen in it so far: drains that are asked one after the other share budgets."""

    view: ClusterView
    terms: DrainTimeouts
    workloads: Workloads = field(init=False)
    waiting: PendingPods = field(init=False)
    guard: PdbIndex = field(init=False)
    judge: EvictionChecker = field(init=False)
    on: dict[str, list[PodInfo]] = field(init=False)
    deletions: Mapping[str, str] = field(init=False)
    """Node → pool, of what the autoscaler removes in pools that lead."""
    spent: Counter[int] = field(init=False)
    """Budget → evictions chosen, or made and not seen yet."""
    chosen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Workload (the Deployment, where there is one) → evictions chosen."""
    _critical: set[Key] | None = None
    """Workloads of the system that move now, those chosen in this moment among them; looked at once."""
    _opening: dict[str, str] | None = None
    """Emptied node → pod that it is opened for; looked at once for all of them."""

    def __post_init__(self) -> None:
        self.workloads = Workloads.of(self.view)
        self.waiting = PendingPods(self.view, self.terms)
        self.guard = PdbIndex.of(self.view.inventory.budgets)
        self.judge = EvictionChecker(self.view.inventory, self.guard, self.view.at)
        self.on = {node.name: [] for node in self.view.inventory.nodes}
        self.spent = Counter()
        self.deletions = self.view.autoscaler_deletions
        for pod in self.view.inventory.pods:
            if pod.node in self.on and not pod.finished:
                self.on[pod.node].append(pod)
            if pod.deleted is None and (pod.uid in self.view.flight or self._is_evicted_soon(pod)):
                self.spent.update(self.guard.over(pod.namespace, pod.ask.labels))

    def next(self, node: NodeInfo, note: DrainAnnotation) -> tuple[Action, ...]:
        """What to do about this drain now; never empty."""
        if node.going is not None:
            return (
                *self._scaled_back(note),
                a.Abandon(a.DELETING(f"node {node.name} is being deleted (taint {node.going.key})")),
            )
        stop = (
            self._broken(node, note)
            or self._claimed(node, note)
            or self._stopped(node, note)
            or self._disturbed(node, note)
        )
        if stop is not None:
            return (*self._scaled_back(note), self._with_setback(stop, note))
        if note.emptied is not None:
            return (self._empty(node, note),)
        return self._emptying(node, note)

    def _is_evicted_soon(self, pod: PodInfo) -> bool:
        """Is it on a node of a pool that leads which the autoscaler has begun to empty?"""
        return pod.node in self.deletions and not (pod.daemon or pod.static or pod.finished)

    def undone(self, note: DrainAnnotation) -> tuple[Action, ...]:
        """What has to be taken back before the drain's node is opened again."""
        return self._scaled_back(note)

    def _with_setback(self, stop: Release, note: DrainAnnotation) -> Release:
        """Whoever ends it: where pods that it displaced have no node, the pool backs off."""
        if note.emptied is not None:  # all of them were ready: what waits now was displaced by somebody else
            return stop
        pod = waiting_successor(note, self.view, self.workloads, self.terms.pending)
        return replace(stop, setback=f"pod {pod}, which drain {note.drain} moved, waits for a node") if pod else stop

    # ── reasons to stop ──────────────────────────────────────────────────
    def _broken(self, node: NodeInfo, note: DrainAnnotation) -> Release | None:
        name = node.name
        if not node.cordoned and name in self.view.deleting:
            told = f"the cluster autoscaler began to delete node {name}, and opened it again"
            return Release(a.DELETION_FAILED(told), FailureCause.NODE)
        if not node.cordoned:
            return Release(a.UNCORDONED(f"somebody opened node {name} again"), FailureCause.NODE)
        if not node.ready and not self._is_left(node, note):
            return Release(a.NODE_ILL(f"node {name} became not ready"), FailureCause.NODE)
        if note.emptied is None:
            lasts = self.terms.drain + max((move.grace for move in note.moves), default=0)
            if self.view.at > note.since + lasts:
                ours = 2 * self.view.led.get(note.drain, lasts) >= lasts
                blame = (
                    FailureCause.POOL if ours else FailureCause.NOBODY
                )  # nobody was there, or by a clock that was behind ours
                return Release(a.TOO_LONG(f"emptying node {name} took longer than {lasts} s"), blame)
        return None

    def _claimed(self, node: NodeInfo, note: DrainAnnotation) -> Release | None:
        """Does the autoscaler want a node of a pool that leads, by no doing of ours?

        What we empty falls under its threshold, so its soft taint on a node of which a pod has gone is our own work:
        to stop then would leave the rest to it, and both would drain the node.
        """
        pool = self.view.pool(note.pool)
        here = {pod.uid for pod in self.on.get(node.name, ()) if not gone(pod, self.view)}
        leads = pool is not None and pool.autoscaler is Precedence.LEAD
        if not leads or not node.autoscaler_candidate or not note.moves or note.emptied is not None:
            return None
        if any(move.uid not in here for move in note.moves):
            return None
        return Release(a.CLAIMED(f"the cluster autoscaler means to remove node {node.name} (taint {CANDIDATE_TAINT})"))

    def _kept(self, node: NodeInfo, note: DrainAnnotation, pool: Pool | None) -> Release | None:
        """Did somebody write on the node that it shall stay? An empty one may still be the autoscaler's to judge."""
        said = kept(node, keeping(pool) if pool is not None and note.emptied is None else (KEEP, RENAMED_KEEP))
        return Release(a.KEPT(f"emptying node {node.name} was stopped: {said}")) if said is not None else None

    def _is_left(self, node: NodeInfo, note: DrainAnnotation) -> bool:
        """Have all its pods gone? A machine that is taken away is not ready before its node disappears."""
        known = {move.uid for move in note.moves}
        return note.emptied is not None or not any(pod.uid in known for pod in self.on.get(node.name, ()))

    def _stopped(self, node: NodeInfo, note: DrainAnnotation) -> Release | None:
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
        nodes = [member for member in self.view.inventory.nodes if pool is not None and pool.has(member)]
        busy = describe_scale_up(scaler, note.pool, nodes)
        silent = scaler.silence(self.view.at) if scaler.silent(self.view.at) else ""
        if busy or not scaler.healthy or silent:
            how = f"is scaling up {busy}" if busy else silent or "is not healthy"
            return Release(a.SCALER_CHANGED(f"the cluster autoscaler {how} while node {node.name} was emptied"))
        return None

    def _disturbed(self, node: NodeInfo, note: DrainAnnotation) -> Release | None:
        strangers = self._strangers(node, note)
        if strangers:
            told = ", ".join(strangers)
            return Release(a.CAME(f"node {node.name} has pods the plan did not speak of: {told}"), FailureCause.NODE)
        if note.emptied is not None:
            return self._needed(node)
        return (
            self._stuck(node, note)
            or overdue_successor(self.view, self.workloads, note, self.terms)
            or self._awaited(node)
        )

    def _strangers(self, node: NodeInfo, note: DrainAnnotation) -> list[str]:
        """Pods that would have to move and are not in the note. Those on their way out are no trouble of ours."""
        known = {move.uid for move in note.moves}
        pods = (pod for pod in self.on.get(node.name, ()) if pod.uid not in known and pod.deleted is None)
        return sorted(pod.key for pod in pods if not (pod.daemon or pod.static))

    def _stuck(self, node: NodeInfo, note: DrainAnnotation) -> Release | None:
        known = {move.uid for move in note.moves}
        for pod in self.on.get(node.name, ()):
            if pod.uid in known and pod.deleted is not None and self.view.at > pod.deleted + self.terms.end:
                over = self.view.at - pod.deleted
                return Release(a.STUCK(f"pod {pod.key} is still there {over} s past its grace"), FailureCause.POOL)
        return None

    def _awaited(self, node: NodeInfo) -> Release | None:
        pod = self.waiting.only_on(node)
        if pod:
            return Release(a.PENDING(f"pod {pod} waits for a node and would fit on node {node.name}"))
        return None

    def _needed(self, node: NodeInfo) -> Release | None:
        """Of an empty node: do pods need it that no open node takes?"""
        if self._opening is None:
            self._opening = nodes_to_open(self.view, self.terms)
        pod = self._opening.get(node.name)
        if pod is None:
            return None
        return Release(a.OPENED(f"pod {pod} fits on no open node, but on emptied node {node.name}"), opened=True)

    # ── emptied ──────────────────────────────────────────────────────────
    def _empty(self, node: NodeInfo, note: DrainAnnotation) -> Action:
        assert note.emptied is not None
        waits = patience(self.terms, self.view.autoscaler_of(note.pool), ready=node.ready)
        if self.view.at > note.emptied + waits:
            why, blame = why_not_removed(node, note, self.view, waits)
            return Release(a.NOT_TAKEN(f"node {node.name} was empty for {waits} s and is still there: {why}"), blame)
        left = note.emptied + waits - self.view.at
        return Wait(a.LEFT_EMPTY(f"node {node.name} is empty; it is given back in {left} s if nobody removes it"))

    # ── emptying ─────────────────────────────────────────────────────────
    def _emptying(self, node: NodeInfo, note: DrainAnnotation) -> tuple[Action, ...]:
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
            return (Wait(a.SUCCESSORS(short)),) if short else (a.MarkEmptied(),)
        turn = min(move.turn for move in live)
        before = self._short([move for move in moved if move.turn < turn])
        if before:
            return (*back, Wait(a.SUCCESSORS(before)))
        order = sorted((m for m in live if m.turn == turn), key=lambda move: (move.priority, move.pod))
        steps = self._evictions(order, here, note)
        stop = next((act for act in steps if isinstance(act, Release)), None)
        return (*self._scaled_back(note), stop) if stop is not None else (*back, *steps)

    def _short(self, moves: Iterable[PodToEvict]) -> str:
        """The first workload among the moved that has not all its pods ready, in words; empty when all have."""
        for move in moves:
            missing = self.workloads.newly_missing(move) if move.owner else 0
            if missing:
                return f"{move.kind} {move.namespace}/{move.owner} waits for {missing} pods to be ready"
        return ""

    def _evictions(
        self, order: list[PodToEvict], here: dict[str, PodInfo], note: DrainAnnotation
    ) -> tuple[Action, ...]:
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

    def _one(self, move: PodToEvict, pod: PodInfo, note: DrainAnnotation) -> Action:
        pool = self.view.pool(note.pool)
        forbidden = self.judge.forbidden(pod, pool) if pool is not None else None
        if forbidden is not None:
            return Release(a.FORBIDDEN(str(forbidden)), FailureCause.NODE)
        over = self.guard.over(pod.namespace, pod.ask.labels)
        if len(over) > 1:
            return Release(a.FORBIDDEN(f"pod {pod.key} is under {len(over)} budgets"), FailureCause.NODE)
        if (other := self._other_critical(move)) is not None:
            return other
        surge = self._surge(move, note)
        if surge is not None:
            return surge
        refusal = self._unaffordable(pod, over[0]) if over else self._too_many(move)
        if refusal is not None:
            return refusal
        self.spent.update(over)
        if move.priority >= CRITICAL:
            self._critical_moving().add(move.workload)
        self.chosen[self.workloads.above(move.workload)] += 1
        return a.Evict(move)

    def _unaffordable(self, pod: PodInfo, number: int) -> Wait | None:
        budget = self.view.inventory.budgets[number]
        free = not pod.ready and (budget.always or budget.whole)
        if budget.stale or budget.broken or (not free and budget.allowed <= self.spent[number]):
            return Wait(a.NO_BUDGET(f"budget {budget.key} allows no eviction of pod {pod.key} now"))
        return None

    def _too_many(self, move: PodToEvict) -> Wait | None:
        key = move.workload
        if not move.owner:
            return None
        wanted, missing = self.workloads.together(key)
        missing = max(0, missing - move.missing)
        if missing + self.chosen[self.workloads.above(key)] >= max(1, wanted // QUARTER):
            return Wait(a.ONE_BY_ONE(f"{move.kind} {move.namespace}/{move.owner} has other pods missing"))
        return None

    def _other_critical(self, move: PodToEvict) -> Wait | None:
        """Of the system's own workloads one moves at a time, in the whole cluster."""
        if move.priority < CRITICAL:
            return None
        for other in self._critical_moving():
            if other != move.workload:
                told = f"{other[1]} {other[0]}/{other[2]} moves, which the system depends on, too"
                return Wait(a.ONE_CRITICAL(f"pod {move.pod} waits: {told}"))
        return None

    def _critical_moving(self) -> set[Key]:
        """Workloads of the system of which a drain has evicted a pod whose successor is not ready yet."""
        if self._critical is None:
            self._critical = set()
            for node, note in self.view.noted():
                if isinstance(note, DrainAnnotation) and note.emptied is None:
                    here = {pod.uid for pod in self.on.get(node.name, ()) if not gone(pod, self.view)}
                    self._critical |= {
                        move.workload
                        for move in note.moves
                        if move.priority >= CRITICAL and move.uid not in here and self.workloads.newly_missing(move)
                    }
        return self._critical

    # ── one replica more, and back ───────────────────────────────────────
    def _surge(self, move: PodToEvict, note: DrainAnnotation) -> Action | None:
        """For the only pod of a Deployment: the second one first."""
        name = self._deployment(move)
        before = note.surges.get(name)
        if before is None:
            return None
        wanted = self._replicas(name)
        if wanted == before:
            if self.view.at > note.surged.get(name, self.view.at) + TAKEN_BACK:
                return Release(a.FORBIDDEN(f"somebody took Deployment {name}'s second replica back"), FailureCause.NODE)
            return a.SetReplicas(name, before, before + 1)
        if self.workloads.newly_missing(move) or self.workloads.wanted(move.workload) <= before:
            return Wait(a.SURGING(f"Deployment {name} waits for its second pod"))
        return None

    def _scaled_back(self, note: DrainAnnotation, live: Iterable[str] = ()) -> tuple[Action, ...]:
        """Every surge of ours whose pod has gone (or will not go), undone: only where the number is the one we left."""
        staying = {self._deployment(move) for move in note.moves if move.uid in set(live)}
        return tuple(
            a.SetReplicas(name, before + 1, before)
            for name, before in sorted(note.surges.items())
            if name in note.surged and name not in staying and self._replicas(name) == before + 1
        )

    def _deployment(self, move: PodToEvict) -> str:
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


def emptied(note: DrainAnnotation, at: Seconds) -> DrainAnnotation:
    """The same note, with the time at which the node was empty."""
    return change(note, emptied=at)
