"""What came of it: which pods lack what, and how many pods each policy means, changes, leaves alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trimtab.admission.running import overhead
from trimtab.admission.running.overhead import Shown
from trimtab.admission.running.reasons import DECIDED_OTHERWISE, ONLY_WATCHING
from trimtab.admission.running.standing import Standing
from trimtab.admission.running.submitted import Alike, Held
from trimtab.admission.running.survey import Seen, World
from trimtab.admission.running.why import Since, unpatched
from trimtab.cluster.api.meta import get
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import NotYet, Reason
from trimtab.policy.draft import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as policy says, of some pods alike."""

    alike: Alike
    owners: tuple[Owner, ...]
    """Nearest first; empty for bare pods."""
    pods: tuple[Held, ...]
    policy: str
    """Empty for what no policy says: a class's overhead."""
    reason: Reason
    """Of the youngest of the pods."""
    changes: tuple[Change, ...] = ()
    """What policy would change."""


@dataclass(slots=True, kw_only=True)
class Tally:
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

    unpatched: tuple[Finding, ...] = ()
    watching: tuple[Finding, ...] = ()
    """What policies in mode warn and audit would change."""
    left_out: tuple[Finding, ...] = ()
    overhead: tuple[Finding, ...] = ()
    refused: tuple[Finding, ...] = ()
    """They run, and would be denied if they were created now: a restart would not bring them back."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """Every policy there is."""
    filled_by: Shown | NotYet
    setting: Reason | None = None
    """Why the setting `overhead` is wrong; None: it is right, or nothing shows it."""


def findings(seen: Seen, world: World, since: Since) -> Findings:
    """All of it, from what a survey saw."""
    tallies = {policy.name: Tally() for policy in world.policies.all}
    for alike, standing in seen.standings.items():
        _count(tallies, standing, len(seen.groups[alike]))
    classes = world.facts.runtime_classes
    filled_by = overhead.who(_youngest(seen), classes, since.classes)
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
        setting=overhead.setting(world.terms.overhead, filled_by),
    )


def _count(tallies: dict[str, Tally], standing: Standing, pods: int) -> None:
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


def _unpatched(seen: Seen, world: World, since: Since) -> Iterator[Finding]:
    """Pods alike may be of different age: those of one cause stand together."""
    for alike, standing in seen.standings.items():
        for policy, changes in standing.lacks.items():
            for pods in _by_cause(policy, seen.groups[alike], since):
                reason = _why(policy, max(pods, key=_age), since)
                told = changes if reason.code is not DECIDED_OTHERWISE else _never_decided(alike, changes)
                if told:
                    yield _finding(alike, world, pods, policy, reason, told)


def _by_cause(policy: str, pods: Iterable[Held], since: Since) -> Iterable[list[Held]]:
    causes: dict[str, list[Held]] = {}
    for pod in pods:
        causes.setdefault(_why(policy, pod, since).code.name, []).append(pod)
    return causes.values()


def _why(policy: str, pod: Held, since: Since) -> Reason:
    return unpatched(policy, pod.created, pod.alike.marker is not None, since)


def _age(pod: Held) -> float:
    return pod.created or 0.0


def _never_decided(alike: Alike, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """A value we gave once and would give otherwise today is no lack: what containers use moves every day."""
    deciders = alike.marker.deciders if alike.marker else {}
    return tuple(change for change in changes if change.field not in deciders)


def _watching(seen: Seen, world: World) -> Iterator[Finding]:
    modes = {policy.name: policy.spec.mode for policy in world.policies.all}
    for alike, standing in seen.standings.items():
        for policy, changes in standing.would.items():
            reason = ONLY_WATCHING(f"{policy} is in mode {modes[policy]}")
            yield _finding(alike, world, seen.groups[alike], policy, reason, changes)


def _left_out(seen: Seen, world: World) -> Iterator[Finding]:
    for alike, standing in seen.standings.items():
        for policy, reason in standing.left_out.items():
            yield _finding(alike, world, seen.groups[alike], policy, reason)


def _overheads(seen: Seen, world: World, since: Since) -> Iterator[Finding]:
    for alike, pods in seen.groups.items():
        name = get(alike.pod.spec.runtime_class_name, "")
        found = world.facts.runtime_classes.get(name) if name else None
        causes: dict[str, tuple[Reason, list[Held]]] = {}
        for pod in pods if found else ():
            reason = overhead.finding(alike, pod.created, found, since.classes.get(name))
            if reason is not None:
                causes.setdefault(reason.code.name, (reason, []))[1].append(pod)
        for reason, wrong in causes.values():
            yield _finding(alike, world, wrong, "", reason)


def _finding(
    alike: Alike,
    world: World,
    pods: list[Held] | tuple[Held, ...],
    policy: str,
    reason: Reason,
    changes: tuple[Change, ...] = (),
) -> Finding:
    owners = world.facts.chain(alike.pod, alike.namespace)
    return Finding(alike=alike, owners=owners, pods=tuple(pods), policy=policy, reason=reason, changes=changes)


def _youngest(seen: Seen) -> Iterator[overhead.Named]:
    for alike, pods in seen.groups.items():
        if get(alike.pod.spec.runtime_class_name, ""):
            pod = max(pods, key=_age)
            yield alike, pod.name, pod.created
