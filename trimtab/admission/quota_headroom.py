"""Checks that all replicas of a pod's owner fit into the namespace's quotas after the changes, including the surge of a
rollout.

One decision is made for an owner and a template, not for each pod, so that all siblings get the same one. While they
are being created, a quota's `used` includes them at once, but the owner's status includes them only when its controller
has created all of them. So the two do not show which part of the usage belongs to the siblings.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from trimtab.admission.apiserver import resourcequota as quotas
from trimtab.admission.apiserver.runtimeclass import with_class_overhead
from trimtab.admission.reasons import QUOTA_ROOM_UNKNOWN, QUOTA_TOO_CLOSE, QUOTA_WOULD_REFUSE
from trimtab.cluster import quantity
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.fair_share import FairCache
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey, referenced_owner
from trimtab.cluster.reason import Reason
from trimtab.cluster.resource_quotas import effective_hard, quota_covers, quota_rejecting_pod
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import OWNERS
from trimtab.policy.pod_context import PodBeforeAndAfter, PodContext

MARGIN_PERCENT = 10
"""The percentage of a quota that must stay free after the increase, because `used` does not yet include the newest
pods."""
_TEMPLATE_LABELS = ("pod-template-hash", "controller-revision-hash")


class QuotaIncrease(msgspec.Struct, frozen=True, gc=False):
    """An amount by which the changes increase what a pod uses of a quota."""

    quota: str
    name: str
    each: int
    """The increase per pod in billionths of a unit, as `quantity.parse` counts."""
    written: str


class AnswerKey(NamedTuple):
    """What siblings have in common."""

    namespace: str
    owner_uid: str
    """The UID of the direct owner."""
    template: str
    increase: QuotaIncrease
    hard: int
    """The hard limit of the quota."""
    pods: int


@dataclass(eq=False)
class QuotaAnswers:
    """The decisions made so far, and how much of each quota they have promised. Their number is limited, and one
    namespace's decisions drop no other's. Only one thread may use it."""

    max_answers: int = 4096
    waits: bool = field(default=False, init=False)
    """Whether the caller can wait for an owner that no watch has reported yet, and then calls again."""
    awaited: OwnerKey | None = field(default=None, init=False)
    """The owner for which the caller waits, if the present pod depends on it; no decision is then stored."""
    _answers: FairCache[AnswerKey, bool] = field(init=False)
    _promised_each: dict[tuple[str, str, str], dict[OwnerKey, int]] = field(default_factory=dict)
    """(namespace, quota, amount) → owner → how much each of its pods may use."""

    def __post_init__(self) -> None:
        self._answers = FairCache(self.max_answers)

    def begin_pod(self, *, waits: bool) -> None:
        """Starts the check of the next pod."""
        self.waits, self.awaited = waits and self.max_answers > 0, None

    def find_answer(self, key: AnswerKey | None) -> bool | None:
        """Returns the decision that siblings got, or None if there is none."""
        return None if key is None else self._answers.find_entry(key.namespace, key)

    def store_answer(self, key: AnswerKey | None, answer: bool) -> None:
        if key is not None and self.max_answers > 0:
            self._answers.store_entry(key.namespace, key, answer)

    def promise_amount(self, namespace: str, increase: QuotaIncrease, owner: OwnerKey) -> None:
        """Records that all pods of this owner may use the amount."""
        by_owner = self._promised_each.setdefault((namespace, increase.quota, increase.name), {})
        if len(by_owner) < self.max_answers:
            by_owner[owner] = increase.each

    def outstanding_amount(self, increase: QuotaIncrease, pod_context: PodContext, except_owner: OwnerKey) -> int:
        """Returns the amount that was promised to pods of other owners, as far as these pods do not exist yet according
        to the owners' status."""
        by_owner = self._promised_each.get((pod_context.namespace, increase.quota, increase.name), {})
        total = 0
        for owner, each in list(by_owner.items()):
            wanted = pod_context.facts.replicas.get(owner)
            missing = 0 if wanted is None else wanted.wanted - pod_context.facts.updated.get(owner, 0)
            if missing <= 0:
                del by_owner[owner]
            elif owner != except_owner:
                total += missing * each
        return total


