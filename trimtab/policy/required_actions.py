"""Refuses pods that would run without an action that their policy requires.

A required action is checked against the final pod, not against the decisions that led to it. Whatever prevented the
action (a contradiction, another policy, an opt-out by the author, a bug of Trimtab), the pod is refused with the
reason.
"""

from collections.abc import Iterable

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Code, Reason
from trimtab.policy import reasons
from trimtab.policy.applicable_policies import ApplicablePolicies, CompiledPolicy, compile_policies
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.match import allows_opt_out, in_rollout, is_switched_off, namespace_name_test
from trimtab.policy.pod_changes import FieldKept
from trimtab.policy.pod_context import AdmissionSettings, PodBeforeAndAfter, PodContext
from trimtab.policy.podpolicy import Policies
from trimtab.policy.required_action_rules import required_actions


def required_policies_for(
    policies: Policies, facts: ClusterFacts, namespace: str, settings: AdmissionSettings, pod: Pod | None = None
) -> tuple[str, ...]:
    """Returns the names of the policies with a required action that may match a pod of this namespace.

    It is for pods that Trimtab cannot decide on (too large, or not decodable): without any such policy the pod is
    admitted unchanged, otherwise it is refused. Only the namespace is tested, and the rollout if the pod is given, so
    the cost does not depend on the pod's size. Empty while all changes are paused, and for namespaces whose pods are
    never changed.
    """
    requiring = policies.compute_once(_compile_requiring)
    # Most clusters have no required action: then nothing is computed.
    if not requiring or is_switched_off(namespace, settings):
        return ()
    subject = PodContext(pod=pod or Pod(), namespace=namespace, facts=facts, settings=settings)
    candidates = (turn for turn in requiring if _may_match(turn, subject))
    return tuple(turn.name for turn in candidates if pod is None or in_rollout(turn.policy, subject))


def _compile_requiring(policies: Policies) -> tuple[CompiledPolicy, ...]:
    """Returns the compiled policies in mode `apply` that have a required action."""
    return tuple(
        turn
        for turn in policies.compute_once(compile_policies)
        if turn.applies and turn.policy.spec.rollout > 0 and required_actions(turn.policy.spec.actions)
    )


def _may_match(policy: CompiledPolicy, pod_context: PodContext) -> bool:
    namespaces = policy.policy.spec.match.namespaces
    if namespaces is not None and not namespace_name_test(namespaces.include, namespaces.exclude)(
        pod_context.namespace
    ):
        return False
    return policy.in_namespace(pod_context) and not (
        pod_context.opt_out == "namespace" and allows_opt_out(policy.policy, pod_context)
    )


def find_refusal(
    first: ApplicablePolicies, last: ApplicablePolicies, after: Pod, left: Iterable[FieldKept]
) -> Reason | None:
    """Returns why the pod must be refused, or None if it has everything that is required.

    `first`: the policies that applied to the pod as the webhook received it. `last`: the policies that applied in the
    last round of evaluation. `after`: the final pod.
    """
    # A policy that matched in any round counts: a change by another policy must not free the pod of a requirement.
    applicable = dict.fromkeys((*first.in_effect, *first.opted_out, *last.in_effect))
    requiring = [turn for turn in applicable if turn.required and turn.applies]
    if not requiring:
        return None
    kept_fields = tuple(left)
    for turn in requiring:
        # An opt-out by the namespace is the cluster's own decision; one by the pod is its author's, who must not decide
        # it.
        if turn in first.opted_out:
            if first.subject.opt_out == "pod":
                return _refusal_reason(
                    f"{turn.name} requires {_format_actions(turn)}, and a pod cannot opt itself out "
                    "of a required action"
                )
            continue
        reason = _find_unmet_action(turn, first.subject, last.subject.with_pod(after), kept_fields)
        if reason is not None:
            return reason
    return None


def _format_actions(policy: CompiledPolicy) -> str:
    return " and ".join(action.word for action in policy.required)


def _find_unmet_action(
    policy: CompiledPolicy, before: PodContext, after: PodContext, kept_fields: tuple[FieldKept, ...]
) -> Reason | None:
    """Returns the reason for the first required action that is missing, or None if none is."""
    # Whether the field was not changed because of a failure in a step that runs for all policies together.
    shared = [field.reason for field in kept_fields if not field.policy and field.reason.code is reasons.ACTION_FAILED]
    # A step of all policies together that failed explains every required action; a reason of the policy's own is
    # better and replaces it.
    reasons_by_field = {action.name: reason for reason in shared for action in policy.required}
    reasons_by_field |= {field.field: field.reason for field in kept_fields if field.policy == policy.name}
    result = PodBeforeAndAfter(
        before=before, after=after, places=policy.select_containers(after), kept_reasons=reasons_by_field
    )
    for action in policy.required:
        field = action.unmet(action.settings, result)
        if field is None:
            continue
        kept_reason = (
            reasons_by_field.get(field) or reasons_by_field.get(action.name) or reasons_by_field.get(action.word)
        )
        tail = f": {kept_reason.sentence} [{kept_reason.code.name}]" if kept_reason is not None else ""
        code = kept_reason.code if kept_reason is not None else reasons.REQUIRED
        return _refusal_reason(f"{policy.name} requires {field}, but the pod would run without it{tail}", code)
    return None


def _refusal_reason(sentence: str, code: Code = reasons.REQUIRED) -> Reason:
    """Returns the reason for the refusal. Its sentence, which is all that the pod's author sees, names the command that
    explains `code`."""
    return reasons.REQUIRED(f"{sentence}. `trimtab explain {code.name}` says what to do")


def undecided_reason(names: tuple[str, ...], cause: str) -> Reason:
    """Returns the reason for refusing a pod that could not be decided on although these policies may require a change
    of it."""
    return _refusal_reason(
        f"{', '.join(names)} may require a change of the pod, but Trimtab could not decide this: {cause}"
    )


def requiring_policy_names(applicable: ApplicablePolicies | None) -> tuple[str, ...]:
    """Returns the names of the policies in effect that have a required action."""
    return (
        tuple(turn.name for turn in applicable.in_effect if turn.applies and turn.required)
        if applicable is not None
        else ()
    )
