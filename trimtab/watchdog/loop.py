"""One look after the other: who lacks what, does a policy harm, what is written and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trimtab.admission.harm.brake import Harm, Verdict, judge
from trimtab.admission.harm.counts import Counts, Ledger, Watched, count
from trimtab.admission.harm.reasons import HARMFUL
from trimtab.admission.running.report import Finding, Findings, Tally, findings
from trimtab.admission.running.submitted import Held
from trimtab.admission.running.survey import Seen as Looked
from trimtab.admission.running.survey import Survey, World
from trimtab.cluster.moment import written
from trimtab.kube.events import About
from trimtab.kube.kinds import PLACES
from trimtab.policy.document import API_VERSION, KIND
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.seen import Seen, SeenPolicy
from trimtab.watchdog.status import Found, remembered, status
from trimtab.watchdog.statuses import Statuses
from trimtab.watchdog.stopping import Door, Policy
from trimtab.watchdog.tell import Teller

SOON = 1.0
"""Seconds until the next look while some pods were not come to."""


@dataclass(slots=True, kw_only=True)
class Loop:
    """Not for two threads."""

    seen: Seen
    pods: Callable[[], Iterable[Held]]
    fresh: Callable[[], bool]
    """Is what the watches hold young enough to act on?"""
    door: Door | None
    """Who puts a harmful policy to `warn`; None: harm is not looked for."""
    statuses: Statuses
    teller: Teller
    metrics: Metrics
    interval: float
    now: Callable[[], float]
    """Seconds since 1970."""
    elapsed: Callable[[], float]
    survey: Survey
    ledger: Ledger
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
        looked = self.survey.look(pods, world)
        found = findings(looked, world, self.seen.since())
        if self.fresh() and not looked.behind:
            self._act(pods, looked, found, watched, now)
        self.metrics.look(looked, found, self.elapsed() - begun)
        self.metrics.lost.set(self.teller.recorder.lost)
        return SOON if looked.behind else self.interval

    def _act(self, pods: tuple[Held, ...], looked: Looked, found: Findings, watched: list[Watched], now: float) -> None:
        counts = self._compare(pods, looked, watched, now)
        self._write(found, counts, now)
        self.teller.look(found, self._about)

    # ── harm ─────────────────────────────────────────────────────────────────────────────────────────

    def _watched(self, world: World) -> list[Watched]:
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

    def _compare(self, pods: tuple[Held, ...], looked: Looked, watched: list[Watched], now: float) -> dict[str, Counts]:
        counts = count(pods, looked.standings, watched, self.ledger, now)
        self.metrics.compared(counts)
        self._verdicts = {name: judge(name, found, self.ledger.terms) for name, found in counts.items()}
        self._stopped = set()
        for name, verdict in self._verdicts.items():
            if isinstance(verdict, Harm):
                self._stop(name, verdict)
        return counts

    def _stop(self, name: str, harm: Harm) -> None:
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
            told = self._found(known, found.tallies.get(name) or Tally(), counts.get(name))
            self.statuses.write(name, known.status, status(told, written(int(now))))

    def _found(self, known: SeenPolicy, tally: Tally, counts: Counts | None) -> Found:
        braked = known.name in self._stopped
        return Found(
            name=known.name, generation=known.generation, mode="warn" if braked else known.mode, written=known.written,
            mistakes=self.seen.mistakes(known.name), tally=tally, counts=counts, braked=braked,
            verdict=self._verdicts.get(known.name), before=known.status,
        )  # fmt: skip

    def _about(self, one: Finding) -> About:
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
