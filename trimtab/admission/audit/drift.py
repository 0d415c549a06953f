"""What do policies say of pods that run already, and what do they lack?

The pods are decided about again, as they were submitted as far as that can be known, with today's policies and facts.
A pod that came through our webhook carries its marker, which makes the second decision find nothing to do: what it
finds all the same is what the pod lacks.

All running pods, looked at in bounded steps.

Pods alike are decided about once, and again only when a policy or what the decision rests on has changed. A step
decides about so many at the most; the rest keep what was found before, or wait, and are counted as behind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit.original_pod import NOT_HELD, AuditedPod, PodTemplateKey
from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions import overhead
from trimtab.policy.applicable_policies import ApplicablePolicies, ask, possible
from trimtab.policy.changed_annotation import ChangedAnnotation
from trimtab.policy.cluster_facts import ClusterFacts, FactDependencies, Freshness, watched
from trimtab.policy.decide import Decision, decide
from trimtab.policy.match import always_left_alone
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings, PodContext
from trimtab.policy.pod_size_limits import excess_of_template
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Of pods alike, to each policy. A policy that does not mean them appears nowhere."""

    meant: frozenset[str] = frozenset()
    """Policies that mean them, whatever their mode."""
    carried: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Policy → fields it changed when the pods were admitted, by their marker."""
    lacks: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """Policy in mode apply → what it would change and has not."""
    would: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """Policy in mode warn or audit → what it would change."""
    left_out: Mapping[str, Reason] = field(default_factory=dict)
    """Policy whose `match` means them → why it leaves them alone as a whole: opted out, rollout, paused."""
    overruled: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Policy → how an action of it failed: our bug."""
    denied: Reason | None = None
    """Why they would not be let in again."""


def stand(alike: PodTemplateKey, policies: Policies, facts: ClusterFacts, terms: AdmissionSettings) -> AuditResult:
    """How these pods stand to these policies. Never raises for what a pod or policy may hold."""
    pod = as_seen(alike.pod, facts)
    subject = PodContext(pod=pod, namespace=alike.namespace, facts=facts, terms=terms)
    # Informs, and unverified: so what it says of policies that do not exist counts for nothing.
    marked = alike.marker.of({policy.name for policy in policies.all}) if alike.marker else None
    carried = {name: frozenset(fields) for name, fields in marked.by.items() if name} if marked else {}
    skipped = always_left_alone(subject)
    if skipped is not None:
        left_out = dict.fromkeys((turn.name for turn in ask(policies, subject).meaning), skipped)
        return AuditResult(carried=carried, left_out=left_out)
    over = excess_of_template(pod)
    if over is not None:
        reason = reasons.TOO_LARGE(str(over))
        return AuditResult(carried=carried, left_out={turn.name: reason for turn in possible(policies, subject)})
    decision = decide(pod, policies, facts, alike.namespace, terms, marked=marked)
    return AuditResult(
        meant=frozenset(found.policy for found in decision.matched),
        carried=carried,
        lacks=_by_policy(decision.changes, decision.modes),
        would=_by_policy(decision.would, decision.modes),
        left_out=_left_out(ask(policies, subject)),
        overruled=_overruled(marked, decision),
        failed=_failed(decision),
        denied=decision.denied,
    )


def as_seen(pod: Pod, facts: ClusterFacts) -> Pod:
    """With the overhead its class brings now: the stored one is the class's of then, and told of apart.

    Overhead without a class, or whose class is gone, is the pod's own and stays.
    """
    found = facts.runtime_classes.get(get(pod.spec.runtime_class_name, ""))
    stored = get(pod.spec.overhead, {})
    if found is None or not stored or stored == found.overhead.pod_fixed:
        return pod
    now = dict(found.overhead.pod_fixed)
    return change(pod, spec=change(pod.spec, overhead=now or UNSET))


def _by_policy(changes: tuple[FieldChange, ...], known: Mapping[str, str]) -> dict[str, tuple[FieldChange, ...]]:
    """What nobody's policy says (a class's overhead) is told apart; what is not held is not judged."""
    found: dict[str, list[FieldChange]] = {}
    for one in changes:
        if one.policy in known and one.before != NOT_HELD and one.field != overhead.FIELD:
            found.setdefault(one.policy, []).append(one)
    return {policy: tuple(same) for policy, same in found.items()}


