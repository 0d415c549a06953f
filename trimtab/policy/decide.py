"""Decides what a set of policies changes in one pod, and records a reason for everything that is changed or not
changed.

The decision is pure: the same pod, policies, facts and settings give the same decision. Policies act in their order,
and the first policy that decides a field wins. If an action fails, only the changes of its own policy are lost; the
failure is reported and never blocks the pod.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.policy import changed_annotation, reasons, required_actions
from trimtab.policy.actions import overhead, pod_level_requests, priority_class, runtime_class
from trimtab.policy.applicable_policies import (
    ApplicablePolicies,
    CompiledPolicy,
    MatchedPolicy,
    find_applicable_policies,
)
from trimtab.policy.changed_annotation import ChangedAnnotation
from trimtab.policy.clamp_resources import clamp_resources
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.match import MatchDependencies, always_left_alone, match_dependencies, opt_out_reason
from trimtab.policy.pod_changes import FieldChange, FieldKept, PodChanges
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings, PodContext
from trimtab.policy.podpolicy import Policies


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the policies decide for one pod, with all reasons.

    The garbage collector does not track this struct (`gc=False`): the response cache holds thousands of decisions, and
    nothing in a decision refers back to it.
    """

    pod: Pod
    """The pod after all changes; the same object as the input if nothing changes."""
    changes: tuple[FieldChange, ...] = ()
    fields_kept: tuple[FieldKept, ...] = ()
    would: tuple[FieldChange, ...] = ()
    """The changes that policies in the modes `warn` and `audit` would have made."""
    matched: tuple[MatchedPolicy, ...] = ()
    skipped: Reason | None = None
    """Why no policy was evaluated, or None if policies were."""
    denied: Reason | None = None
    """Why the pod is refused, or None if it is admitted. If it is refused, the other fields have no effect."""
    failures: tuple[str, ...] = ()
    """Failures that are bugs of Trimtab: which action of which policy failed, and with which exception."""
    marker: ChangedAnnotation | None = None
    """The annotation that was written on the pod, or None if none was."""

    @property
    def mode_by_policy(self) -> dict[str, str]:
        """Policy → its mode, for every policy that matches the pod."""
        return {policy.policy: policy.mode for policy in self.matched}


Watched = Callable[[], tuple[FieldChange, ...]]
"""Finds what the policies in the modes `warn` and `audit` would change in one round of evaluation. Works once."""


def with_watched_changes(decision: Decision, watched: list[Watched]) -> Decision:
    """Returns the decision with what the policies in the modes `warn` and `audit` would have changed. Of a field that
    more than one round would change, only the changes of the first such round are included."""
    would: tuple[FieldChange, ...] = ()
    for find_changes in watched:
        known = {field_change.field for field_change in would}
        would = (*would, *[field_change for field_change in find_changes() if field_change.field not in known])
    return change(decision, would=would) if would else decision


def decide(
    pod: Pod,
    policies: Policies,
    facts: ClusterFacts,
    namespace: str,
    settings: AdmissionSettings = DEFAULT_SETTINGS,
    *,
    watching: bool = True,
    annotation: ChangedAnnotation | None = None,
) -> Decision:
    """Returns the decision on one pod. Never raises, whatever the pod or a policy contains.

    `watching`: the policies in the modes `warn` and `audit` are evaluated too, and the reasons why fields are not
    changed are recorded. Without it, `would` is empty and `fields_kept` holds only reasons for whole policies.

    A policy may change what another policy matches by (a label, a class). So the policies are evaluated until nothing
    more changes, and a second call of the webhook has nothing to change. A field that is decided stays decided.
    """
    subject = PodContext(pod=pod, namespace=namespace, facts=facts, settings=settings)
    return decide_with_policies(subject, policies, watching=watching, marked=annotation)[0]


