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
from trimtab.policy import changed_annotation, reasons, required_actions
from trimtab.policy.actions import overhead, priority_class, runtime_class
from trimtab.policy.applicable_policies import ApplicablePolicies, CompiledPolicy, MatchedPolicy, ask
from trimtab.policy.changed_annotation import ChangedAnnotation
from trimtab.policy.clamp_resources import clamp_resources
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.match import MatchDependencies, always_left_alone, match_asks, opt_out_reason
from trimtab.policy.pod_changes import FieldChange, FieldKept, PodChanges
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings, PodContext
from trimtab.policy.podpolicy import Policies


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was decided about one pod, with all reasons.

    A struct that the collector does not follow: thousands are remembered, and nothing in them leads back to them.
    """

    pod: Pod
    """As it will be; the very object that came in where nothing changes."""
    changes: tuple[FieldChange, ...] = ()
    left: tuple[FieldKept, ...] = ()
    would: tuple[FieldChange, ...] = ()
    """What policies in mode `warn` and `audit` would have changed."""
    matched: tuple[MatchedPolicy, ...] = ()
    skipped: Reason | None = None
    """Why no policy was asked at all."""
    denied: Reason | None = None
    """Why the pod must not be created; nothing else counts then."""
    failures: tuple[str, ...] = ()
    """Our bugs: which action of which policy failed, and how."""
    marker: ChangedAnnotation | None = None
    """What was written on the pod; None where nothing was."""

    @property
    def modes(self) -> dict[str, str]:
        return {found.policy: found.mode for found in self.matched}


def decide(
    pod: Pod,
    policies: Policies,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings = DEFAULT_TERMS,
    *,
    watching: bool = True,
    marked: ChangedAnnotation | None = None,
) -> Decision:
    """The decision on one pod. Never raises for what a pod or policy may hold.

    watching: also ask the policies in mode `warn` and `audit` what they would do, and say why fields stay as they
    are; without it `would` is empty and `left` tells of whole policies only.

    What one policy changes may be what another one asks for (a label, a class): policies are asked again until
    nothing more changes, so that a second call of ours finds nothing to do. A field that is decided stays decided.
    """
    subject = PodContext(pod=pod, namespace=namespace, facts=facts, terms=terms)
    return decided(subject, policies, watching=watching, marked=marked)[0]


def decided(
    subject: PodContext,
    policies: Policies,
    *,
    watching: bool = True,
    like: ApplicablePolicies | None = None,
    marked: ChangedAnnotation | None = None,
    is_marker_read: bool = False,
) -> tuple[Decision, ApplicablePolicies | None]:
    """`decide`, and who was asked at last (None where nobody was).

    like: who was asked about a pod before, with the same policies, facts, namespace and terms. It saves work where
    nothing that they are chosen by differs, and changes nothing (a law).

    marked: what earlier calls did to the pod, on the word of whoever asks. None: what the pod's own marker says, where
    its signature is ours and seconds old.
    is_marker_read: `marked` is that, or None where there is none to believe: it is not read again.
    """
    pod, namespace = subject.pod, subject.namespace
    if marked is None and not is_marker_read:
        marked = changed_annotation.read(pod, namespace, subject.terms.signer)
    decision, asked = _once(subject, policies, watching, like, marked)
    first = asked
    for _ in range(_MOST_ROUNDS):
        if first is None or not _asked_for(first.subject, decision, policies.once(match_asks)):
            break
        marked = decision.marker
        subject = first.subject.as_now(decision.pod)
        again, asked = _once(subject, policies, watching, asked, marked, is_confirmed=True)
        if again.denied is not None:
            return change(again, pod=pod), asked
        if again.pod is decision.pod:
            break
        decision = _together(decision, again)
    if watching and first is not None and asked is not None and decision.denied is None:
        denied = required_actions.find_refusal(first, asked, decision.pod, decision.left)
        if denied is not None:
            return change(decision, pod=pod, changes=(), skipped=None, denied=denied), asked
    return decision, asked


_MOST_ROUNDS = 5
"""Chains of policies are short; each round decides at least one more field."""
_ASKED_FOR = (runtime_class.FIELD, priority_class.FIELD)


def _asked_for(came: PodContext, decision: Decision, asks: MatchDependencies) -> bool:
    """Did anything change that a policy's `match`, or another action, may ask for?"""
    is_sized = False
    for found in decision.changes:
        name = found.field
        if name.startswith("labels[") or name in _ASKED_FOR:
            return True
        if asks.annotations and name.startswith("annotations[") and name[12:-1] in asks.annotations:
            return True
        is_sized = is_sized or ".requests." in name or ".limits." in name
    return is_sized and (asks.requests or came.qos is not qos(decision.pod.spec))


