"""The state machine of resizes: decides the next steps from the records and from the pods as they are now.

    resizing     recorded and written; the kubelet has not finished yet
    verifying    the containers have the new resources; the pod is watched for harm
    reverting    the pod gets back its earlier requests, because of harm or because the kubelet could not resize it
    replacing    the node has no room for the earlier requests: the pod is evicted within its budget

If one pod is harmed, all pods of its workload that are in verification are reverted, and the workload backs off. If
another client changes a pod's requests, the resize ends and the pod is left to that client. Only a smaller request can
harm a pod: a resize to larger requests is finished when the kubelet says so.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.fair_share import take_turns
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.resizable_pod import ResizablePod, ResizeAnswer
from trimtab.cluster.resources import Amounts
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.held import amounts_to_hold
from trimtab.compaction.resize.records import OpenResize, ResizePhase, ResizeRecords
from trimtab.compaction.resize.steps import Advance, Await, Finish, Replace, Resize, ResizeStep, Revert
from trimtab.compaction.resize.types import NOT_MEASURED, MeasuredUse, ResizeProposal, ResizeSettings

UNWRITTEN_SECONDS = 60
"""If a pod is unchanged this many seconds after its resize was recorded, the resize was never written, because the
process ended before."""
CLOCK_SKEW_SECONDS = 30
"""By how many seconds a kubelet's clock may be behind."""
PRESSURE_MARGIN_PERCENT = 10
"""Pressure and throttling count as harm only if they are at least this many percentage points higher than before the
resize."""


def _never(uid: str) -> Reason | None:
    return r.NO_ROOM(f"Trimtab does not know whether pod {uid} may be evicted")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeView:
    """The observed pods of one pool, and what may be done with them."""

    now: Seconds
    pods: Mapping[str, ResizablePod]
    """Uid → pod. Pods that no longer exist are not in the mapping."""
    free: Mapping[str, Amounts] = field(default_factory=dict)
    """Node → the amounts that no pod requests on it now (`propose.free_amounts`)."""
    use: MeasuredUse = NOT_MEASURED
    in_flight: frozenset[str] = frozenset()
    """Uids of pods that this process has just written, and that this (older) view shows unchanged."""
    unready_nodes: frozenset[str] = frozenset()
    eviction_refusal: Callable[[str], Reason | None] = _never
    """A function of the uid that returns why the pod may not be evicted now, or None if it may."""
    stop: Reason | None = None
    """Why no resize may start in this pool now, or None if resizes may start. Reverts are made in any case."""
    pods_of_owner: Mapping[str, int] = field(default_factory=dict)
    """Owner → the number of its pods that run on nodes of this pool."""


