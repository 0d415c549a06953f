"""Would this pod run without an action that its policy requires?

A required action is held against the pod as it will be, not against what was decided on the way: whatever kept it from
the pod (a contradiction, another policy, an opt-out by the author, a mistake of ours), the pod is denied and told why.
"""

from collections.abc import Iterable

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.applicable_policies import ApplicablePolicies, CompiledPolicy, turns
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.match import allows_opt_out, in_rollout, is_switched_off, namespace_name_test
from trimtab.policy.pod_changes import FieldKept
from trimtab.policy.pod_context import AdmissionSettings, PodBeforeAndAfter, PodContext
from trimtab.policy.podpolicy import Policies
from trimtab.policy.required_action_rules import required_actions


def required_policies_for(
    policies: Policies, facts: ClusterFacts, namespace: str, terms: AdmissionSettings, pod: Pod | None = None
) -> tuple[str, ...]:
    """The names of the policies with a required action that may mean a pod of this namespace.

    For whoever cannot decide a pod (it is too large, or makes no sense): with none of these it goes through unchanged,
    otherwise it is denied. Only the namespace is looked at, and the rollout where the pod is given; the cost does not
    grow with the pod. Empty while all changes are paused, and for namespaces whose pods are never changed.
    """
    requiring = policies.once(_requiring)
    if not requiring or is_switched_off(namespace, terms):
        return ()
    subject = PodContext(pod=pod or Pod(), namespace=namespace, facts=facts, terms=terms)
    found = (turn for turn in requiring if _may_mean(turn, subject))
    return tuple(turn.name for turn in found if pod is None or in_rollout(turn.policy, subject))


def _requiring(policies: Policies) -> tuple[CompiledPolicy, ...]:
    """The policies that change pods and have a required action."""
    return tuple(
        turn
        for turn in policies.once(turns)
        if turn.applies and turn.policy.spec.rollout > 0 and required_actions(turn.policy.spec.actions)
    )


def _may_mean(turn: CompiledPolicy, subject: PodContext) -> bool:
    namespaces = turn.policy.spec.match.namespaces
    if namespaces is not None and not namespace_name_test(namespaces)(subject.namespace):
        return False
    return turn.in_namespace(subject) and not (subject.opt_out == "namespace" and allows_opt_out(turn.policy, subject))


def find_refusal(
    first: ApplicablePolicies, last: ApplicablePolicies, after: Pod, left: Iterable[FieldKept]
) -> Reason | None:
    """Why the pod must be denied; None: it carries all that is required of it.

    first, last: who was asked about the pod as it came, and as it was in the last round. after: the pod as it will be.
    """
    asked = dict.fromkeys((*first.ours, *first.opted_out, *last.ours))
    requiring = [turn for turn in asked if turn.required and turn.applies]
    if not requiring:
        return None
    said = tuple(left)
    for turn in requiring:
        if turn in first.opted_out:
            if first.subject.opt_out == "pod":
                return reasons.REQUIRED(f"{turn.name} requires {_listed(turn)}, and the pod may not opt out by itself")
            continue
        found = _unmet(turn, first.subject, last.subject.as_now(after), said)
        if found is not None:
            return found
    return None


def _listed(turn: CompiledPolicy) -> str:
    return " and ".join(action.word for action in turn.required)


def _unmet(turn: CompiledPolicy, before: PodContext, after: PodContext, said: tuple[FieldKept, ...]) -> Reason | None:
    failed = {word: one.reason for one in said if _is_ours(one) for word in [action.name for action in turn.required]}
    left = failed | {one.field: one.reason for one in said if one.policy == turn.name}
    result = PodBeforeAndAfter(before=before, after=after, places=turn.select_containers(after), kept_reasons=left)
    for action in turn.required:
        field = action.unmet(action.settings, result)
        if field is None:
            continue
        why = left.get(field) or left.get(action.name) or left.get(action.word)
        tail = f": {why.sentence} [{why.code.name}]" if why is not None else ""
        return reasons.REQUIRED(f"{turn.name} requires {field}, and the pod would run without it{tail}")
    return None


def _is_ours(one: FieldKept) -> bool:
    """Did a step fail that is no policy's own?"""
    return not one.policy and one.reason.code is reasons.ACTION_FAILED


def undecided(names: tuple[str, ...], why: str) -> Reason:
    """Why a pod is denied that could not be decided, though these policies may require something of it."""
    return reasons.REQUIRED(f"{', '.join(names)} may require a change of the pod, and it could not be decided: {why}")


def requiring(asked: ApplicablePolicies | None) -> tuple[str, ...]:
    """The names of those asked that require something of the pod."""
    return tuple(turn.name for turn in asked.ours if turn.applies and turn.required) if asked is not None else ()