def _together(first: Decision, again: Decision) -> Decision:
    """Two rounds as one decision: what the second says of fields that the first changed is no news."""
    changes = {found.field: found for found in first.changes}
    told = set(changes)
    if runtime_class.FIELD in told:  # the server fills the new class's overhead in after us, not between two rounds
        told.add(overhead.FIELD)
    for found in again.changes:
        before = changes[found.field].before if found.field in changes else found.before
        changes[found.field] = change(found, before=before)
    said, would = set(first.left), {found.field for found in first.would}
    return change(
        again,
        changes=tuple(changes.values()),
        left=(*first.left, *(x for x in again.left if x.field not in told and x not in said)),
        would=(*first.would, *(x for x in again.would if x.field not in would)),
        matched=(*first.matched, *(x for x in again.matched if x not in first.matched)),
        failures=(*first.failures, *(x for x in again.failures if x not in first.failures)),
    )


def _once(
    subject: PodContext,
    policies: Policies,
    watching: bool,
    like: ApplicablePolicies | None,
    before: ChangedAnnotation | None,
    *,
    is_confirmed: bool = False,
) -> tuple[Decision, ApplicablePolicies | None]:
    """One round: every policy is asked about the pod as it is.

    is_confirmed: a round before gave this very pod. Where nothing changes any more, nobody reads what policies that
    only watch would do: the round before has said it.
    """
    pod = subject.pod
    skipped = always_left_alone(subject)
    if skipped is not None:
        return Decision(pod=pod, skipped=skipped), None
    asked = ask(policies, subject, like)
    if subject.critical_class and not asked.meaning:
        left_alone = reasons.CRITICAL_POD(f"the pod's PriorityClass is {subject.critical_class}")
        return Decision(pod=pod, skipped=left_alone), asked
    if subject.opt_out is not None and not asked.ours:
        return Decision(pod=pod, skipped=opt_out_reason(subject)), asked
    turns = asked.ours if watching else tuple([turn for turn in asked.ours if turn.applies])
    draft, failures, trials = _draft(subject, turns, before, silent=not watching)
    decision = _decision(draft, subject, failures, before)
    is_news = decision.pod is not pod or not is_confirmed
    decision = _told(decision, asked, _would(draft, turns, trials) if trials and is_news else ())
    if before is None and changed_annotation.ANNOTATION in subject.annotations:
        decision = change(decision, left=(*decision.left, _not_believed(subject)))
    return decision, asked


def _told(decision: Decision, asked: ApplicablePolicies, would: tuple[FieldChange, ...]) -> Decision:
    """With what is said of whole policies."""
    left = (*decision.left, *asked.not_asked) if asked.meaning else (_NOBODY,)
    return change(decision, left=left, matched=tuple([turn.matched for turn in asked.ours]), would=would)


_NOBODY = FieldKept(field="", policy="", reason=reasons.NO_POLICY("no policy matches the pod"))


def _decision(
    draft: PodChanges, subject: PodContext, failures: list[str], before: ChangedAnnotation | None
) -> Decision:
    if draft.denied is not None:
        return Decision(pod=subject.pod, denied=draft.denied, left=tuple(draft.left), failures=tuple(failures))
    pod, written = draft.changed_pod, None
    if draft.changes:
        pod, written = changed_annotation.write(pod, subject.namespace, before, draft.changes, subject.terms.signer)
    elif before is None and changed_annotation.ANNOTATION in subject.annotations and not _stays_unverified(subject):
        pod = changed_annotation.remove_annotation(pod)
    return Decision(
        pod=pod, changes=tuple(draft.changes), left=tuple(draft.left), failures=tuple(failures), marker=written
    )


def _stays_unverified(subject: PodContext) -> bool:
    """Without a key a marker that speaks of this pod stays as it is: it may be our own, and only informs."""
    return subject.terms.signer.keys is None and changed_annotation.claimed(subject.pod, subject.namespace) is not None


def _not_believed(subject: PodContext) -> FieldKept:
    if subject.terms.signer.keys is None:
        reason = reasons.MARKER_UNVERIFIED("no signing key is at hand to verify the marker")
    else:
        reason = reasons.MARKER_NOT_OURS("no call of ours wrote the marker for this pod within the last seconds")
    return FieldKept(field=f"annotations[{changed_annotation.ANNOTATION}]", policy="", reason=reason)


