"""What came of it: which pods lack what, and how many pods each policy means, changes, leaves alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trimtab.admission.audit import stale_overhead
from trimtab.admission.audit.causes import ChangeTimes, unpatched
from trimtab.admission.audit.drift import AuditInputs, AuditResult, AuditState
from trimtab.admission.audit.original_pod import AuditedPod, PodTemplateKey
from trimtab.admission.audit.reasons import DECIDED_OTHERWISE, ONLY_WATCHING
from trimtab.admission.audit.stale_overhead import OverheadExample
from trimtab.cluster.api.meta import get
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import NotYet, Reason
from trimtab.policy.changed_annotation import ChangedAnnotation
from trimtab.policy.pod_changes import FieldChange, Value
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One thing that is not as policy says, of some pods alike."""

    alike: PodTemplateKey
    owners: tuple[Owner, ...]
    """Nearest first; empty for bare pods."""
    pods: tuple[AuditedPod, ...]
    policy: str
    """Empty for what no policy says: a class's overhead."""
    reason: Reason
    """Of the youngest of the pods."""
    changes: tuple[FieldChange, ...] = ()
    """What policy would change."""


@dataclass(slots=True, kw_only=True)
class PolicyTally:
    """Pods, to one policy."""

    matched: int = 0
    """It means them: its `match` and its rollout."""
    changed: int = 0
    """They carry its marker: it changed them when they were admitted."""
    unpatched: int = 0
    """It would change them and has not."""
    would: int = 0
    """In mode warn or audit: it would change them."""
    skipped: int = 0
    """Its `match` means them, and they are left out: opted out, not in the rollout, paused."""
    overruled: int = 0
    """A policy of higher priority decided something it wanted otherwise."""
    failure: str = ""
    """How an action of it failed; empty while none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything of one look."""

    unpatched: tuple[AuditFinding, ...] = ()
    watching: tuple[AuditFinding, ...] = ()
    """What policies in mode warn and audit would change."""
    left_out: tuple[AuditFinding, ...] = ()
    overhead: tuple[AuditFinding, ...] = ()
    refused: tuple[AuditFinding, ...] = ()
    """They run, and would be denied if they were created now: a restart would not bring them back."""
    tallies: dict[str, PolicyTally] = field(default_factory=dict)
    """Every policy there is."""
    filled_by: OverheadExample | NotYet
    setting: Reason | None = None
    """Why the setting `overhead` is wrong; None: it is right, or nothing shows it."""


def findings(seen: AuditState, world: AuditInputs, since: ChangeTimes) -> Findings:
    """All of it, from what a survey saw."""
    tallies = {policy.name: PolicyTally() for policy in world.policies.all}
    for alike, standing in seen.standings.items():
        _count(tallies, standing, len(seen.groups[alike]))
    classes = world.facts.runtime_classes
    filled_by = stale_overhead.who(_youngest(seen), classes, since.classes)
    lacking = tuple(_unpatched(seen, world, since))
    for one in lacking:
        tallies[one.policy].unpatched += len(one.pods)
    return Findings(
        unpatched=lacking,
        watching=tuple(_watching(seen, world)),
        left_out=tuple(_left_out(seen, world)),
        overhead=tuple(_overheads(seen, world, since)),
        refused=tuple(
            _finding(alike, world, seen.groups[alike], "", standing.denied)
            for alike, standing in seen.standings.items()
            if standing.denied is not None
        ),
        tallies=tallies,
        filled_by=filled_by,
        setting=stale_overhead.setting(world.terms.overhead, filled_by),
    )


def _count(tallies: dict[str, PolicyTally], standing: AuditResult, pods: int) -> None:
    for part, names in (
        ("matched", standing.meant), ("changed", standing.carried),
        ("would", standing.would), ("skipped", standing.left_out), ("overruled", standing.overruled),
    ):  # fmt: skip
        for name in names:
            if name in tallies:
                setattr(tallies[name], part, getattr(tallies[name], part) + pods)
    for name, what in standing.failed.items():
        if name in tallies:
            tallies[name].failure = what


