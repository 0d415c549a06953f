"""Decides one pod: by the policies, without those changes that would keep the pod, or its siblings, from running, and
with a patch that is safe to send.

What the API server would reject is checked in `json_patch`. Here `OBJECTIONS` are asked about the pod before and after
the decision:

    object_to_quotas    all replicas of its owner fit the namespace's quotas (`quota_headroom`)
    object_to_nodes     a node can hold the changed pod, if one could hold the pod as submitted (`missing_node`)
    object_to_whole     the nodes and the API server accept a request of the pod as a whole (`whole_pod`)

The result holds for an owner and a template, not for one pod, so that all siblings get the same one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic.alias_generators import to_camel

from trimtab.admission.admission_result import AdmissionOutcome, PodDecision
from trimtab.admission.apiserver.resourcequota import (
    NO_ANSWERS,
    QuotaAnswers,
    explain_exceeded_quota,
    find_exceeded_quota,
    quota_increases,
    store_increases,
)
from trimtab.admission.json_patch import check_patch, diff_pods
from trimtab.admission.missing_node import explain_missing_node
from trimtab.admission.reasons import NODE_UNKNOWN, QUOTA_MAY_REFUSE
from trimtab.admission.whole_pod import explain_pod_level
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons, required_actions
from trimtab.policy.all_actions import ACTIONS_OF_WHOLE_PODS, ACTIONS_THAT_NODES_DECIDE, ACTIONS_THAT_QUOTAS_COUNT
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.changed_annotation import ChangedAnnotation, read_trusted_annotation
from trimtab.policy.decide import Decision, Watched, decide_with_policies, with_watched_changes
from trimtab.policy.match import always_left_alone
from trimtab.policy.pod_changes import FieldKept
from trimtab.policy.pod_context import PodBeforeAndAfter, PodContext, Withheld
from trimtab.policy.pod_size_limits import SizeExcess, find_excess
from trimtab.policy.podpolicy import Policies


def decide_pod(
    pod_context: PodContext,
    policies: Policies,
    annotation: ChangedAnnotation | None = None,
    answers: QuotaAnswers = NO_ANSWERS,
) -> PodDecision:
    """Decides a pod, builds the patch, and checks the patch before it is sent.

    `annotation`: what earlier calls of the webhook changed in the pod; it is passed to `decide_with_policies`.
    `answers`: the decisions about quotas that the pod's siblings got; those for this pod are added.
    """
    pod = pod_context.pod
    size_excess = find_excess(pod)
    if size_excess is not None and (oversized := _oversized_decision(size_excess, pod_context, policies)) is not None:
        return oversized
    if annotation is None:
        # The marker is read once for all decisions below: the author of the pod chose how large it is.
        annotation = read_trusted_annotation(pod, pod_context.namespace, pod_context.settings.signer)
    watched: list[Watched] = []
    decision, applicable = decide_with_policies(
        pod_context, policies, marked=annotation, is_marker_read=True, watched=watched
    )
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=with_watched_changes(decision, watched))
    if decision.skipped is not None:
        return PodDecision(outcome=AdmissionOutcome.SKIPPED, decision=decision)

    def decide_without(withheld: Withheld, watching: bool) -> tuple[Decision, ApplicablePolicies | None]:
        context, of_this = pod_context.with_withheld(withheld), watched if watching else []
        return decide_with_policies(
            context, policies, watching=watching, marked=annotation, is_marker_read=True, watched=of_this
        )

    decision, applicable = withhold_harmful_actions(pod_context, decision, applicable, decide_without, answers)
    decision = with_watched_changes(decision, watched)
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision)
    operations = diff_pods(pod, decision.pod)
    if not operations:
        return PodDecision(outcome=AdmissionOutcome.UNCHANGED, decision=decision)

    def decide_again(candidate: Pod) -> Pod:
        assert applicable is not None  # a skipped pod is not changed
        if applicable.subject.pod is candidate:
            return candidate  # the last decision was made on this very pod, and left it unchanged
        context = applicable.subject.with_pod(candidate)
        return decide_with_policies(
            context, policies, watching=False, like=applicable, marked=decision.marker, is_marker_read=True
        )[0].pod

    is_warned = any(kept_field.reason.code is QUOTA_MAY_REFUSE for kept_field in decision.fields_kept)
    pods = PodBeforeAndAfter(before=pod_context, after=pod_context.with_pod(decision.pod))
    patch_problem = check_patch(pods, operations, decide_again, quota_may_refuse=is_warned)
    if patch_problem is not None and (requiring := required_actions.requiring_policy_names(applicable)):
        denied = change(
            decision, pod=pod, changes=(), denied=required_actions.undecided_reason(requiring, patch_problem)
        )
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=denied, problem=patch_problem)
    if patch_problem is not None:
        return PodDecision(outcome=AdmissionOutcome.UNSAFE, decision=decision, problem=patch_problem)
    if answers is not NO_ANSWERS and not is_warned:
        store_increases(quota_increases(pods), pods.after, answers)
    return PodDecision(outcome=AdmissionOutcome.CHANGED, decision=decision, operations=operations)


def _oversized_decision(size_excess: SizeExcess, pod_context: PodContext, policies: Policies) -> PodDecision | None:
    """Returns the decision on a pod that is too large to be decided. None if the pod is not too large, or if no policy
    would be evaluated for it anyway."""
    if always_left_alone(pod_context) is not None:
        return None
    pod = pod_context.pod
    names = required_actions.required_policies_for(
        policies, pod_context.facts, pod_context.namespace, pod_context.settings, pod
    )
    if names:
        denied = required_actions.undecided_reason(names, str(size_excess))
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=Decision(pod=pod, denied=denied))
    skipped = reasons.TOO_LARGE(str(size_excess))
    return PodDecision(
        outcome=AdmissionOutcome.TOO_LARGE,
        decision=Decision(pod=pod, skipped=skipped),
        problem=f"{skipped} [{skipped.code.name}]",
    )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps the changed pod, or one of its siblings, from running."""

    reason: Reason
    actions: tuple[str, ...]
    """The names of the actions that may be the cause."""
    quota: str | None = None
    """The name of the ResourceQuota that has no room, or None if it is something else."""

    @property
    def is_certain(self) -> bool:
        """Whether the actions that may be the cause must be withheld. If not, the obstacle is only reported."""
        return self.reason.code is not NODE_UNKNOWN