_Trial = tuple[int, tuple[Any, ...]]
"""The place of a policy among the turns, and where the draft stood when its turn came."""


def _draft(
    subject: PodContext, turns: tuple[CompiledPolicy, ...], before: ChangedAnnotation | None, *, silent: bool
) -> tuple[PodChanges, list[str], list[_Trial]]:
    """The pod after all policies that apply, what failed, and the policies that would act.

    before: what an earlier call of ours did to this very pod. The policies that would act: those in mode `warn` or
    `audit` that decided anything when their turn came; that is taken back at once.
    """
    try:
        return _every_turn(subject, turns, before, silent=silent, is_guarded=False)
    except Exception:  # noqa: BLE001 - a guard costs more than most steps: it is there once something has failed
        return _every_turn(subject, turns, before, silent=silent, is_guarded=True)


def _every_turn(
    subject: PodContext,
    turns: tuple[CompiledPolicy, ...],
    before: ChangedAnnotation | None,
    *,
    silent: bool,
    is_guarded: bool,
) -> tuple[PodChanges, list[str], list[_Trial]]:
    draft = PodChanges(
        subject=subject,
        silent=silent,
        is_guarded=is_guarded,
        applied_before=before.value_by_field if before else {},
        decided_before=before.deciders if before else {},
    )
    failures: list[str] = []
    trials: list[_Trial] = []
    for place, turn in enumerate(turns):
        if turn.applies:
            _take(turn, draft, failures)
        else:
            stands = draft.create_savepoint()
            if _is_eager(turn, draft, stands):
                trials.append((place, stands))
    _finish(draft, failures)
    return draft, failures, trials


def _finish(draft: PodChanges, failures: list[str]) -> None:
    """What follows from all turns together."""
    draft.policy = ""
    for name, finish in (("requests and limits", clamp_resources), ("overhead", overhead.finish_overhead)):
        _safely(name, finish, (draft,), draft, failures)


def _take(turn: CompiledPolicy, draft: PodChanges, failures: list[str]) -> None:
    draft.policy = turn.name
    draft.changes_guaranteed = turn.changes_guaranteed
    draft.names_daemons = turn.names_daemons
    places, withheld = turn.select_containers(draft.subject), draft.subject.withheld
    for name, propose, settings in turn.actions:
        why = withheld.get((turn.name, name)) if withheld else None
        if why is not None:
            draft.leave_unchanged(name, why, loud=True)
        elif draft.is_guarded:
            _safely(name, propose, (settings, draft, places), draft, failures)
        else:
            propose(settings, draft, places)


def _is_eager(turn: CompiledPolicy, draft: PodChanges, stands: tuple[Any, ...]) -> bool:
    """Would this policy decide anything now? What it decides and says is taken back, to where the draft `stands`."""
    _take(turn, draft, [])
    eager = draft.changed_since(stands)
    draft.restore_savepoint(stands)
    return eager


def _safely(
    name: str, step: Callable[..., None], given: tuple[Any, ...], draft: PodChanges, failures: list[str]
) -> None:
    """One step; where it fails, a guarded draft is as it was before it. Without a guard it raises."""
    if not draft.is_guarded:
        step(*given)
        return
    before = draft.create_savepoint()
    try:
        step(*given)
    except NotAQuantity as error:
        draft.restore_savepoint(before)
        draft.leave_unchanged(name, reasons.NOT_A_QUANTITY(str(error)), loud=True)
    except Exception as error:  # noqa: BLE001 - an exception in one policy never blocks a pod
        draft.restore_savepoint(before)
        failures.append(f"{draft.policy or 'all policies'}: {name}: {type(error).__name__}: {error}")
        draft.leave_unchanged(name, reasons.ACTION_FAILED(f"{name} failed with {type(error).__name__}"), loud=True)


def _would(draft: PodChanges, turns: tuple[CompiledPolicy, ...], trials: list[_Trial]) -> tuple[FieldChange, ...]:
    """What each policy that only watches would change beside all those that apply. The draft is used up by it.

    One that decides nothing in its turn changes nothing for those after it either: only the others are tried. The
    turns before its own are as they were; the draft goes back to it from the last one to the first.
    """
    draft.silent = draft.is_guarded = True
    found: list[FieldChange] = []
    for place, stands in reversed(trials):
        draft.restore_savepoint(stands)
        watching, failures = turns[place], list[str]()
        for turn in (watching, *[later for later in turns[place + 1 :] if later.applies]):
            _take(turn, draft, failures)
        _finish(draft, failures)
        found = [*(made for made in draft.changes if made.policy == watching.name), *found]
    return tuple(found)
