"""Removes those changes from a decision that would keep the pod, or its siblings, from running.

What the API server would reject is checked in `json_patch`. Here two conditions on the whole pod are checked:

    node        a node can hold the changed pod, if one could hold the pod as submitted (`missing_node`)
    quota       all replicas of its owner fit the namespace's quotas (`quota_headroom`)

The result holds for an owner and a template, not for one pod, so that all siblings get the same one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic.alias_generators import to_camel

from trimtab.admission.missing_node import explain_missing_node
from trimtab.admission.quota_headroom import (
    NO_ANSWERS,
    QuotaAnswers,
    explain_exceeded_quota,
    find_exceeded_quota,
    quota_increases,
)
from trimtab.admission.reasons import QUOTA_MAY_REFUSE
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.all_actions import ACTIONS_THAT_NODES_DECIDE, ACTIONS_THAT_QUOTAS_COUNT
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision
from trimtab.policy.pod_changes import FieldKept
from trimtab.policy.pod_context import AdmissionSettings, PodContext, Withheld


@dataclass(frozen=True, slots=True)
class Objection:
    """Why the changed pod would not run."""

    reason: Reason
    actions: tuple[str, ...]
    """The actions, as (policy, action), that may be the cause."""
    prevents: bool = True
    """Whether the actions that may be the cause must be withheld. If False, the objection is uncertain and is only
    reported."""
    quota: str | None = None
    """The name of the ResourceQuota that has no room, or None if the objection is about something else."""


def find_objection(
    before: Pod,
    after: Pod,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings,
    *,
    of_quotas: bool = True,
    answers: QuotaAnswers = NO_ANSWERS,
) -> Objection | None:
    """Returns the first objection to the changed pod that does not also apply to the pod as submitted, or None if there
    is none.

    `of_quotas`: False to check only nodes. `answers`: the decisions about quotas that the pod's siblings got.
    """
    if before is after or before.spec == after.spec:
        return None
    try:
        quota_objection = _quota_objection(before, after, facts, namespace, terms, answers) if of_quotas else None
        return quota_objection or _node_objection(before, after, facts, namespace, terms)
    except NotAQuantity:
        return None  # the API server rejects such a pod with or without the changes


def _node_objection(
    before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings
) -> Objection | None:
    reason = explain_missing_node(before, after, facts, namespace, terms)
    if reason is None:
        return None
    return Objection(reason, ACTIONS_THAT_NODES_DECIDE, prevents=reason.code is not reasons.NODE_UNKNOWN)


def _quota_objection(
    before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings, answers: QuotaAnswers
) -> Objection | None:
    increases = quota_increases(before, after, facts, namespace, terms)
    if not increases:
        return None
    subject = PodContext(pod=after, namespace=namespace, facts=facts)
    exceeded = find_exceeded_quota(increases, subject, answers)
    if exceeded is None:
        return None
    return Objection(
        explain_exceeded_quota(*exceeded, subject), ACTIONS_THAT_QUOTAS_COUNT, quota=exceeded[0].metadata.name
    )


Without = Callable[[Withheld, bool], tuple[Decision, ApplicablePolicies | None]]
"""A function that decides the same pod again without some actions. If its second argument (`watching`) is True, it also
collects the reasons why fields are not changed."""
_MAX_TRIALS = 32
"""The maximum number of additional decisions for one pod. If they are not enough, all actions that may be the cause are
withheld."""
_MAX_CONTAINERS_OVER_TRIALS = 2 * _MAX_TRIALS
"""The maximum number of containers that are decided in all trials together. It limits the cost, because the author of a
pod chooses the number of containers."""
_MAX_CONTAINERS_PER_TRIAL = 16
"""The maximum number of containers in a pod for which trials are made. For a larger pod, too few trials would be
possible to find the cause."""


def _max_trials(pod: Pod) -> int:
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return min(_MAX_TRIALS, _MAX_CONTAINERS_OVER_TRIALS // max(1, count)) if count <= _MAX_CONTAINERS_PER_TRIAL else 0


def withhold_harmful_actions(
    pod: Pod,
    decision: Decision,
    applicable: ApplicablePolicies | None,
    without: Without,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings,
    answers: QuotaAnswers = NO_ANSWERS,
) -> tuple[Decision, ApplicablePolicies | None]:
    """Returns the decision without the actions that would keep the pod, or its siblings, from running.

    As few actions as possible are withheld, beginning with those of the policies that were applied last. An action that
    a policy requires is never withheld: the API server's quota may then reject the pod, and a warning says why.
    """
    withheld: dict[tuple[str, str], Reason] = {}
    over_quota: Objection | None = None
    trials, max_trials = 0, _max_trials(pod)

    def against(after: Pod) -> Objection | None:
        return find_objection(pod, after, facts, namespace, terms, of_quotas=over_quota is None, answers=answers)

    current = against(decision.pod)
    while current is not None:
        culprits = [c for c in _culprits(decision, applicable, current.actions) if c not in withheld]
        if not culprits and current.quota is not None:
            over_quota = current  # nothing can be withheld for the quota; the pod still needs a node
            current = against(decision.pod)
            continue
        if not culprits or not current.prevents:
            required = _culprits(decision, applicable, current.actions, required=True)
            decision = _with_warning(decision, current, [*culprits, *required])
            break
        # One action at a time is withheld first: the first trial without the same objection costs the fewest changes.
        # Only if no single action is the cause, or trials run out, several of them are withheld (`else`).
        for culprit in culprits if trials + len(culprits) <= max_trials else ():
            trial = without({**withheld, culprit: current.reason}, False)
            trials += 1
            if not _same_kind(against(trial[0].pod), current):
                withheld[culprit] = current.reason
                break
        else:
            needed = dict.fromkeys(culprits, current.reason)
            # Each that is not among the causes comes back, those of the policy applied first before the others.
            for culprit in reversed(culprits) if trials + len(culprits) <= max_trials else ():
                fewer = {other: reason for other, reason in needed.items() if other != culprit}
                trial = without({**withheld, **fewer}, False)
                trials += 1
                if not _same_kind(against(trial[0].pod), current):
                    needed = fewer
            withheld |= needed
        decision, applicable = without(withheld, True)
        current = against(decision.pod)
    if over_quota is None:
        return decision, applicable
    required = _culprits(decision, applicable, over_quota.actions, required=True)
    return _with_warning(
        decision, _required_objection(pod, decision.pod, facts, over_quota, required), required
    ), applicable


def _same_kind(retried: Objection | None, original: Objection) -> bool:
    return retried is not None and retried.reason.code is original.reason.code


def _culprits(
    decision: Decision, applicable: ApplicablePolicies | None, actions: tuple[str, ...], *, required: bool = False
) -> list[tuple[str, str]]:
    """Returns (policy, action) for all actions that may be the cause, those of the policy applied last first. They are
    the actions that may be withheld or, with `required`, the actions that a policy requires."""
    changing = {change.policy for change in decision.changes}
    compiled = (
        [
            policy
            for policy in (*applicable.earlier, *applicable.in_effect)
            if policy.applies and policy.name in changing
        ]
        if applicable is not None
        else []
    )
    return [
        (policy.name, name)
        for policy in reversed(compiled)
        for name, _, _ in policy.actions
        if name in actions and (name in {requirement.name for requirement in policy.required}) is required
    ]


def _required_objection(
    before: Pod, after: Pod, facts: ClusterFacts, base: Objection, required: list[tuple[str, str]]
) -> Objection:
    """Returns the objection; if a policy requires the change, with another reason, which says how much of the amount
    the policy adds. In that case the API server's quota decides whether the pod is created, and the author should know
    the policy's part."""
    if not required:
        return base
    name = value_or(after.spec.runtime_class_name, "")
    overhead = facts.runtime_classes[name].overhead.pod_fixed if name in facts.runtime_classes else {}
    is_new = name != value_or(before.spec.runtime_class_name, "")
    if is_new and overhead and any(action == "runtime_class" for _, action in required):
        amounts = ", ".join(f"{resource} {value}" for resource, value in sorted(overhead.items()))
        cause = f"RuntimeClass {name} adds an overhead of {amounts} to the pod"
    else:
        cause = "the policy requires this action"
    sentence = f"{cause}, but ResourceQuota {base.quota} may refuse the pod: {base.reason.sentence}"
    return replace(base, reason=QUOTA_MAY_REFUSE(sentence))


def _with_warning(decision: Decision, reported: Objection, culprits: list[tuple[str, str]]) -> Decision:
    policy, action = culprits[0] if culprits else ("", reported.actions[0])
    kept_field = FieldKept(field=to_camel(action), policy=policy, reason=reported.reason, loud=True)
    return change(decision, fields_kept=(*decision.fields_kept, kept_field))
