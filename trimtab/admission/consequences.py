"""Could the pod that comes out still run, and all its siblings?

What the API server would refuse is asked elsewhere (`check`); here the outcome is looked at as a whole:

    a node      is there one that could hold it as it would be, if there was one before (`missing_node`)?
    the quota   would all replicas of its owner fit (`quota_room`)?

An answer is given for an owner and a template, not for a pod: siblings get the same one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic.alias_generators import to_camel

from trimtab.admission.missing_node import missing_node
from trimtab.admission.quota_headroom import NO_ANSWERS, QuotaAnswers, raised, unfit, words_of
from trimtab.cluster.api.meta import change, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision
from trimtab.policy.pod_changes import FieldKept
from trimtab.policy.pod_context import AdmissionSettings, PodContext, Withheld

NODE_ACTIONS = ("placement", "runtime_class", "requests", "limits")
QUOTA_ACTIONS = ("requests", "limits", "runtime_class", "overhead", "priority_class")


@dataclass(frozen=True, slots=True)
class Objection:
    """Why the pod should not come out as it would."""

    reason: Reason
    actions: tuple[str, ...]
    """Which actions of policies can be the cause."""
    prevents: bool = True
    """Must the cause be taken back? Otherwise it is only told: nobody can know."""
    quota: str | None = None
    """The ResourceQuota that has no room; None where it is about something else."""


def objection(
    before: Pod,
    after: Pod,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings,
    *,
    of_quotas: bool = True,
    answers: QuotaAnswers = NO_ANSWERS,
) -> Objection | None:
    """The first thing that speaks against the outcome and did not speak against the pod as it came; None: nothing.

    of_quotas: without it, only nodes are looked at.
    answers: what siblings were told.
    """
    if before is after or before.spec == after.spec:
        return None
    try:
        found = _exceeded(before, after, facts, namespace, terms, answers) if of_quotas else None
        return found or _without_node(before, after, facts, namespace, terms)
    except NotAQuantity:
        return None  # the API server refuses such a pod, whoever changed it


def _without_node(
    before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings
) -> Objection | None:
    reason = missing_node(before, after, facts, namespace, terms)
    if reason is None:
        return None
    return Objection(reason, NODE_ACTIONS, prevents=reason.code is not reasons.NODE_UNKNOWN)


def _exceeded(
    before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings, answers: QuotaAnswers
) -> Objection | None:
    subject = PodContext(pod=after, namespace=namespace, facts=facts)
    found = unfit(raised(before, after, facts, namespace, terms), subject, answers)
    if found is None:
        return None
    return Objection(words_of(*found, subject), QUOTA_ACTIONS, quota=found[0].metadata.name)


# What is taken back ------------------------------------------------------------------------------------------------

Without = Callable[[Withheld, bool], tuple[Decision, ApplicablePolicies | None]]
"""The decision on the same pod without some actions; with True, all that is said of it, too (`watching`)."""
_MOST_TRIALS = 32
"""Decisions more for one pod. Where that is not enough, nothing that may be the cause is done."""
_MOST_TRIED_CONTAINERS = 2 * _MOST_TRIALS
"""Containers decided about in all trials together: whoever creates a pod of a hundred chooses what is tried, too."""
_MOST_TRIED_IN_ONE = 16
"""Containers of a pod beyond which nothing is tried: too few trials would be left to find anything."""


def _most_trials(pod: Pod) -> int:
    count = len(pod.spec.containers) + len(pod.spec.init_containers)
    return min(_MOST_TRIALS, _MOST_TRIED_CONTAINERS // max(1, count)) if count <= _MOST_TRIED_IN_ONE else 0


def sound(
    pod: Pod,
    decision: Decision,
    asked: ApplicablePolicies | None,
    without: Without,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings,
    answers: QuotaAnswers = NO_ANSWERS,
) -> tuple[Decision, ApplicablePolicies | None]:
    """The decision without what would keep the pod, or its siblings, from running: as little as possible of it, the
    policies asked last first. What a policy requires is never taken back; then the server's own quota may refuse the
    pod, and the warning says why."""
    withheld: dict[tuple[str, str], Reason] = {}
    over_quota: Objection | None = None
    trials, most_trials = 0, _most_trials(pod)

    def against(after: Pod) -> Objection | None:
        return objection(pod, after, facts, namespace, terms, of_quotas=over_quota is None, answers=answers)

    found = against(decision.pod)
    while found is not None:
        culprits = [c for c in _culprits(decision, asked, found.actions) if c not in withheld]
        if not culprits and found.quota is not None:
            over_quota = found  # it stays; a node is to be found all the same
            found = against(decision.pod)
            continue
        if not culprits or not found.prevents:
            required = _culprits(decision, asked, found.actions, required=True)
            decision = _told(decision, found, [*culprits, *required])
            break
        for culprit in culprits if trials + len(culprits) <= most_trials else ():
            trial = without({**withheld, culprit: found.reason}, False)
            trials += 1
            if not _same_kind(against(trial[0].pod), found):
                withheld[culprit] = found.reason
                break
        else:
            withheld |= dict.fromkeys(culprits, found.reason)
        decision, asked = without(withheld, True)
        found = against(decision.pod)
    if over_quota is None:
        return decision, asked
    required = _culprits(decision, asked, over_quota.actions, required=True)
    return _told(decision, _required_words(pod, decision.pod, facts, over_quota, required), required), asked


def _same_kind(still: Objection | None, found: Objection) -> bool:
    return still is not None and still.reason.code is found.reason.code


def _culprits(
    decision: Decision, asked: ApplicablePolicies | None, actions: tuple[str, ...], *, required: bool = False
) -> list[tuple[str, str]]:
    """(policy, action) of all that may be the cause, the policy that was asked last first: those that may be taken
    back, or those that are required."""
    changing = {change.policy for change in decision.changes}
    turns = [turn for turn in asked.ours if turn.applies and turn.name in changing] if asked is not None else []
    return [
        (turn.name, name)
        for turn in reversed(turns)
        for name, _, _ in turn.actions
        if name in actions and (name in {requirement.name for requirement in turn.required}) is required
    ]


def _required_words(
    before: Pod, after: Pod, facts: ClusterFacts, found: Objection, required: list[tuple[str, str]]
) -> Objection:
    """The objection in the words for what stays because a policy requires it. The server's quota decides on the pod;
    whoever reads its refusal should know what of it the policy has added."""
    if not required:
        return found
    name = get(after.spec.runtime_class_name, "")
    brought = facts.runtime_classes[name].overhead.pod_fixed if name in facts.runtime_classes else {}
    is_new = name != get(before.spec.runtime_class_name, "")
    if is_new and brought and any(action == "runtime_class" for _, action in required):
        amounts = ", ".join(f"{resource} {value}" for resource, value in sorted(brought.items()))
        cause = f"RuntimeClass {name} adds an overhead of {amounts}"
    else:
        cause = "the policy requires it"
    sentence = f"{cause}; ResourceQuota {found.quota} may refuse the pod: {found.reason.sentence}"
    return replace(found, reason=reasons.QUOTA_MAY_REFUSE(sentence))


def _told(decision: Decision, found: Objection, culprits: list[tuple[str, str]]) -> Decision:
    policy, action = culprits[0] if culprits else ("", found.actions[0])
    left = FieldKept(field=to_camel(action), policy=policy, reason=found.reason, loud=True)
    return change(decision, left=(*decision.left, left))