NO_ANSWERS = QuotaAnswers(max_answers=0)
"""The value for pods that are checked one by one, as from a file: no decisions about quotas are stored."""


def quota_increases(pods: PodBeforeAndAfter) -> tuple[QuotaIncrease, ...]:
    """Returns all amounts that quotas count and that the changes have increased.

    If a quota would reject the pod as submitted, because the pod does not specify all counted amounts, and the changed
    pod specifies them, the quota is left out: the pod cannot be worse off.
    """
    quotas_here = pods.after.facts.quotas.get(pods.after.namespace, ())
    if not quotas_here:
        return ()
    changed, submitted = (subject.compute_once(with_class_overhead) for subject in (pods.after, pods.before))
    charged, charged_before = quotas.quota_usage(changed), quotas.quota_usage(submitted)
    return tuple(
        QuotaIncrease(quota.metadata.name, name, quantity.parse(charged[name]), str(charged[name]))
        for quota in quotas_here
        if quota_covers(quota, changed)
        if quota_rejecting_pod((quota,), submitted) is None or quota_rejecting_pod((quota,), changed) is not None
        for counted in (charged_before if quota_covers(quota, submitted) else {},)
        for name in effective_hard(quota)
        if name in charged and quantity.compare_quantities(charged[name], counted.get(name, 0)) > 0
    )


def find_exceeded_quota(
    raises: tuple[QuotaIncrease, ...], pod_context: PodContext, answers: QuotaAnswers = NO_ANSWERS
) -> tuple[ResourceQuota, QuotaIncrease] | None:
    """Returns the first increase that does not fit for all pods of the owner, with its quota, or None if all fit."""
    by_name = (
        {quota.metadata.name: quota for quota in pod_context.facts.quotas.get(pod_context.namespace, ())}
        if raises
        else {}
    )
    for increase in raises:
        if not _has_room(by_name[increase.quota], increase, pod_context, answers):
            return by_name[increase.quota], increase
    return None


def store_increases(raises: tuple[QuotaIncrease, ...], pod_context: PodContext, answers: QuotaAnswers) -> None:
    """Records that the pod is admitted with these increases, so that its siblings are admitted with them too."""
    if not raises:
        return
    by_name = {quota.metadata.name: quota for quota in pod_context.facts.quotas.get(pod_context.namespace, ())}
    replicas, owner = largest_pod_count(pod_context), _counted_owner(pod_context)
    if replicas is None or owner is None:
        return
    for increase in raises:
        answers.store_answer(
            _answer_key(increase, pod_context, _hard_limit(by_name[increase.quota], increase), replicas), True
        )
        answers.promise_amount(pod_context.namespace, increase, owner)


def _hard_limit(quota: ResourceQuota, increase: QuotaIncrease) -> int:
    return quantity.parse(effective_hard(quota)[increase.name])


def _has_room(quota: ResourceQuota, increase: QuotaIncrease, pod_context: PodContext, answers: QuotaAnswers) -> bool:
    """Returns whether there is room for every pod that the owner has not created yet, with `MARGIN_PERCENT` of the
    quota to spare.

    - Pods that exist are in `used` already, with whatever they requested.
    - If the number of pods is unknown, the answer is no. Siblings then get the same answer until all of them exist.
    - Siblings get the decision of the first pod. If that allowed the increase but other pods have used the room since,
      the answer for this pod is no, because the quota would reject it.
    """
    used, hard = quantity.parse(quota.status.used.get(increase.name, 0)), _hard_limit(quota, increase)
    replicas, owner = largest_pod_count(pod_context), _counted_owner(pod_context)
    unknown_key = _answer_key(increase, pod_context, hard, _UNKNOWN_REPLICAS)
    if replicas is None or owner is None:
        unseen_owner = _unseen_controller(pod_context) if answers.waits else None
        if unseen_owner is None:
            answers.store_answer(unknown_key, False)
        else:
            answers.awaited = unseen_owner
        return False
    existing, wanted = _updated_pods(pod_context), pod_context.replicas
    if wanted is not None and existing < wanted.wanted and answers.find_answer(unknown_key) is False:
        return False
    key = _answer_key(increase, pod_context, hard, replicas)
    stored = answers.find_answer(key)
    if stored is not None:
        return stored and used + increase.each <= hard
    expected_use = (
        used + answers.outstanding_amount(increase, pod_context, owner) + max(1, replicas - existing) * increase.each
    )
    fits = expected_use * 100 <= hard * (100 - MARGIN_PERCENT)
    if not fits:
        answers.store_answer(key, False)
    return fits