Objection = Callable[[PodBeforeAndAfter, QuotaAnswers], Obstacle | None]
"""A function that returns what keeps the changed pod from running and not the pod as submitted, or None. The answers
are the decisions about quotas that the pod's siblings got."""


def object_to_quotas(pods: PodBeforeAndAfter, answers: QuotaAnswers) -> Obstacle | None:
    """Returns the ResourceQuota that has no room for all pods of the owner after the changes, or None if all have."""
    increases = quota_increases(pods)
    exceeded = find_exceeded_quota(increases, pods.after, answers) if increases else None
    if exceeded is None:
        return None
    return Obstacle(
        explain_exceeded_quota(*exceeded, pods.after), ACTIONS_THAT_QUOTAS_COUNT, quota=exceeded[0].metadata.name
    )


def object_to_nodes(pods: PodBeforeAndAfter, answers: QuotaAnswers) -> Obstacle | None:
    """Returns why no node can hold the changed pod; None if one can, or if none could hold the pod as submitted."""
    reason = explain_missing_node(pods)
    return None if reason is None else Obstacle(reason, ACTIONS_THAT_NODES_DECIDE)


def object_to_whole(pods: PodBeforeAndAfter, answers: QuotaAnswers) -> Obstacle | None:
    """Returns why the pod must not request for all its containers together, or None if it may or does not."""
    before, after = pods.before.pod.spec.resources, pods.after.pod.spec.resources
    reason = None if before == after else explain_pod_level(pods)
    return None if reason is None else Obstacle(reason, ACTIONS_OF_WHOLE_PODS)


OBJECTIONS: tuple[Objection, ...] = (object_to_whole, object_to_quotas, object_to_nodes)


