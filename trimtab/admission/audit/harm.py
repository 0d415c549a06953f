"""Counts → does this policy harm pods? Harmful, quiet, or not enough is known.

A trouble is blamed on a policy only where all of this holds:

- the policy changed fields of the pods that can cause it (a label kills nobody);
- at least `least_pods` pods carry its change, and `least_troubled` of them were hit within the window;
- at least `least_pods` pods it means are known that do not carry its change: those from before, or it missed;
- the share that is hit rose by at least `rise`, and to at least `factor` times what it was;
- pods it does not mean are hit less than that: else the trouble is the cluster's.

How many pods with a policy's change were hit, and how many without, over the same length of time?

A pod that is gone counts as it was at its end: a rollout that replaces every pod does not erase what it is compared
with. One that was changed by an earlier version of the policy counts among those from before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trimtab.admission.audit import reasons
from trimtab.admission.audit.causes import Moment
from trimtab.admission.audit.drift import AuditResult
from trimtab.admission.audit.original_pod import AuditedPod, FailureKind, PodTemplateKey
from trimtab.cluster.reason import NotYet, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmTerms:
    """When is a rise harm?"""

    window: float = 3600.0
    """Seconds back from now (or from a pod's end) within which a trouble counts. An hour: memory creeps slowly, and
    longer would blame a policy for yesterday."""
    memory: float = 86400.0
    """Seconds for which pods are remembered that are gone and did not carry the change. A day: a rollout that replaces
    every pod must not erase what it is compared with."""
    unschedulable_after: float = 300.0
    """Seconds a pod may wait for a node before that counts. Five minutes: an autoscaler brings one in two to four."""
    least_pods: int = 5
    """Pods on either side, at least. Below, one unlucky pod is a share of 20% and more."""
    least_troubled: int = 3
    """Pods that were hit, at least. Two may be chance, or one bad release."""
    rise: float = 0.05
    """Share of pods by which it must have risen: 0.05 is one pod in twenty more than before."""
    factor: float = 2.0
    """How many times as often as before. Twice: workloads that are killed now and then stay as they are."""


DEFAULT_HARM_TERMS = HarmTerms()


@dataclass(frozen=True, slots=True)
class Count:
    """Pods, and how many of them were hit."""

    pods: int = 0
    hit: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.pods + other.pods, self.hit + other.hit)

    @property
    def share(self) -> float:
        return self.hit / self.pods if self.pods else 0.0

    def __str__(self) -> str:
        return f"{self.hit} of {self.pods} pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureComparison:
    """One trouble, to one policy."""

    before: Count = Count()
    """Pods it means that do not carry its change."""
    after: Count = Count()
    """Pods that carry a change of it that can cause this trouble."""
    elsewhere: Count = Count()
    """Pods it does not mean."""


@dataclass(frozen=True, slots=True)
class HarmEvidence:
    """The policy harms pods; the evidence."""

    reason: Reason
    trouble: FailureKind
    compared: FailureComparison


Verdict = HarmEvidence | NotYet | Reason
"""Harm; not enough is known; or why there is none."""


def judge(
    policy: str, counts: Mapping[FailureKind, FailureComparison], terms: HarmTerms = DEFAULT_HARM_TERMS
) -> Verdict:
    """Over all troubles: the first that is harm, else what is not known, else that all is quiet."""
    found = [_judged(policy, trouble, compared, terms) for trouble, compared in sorted(counts.items())]
    for kind in (HarmEvidence, NotYet):
        for verdict in found:
            if isinstance(verdict, kind):
                return verdict
    quiet = reasons.QUIET(f"pods that {policy} changed fare no worse than others")
    return next((verdict for verdict in found if isinstance(verdict, Reason)), quiet)


def _judged(policy: str, trouble: FailureKind, found: FailureComparison, terms: HarmTerms) -> Verdict | None:
    """None: nothing was hit."""
    if found.after.hit < terms.least_troubled:
        return _few(found, terms) if found.after.hit else None
    if found.after.pods < terms.least_pods or found.before.pods < terms.least_pods:
        return _few(found, terms)
    rose, least = found.after.share - found.before.share, terms.factor * found.before.share
    if rose < terms.rise or found.after.share < least:
        return None
    told = f"{trouble}: {found.after} that {policy} changed, {found.before} that it means and did not change"
    if found.elsewhere.pods >= terms.least_pods and found.elsewhere.share * terms.factor >= found.after.share:
        return reasons.EVERYWHERE(f"{told}; but {found.elsewhere} that it does not mean")
    return HarmEvidence(reasons.HARMFUL(told), trouble, found)


def _few(found: FailureComparison, terms: HarmTerms) -> NotYet:
    return NotYet(
        reason=reasons.TOO_FEW("too few pods to tell harm from chance"),
        have=f"{found.after} changed, {found.before} not changed",
        need=f"{terms.least_troubled} hit, and {terms.least_pods} pods on either side",
    )


_SIZES = (".requests.", ".limits.", "runtimeClassName", "overhead")
_PLACES = ("nodeSelector", "nodeAffinity", "topologySpread", "priorityClassName")
MAY_CAUSE: dict[FailureKind, tuple[str, ...]] = {
    FailureKind.OOM_KILLED: (".requests.memory", ".limits.memory", "runtimeClassName", "overhead"),
    FailureKind.EVICTED: (*_SIZES, "priorityClassName"),
    FailureKind.UNSCHEDULABLE: (*_SIZES, *_PLACES),
}
"""Parts of the names of fields whose change can cause it."""


class Cohort(StrEnum):
    BEFORE = "before"
    AFTER = "after"


Counts = dict[FailureKind, FailureComparison]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A policy that is in force, as far as its harm is looked for."""

    name: str
    since: Moment | None
    """When its spec was last written; None: not known, and every pod that carries its change counts."""


def side(policy: Watched, pod: AuditedPod, standing: AuditResult | None) -> Cohort | None:
    """Where the pod stands to the policy; None: elsewhere, or not known."""
    carried = pod.alike.marker is not None and policy.name in pod.alike.marker.by
    if carried and (policy.since is None or pod.created is None or pod.created >= policy.since):
        return Cohort.AFTER
    return Cohort.BEFORE if carried or (standing is not None and policy.name in standing.meant) else None


def hits(pod: AuditedPod, end: Moment, terms: HarmTerms) -> frozenset[FailureKind]:
    """What befell it within the window before `end`: now, or its own end."""
    if not pod.incidents:
        return _NONE
    return frozenset(
        found.trouble
        for found in pod.incidents
        if (found.trouble is FailureKind.UNSCHEDULABLE and end - found.at >= terms.unschedulable_after)
        or (found.trouble is not FailureKind.UNSCHEDULABLE and end - found.at <= terms.window)
    )


_NONE: frozenset[FailureKind] = frozenset()


def may_cause(alike: PodTemplateKey, policy: str, trouble: FailureKind) -> bool:
    """Did the policy change anything of these pods that can cause it?"""
    fields = alike.marker.by.get(policy, {}) if alike.marker else {}
    return any(part in name for name in fields for part in MAY_CAUSE[trouble])


@dataclass(slots=True)
class FailureHistory:
    """Pods that are gone, counted by the hour. Not for two threads."""

    terms: HarmTerms = field(default_factory=HarmTerms)
    _restored: dict[tuple[str, Moment | None], dict[FailureKind, Count]] = field(default_factory=dict)
    _hours: dict[int, dict[tuple[str, Moment | None, Cohort, FailureKind], Count]] = field(default_factory=dict)

    def gone(self, pod: AuditedPod, standing: AuditResult | None, policies: Iterable[Watched], now: Moment) -> None:
        """It was there until now."""
        hit = hits(pod, now, self.terms)
        for policy in policies:
            where = side(policy, pod, standing)
            for trouble in FailureKind if where is not None else ():
                if where is Cohort.BEFORE or may_cause(pod.alike, policy.name, trouble):
                    self._add(policy, where, trouble, Count(1, trouble in hit), now)

    def restore(self, policy: Watched, before: Mapping[FailureKind, Count]) -> None:
        """What an earlier life of ours knew of the time before this version; used while nobody knows of more pods."""
        if before:
            self._restored[policy.name, policy.since] = dict(before)

    def forget(self, now: Moment) -> None:
        """What is older than the terms' memory."""
        first = _hour(now - self.terms.memory)
        self._hours = {hour: found for hour, found in self._hours.items() if hour >= first}

    def counted(self, policy: Watched, where: Cohort, trouble: FailureKind, now: Moment) -> Count:
        """AFTER within the window, BEFORE within the memory; what an earlier version changed is from before."""
        first = _hour(now - (self.terms.window if where is Cohort.AFTER else self.terms.memory))
        total = Count()
        for hour, found in self._hours.items():
            for (name, since, side_then, what), count in found.items() if hour >= first else ():
                side_now = side_then if since == policy.since else Cohort.BEFORE
                if (name, side_now, what) == (policy.name, where, trouble):
                    total += count
        return total

    def known_before(self, policy: Watched, trouble: FailureKind, standing: Count, now: Moment) -> Count:
        """Pods that stand, those that are gone; or what was restored, where that is more."""
        seen = standing + self.counted(policy, Cohort.BEFORE, trouble, now)
        restored = self._restored.get((policy.name, policy.since), {}).get(trouble, Count())
        return restored if restored.pods > seen.pods else seen

    def _add(self, policy: Watched, where: Cohort | None, trouble: FailureKind, count: Count, now: Moment) -> None:
        assert where is not None
        hour, key = self._hours.setdefault(_hour(now), {}), (policy.name, policy.since, where, trouble)
        hour[key] = hour.get(key, Count()) + count


def _hour(moment: Moment) -> int:
    return int(moment // 3600)


def count(
    pods: Iterable[AuditedPod],
    standings: Mapping[PodTemplateKey, AuditResult],
    policies: Iterable[Watched],
    ledger: FailureHistory,
    now: Moment,
) -> dict[str, Counts]:
    """Policy → trouble → pods on every side, those that are gone included."""
    groups = _groups(pods, now, ledger.terms)
    return {policy.name: _to(policy, groups, standings, ledger, now) for policy in policies}


_Hit = tuple[AuditedPod, frozenset[FailureKind]]


@dataclass(slots=True)
class _Sum:
    """Pods and hits of one side, while they are added up."""

    pods: int = 0
    hit: Counter[FailureKind] = field(default_factory=Counter)

    def add(self, hit: frozenset[FailureKind]) -> None:
        self.pods += 1
        if hit:
            self.hit.update(hit)

    def merge(self, other: "_Sum") -> None:
        self.pods += other.pods
        if other.hit:
            self.hit.update(other.hit)

    def count(self, trouble: FailureKind) -> Count:
        return Count(self.pods, self.hit[trouble])


@dataclass(frozen=True, slots=True)
class _Group:
    """Pods alike."""

    pods: list[_Hit]
    all: _Sum
    young: _Sum
    """Those made within the window."""


def _groups(pods: Iterable[AuditedPod], now: Moment, terms: HarmTerms) -> dict[PodTemplateKey, _Group]:
    """Pods that run, or were made or hit within the window."""
    oldest, found = now - terms.window, dict[PodTemplateKey, _Group]()
    for pod in pods:
        hit = hits(pod, now, terms)
        young = pod.created is not None and pod.created >= oldest
        if pod.running or hit or young:
            group = found.get(pod.alike)
            if group is None:
                group = found[pod.alike] = _Group([], _Sum(), _Sum())
            group.pods.append((pod, hit))
            group.all.add(hit)
            if young:
                group.young.add(hit)
    return found


def _to(
    policy: Watched,
    groups: Mapping[PodTemplateKey, _Group],
    standings: Mapping[PodTemplateKey, AuditResult],
    ledger: FailureHistory,
    now: Moment,
) -> Counts:
    before, elsewhere, young, after = _Sum(), _Sum(), _Sum(), {trouble: _Sum() for trouble in FailureKind}
    for alike, group in groups.items():
        standing = standings.get(alike)
        if alike.marker is not None and policy.name in alike.marker.by:
            _carrying(policy, alike, group, before, after)
        elif standing is not None and policy.name in standing.meant:
            before.merge(group.all)
        else:
            elsewhere.merge(group.all)
            young.merge(group.young)
    return {
        trouble: FailureComparison(
            before=ledger.known_before(policy, trouble, before.count(trouble), now),
            after=after[trouble].count(trouble) + ledger.counted(policy, Cohort.AFTER, trouble, now),
            # Only pods as young as those blamed can tell whether nodes have room.
            elsewhere=(young if trouble is FailureKind.UNSCHEDULABLE else elsewhere).count(trouble),
        )
        for trouble in FailureKind
    }


def _carrying(
    policy: Watched, alike: PodTemplateKey, group: _Group, before: _Sum, after: Mapping[FailureKind, _Sum]
) -> None:
    """Pods that carry its change: by the version that is in force, or by an earlier one."""
    blamed = [total for trouble, total in after.items() if may_cause(alike, policy.name, trouble)]
    for pod, hit in group.pods:
        for total in blamed if side(policy, pod, None) is Cohort.AFTER else (before,):
            total.add(hit)