_UNKNOWN_REPLICAS = -1


def _unseen_controller(pod_context: PodContext) -> OwnerKey | None:
    """Returns the pod's controller if its kind is watched and no watch has reported it yet, because it was just
    created; otherwise None."""
    controller = pod_context.pod.metadata.controller_owner
    if controller is None or not controller.uid:
        return None
    target = referenced_owner(controller, pod_context.namespace)
    return None if target.kind not in OWNERS or target in pod_context.facts.owners else target


def _answer_key(increase: QuotaIncrease, pod_context: PodContext, hard: int, replicas: int) -> AnswerKey | None:
    """Returns the key of a decision, or None for a pod without a controller, or whose controller has no UID."""
    controller = pod_context.pod.metadata.controller_owner
    if controller is None or not controller.uid:
        return None
    template = next((pod_context.labels[label] for label in _TEMPLATE_LABELS if label in pod_context.labels), "")
    return AnswerKey(pod_context.namespace, controller.uid, template, increase, hard, replicas)


def _counted_owner(pod_context: PodContext) -> OwnerKey | None:
    """Returns the topmost owner whose number of pods is known; for a pod without an owner, the key of an object that
    does not exist."""
    if not pod_context.owners:
        return OwnerKey(pod_context.namespace, POD, "")
    return next((owner for owner in reversed(pod_context.owners) if owner in pod_context.facts.replicas), None)


def largest_pod_count(pod_context: PodContext) -> int | None:
    """Returns the largest number of pods that the owner may have at once: by its replicas, by its HPA, and during a
    rollout.

    None if that is unknown. It is also unknown for an owner that wants no pods and yet creates one, because it was
    scaled up a moment ago.
    """
    wanted = pod_context.replicas
    if wanted is None or wanted.wanted == 0:
        return None
    return max(wanted.wanted, autoscalers.max_replicas(pod_context)) + wanted.surge


def _updated_pods(pod_context: PodContext) -> int:
    """Returns the number of existing pods of the owner's current template.

    It is 0 for a ReplicaSet that no watch has reported yet. It is also 0 for a ReplicaSet of another revision than its
    Deployment's, because the Deployment's status then describes the previous revision.
    """
    targets = pod_context.owners
    if targets and targets[0] not in pod_context.facts.owners:
        return 0
    known_replicas = (pod_context.facts.replicas.get(target) for target in targets)
    if len({replicas.revision for replicas in known_replicas if replicas is not None and replicas.revision}) > 1:
        return 0
    counts = (pod_context.facts.updated.get(target) for target in targets)
    return next((count for count in counts if count is not None), 0)


def explain_exceeded_quota(quota: ResourceQuota, increase: QuotaIncrease, pod_context: PodContext) -> Reason:
    """Returns the reason why an increase does not fit its quota."""
    replicas, name = largest_pod_count(pod_context), quota.metadata.name
    if replicas is None:
        owner = pod_context.top_owner or "the pod"
        return QUOTA_ROOM_UNKNOWN(
            f"ResourceQuota {name} counts {increase.name}, and Trimtab does not know how many pods {owner} creates"
        )
    used, limit = quota.status.used.get(increase.name, "0"), effective_hard(quota)[increase.name]
    missing = max(1, replicas - _updated_pods(pod_context))
    pods = f"for each of {format_count(replicas, 'pod')}" if replicas > 1 else "for the pod"
    amount = f"{increase.name} {increase.written} {pods}"
    state = f"of which {used} of {limit} is used"
    if quantity.parse(used) + missing * increase.each <= quantity.parse(limit):
        return QUOTA_TOO_CLOSE(
            f"{amount} would fit into ResourceQuota {name}, {state}, but would leave less than {MARGIN_PERCENT}% of it"
        )
    return QUOTA_WOULD_REFUSE(f"{amount} would exceed ResourceQuota {name}, {state}")