def find_obstacle(
    pods: PodBeforeAndAfter, answers: QuotaAnswers = NO_ANSWERS, objections: Sequence[Objection] = OBJECTIONS
) -> Obstacle | None:
    """Returns what the first objection to the changed pod is, or None if there is none."""
    if pods.before.pod.spec == pods.after.pod.spec:
        return None
    try:
        return next((obstacle for object_to in objections if (obstacle := object_to(pods, answers)) is not None), None)
    except NotAQuantity:
        return None  # the API server rejects such a pod with or without the changes


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
    pod_context: PodContext,
    decision: Decision,
    applicable: ApplicablePolicies | None,
    without: Without,
    answers: QuotaAnswers = NO_ANSWERS,
) -> tuple[Decision, ApplicablePolicies | None]:
    """Returns the decision about the pod without the actions that would keep it, or its siblings, from running.

    As few actions as possible are withheld, beginning with those of the policies that were applied last. An action that
    a policy requires is never withheld: the API server's quota may then reject the pod, and a warning says why.
    """
    withheld: dict[tuple[str, str], Reason] = {}
    over_quota: Obstacle | None = None
    objections = OBJECTIONS
    trials, max_trials = 0, _max_trials(pod_context.pod)

    def obstacle_to(after: Pod) -> Obstacle | None:
        if after is pod_context.pod:
            return None
        return find_obstacle(
            PodBeforeAndAfter(before=pod_context, after=pod_context.with_pod(after)), answers, objections
        )

    current = obstacle_to(decision.pod)
    while current is not None:
        culprits = [c for c in _culprits(decision, applicable, current.actions) if c not in withheld]
        if not culprits and current.quota is not None:
            # Nothing can be withheld for the quota; the pod still needs a node.
            over_quota = current
            objections = tuple(objection for objection in OBJECTIONS if objection is not object_to_quotas)
            current = obstacle_to(decision.pod)
            continue
        if not culprits or not current.is_certain:
            required = _culprits(decision, applicable, current.actions, required=True)
            decision = _with_warning(decision, current, [*culprits, *required])
            break
        # One action at a time is withheld first: the first trial without the same obstacle costs the fewest changes.
        # Only if no single action is the cause, or trials run out, several of them are withheld (`else`).
        for culprit in culprits if trials + len(culprits) <= max_trials else ():
            trial = without({**withheld, culprit: current.reason}, False)
            trials += 1
            if not _same_kind(obstacle_to(trial[0].pod), current):
                withheld[culprit] = current.reason
                break
        else:
            needed = dict.fromkeys(culprits, current.reason)
            # Each that is not among the causes comes back, those of the policy applied first before the others.
            for culprit in reversed(culprits) if trials + len(culprits) <= max_trials else ():
                fewer = {other: reason for other, reason in needed.items() if other != culprit}
                trial = without({**withheld, **fewer}, False)
                trials += 1
                if not _same_kind(obstacle_to(trial[0].pod), current):
                    needed = fewer
            withheld |= needed
        decision, applicable = without(withheld, True)
        current = obstacle_to(decision.pod)
    if over_quota is None:
        return decision, applicable
    required = _culprits(decision, applicable, over_quota.actions, required=True)
    over_quota = _required_obstacle(pod_context, decision.pod, over_quota, required)
    return _with_warning(decision, over_quota, required), applicable


def _same_kind(retried: Obstacle | None, original: Obstacle) -> bool:
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


def _required_obstacle(
    pod_context: PodContext, after: Pod, base: Obstacle, required: list[tuple[str, str]]
) -> Obstacle:
    """Returns the obstacle; if a policy requires the change, with another reason, which says how much of the amount
    the policy adds. In that case the API server's quota decides whether the pod is created, and the author should know
    the policy's part."""
    if not required:
        return base
    name = value_or(after.spec.runtime_class_name, "")
    classes = pod_context.facts.runtime_classes
    overhead = classes[name].overhead.pod_fixed if name in classes else {}
    is_new = name != value_or(pod_context.pod.spec.runtime_class_name, "")
    if is_new and overhead and any(action == "runtime_class" for _, action in required):
        amounts = ", ".join(f"{resource} {value}" for resource, value in sorted(overhead.items()))
        cause = f"RuntimeClass {name} adds an overhead of {amounts} to the pod"
    else:
        cause = "the policy requires this action"
    sentence = f"{cause}, but ResourceQuota {base.quota} may refuse the pod: {base.reason.sentence}"
    return replace(base, reason=QUOTA_MAY_REFUSE(sentence))


def _with_warning(decision: Decision, reported: Obstacle, culprits: list[tuple[str, str]]) -> Decision:
    policy, action = culprits[0] if culprits else ("", reported.actions[0])
    kept_field = FieldKept(field=to_camel(action), policy=policy, reason=reported.reason, loud=True)
    return change(decision, fields_kept=(*decision.fields_kept, kept_field))