def decide_with_policies(
    pod_context: PodContext,
    policies: Policies,
    *,
    watching: bool = True,
    like: ApplicablePolicies | None = None,
    marked: ChangedAnnotation | None = None,
    is_marker_read: bool = False,
    watched: list[Watched] | None = None,
) -> tuple[Decision, ApplicablePolicies | None]:
    """Returns the same decision as `decide`, and the policies that applied last (None if none was evaluated).

    `like`: the policies that applied to an earlier pod, with the same policies, facts, namespace and settings. It saves
    work if the pods do not differ in anything by which policies are selected, and never changes the decision (a
    property test checks this).

    `marked`: what earlier calls of the webhook changed, as the caller says. None: what the pod's own annotation says,
    if a replica of Trimtab has signed it within the last 30 seconds.

    `is_marker_read`: the caller has already read the annotation, and `marked` is its content, or None if it is not to
    be trusted.

    `watched`: a list that is filled for `with_watched_changes`, instead of filling in `would`. It saves work if the pod
    is decided more than once, and only the last decision counts.
    """
    found: list[Watched] = []
    decision, applicable = _decide_in_rounds(pod_context, policies, watching, like, marked, is_marker_read, found)
    if watched is None:
        return with_watched_changes(decision, found), applicable
    watched[:] = found
    return decision, applicable


def _decide_in_rounds(
    pod_context: PodContext,
    policies: Policies,
    watching: bool,
    like: ApplicablePolicies | None,
    annotation: ChangedAnnotation | None,
    is_marker_read: bool,
    watched: list[Watched],
) -> tuple[Decision, ApplicablePolicies | None]:
    pod, namespace = pod_context.pod, pod_context.namespace
    if annotation is None and not is_marker_read:
        annotation = changed_annotation.read_trusted_annotation(pod, namespace, pod_context.settings.signer)
    decision, applicable = _decide_round(pod_context, policies, watching, like, annotation, watched)
    first, rounds = applicable, [applicable]
    for _ in range(_MAX_ROUNDS):
        if first is None or not decision.changes:
            break
        pod_context = first.subject.with_pod(decision.pod)
        if not _needs_another_round(first.subject, pod_context, decision, policies.compute_once(match_dependencies)):
            break
        # The next round trusts the marker of this one without a signature: it was written in this very call.
        annotation = decision.marker
        similar = applicable
        next_decision, applicable = _decide_round(pod_context, policies, False, similar, annotation, watched)
        # Mostly this round only confirms the earlier one, and what it would say is not needed.
        if watching and (next_decision.pod is not decision.pod or next_decision.denied is not None):
            next_decision, applicable = _decide_round(pod_context, policies, True, similar, annotation, watched)
        rounds.append(applicable)
        if next_decision.denied is not None:
            return change(next_decision, pod=pod), applicable
        if next_decision.pod is decision.pod:
            break
        decision = _merge_rounds(decision, next_decision)
    # Required actions are checked against the pod as it will be, after the last round: a later round may supply what
    # an earlier one lacked.
    if watching and first is not None and applicable is not None and decision.denied is None:
        denied = required_actions.find_refusal(first, applicable, decision.pod, decision.fields_kept)
        if denied is not None:
            return change(decision, pod=pod, changes=(), skipped=None, denied=denied), applicable
    return decision, applicable if len(rounds) == 1 else _with_earlier(rounds)


def _with_earlier(rounds: list[ApplicablePolicies | None]) -> ApplicablePolicies | None:
    """Returns the policies of the last round of evaluation, together with those that were in effect only in earlier
    rounds."""
    *before, last = rounds
    if last is None:
        return None
    effective_ids = {id(turn) for turn in last.in_effect}
    earlier = [turn for one in before if one is not None for turn in one.in_effect if id(turn) not in effective_ids]
    return change(last, earlier=tuple(dict.fromkeys(earlier))) if earlier else last


# Chains of policies are short, and each round decides at least one more field.
_MAX_ROUNDS = 5
_MATCHED_FIELDS = (runtime_class.FIELD, priority_class.FIELD)