def _left_out(asked: ApplicablePolicies) -> dict[str, Reason]:
    return {left.policy: left.reason for left in asked.not_asked}


def _overruled(marked: ChangedAnnotation | None, decision: Decision) -> frozenset[str]:
    """A field that another policy's change has set already was that policy's to decide."""
    deciders = marked.deciders if marked else {}
    return frozenset(
        left.policy
        for left in decision.left
        if left.reason.code is reasons.OVERRULED
        or (left.reason.code is reasons.ALREADY_SET and deciders.get(left.field, (left.policy,))[0] != left.policy)
    )


def _failed(decision: Decision) -> dict[str, str]:
    """`decide` tells failures as "policy: action: what"."""
    told = (failure.partition(": ") for failure in decision.failures)
    return {policy: what for policy, _, what in told}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInputs:
    """What decisions rest on."""

    policies: Policies
    facts: ClusterFacts
    terms: AdmissionSettings = DEFAULT_TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState:
    """What one step came to."""

    groups: Mapping[PodTemplateKey, tuple[AuditedPod, ...]]
    """Every pod that has not finished, with those it is like."""
    standings: Mapping[PodTemplateKey, AuditResult]
    """Of all groups but those that nobody has come to yet."""
    decided: int = 0
    """Groups decided about in this step."""
    behind: int = 0
    """Groups left for the next step: unknown yet, or known as they stood before the last change."""

    @property
    def pods(self) -> int:
        return sum(map(len, self.groups.values()))


@dataclass(slots=True)
class _Known:
    standing: AuditResult
    reads: FactDependencies | None
    """What the decision read of the facts; None: it is not to be relied on any more."""
    facts: ClusterFacts
    """The newest facts of which it would have read the same."""


@dataclass(slots=True)
class Auditor:
    """Remembers from step to step. Not for two threads."""

    most: int = 1000
    """Decisions in one step; a decision takes some 100 to 300 µs."""
    _known: dict[PodTemplateKey, _Known] = field(default_factory=dict)
    _rests_on: tuple[Policies, AdmissionSettings] | None = None

    def look(self, pods: Iterable[AuditedPod], world: AuditInputs) -> AuditState:
        """One step over all pods there are."""
        groups = _groups(pods)
        self._known = {alike: found for alike, found in self._known.items() if alike in groups}
        if self._rests_on != (world.policies, world.terms):
            self._doubt()
            self._rests_on = (world.policies, world.terms)
        waiting = self._waiting(groups, world.facts)
        for alike in waiting[: self.most]:
            self._known[alike] = _decided(alike, world)
        decided = min(len(waiting), self.most)
        standings = {alike: found.standing for alike, found in self._known.items()}
        return AuditState(groups=groups, standings=standings, decided=decided, behind=len(waiting) - decided)

    def standing(self, alike: PodTemplateKey) -> AuditResult | None:
        """As it was found last; None where nobody has come to it, or its pods are gone."""
        found = self._known.get(alike)
        return found.standing if found else None

    def _doubt(self) -> None:
        """Every decision has to be made again."""
        for found in self._known.values():
            found.reads = None

    def _waiting(self, groups: Mapping[PodTemplateKey, object], facts: ClusterFacts) -> list[PodTemplateKey]:
        """Those nobody has come to first."""
        new = [alike for alike in groups if alike not in self._known]
        changed = [alike for alike, found in self._known.items() if not _holds(found, facts)]
        return new + changed


def _holds(found: _Known, facts: ClusterFacts) -> bool:
    """Would the decision read of these facts what it read then?"""
    if found.reads is None:
        return False
    if found.facts is not facts:
        if found.reads.since(facts) is Freshness.OTHER:
            return False
        found.facts = facts
    return True


def _decided(alike: PodTemplateKey, world: AuditInputs) -> _Known:
    noted, reads = watched(world.facts)
    return _Known(stand(alike, world.policies, noted, world.terms), reads, world.facts)


def _groups(pods: Iterable[AuditedPod]) -> dict[PodTemplateKey, tuple[AuditedPod, ...]]:
    found: dict[PodTemplateKey, list[AuditedPod]] = {}
    for pod in pods:
        if pod.running:
            found.setdefault(pod.alike, []).append(pod)
    return {alike: tuple(same) for alike, same in found.items()}
