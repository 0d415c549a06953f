"""What do these policies make of this pod?

Pure: the same pod, policies, facts and terms give the same decision. Policies are asked in their order; the first to
decide a field wins. A failing action costs its own policy's turn and is told; it never costs the pod.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import qos
from trimtab.policy import marker, reasons
from trimtab.policy.actions import (
    labels,
    limits,
    overhead,
    placement,
    priority_class,
    requests,
    runtime_class,
    safe_to_evict_volumes,
    topology_spread,
)
from trimtab.policy.document import Actions, PodPolicy, Policies
from trimtab.policy.draft import Change, Draft, Left
from trimtab.policy.facts import Facts
from trimtab.policy.marker import Marker
from trimtab.policy.match import always_left_alone, in_rollout, matches, meant, names_daemons
from trimtab.policy.settle import settle
from trimtab.policy.subject import DEFAULT_TERMS, Place, Subject, Terms

Propose = Callable[[Any, Draft, tuple[Place, ...]], None]

ACTIONS: tuple[tuple[str, Propose], ...] = (
    ("runtime_class", runtime_class.propose),
    ("overhead", overhead.propose),
    ("priority_class", priority_class.propose),
    ("requests", requests.propose),
    ("limits", limits.propose),
    ("placement", placement.propose),
    ("topology_spread", topology_spread.propose),
    ("safe_to_evict_volumes", safe_to_evict_volumes.propose),
    ("labels", labels.propose),
    ("annotations", labels.propose_annotations),
)
"""Field of `Actions` → what it would do. A class comes first: what it brings decides what placement contradicts."""


class Matched(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A policy that meant the pod, and what it is allowed to do about it."""

    policy: str
    mode: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was decided about one pod, with all reasons.

    A struct that the collector does not follow: thousands are remembered, and nothing in them leads back to them.
    """

    pod: Pod
    """As it will be; the very object that came in where nothing changes."""
    changes: tuple[Change, ...] = ()
    left: tuple[Left, ...] = ()
    would: tuple[Change, ...] = ()
    """What policies in mode `warn` and `audit` would have changed."""
    matched: tuple[Matched, ...] = ()
    skipped: Reason | None = None
    """Why no policy was asked at all."""
    denied: Reason | None = None
    """Why the pod must not be created; nothing else counts then."""
    failures: tuple[str, ...] = ()
    """Our bugs: which action of which policy failed, and how."""

    @property
    def modes(self) -> dict[str, str]:
        return {found.policy: found.mode for found in self.matched}


def decide(
    pod: Pod,
    policies: Policies,
    facts: Facts,
    namespace: str,
    terms: Terms = DEFAULT_TERMS,
    *,
    watching: bool = True,
) -> Decision:
    """The decision on one pod. Never raises for what a pod or policy may hold.

    watching: also ask the policies in mode `warn` and `audit` what they would do, and say why fields stay as they
    are; without it `would` is empty and `left` tells of whole policies only.

    What one policy changes may be what another one asks for (a label, a class): policies are asked again until
    nothing more changes, so that a second call of ours finds nothing to do. A field that is decided stays decided.
    """
    decision = _once(pod, policies, facts, namespace, terms, watching)
    for _ in range(_MOST_ROUNDS):
        if not _asked_for(pod, decision):
            break
        again = _once(decision.pod, policies, facts, namespace, terms, watching)
        if again.denied is not None:
            return change(again, pod=pod)
        if again.pod is decision.pod:
            break
        decision = _together(decision, again)
    return decision


_MOST_ROUNDS = 5
"""Chains of policies are short; each round decides at least one more field."""
_ASKED_FOR = (runtime_class.FIELD, priority_class.FIELD)


def _asked_for(pod: Pod, decision: Decision) -> bool:
    """Did anything change that a policy's `match`, or another action, may ask for?"""
    names = [found.field for found in decision.changes]
    if any(name.startswith("labels[") or name in _ASKED_FOR for name in names):
        return True
    sized = any(".requests." in name or ".limits." in name for name in names)
    return sized and qos(pod.spec) is not qos(decision.pod.spec)


def _together(first: Decision, again: Decision) -> Decision:
    """Two rounds as one decision: what the second says of fields that the first changed is no news."""
    changes = {found.field: found for found in first.changes}
    told = set(changes)
    if runtime_class.FIELD in told:  # the server fills the new class's overhead in after us, not between two rounds
        told.add(overhead.FIELD)
    for found in again.changes:
        before = changes[found.field].before if found.field in changes else found.before
        changes[found.field] = change(found, before=before)
    return change(
        again,
        changes=tuple(changes.values()),
        left=(*first.left, *(x for x in again.left if x.field not in told and x not in first.left)),
        would=(*first.would, *(x for x in again.would if x.field not in {w.field for w in first.would})),
        matched=(*first.matched, *(x for x in again.matched if x not in first.matched)),
        failures=(*first.failures, *(x for x in again.failures if x not in first.failures)),
    )