def _unpatched(seen: AuditState, world: AuditInputs, since: ChangeTimes) -> Iterator[AuditFinding]:
    """Pods alike may be of different age: those of one cause stand together."""
    for alike, standing in seen.standings.items():
        marked = _informs(alike, world.policies)
        for policy, changes in standing.lacks.items():
            for pods in _by_cause(policy, seen.groups[alike], since, is_marked=bool(marked.by)):
                reason = _why(policy, max(pods, key=_age), since, is_marked=bool(marked.by))
                told = changes if reason.code is not DECIDED_OTHERWISE else _never_decided(marked, changes)
                if told:
                    yield _finding(alike, world, pods, policy, reason, told)


def _by_cause(
    policy: str, pods: Iterable[AuditedPod], since: ChangeTimes, *, is_marked: bool
) -> Iterable[list[AuditedPod]]:
    causes: dict[str, list[AuditedPod]] = {}
    for pod in pods:
        causes.setdefault(_why(policy, pod, since, is_marked=is_marked).code.name, []).append(pod)
    return causes.values()


def _why(policy: str, pod: AuditedPod, since: ChangeTimes, *, is_marked: bool) -> Reason:
    return unpatched(policy, pod.created, is_marked, since)


def _age(pod: AuditedPod) -> float:
    return pod.created or 0.0


def _informs(alike: PodTemplateKey, policies: Policies) -> ChangedAnnotation:
    """What the marker says of policies that exist. It may be forged: whoever may patch a pod may write it."""
    return alike.marker.of({policy.name for policy in policies.all}) if alike.marker else ChangedAnnotation()


def _never_decided(marked: ChangedAnnotation, changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """A value we gave once and would give otherwise today is no lack: what containers use moves every day.

    Only where the pod carries the value that the marker speaks of.
    """
    said = {name: value for name, (_, value) in marked.deciders.items()}
    return tuple(c for c in changes if c.field not in said or said[c.field] != _text(c.before))


def _text(value: Value) -> str | None:
    return None if value is None else str(value)


def _watching(seen: AuditState, world: AuditInputs) -> Iterator[AuditFinding]:
    modes = {policy.name: policy.spec.mode for policy in world.policies.all}
    for alike, standing in seen.standings.items():
        for policy, changes in standing.would.items():
            reason = ONLY_WATCHING(f"{policy} is in mode {modes[policy]}")
            yield _finding(alike, world, seen.groups[alike], policy, reason, changes)


def _left_out(seen: AuditState, world: AuditInputs) -> Iterator[AuditFinding]:
    for alike, standing in seen.standings.items():
        for policy, reason in standing.left_out.items():
            yield _finding(alike, world, seen.groups[alike], policy, reason)


def _overheads(seen: AuditState, world: AuditInputs, since: ChangeTimes) -> Iterator[AuditFinding]:
    for alike, pods in seen.groups.items():
        name = get(alike.pod.spec.runtime_class_name, "")
        found = world.facts.runtime_classes.get(name) if name else None
        causes: dict[str, tuple[Reason, list[AuditedPod]]] = {}
        for pod in pods if found else ():
            reason = stale_overhead.finding(alike, pod.created, found, since.classes.get(name))
            if reason is not None:
                causes.setdefault(reason.code.name, (reason, []))[1].append(pod)
        for reason, wrong in causes.values():
            yield _finding(alike, world, wrong, "", reason)


def _finding(
    alike: PodTemplateKey,
    world: AuditInputs,
    pods: list[AuditedPod] | tuple[AuditedPod, ...],
    policy: str,
    reason: Reason,
    changes: tuple[FieldChange, ...] = (),
) -> AuditFinding:
    owners = world.facts.chain(alike.pod, alike.namespace)
    return AuditFinding(alike=alike, owners=owners, pods=tuple(pods), policy=policy, reason=reason, changes=changes)


def _youngest(seen: AuditState) -> Iterator[stale_overhead.Named]:
    for alike, pods in seen.groups.items():
        if get(alike.pod.spec.runtime_class_name, ""):
            pod = max(pods, key=_age)
            yield alike, pod.name, pod.created