def _needs_another_round(
    first_subject: PodContext, pod_context: PodContext, decision: Decision, dependencies: MatchDependencies
) -> bool:
    """Returns whether the policies must be evaluated once more. They must if anything has changed that a policy's
    `match` or another action may depend on. `pod_context` is the pod as decided so far.
    """
    is_sized = False
    for field_change in decision.changes:
        name = field_change.field
        if name.startswith("labels[") or name in _MATCHED_FIELDS:
            return True
        if dependencies.annotations and name.startswith("annotations[") and name[12:-1] in dependencies.annotations:
            return True
        is_sized = is_sized or ".requests." in name or ".limits." in name
    return is_sized and (dependencies.requests or first_subject.qos is not pod_context.qos)


def _merge_rounds(first: Decision, second: Decision) -> Decision:
    """Returns one decision from two rounds of evaluation. Results of the second round are left out for fields that the
    first round changed."""
    changes = {field_change.field: field_change for field_change in first.changes}
    changed_fields = set(changes)
    # The RuntimeClass admission plugin fills in the new class's overhead after the webhook, not between two rounds.
    if runtime_class.FIELD in changed_fields:
        changed_fields.add(overhead.FIELD)
    for field_change in second.changes:
        before = changes[field_change.field].before if field_change.field in changes else field_change.before
        changes[field_change.field] = change(field_change, before=before)
    reported = set(first.fields_kept)
    return change(
        second,
        changes=tuple(changes.values()),
        fields_kept=(
            *first.fields_kept,
            *(x for x in second.fields_kept if x.field not in changed_fields and x not in reported),
        ),
        matched=(*first.matched, *(x for x in second.matched if x not in first.matched)),
        failures=(*first.failures, *(x for x in second.failures if x not in first.failures)),
    )


def _decide_round(
    pod_context: PodContext,
    policies: Policies,
    watching: bool,
    similar: ApplicablePolicies | None,
    earlier_annotation: ChangedAnnotation | None,
    watched: list[Watched],
) -> tuple[Decision, ApplicablePolicies | None]:
    """Evaluates every policy once, on the pod as it is. `would` stays empty; what finds it is added to `watched`."""
    pod = pod_context.pod
    # First, and cheap: pods of system namespaces are the ones that must not wait.
    skipped = always_left_alone(pod_context)
    if skipped is not None:
        return Decision(pod=pod, skipped=skipped), None
    applicable = find_applicable_policies(policies, pod_context, similar)
    # Before opt-outs, because the reason that names the PriorityClass helps more.
    if pod_context.critical_class and not applicable.matching:
        left_alone = reasons.CRITICAL_POD(f"the pod's PriorityClass is {pod_context.critical_class}")
        return Decision(pod=pod, skipped=left_alone), applicable
    if pod_context.opt_out is not None and not applicable.in_effect:
        return Decision(pod=pod, skipped=opt_out_reason(pod_context)), applicable
    # A tuple of a list comprehension costs less than one of a generator; this runs for every review.
    turns = applicable.in_effect if watching else tuple([turn for turn in applicable.in_effect if turn.applies])
    pod_changes, failures, trials = _apply_policies(pod_context, turns, earlier_annotation, silent=not watching)
    decision = _with_policy_results(_build_decision(pod_changes, pod_context, failures, earlier_annotation), applicable)
    if trials:
        watched.append(partial(_watched_changes, pod_changes, turns, trials))
    if earlier_annotation is None and changed_annotation.ANNOTATION in pod_context.annotations:
        if pod_context.settings.signer.keys is None:
            reason = reasons.MARKER_UNVERIFIED("without a signing key Trimtab cannot verify the annotation")
        else:
            reason = reasons.MARKER_NOT_OURS(
                "Trimtab did not write this annotation for this pod within the last seconds"
            )
        decision = change(
            decision,
            fields_kept=(
                *decision.fields_kept,
                FieldKept(field=f"annotations[{changed_annotation.ANNOTATION}]", policy="", reason=reason),
            ),
        )
    return decision, applicable


