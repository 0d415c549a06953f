"""One look after the other: who lacks what, does a policy harm, what is written and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.drift import AuditState as Looked
from trimtab.admission.audit.findings import AuditFinding, Findings, PolicyTally, findings
from trimtab.admission.audit.harm import Counts, FailureHistory, HarmEvidence, Verdict, Watched, count, judge
from trimtab.admission.audit.original_pod import AuditedPod
from trimtab.admission.audit.reasons import HARMFUL
from trimtab.cluster.api.meta import get
from trimtab.cluster.timestamps import written
from trimtab.kube.events import About
from trimtab.kube.resources import PLACES
from trimtab.policy.podpolicy import API_VERSION, KIND
from trimtab.watchdog.events import PolicyEventRecorder
from trimtab.watchdog.harm_brake import BrakeActuator, Policy
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.pod_watcher import Evictions
from trimtab.watchdog.policy_state import AuditStateBuilder, ObservedPolicy
from trimtab.watchdog.policy_status import PolicyObservation, PolicyStatusWriter, remembered, status

SOON = 1.0
"""Seconds until the next look while some pods were not come to."""


@dataclass(slots=True, kw_only=True)
class Loop:
    """Not for two threads."""

    seen: AuditStateBuilder
    pods: Callable[[], Iterable[AuditedPod]]
    fresh: Callable[[], bool]
    """Is what the watches hold young enough to act on?"""
    door: BrakeActuator | None
    """Who puts a harmful policy to `warn`; None: harm is not looked for."""
    statuses: PolicyStatusWriter
    teller: PolicyEventRecorder
    metrics: Metrics
    interval: float
    now: Callable[[], float]
    """Seconds since 1970."""
    elapsed: Callable[[], float]
    survey: Auditor
    ledger: FailureHistory
    _evictions: Evictions = field(default_factory=Evictions)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _stopped: set[str] = field(default_factory=set)
    """Policies put to `warn` in this look."""
    _braked: dict[str, str] = field(default_factory=dict)
    """Policy → the version of it that was put to `warn`: the watch may not have told of that yet."""
    _restored: set[tuple[str, str]] = field(default_factory=set)

    def look(self) -> float:
        """One look; seconds until the next. Nothing is written on what is old, or while pods were not come to."""
        begun, now = self.elapsed(), self.now()
        world = self.seen.world()
        watched = self._watched(world)
        self._bury(watched, now)
        pods = tuple(self.pods())
        for pod in self._evictions.new(pods):
            self.metrics.evicted(get(pod.alike.pod.spec.runtime_class_name, ""))
        looked = self.survey.look(pods, world)
        found = findings(looked, world, self.seen.since())
        if self.fresh() and not looked.behind:
            self._act(pods, looked, found, watched, now)
        self.metrics.look(looked, found, world.facts, self.elapsed() - begun)
        self.metrics.lost.set(self.teller.recorder.lost)
        return SOON if looked.behind else self.interval

    def _act(
        self, pods: tuple[AuditedPod, ...], looked: Looked, found: Findings, watched: list[Watched], now: float
    ) -> None:
        counts = self._compare(pods, looked, watched, now)
        self._write(found, counts, now)
        self.teller.look(found, self._about)

    # ── harm ─────────────────────────────────────────────────────────────────────────────────────────

    def _watched(self, world: AuditInputs) -> list[Watched]:
        """Policies in force whose harm is looked for; what an earlier life knew of their past is taken up."""
        if self.door is None:
            return []
        found = [policy.name for policy in world.policies.all if policy.spec.enabled and policy.spec.mode == "apply"]
        return [self._one(name) for name in found]

    def _one(self, name: str) -> Watched:
        known = self.seen.policies.get(name)
        watched = Watched(name=name, since=known.since if known else None)
        if known is not None and known.status.harm and (name, known.written) not in self._restored:
            self._restored.add((name, known.written))
            self.ledger.restore(watched, remembered(known.status.harm, known.written))
        return watched

    def _bury(self, watched: list[Watched], now: float) -> None:
        for pod in self.seen.taken():
            self.ledger.gone(pod, self.survey.standing(pod.alike), watched, now)
        self.ledger.forget(now)

    def _compare(
        self, pods: tuple[AuditedPod, ...], looked: Looked, watched: list[Watched], now: float
    ) -> dict[str, Counts]:
        counts = count(pods, looked.standings, watched, self.ledger, now)
        self.metrics.compared(counts)
        self._verdicts = {name: judge(name, found, self.ledger.terms) for name, found in counts.items()}
        self._stopped = set()
        for name, verdict in self._verdicts.items():
            if isinstance(verdict, HarmEvidence):
                self._stop(name, verdict)
        return counts

    def _stop(self, name: str, harm: HarmEvidence) -> None:
        known = self.seen.policies.get(name)
        version = known.version if known else ""
        if self.door is None or self._braked.get(name) == (version or str(harm.trouble)):
            return
        policy = Policy(name, known.uid if known else "", version)
        done = self.door.warn(policy, harm)
        if done != "failed":  # else it is tried again with the next look
            self._braked[name] = version or str(harm.trouble)
        self.metrics.braked(name, harm.trouble, done)
        if known is None:
            return
        if done == "put-to-warn":
            self._stopped.add(name)
        about = About(kind=KIND, name=name, uid=known.uid, api_version=API_VERSION)
        self.teller.policy(about, HARMFUL, f"{_DONE[done]}: {harm.reason}")

    # ── status ───────────────────────────────────────────────────────────────────────────────────────

    def _write(self, found: Findings, counts: dict[str, Counts], now: float) -> None:
        self.statuses.forget(set(self.seen.policies))
        for name, known in self.seen.policies.items():
            told = self._found(known, found.tallies.get(name) or PolicyTally(), counts.get(name))
            self.statuses.write(name, known.status, status(told, written(int(now))))

    def _found(self, known: ObservedPolicy, tally: PolicyTally, counts: Counts | None) -> PolicyObservation:
        braked = known.name in self._stopped
        return PolicyObservation(
            name=known.name, generation=known.generation, mode="warn" if braked else known.mode, written=known.written,
            mistakes=self.seen.mistakes(known.name), tally=tally, counts=counts, braked=braked,
            verdict=self._verdicts.get(known.name), before=known.status,
        )  # fmt: skip

    def _about(self, one: AuditFinding) -> About:
        """The topmost owner whose uid is known; else the nearest, as the pod names it; else the pod."""
        namespace = one.alike.namespace
        for owner in reversed(one.owners):
            uid = self.seen.uids.get((namespace, owner.kind, owner.name))
            if uid is not None:
                version = PLACES[owner.kind].group_version
                return About(kind=owner.kind, name=owner.name, namespace=namespace, uid=uid, api_version=version)
        nearest = one.alike.pod.metadata.controller
        if nearest is not None:
            return About(kind=nearest.kind, name=nearest.name, namespace=namespace, uid=nearest.uid,
                         api_version=nearest.api_version or "v1")  # fmt: skip
        pod = min(one.pods, key=lambda pod: pod.name)
        return About(kind="Pod", name=pod.name, namespace=namespace, uid=pod.uid)


_DONE = {"put-to-warn": "put to warn", "told": "would be put to warn", "failed": "could not be put to warn"}
