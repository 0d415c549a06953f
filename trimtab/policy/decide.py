"""What do these policies make of this pod?

Pure: the same pod, policies, facts and terms give the same decision. Policies are asked in their order; the first to
decide a field wins. A failing action costs its own policy's turn and is told; it never costs the pod.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import qos
from trimtab.policy import marker, reasons
from trimtab.policy.actions import overhead, priority_class, runtime_class
from trimtab.policy.asked import Asked, ask
from trimtab.policy.document import Policies
from trimtab.policy.draft import Change, Draft, Left
from trimtab.policy.facts import Facts
from trimtab.policy.marker import Marker
from trimtab.policy.match import always_left_alone, meant
from trimtab.policy.settle import settle
from trimtab.policy.subject import DEFAULT_TERMS, Subject, Terms
from trimtab.policy.turns import Matched, Turn


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
    return decided(pod, policies, facts, namespace, terms, watching=watching)[0]


def decided(
    pod: Pod,
    policies: Policies,
    facts: Facts,
    namespace: str,
    terms: Terms = DEFAULT_TERMS,
    *,
    watching: bool = True,
    like: Asked | None = None,
) -> tuple[Decision, Asked | None]:
    """`decide`, and who was asked at last (None where nobody was).

    like: who was asked about a pod before, with the same policies, facts, namespace and terms. It saves work where
    nothing that they are chosen by differs, and changes nothing (a law).
    """
    decision, asked = _once(pod, policies, facts, namespace, terms, watching, like)
    came = asked.subject if asked else None
    for _ in range(_MOST_ROUNDS):
        if came is None or not _asked_for(came, decision):
            break
        again, asked = _once(decision.pod, policies, facts, namespace, terms, watching, asked)
        if again.denied is not None:
            return change(again, pod=pod), asked
        if again.pod is decision.pod:
            break
        decision = _together(decision, again)
    return decision, asked


_MOST_ROUNDS = 5
"""Chains of policies are short; each round decides at least one more field."""
_ASKED_FOR = (runtime_class.FIELD, priority_class.FIELD)


def _asked_for(came: Subject, decision: Decision) -> bool:
    """Did anything change that a policy's `match`, or another action, may ask for?"""
    names = [found.field for found in decision.changes]
    if any(name.startswith("labels[") or name in _ASKED_FOR for name in names):
        return True
    sized = any(".requests." in name or ".limits." in name for name in names)
    return sized and came.qos is not qos(decision.pod.spec)


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


def _once(
    pod: Pod, policies: Policies, facts: Facts, namespace: str, terms: Terms, watching: bool, like: Asked | None
) -> tuple[Decision, Asked | None]:
    """One round: every policy is asked about the pod as it is."""
    subject = (
        Subject(pod=pod, namespace=namespace, facts=facts, terms=terms) if like is None else like.subject.as_now(pod)
    )
    skipped = always_left_alone(subject)
    if skipped is not None:
        return Decision(pod=pod, skipped=skipped), None
    asked = ask(policies, subject, like)
    before = marker.read(pod, namespace)
    turns = asked.ours if watching else tuple([turn for turn in asked.ours if turn.applies])
    draft, failures, eager = _draft(subject, turns, before, silent=not watching)
    decision = _decision(draft, subject, failures, before)
    return _told(decision, asked, _would(subject, turns, eager, before) if eager else ()), asked


def _told(decision: Decision, asked: Asked, would: tuple[Change, ...]) -> Decision:
    """With what is said of whole policies."""
    left = (*decision.left, *asked.not_in_rollout) if asked.meaning else (_NOBODY,)
    return change(decision, left=left, matched=tuple([turn.matched for turn in asked.ours]), would=would)


_NOBODY = Left(field="", policy="", reason=reasons.NO_POLICY("no policy matches the pod"))


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
    turns: tuple[Turn, ...],
    before: Marker | None,
    trial: Turn | None = None,
    *,
    silent: bool = False,
) -> tuple[Draft, list[str], list[Turn]]:
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
    eager: list[Turn] = []
    for turn in turns:
        if turn.applies or turn is trial:
            _take(turn, draft, failures)
        elif trial is None and _is_eager(turn, draft):
            eager.append(turn)
    draft.policy = ""
    for name, finish in (("requests and limits", settle), ("overhead", overhead.finish)):
        _safely(name, finish, (draft,), draft, failures)
    return draft, failures, eager


def _take(turn: Turn, draft: Draft, failures: list[str]) -> None:
    draft.policy = turn.name
    draft.changes_guaranteed = turn.changes_guaranteed
    draft.names_daemons = turn.names_daemons
    places = meant(turn.policy, draft.subject)
    for name, propose, settings in turn.actions:
        _safely(name, propose, (settings, draft, places), draft, failures)


def _is_eager(turn: Turn, draft: Draft) -> bool:
    """Would this policy decide anything now? What it decides and says is taken back."""
    stands = draft.kept()
    _take(turn, draft, [])
    eager = draft.moved_since(stands)
    draft.restore(stands)
    return eager


def _safely(name: str, step: Callable[..., None], given: tuple[Any, ...], draft: Draft, failures: list[str]) -> None:
    """One step; where it fails, the draft is as it was before it."""
    before = draft.kept()
    try:
        step(*given)
    except NotAQuantity as error:
        draft.restore(before)
        draft.leave(name, reasons.NOT_A_QUANTITY(str(error)), loud=True)
    except Exception as error:  # noqa: BLE001 - an exception in one policy never blocks a pod
        draft.restore(before)
        failures.append(f"{draft.policy or 'all policies'}: {name}: {type(error).__name__}: {error}")
        draft.leave(name, reasons.ACTION_FAILED(f"{name} failed with {type(error).__name__}"), loud=True)


def _would(subject: Subject, turns: tuple[Turn, ...], eager: list[Turn], before: Marker | None) -> tuple[Change, ...]:
    """What each policy that only watches would change beside all those that apply.

    One that decides nothing in its turn changes nothing for those after it either: only the others are tried.
    """
    found: list[Change] = []
    for watching in eager:
        draft, _, _ = _draft(subject, turns, before, trial=watching)
        found += [c for c in draft.changes if c.policy == watching.name]
    return tuple(found)