def _with_policy_results(decision: Decision, applicable: ApplicablePolicies) -> Decision:
    """Returns the decision with the results for whole policies: which of them matched, and which had no effect and
    why."""
    left = (*decision.fields_kept, *applicable.policies_left_out) if applicable.matching else (_NO_POLICY_MATCHES,)
    return change(decision, fields_kept=left, matched=tuple([turn.matched for turn in applicable.in_effect]))


_NO_POLICY_MATCHES = FieldKept(field="", policy="", reason=reasons.NO_POLICY("no policy matches the pod"))


def _build_decision(
    changes: PodChanges, pod_context: PodContext, failures: list[str], earlier_annotation: ChangedAnnotation | None
) -> Decision:
    """Returns the decision for the collected changes. If anything was changed, the `trimtab.dev/changed` annotation is
    written on the pod."""
    # A denied pod is not created, so no other change matters.
    if changes.denied is not None:
        return Decision(
            pod=pod_context.pod, denied=changes.denied, fields_kept=tuple(changes.fields_kept), failures=tuple(failures)
        )
    pod, new_marker = changes.changed_pod, None
    if changes.changes:
        pod, new_marker = changed_annotation.write_annotation(
            pod, pod_context.namespace, earlier_annotation, changes.changes, pod_context.settings.signer
        )
    # An annotation that no replica signed just now says nothing about this pod: it was copied from another object.
    elif (
        earlier_annotation is None
        and changed_annotation.ANNOTATION in pod_context.annotations
        and not _keeps_unverified_marker(pod_context)
    ):
        pod = changed_annotation.remove_annotation(pod)
    return Decision(
        pod=pod,
        changes=tuple(changes.changes),
        fields_kept=tuple(changes.fields_kept),
        failures=tuple(failures),
        marker=new_marker,
    )


def _keeps_unverified_marker(pod_context: PodContext) -> bool:
    """Returns whether the annotation on this pod stays although it cannot be verified. It stays if there are no signing
    keys: it may be Trimtab's own, and only informs people."""
    return (
        pod_context.settings.signer.keys is None
        and changed_annotation.read_claimed_annotation(pod_context.pod, pod_context.namespace) is not None
    )


_Trial = tuple[int, tuple[Any, ...]]
"""The index of a policy among all that apply, and the savepoint from before the policy acted."""


def _apply_policies(
    pod_context: PodContext,
    turns: tuple[CompiledPolicy, ...],
    earlier_annotation: ChangedAnnotation | None,
    *,
    silent: bool,
) -> tuple[PodChanges, list[str], list[_Trial]]:
    """Returns the pod's changes after all policies that apply, the failures, and the policies that would act.

    `earlier_annotation` is what an earlier call of Trimtab changed in this pod. The policies that would act are those
    in mode `warn` or `audit` that decide any field when it is their turn; what they decide is undone at once.
    """
    try:
        return _evaluate_policies(pod_context, turns, earlier_annotation, silent=silent, is_guarded=False)
    except Exception:  # noqa: BLE001 - a guard costs more than most steps: the second pass has it, the first has not
        # Policies are pure, so the second pass repeats the first one and takes back only the step that fails.
        return _evaluate_policies(pod_context, turns, earlier_annotation, silent=silent, is_guarded=True)


def _evaluate_policies(
    pod_context: PodContext,
    turns: tuple[CompiledPolicy, ...],
    earlier_annotation: ChangedAnnotation | None,
    *,
    silent: bool,
    is_guarded: bool,
) -> tuple[PodChanges, list[str], list[_Trial]]:
    pod_changes = PodChanges(
        pod_context=pod_context,
        silent=silent,
        turns=turns,
        is_guarded=is_guarded,
        applied_before=earlier_annotation.value_by_field if earlier_annotation else {},
        decided_before=earlier_annotation.decider_by_field if earlier_annotation else {},
    )
    failures: list[str] = []
    trials: list[_Trial] = []
    for index, turn in enumerate(turns):
        if turn.applies:
            _run_policy(turn, pod_changes, failures)
        else:
            savepoint = pod_changes.create_savepoint()
            if _would_decide(turn, pod_changes, savepoint):
                trials.append((index, savepoint))
    _run_final_steps(pod_changes, failures)
    return pod_changes, failures, trials