@dataclass(slots=True)
class ResizePlanner:
    """Decides the next steps of all resizes of one pool, from one view."""

    records: ResizeRecords
    view: ResizeView
    settings: ResizeSettings
    waiting: dict[str, int] = field(default_factory=dict)
    """Reason code → the number of pods whose resize has to wait."""
    _free: dict[str, Amounts] = field(init=False)

    def __post_init__(self) -> None:
        self._free = {node: dict(amounts) for node, amounts in self.view.free.items()}

    def next_steps(self, proposals: Sequence[ResizeProposal] = ()) -> tuple[ResizeStep, ...]:
        """Returns one step for each resize in progress, and the resizes that start now. Proposals start in the order
        given."""
        harmed = self._find_harm()
        steps = [self._next_step(uid, record, harmed) for uid, record in sorted(self.records.open.items())]
        # A wave stops where one of its pods has to be reverted: what is found now counts already.
        stopped = {
            step.record.owner
            for step in steps
            if isinstance(step, Revert) or (isinstance(step, Advance) and step.stops_pool)
        }
        if any(isinstance(step, Advance) and step.stops_pool for step in steps):
            self._count(r.POOL_STOPPED, len(proposals))
            return tuple(steps)
        return (*steps, *self._starts([each for each in proposals if each.owner not in stopped]))

    # ── resizes in progress ──────────────────────────────────────────────
    def _find_harm(self) -> dict[str, tuple[str, Reason]]:
        """Returns owner → (uid, reason) of the first of its pods that was harmed by a resize."""
        harmed: dict[str, tuple[str, Reason]] = {}
        for uid, record in sorted(self.records.open.items()):
            if record.phase not in (ResizePhase.RESIZING, ResizePhase.VERIFYING) or record.owner in harmed:
                continue
            pod = self.view.pods.get(uid)
            if pod is not None and not pod.is_gone and _requests_are(record, pod, after=True):
                reason = self._harm(uid, record, pod)
                if reason is not None:
                    harmed[record.owner] = (uid, reason)
        return harmed

    def _harm(self, uid: str, record: OpenResize, pod: ResizablePod) -> Reason | None:
        """Returns how the resize harmed the pod, or None if it did not. A resize to larger requests does no harm."""
        if not is_shrink(record) or pod.node in self.view.unready_nodes:
            return None
        now, settings, use = self.view.now, self.settings, self.view.use
        kill = pod.last_oom_kill
        # Whether a container was OOM-killed because of the resize: it has restarted since then, or was killed later.
        # An older kill, reported with a wrong clock, does not count.
        if (
            kill is not None
            and kill >= record.since - CLOCK_SKEW_SECONDS
            and any(
                run.oom_killed_at is not None
                and (run.restarts > record.restarts.get(run.name, -1) or run.oom_killed_at >= record.since)
                for run in pod.runs
            )
        ):
            return r.OOM_KILL(f"a container of pod {pod.key} ran out of memory after its resize")
        restarted = sorted(name for name, times in pod.restarts.items() if times > record.restarts.get(name, times))
        if restarted:
            return r.RESTARTED(f"container {restarted[0]} of pod {pod.key} restarted after its resize")
        if record.was_ready and not pod.is_ready:
            since = max(pod.ready_changed_at or record.since, record.since)
            if now - since >= settings.unready_seconds:
                return r.UNREADY(f"pod {pod.key} has not been ready for {now - since} s after its resize")
        pressure, throttled = use.pressures.get(uid, 0), use.throttled.get(uid, 0)
        if pressure > max(settings.max_pressure_percent, record.pressure + PRESSURE_MARGIN_PERCENT):
            return r.PRESSURE(
                f"the processes of pod {pod.key} wait for resources {pressure} % of the time, but waited "
                f"{record.pressure} % before the resize"
            )
        if throttled > max(settings.max_pressure_percent, record.throttled + PRESSURE_MARGIN_PERCENT):
            return r.THROTTLED(
                f"pod {pod.key} is throttled {throttled} % of the time, but was throttled {record.throttled} % "
                "before the resize"
            )
        return None

    def _next_step(self, uid: str, record: OpenResize, harmed: Mapping[str, tuple[str, Reason]]) -> ResizeStep:
        pod = self.view.pods.get(uid)
        if pod is None or pod.is_gone:
            code = r.REPLACED if record.phase is ResizePhase.REPLACING else r.GONE
            return Finish(uid, record, code(f"pod {record.pod} no longer exists"))
        if uid in self.view.in_flight:
            return Await(
                uid, record, r.WAITS(f"the compactor has not seen the result of its last write to pod {pod.key} yet")
            )
        is_before, is_after = _requests_are(record, pod, after=False), _requests_are(record, pod, after=True)
        if not (is_before or is_after):
            return Finish(uid, record, r.CHANGED(f"another client changed the requests of pod {pod.key}"))
        if record.phase in (ResizePhase.REVERTING, ResizePhase.REPLACING):
            return self._continue_revert(uid, record, pod, is_before=is_before)
        if is_before:
            # The step for a pod that has its earlier requests: either it was never resized, or another client undid
            # the resize.
            if record.phase is ResizePhase.VERIFYING:
                return Finish(uid, record, r.CHANGED(f"another client reverted the resize of pod {pod.key}"))
            if self.view.now < record.since + UNWRITTEN_SECONDS:
                return Await(
                    uid, record, r.WAITS(f"the compactor has not seen the result of the resize of pod {pod.key} yet")
                )
            return Finish(uid, record, r.NOT_WRITTEN(f"the requests of pod {pod.key} were not changed"))
        if record.owner in harmed:
            source, reason = harmed[record.owner]
            if source != uid:
                reason = r.WITH_OTHERS(f"the resize of pod {pod.key} is reverted as well: {reason}")
            return self._revert(uid, record, pod, reason)
        return self._continue_resize(uid, record, pod)

    def _continue_resize(self, uid: str, record: OpenResize, pod: ResizablePod) -> ResizeStep:
        now, settings, answer = self.view.now, self.settings, pod.answer
        waited = now - record.began
        if record.phase is ResizePhase.VERIFYING:
            if waited < settings.verify_seconds or answer is not ResizeAnswer.DONE:
                if waited >= settings.verify_seconds + settings.deferred_seconds:
                    return self._revert(
                        uid, record, pod, r.FAILED(f"the kubelet reports about the resize of pod {pod.key}: {answer}")
                    )
                left = settings.verify_seconds - waited
                return Await(
                    uid, record, r.WAITS(f"the resize of pod {pod.key} is verified for another {max(0, left)} s")
                )
            return Finish(
                uid, record, r.VERIFIED(f"pod {pod.key} ran without harm after its resize: {_describe(record)}")
            )
        words = f": {pod.message}" if pod.message else ""
        if answer is ResizeAnswer.DONE:
            if not is_shrink(record):
                return Finish(uid, record, r.VERIFIED(f"pod {pod.key} has its larger requests: {_describe(record)}"))
            verifying = record.in_phase(ResizePhase.VERIFYING, now)
            return Advance(
                uid,
                verifying,
                r.WAITS(f"pod {pod.key} has its new requests, and the compactor now watches it for harm"),
            )
        if answer is ResizeAnswer.INFEASIBLE:
            return self._revert(
                uid, record, pod, r.INFEASIBLE(f"node {pod.node} can never resize pod {pod.key}{words}")
            )
        if answer is ResizeAnswer.DEFERRED and waited >= settings.deferred_seconds:
            reason = r.DEFERRED(f"the kubelet has deferred the resize of pod {pod.key} for {waited} s{words}")
            return self._revert(uid, record, pod, reason)
        if answer in (ResizeAnswer.FAILED, ResizeAnswer.IN_PROGRESS) and waited >= settings.deferred_seconds:
            reason = r.FAILED(f"the kubelet has not finished the resize of pod {pod.key} in {waited} s{words}")
            return self._revert(uid, record, pod, reason)
        if answer in (ResizeAnswer.UNANSWERED, ResizeAnswer.UNSUPPORTED) and waited >= settings.answer_seconds:
            reason = r.NO_ANSWER(f"the kubelet of node {pod.node} has not reacted to the resize for {waited} s")
            return self._revert(uid, record, pod, reason)
        return Await(uid, record, r.WAITS(f"the resize of pod {pod.key} is {answer}{words}"))

    # ── reverts ──────────────────────────────────────────────────────────
    def _revert(self, uid: str, record: OpenResize, pod: ResizablePod, reason: Reason) -> ResizeStep:
        """Returns the first step of a revert: to write the earlier requests or, if the node has no room for them, to
        replace the pod."""
        now, blames = self.view.now, reason.code is not r.WITH_OTHERS
        reverting = record.in_phase(ResizePhase.REVERTING, now, reason.code.name, reason.sentence)
        if self._take_room(record, pod):
            return Revert(uid, pod.version, reverting, reason, is_new=True, blames_workload=blames)
        return self._without_room(uid, record, pod, reason)

    def _without_room(self, uid: str, record: OpenResize, pod: ResizablePod, cause: Reason | None = None) -> ResizeStep:
        code, why = (cause.code.name, cause.sentence) if cause is not None else ("", "")
        replacing = record.in_phase(ResizePhase.REPLACING, self.view.now, code, why)
        because = f" ({why or record.why})" if why or record.why else ""
        sentence = f"node {pod.node} has no room for the former requests of pod {pod.key}{because}"
        return Advance(uid, replacing, r.NO_ROOM(sentence), stops_pool=True)

    def _continue_revert(self, uid: str, record: OpenResize, pod: ResizablePod, *, is_before: bool) -> ResizeStep:
        if is_before and pod.answer is ResizeAnswer.DONE:
            return Finish(uid, record, r.REVERTED(f"pod {pod.key} has its former requests again, because {record.why}"))
        refuses = pod.answer in (ResizeAnswer.DEFERRED, ResizeAnswer.INFEASIBLE)
        if record.phase is ResizePhase.REVERTING and is_before:
            if refuses and is_shrink(record):
                return self._without_room(uid, record, pod)
            return Await(uid, record, r.WAITS(f"the kubelet is reverting pod {pod.key}: {pod.answer}"))
        if not is_before and self._take_room(record, pod):
            reverting = record.in_phase(ResizePhase.REVERTING, self.view.now)
            return Revert(uid, pod.version, reverting, r.REVERTED(record.why), is_new=False)
        if record.phase is ResizePhase.REVERTING:
            return self._without_room(uid, record, pod)
        if is_before and not refuses:
            # Its node has room at last: the kubelet agreed after it had refused.
            return Await(uid, record, r.WAITS(f"the kubelet is reverting pod {pod.key}: {pod.answer}"))
        refusal = self.view.eviction_refusal(uid)
        if refusal is None:
            return Replace(
                uid,
                record,
                r.NO_ROOM(f"pod {pod.key} is evicted, because node {pod.node} has no room for its former requests"),
            )
        return Await(
            uid,
            record,
            r.NO_ROOM(
                f"pod {pod.key} keeps its new requests, because node {pod.node} has no room for the former ones "
                f"and the pod cannot be evicted: {refusal}"
            ),
        )

    def _take_room(self, record: OpenResize, pod: ResizablePod) -> bool:
        """Returns whether the node has room for the revert. If so, reserves that room, so that no other revert uses
        it."""
        needed, free = amounts_to_hold(record, pod), self._free.get(pod.node, {})
        if any(amount > free.get(resource, 0) for resource, amount in needed.items()):
            return False
        for resource, amount in needed.items():
            free[resource] -= amount
        return True

    # ── resizes that start ───────────────────────────────────────────────
    def _starts(self, proposals: Sequence[ResizeProposal]) -> tuple[Resize, ...]:
        now, records, settings = self.view.now, self.records, self.settings
        if self.view.stop is not None:
            self._count(self.view.stop.code, len(proposals))
            return ()
        if records.stopped_at is not None and now < records.stopped_at + settings.first_backoff_seconds:
            self._count(r.POOL_STOPPED, len(proposals))
            return ()
        left = min(settings.changes_per_hour - records.recent_count(now), settings.max_open - len(records.open))
        by_owner: dict[str, list[ResizeProposal]] = {}
        for proposal in proposals:
            by_owner.setdefault(proposal.owner, []).append(proposal)
        busy = {record.owner for record in records.open.values()}
        waves: list[tuple[ResizeProposal, int]] = []
        for owner, all_of_owner in by_owner.items():
            # One direction at a time: the first proposal says which.
            group = [each for each in all_of_owner if each.is_shrink == all_of_owner[0].is_shrink]
            failure = records.failures.get(owner)
            if failure is not None and now < failure.retry_after(settings):
                self._count(r.BACKS_OFF, len(all_of_owner))
                continue
            if owner in busy:
                self._count(r.WAVE, len(all_of_owner))
                continue
            wave = records.wave_of(owner, _targets(group))
            # How many pods of the workload may be in this wave: the canary's percentage, doubled for each verified
            # wave.
            count = max(self.view.pods_of_owner.get(owner, 0), len(group))
            percent = min(100, self.settings.canary_percent << min(wave, 10))
            size = max(1, count * percent // 100)
            waves += [(proposal, wave) for proposal in group[:size]]
            self._count(r.WAVE, len(all_of_owner) - min(size, len(group)))
        # Namespaces take turns: many proposals of one must not use up the hour's changes.
        in_turn = take_turns(waves, lambda each: each[0].owner.partition("/")[0])
        chosen = in_turn[: max(0, left)]
        self._count(r.PACE, len(in_turn) - len(chosen))
        counts = Counter(proposal.owner for proposal, _ in chosen)
        return tuple(self._start(proposal, wave, counts[proposal.owner]) for proposal, wave in chosen)

    def _start(self, proposal: ResizeProposal, wave: int, count: int) -> Resize:
        pod, use = self.view.pods[proposal.uid], self.view.use
        record = OpenResize(
            pod=proposal.pod,
            node=proposal.node,
            owner=proposal.owner,
            changes=proposal.changes,
            since=self.view.now,
            wave=wave,
            restarts=dict(pod.restarts),
            pressure=use.pressures.get(proposal.uid, 0),
            throttled=use.throttled.get(proposal.uid, 0),
            was_ready=pod.is_ready,
        )
        name = "canary" if wave == 0 else f"wave {wave + 1}"
        return Resize(
            proposal,
            record,
            proposal.reason.code(f"{proposal.reason} ({name} of {format_count(count, 'pod')} of {proposal.owner})"),
        )

    def _count(self, code: Code, pods: int) -> None:
        if pods > 0:
            self.waiting[code.name] = self.waiting.get(code.name, 0) + pods


def is_shrink(record: OpenResize) -> bool:
    """Returns whether the resize makes the pod's requests smaller."""
    return any(change.given_up > 0 for change in record.changes)


def _requests_are(record: OpenResize, pod: ResizablePod, *, after: bool) -> bool:
    """Returns whether the pod's spec has exactly the requests of the record: those after the resize, or with
    `after=False` those before it."""
    for change in record.changes:
        container = pod.container(change.container)
        now = container.request(change.resource) if container is not None else None
        if now != (change.amount_after if after else change.amount_before):
            return False
    return True


def _targets(proposals: Sequence[ResizeProposal]) -> dict[str, int]:
    targets: dict[str, int] = {}
    for proposal in proposals:
        for change in proposal.changes:
            name = f"{change.container}/{change.resource}"
            targets[name] = min(targets.get(name, change.amount_after), change.amount_after)
    return targets


def _describe(record: OpenResize) -> str:
    return ", ".join(map(str, record.changes))