def _once(pod: Pod, policies: Policies, facts: Facts, namespace: str, terms: Terms, watching: bool) -> Decision:
    """One round: every policy is asked about the pod as it is."""
    subject = Subject(pod=pod, namespace=namespace, facts=facts, terms=terms)
    skipped = always_left_alone(subject)
    if skipped is not None:
        return Decision(pod=pod, skipped=skipped)
    meaning = [policy for policy in policies.all if matches(policy, subject)]
    ours = [policy for policy in meaning if in_rollout(policy, subject)]
    before = marker.read(pod, namespace)
    asked = ours if watching else [policy for policy in ours if policy.spec.mode == "apply"]
    draft, failures, eager = _draft(subject, asked, before, silent=not watching)
    decision = _decision(draft, subject, failures, before)
    left = (*decision.left, *_not_in_rollout(meaning, ours))
    if not meaning:
        left = (Left(field="", policy="", reason=reasons.NO_POLICY("no policy matches the pod")),)
    matched = tuple(Matched(policy=p.name, mode=p.spec.mode) for p in ours)
    return change(decision, left=left, matched=matched, would=_would(subject, ours, eager, before))


def _decision(draft: Draft, subject: Subject, failures: list[str], before: Marker | None) -> Decision:
    if draft.denied is not None:
        return Decision(pod=subject.pod, denied=draft.denied, left=tuple(draft.left), failures=tuple(failures))
    pod = draft.pod
    if draft.changes:
        pod = marker.write(pod, subject.namespace, before, draft.changes)
    elif before is None and marker.ANNOTATION in subject.annotations:
        pod = marker.without(pod)
    return Decision(pod=pod, changes=tuple(draft.changes), left=tuple(draft.left), failures=tuple(failures))


def _draft(
    subject: Subject,
    policies: list[PodPolicy],
    before: Marker | None,
    trial: PodPolicy | None = None,
    *,
    silent: bool = False,
) -> tuple[Draft, list[str], list[PodPolicy]]:
    """The pod after all policies that apply (and `trial`, as if it did), what failed, and the policies that would.

    before: what an earlier call of ours did to this very pod. The policies that would: those in mode `warn` or
    `audit` that decided anything when their turn came; that is taken back at once.
    """
    draft = Draft(
        subject=subject,
        silent=silent or trial is not None,
        applied_before=before.values if before else {},
        decided_before=before.deciders if before else {},
    )
    failures: list[str] = []
    eager: list[PodPolicy] = []
    for policy in policies:
        if policy.spec.mode == "apply" or policy is trial:
            _turn(policy, draft, failures)
        elif trial is None and _is_eager(policy, draft):
            eager.append(policy)
    draft.policy = ""
    for name, finish in (("requests and limits", settle), ("overhead", overhead.finish)):
        _safely(name, finish, (draft,), draft, failures)
    return draft, failures, eager


def _turn(policy: PodPolicy, draft: Draft, failures: list[str]) -> None:
    draft.policy = policy.name
    draft.changes_guaranteed = policy.spec.guaranteed == "change"
    draft.names_daemons = names_daemons(policy)
    _ask(policy, draft, failures)


def _is_eager(policy: PodPolicy, draft: Draft) -> bool:
    """Would this policy decide anything now? What it decides and says is taken back."""
    stands = draft.kept()
    _turn(policy, draft, [])
    eager = draft.moved_since(stands)
    draft.restore(stands)
    return eager


def _ask(policy: PodPolicy, draft: Draft, failures: list[str]) -> None:
    places = meant(policy, draft.subject)
    actions: Actions = policy.spec.actions
    for name, propose in ACTIONS:
        settings = getattr(actions, name)
        if settings is not None:
            _safely(name, propose, (settings, draft, places), draft, failures)


def _safely(name: str, step: Callable[..., None], given: tuple[Any, ...], draft: Draft, failures: list[str]) -> None:
    """One step; where it fails, the draft is as it was before it."""
    before = draft.kept()
    try:
        step(*given)
    except Exception as error:  # noqa: BLE001 - an exception in one policy never blocks a pod
        draft.restore(before)
        failures.append(f"{draft.policy or 'all policies'}: {name}: {type(error).__name__}: {error}")
        draft.leave(name, reasons.ACTION_FAILED(f"{name} failed with {type(error).__name__}"), loud=True)


def _not_in_rollout(meaning: list[PodPolicy], ours: list[PodPolicy]) -> list[Left]:
    return [
        Left(field="", policy=p.name, reason=reasons.NOT_IN_ROLLOUT(f"rolled out to {p.spec.rollout}% of owners"))
        for p in meaning
        if p not in ours
    ]


def _would(
    subject: Subject, policies: list[PodPolicy], eager: list[PodPolicy], before: Marker | None
) -> tuple[Change, ...]:
    """What each policy that only watches would change beside all those that apply.

    One that decides nothing in its turn changes nothing for those after it either: only the others are tried.
    """
    found: list[Change] = []
    for watching in eager:
        draft, _, _ = _draft(subject, policies, before, trial=watching)
        found += [c for c in draft.changes if c.policy == watching.name]
    return tuple(found)