def _run_final_steps(changes: PodChanges, failures: list[str]) -> None:
    """Runs the steps that depend on the results of all policies: clamping of requests and limits, requests of the whole
    pod, and completing the overhead."""
    # No policy alone is responsible for what follows.
    changes.policy = ""
    _run_step("requests and limits", clamp_resources, (changes,), changes, failures)
    if changes.whole_pod:
        _run_step("requests of the whole pod", pod_level_requests.finish_pod_level, (changes,), changes, failures)
    _run_step("overhead", overhead.finish_overhead, (changes,), changes, failures)


def _run_policy(policy: CompiledPolicy, changes: PodChanges, failures: list[str]) -> None:
    changes.policy = policy.name
    changes.changes_guaranteed = policy.changes_guaranteed
    changes.names_daemons = policy.names_daemons
    places, withheld = policy.select_containers(changes.pod_context), changes.pod_context.withheld
    for name, propose, settings in policy.actions:
        reason = withheld.get((policy.name, name)) if withheld else None
        if reason is not None:
            changes.leave_unchanged(name, reason, loud=True)
        elif changes.is_guarded:
            _run_step(name, propose, (settings, changes, places), changes, failures)
        else:
            propose(settings, changes, places)


def _would_decide(policy: CompiledPolicy, changes: PodChanges, savepoint: tuple[Any, ...]) -> bool:
    """Returns whether this policy would decide any field now. Afterwards, everything that it has decided and recorded
    is undone, back to the savepoint."""
    _run_policy(policy, changes, [])
    would_decide = changes.changed_since(savepoint)
    changes.restore_savepoint(savepoint)
    return would_decide


def _run_step(
    name: str, step: Callable[..., None], arguments: tuple[Any, ...], changes: PodChanges, failures: list[str]
) -> None:
    """Runs one step. If it fails and the draft is guarded, the changes are restored to their state before the step, and
    the failure is reported. If the draft is not guarded, the exception is raised."""
    if not changes.is_guarded:
        step(*arguments)
        return
    savepoint = changes.create_savepoint()
    try:
        step(*arguments)
    # The API server refuses such a pod anyway, with its own message; this is no bug of Trimtab.
    except NotAQuantity as error:
        changes.restore_savepoint(savepoint)
        changes.leave_unchanged(name, reasons.NOT_A_QUANTITY(str(error)), loud=True)
    except Exception as error:  # noqa: BLE001 - an exception in one policy never blocks a pod
        changes.restore_savepoint(savepoint)
        failures.append(f"{changes.policy or 'all policies'}: {name}: {type(error).__name__}: {error}")
        changes.leave_unchanged(
            name,
            reasons.ACTION_FAILED(f'the step "{name}" of the decision failed with {type(error).__name__}'),
            loud=True,
        )


def _watched_changes(
    changes: PodChanges, turns: tuple[CompiledPolicy, ...], trials: list[_Trial]
) -> tuple[FieldChange, ...]:
    """Returns what each policy in mode `warn` or `audit` would change in addition to all policies that apply. The draft
    cannot be used afterwards.

    A policy that decides nothing when it is its turn changes nothing for later policies either, so only the others are
    tried.
    """
    changes.silent = changes.is_guarded = True
    would_change: list[FieldChange] = []
    # From the last policy to the first: a savepoint can only be restored while later entries are still there to drop.
    for index, savepoint in reversed(trials):
        changes.restore_savepoint(savepoint)
        watched, failures = turns[index], list[str]()
        for turn in (watched, *[later for later in turns[index + 1 :] if later.applies]):
            _run_policy(turn, changes, failures)
        _run_final_steps(changes, failures)
        would_change = [
            *(field_change for field_change in changes.changes if field_change.policy == watched.name),
            *would_change,
        ]
    return tuple(would_change)
